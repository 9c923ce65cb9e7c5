#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The bpftrace scripts say of a workload what mr_probe, which is the workload,
# says itself: as many registrations, and the same times of each stage.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

count=12
scripts=/repo/tracing
report=$tmp/report.json
out=$tmp/out

# Runs SCRIPT during registrations of SIZE; what it printed is in $out.
trace() { # SCRIPT SIZE
	run "$scripts/$1" -c "$(command -v mr_probe) explain --size $2 --touched --count $count \
		--warmup 0 --json $report"
	is "$1 runs during mr_probe explain --size $2" "0 " "$ended $(cat "$tmp/err")"
	is "  which has made its registrations" "$count" "$(mr_json "$report" 'cases[*].reg[*].op' | wc -l)"
}

sum() { # PATH FIELD: the total of a report's field, and of how many
	mr_json "$report" "$1" "$2" | awk '{ sum += $1; n++ } END { printf "count %d total %d\n", n, sum }'
}

# "count N total N" of a map's key that stats() keeps.
printed() { # MAP KEY
	awk -v start="@$1[$2]: " '
		index($0, start) == 1 {
			split(substr($0, length(start) + 1), part, /[ ,]+/)
			print "count", part[2], "total", part[6]
		}' "$out"
}

# All samples of a map's histogram.
samples() { # MAP KEY
	awk -v start="@$1[$2]:" '
		/^@/ { inside = index($0, start) == 1 }
		inside && /\|/ { split($0, part, ")"); sum += part[2] }
		END { print sum + 0 }' "$out"
}

# "count N total N" of what MAP[COMM, pid] holds.
process() { # MAP COMM
	sed -nE "s/^@$1\[$2, [0-9]+\]: (count [0-9]+), average [0-9]+, (total [0-9]+)$/\1 \2/p" "$out"
}

# The same of a map that counts.
counted() { # MAP COMM
	sed -nE "s/^@$1\[$2, [0-9]+\]: ([0-9]+)$/\1/p" "$out"
}

happened() { # PATH: stages with a time above 0, by name
	mr_json "$report" "$1.stages_ns" | grep -o '"[a-z]*":[1-9]' | tr -d '":0-9' | sort -u |
		grep -vxE 'library|return' | xargs
}

trace mr_stages.bt 64K
is "  registrations: count and time are those of mr_probe" \
	"$(sum 'cases[*].reg[*]' kernel_total_ns)" "$(printed reg_all_sum_ns 64)"
is "  deregistrations: count and time are those of mr_probe" \
	"$(sum 'cases[*].dereg[*]' kernel_total_ns)" "$(printed dereg_all_sum_ns 64)"
for op in reg dereg; do
	like "  $op has stages" "$([ $op = reg ] && echo pin || echo unpin)" "$(happened "cases[*].${op}[*]")"
	for stage in $(happened "cases[*].${op}[*]"); do
		wanted=$(mr_json "$report" "cases[*].${op}[*]" "stages_ns.$stage" | grep -c '^[1-9]')
		got=$(printed "${op}_sum_ns" "64, $stage")
		is "  $op $stage: count and time are those of mr_probe" \
			"count $wanted $(sum "cases[*].${op}[*]" "stages_ns.$stage" | cut -d' ' -f3-)" "$got"
		is "  $op $stage: all of them are in its histogram" "$wanted" \
			"$(samples "${op}_ns" "64, $stage")"
	done
	is "  $op: no other stage" "$(happened "cases[*].${op}[*]" | wc -w)" \
		"$(grep -c "^@${op}_sum_ns\[" "$out")"
	is "  $op: the histogram of the whole" "$count" "$(samples "${op}_all_ns" 64)"
done

# Each size in its class.
while read -r size class; do
	trace mr_stages.bt "$size"
	is "  $size is in class $class KiB" "$count" "$(printed reg_all_sum_ns "$class" | cut -d' ' -f2)"
done <<-'END'
	4K 4
	8K 64
	1M 1024
	2M 16384
END

# A failure has its errno.
run "$scripts/mr_stages.bt" -c "$(command -v mr_probe) explain --size 64K --unmapped --count 1 --warmup 0"
like "mr_stages.bt counts a failure by its errno" '@reg_failed\[14\]: 1' "$(cat "$out")"

trace mr_join.bt 64K
for op in reg dereg; do
	kernel=$(process ${op}_kernel_ns mr_probe)
	: "${kernel:=0}"
	user=$(process ${op}_user_ns mr_probe)
	outside=$(process ${op}_outside_ns mr_probe)
	: "${outside:=0}"
	is "  $op: the kernel's part is what mr_probe has recorded" \
		"$(sum "cases[*].${op}[*]" kernel_total_ns)" "$kernel"
	is "  $op: each has its call" "$count" "$(cut -d' ' -f2 <<<"$user")"
	at_least "  $op: the call takes as long as the kernel or longer" "${kernel##* }" "${user##* }"
	is "  $op: and the difference is outside" "${user##* }" \
		"$((${kernel##* } + ${outside##* }))"
	is "  $op: nothing is unjoined" "" "$(grep -E "^@${op}_(user|kernel)_only\[mr_probe" "$out")"
done

join() { # OPTION...: mr_join.bt during mr_reg
	run "$scripts/mr_join.bt" -c "$(command -v mr_reg) $*"
	is "mr_join.bt runs during mr_reg $*" "0 " "$ended $(cat "$tmp/err")"
}

join --count 3 --leave exit
is "  the program's calls" "3 " \
	"$(process reg_user_ns mr_reg | cut -d' ' -f2) $(process dereg_user_ns mr_reg)"
is "  and the kernel's own deregistrations at its exit" 3 "$(counted dereg_kernel_only mr_reg)"
join --count 2 --by-write
is "  which does not call the library" " 2 2" "$(process reg_user_ns mr_reg) $(counted \
	reg_kernel_only mr_reg) $(counted dereg_kernel_only mr_reg)"
join --count 2 --unmapped
is "  whose calls fail in the kernel" "2 " \
	"$(process reg_user_ns mr_reg | cut -d' ' -f2) $(counted reg_user_only mr_reg)"

finish
