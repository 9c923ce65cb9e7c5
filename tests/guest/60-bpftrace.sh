#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# long: bookworm sid
# The bpftrace scripts say of a workload what mr_probe, which is the workload,
# says itself: as many registrations, and the same times of each stage.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/questions.sh
. "$(dirname "$0")/questions.sh"

count=12
report=$tmp/report.json

# Runs SCRIPT during a program; what it printed is in $out.
trace() { # SCRIPT PROGRAM [ARGUMENT...]
	run "$scripts/$1" 0 0 -c "$(command -v "$2") ${*:3}"
	is "$1 runs during ${*:2}" "0 " "$ended $(said)"
}

explain() { # SCRIPT
	trace "$1" mr_probe explain --size 64K --touched --count $count --warmup 0 --json "$report"
	is "  which has made its registrations" "$count" "$(mr_json "$report" 'cases[*].reg[*].op' | wc -l)"
}

sum() { # PATH FIELD: the total of a report's field, and of how many
	mr_json "$report" "$1" "$2" | awk '{ sum += $1; n++ } END { printf "count %d total %d\n", n, sum }'
}

# Each stage that took time, of the registrations or deregistrations of the
# report: "STAGE count N total N", sorted.
stages_reported() { # OP
	mr_json "$report" "cases[*].$1[*].stages_ns" | tr -d '{}"' | tr ',' '\n' | awk -F: '
		$2 > 0 && $1 != "library" && $1 != "return" { sum[$1] += $2; count[$1]++ }
		END { for (stage in sum) printf "%s count %d total %d\n", stage, count[stage], sum[stage] }' |
		sort
}

# The same as @OP_sum_ns has it.
stages_printed() { # OP
	printed "$1_sum_ns" '64, [a-z]+' | sed 's/^64, //' | sort
}

explain mr_stages.bt
is "  registrations: count and time are those of mr_probe" \
	"64 $(sum 'cases[*].reg[*]' kernel_total_ns)" "$(printed reg_all_sum_ns 64)"
is "  deregistrations: count and time are those of mr_probe" \
	"64 $(sum 'cases[*].dereg[*]' kernel_total_ns)" "$(printed dereg_all_sum_ns 64)"
for op in reg dereg; do
	stages=$(stages_reported $op)
	is "  $op: count and time of each stage are those of mr_probe" "$stages" "$(stages_printed $op)"
	is "  $op: each has all of them in its histogram" "$(awk '{ print "64,", $1, $3 }' <<<"$stages")" \
		"$(samples ${op}_ns)"
	is "  $op: so has the whole" "64 $count" "$(samples ${op}_all_ns)"
done
like "  pin and unpin are among them" "pin count $count .*unpin count $count " \
	"$(stages_printed reg | xargs) $(stages_printed dereg | xargs)"

# 60, 64 and 68 KiB: the last is in the next class.
trace mr_stages.bt mr_reg --size 61440 --count 3
is "  each size is in its class" "2 1 2 1" "$(for op in reg dereg; do
	for class in 64 1024; do printed ${op}_all_sum_ns $class | cut -d' ' -f3; done
done | xargs)"

trace mr_stages.bt mr_reg --count 2 --unmapped
like "  whose failures are counted by their errno" '@reg_failed\[14\]: 2' "$(cat "$out")"

explain mr_join.bt
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

trace mr_join.bt mr_reg --count 3 --leave exit
is "  the program's calls" "3 " \
	"$(how_many reg_user_ns mr_reg) $(process dereg_user_ns mr_reg)"
is "  and the kernel's own deregistrations at its exit" 3 "$(counted dereg_kernel_only mr_reg)"

trace mr_join.bt mr_reg --count 2 --by-write
is "  which does not call the library" " 2 2" "$(process reg_user_ns mr_reg) $(counted \
	reg_kernel_only mr_reg) $(counted dereg_kernel_only mr_reg)"

trace mr_join.bt mr_reg --count 2 --unmapped
is "  whose calls fail in the kernel" "2 " \
	"$(how_many reg_user_ns mr_reg) $(counted reg_user_only mr_reg)"

finish
