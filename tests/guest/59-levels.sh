#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# long: bookworm sid
# vm: --icount --timeout 900
# The module, BPF and plain probes say the same of the same registrations, each
# less what it costs; and mr_probe takes the best that is there.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/questions.sh
. "$(dirname "$0")/questions.sh"

count=100

# rxe's keys beyond 4096 make its xarray deeper: to be passed before.
"$MRSCOPE_BUILD/bin/reg_bench" --warmup 5000 --count 1 >"$tmp/warmup"
echo 8 >/proc/sys/vm/nr_hugepages

# Large ones in a huge page: how neighbours coalesce is the same for all then.
sequence() { # LEVEL SIZE
	local buffer=huge2m
	[ "$2" != 4K ] || buffer=anon
	echo "mr_probe explain --level $1 --size $2 --buffer $buffer --touched --count $count --warmup 10"
}
measure() { # LEVEL SIZE
	$(sequence "$1" "$2") --json "$tmp/$1.$2" >"$tmp/out"
}

# "STAGE fastest" of each stage of the kernel that took time, and of the whole call
# less the cost of looking. The fastest but a tenth: one alone may be odd.
figures() { # REPORT OP
	local stage
	for stage in syscall uverbs prepare key account pin sg dma table publish invalidate unpin free; do
		mr_json "$1" "cases[*].${2}[*].stages_ns.$stage" | summary $stage
	done
	mr_json "$1" "cases[*].${2}[*]" total_ns probe_cost_ns | awk '{ print $1 - $2 }' | summary total
}
summary() { # STAGE: of numbers
	sort -n | awk -v stage="$1" '
		$1 + 0 == 0 { next }
		{ value[n++] = $1 }
		END { if (n) print stage, value[int(n / 10)] }'
}

# Stages that differ by more than 10 % though they take 5000 instructions, and a
# total by more than 5 %. From two files of "STAGE number".
apart() { # FILE FILE
	join <(sort "$1") <(sort "$2") | awk '
		{ most = $1 == "total" ? 5 : $2 > 5000 ? 10 : 0; apart = 100 * ($3 - $2) / $2 }
		most { compared++ }
		most && (apart > most || apart < -most) { printf "%s: %d and %d, %+.1f %%\n", $1, $2, $3, apart }
		END { if (!compared) print "nothing to compare" }'
}

beside() { # FILE FILE
	join <(sort "$1") <(sort "$2") | paste -sd,
}

# ---- BPF against the module, and both against no look: the fastest of each ----

for size in 4K 2M; do
	measure module $size
	echo 0 >"$debugfs/enabled"
	measure bpf $size
	measure user $size
	echo 1 >"$debugfs/enabled"
	check "$size: the sum holds" sound "$tmp/bpf.$size"
	is "$size: as the module counts" \
		"$(all "$tmp/module.$size" 'cases[*].reg[*]' pages pin_batches errno join)" \
		"$(all "$tmp/bpf.$size" 'cases[*].reg[*]' pages pin_batches errno join)"
	for op in reg dereg; do
		is "$size $op: as many, none lost" "bpf $count 0" "$(mr_json "$tmp/bpf.$size" level) $(
			mr_json "$tmp/bpf.$size" "cases[*].${op}[*].kernel_total_ns" | grep -c '^[0-9]') $(
			mr_json "$tmp/bpf.$size" lost)"
		for level in module bpf user; do
			figures "$tmp/$level.$size" $op | tee "$tmp/$level.$size.$op" >"$tmp/$level"
		done
		is "$size $op: BPF's stages and total as the module's" "" "$(apart "$tmp/module" "$tmp/bpf")"
		is "$size $op: the total as the caller's without a look" "" "$(apart "$tmp/user" "$tmp/bpf")"
		note "$size $op, module and bpf: $(beside "$tmp/module" "$tmp/bpf"), user $(awk '$1 == "total" { print $2 }' "$tmp/user")"
	done
done

# ---- plain probes against the module: the fastest of each ----

echo 0 >"$debugfs/enabled"
# The script as it is, but for what is kept of each stage: one interrupt is much
# of a mean.
sed '/@reg_sum_ns/s/= stats(/= min(/' "$scripts/plain/mr_stages.bt" >"$tmp/fastest.bt"
plain() { # SIZE CLASS
	run bpftrace "$tmp/fastest.bt" 0 0 -c "$(sequence user "$1" | sed "s|^mr_probe|$(command -v mr_probe)|")"
	is "$1: plain probes see as many" $((count + 10)) "$(printed reg_all_sum_ns "$2" | cut -d' ' -f3)"
	sed -nE "s/^@reg_sum_ns\[$2, ([a-z]+)\]: ([0-9]+)$/\1 \2/p" "$out" | sort >"$tmp/plain.$1"
	# They do not know the key from what is before it.
	awk '$1 == "syscall" || $1 == "total" { next }
		$1 == "key" || $1 == "prepare" { prepare += $2; next }
		{ print $1, $2 }
		END { print "prepare", prepare }' "$tmp/module.$1.reg" | sort >"$tmp/module.$1"
}
with_total() {
	awk '{ print; sum += $2 } END { print "total", sum }'
}
# What each probe takes is known from one page, where a stage's work is known, too.
plain 4K 4
plain 2M 16384
join "$tmp/plain.4K" "$tmp/module.4K" | awk '{ print $1, $2 - $3 }' >"$tmp/cost"
join "$tmp/plain.2M" "$tmp/cost" | awk '{ print $1, $2 - $3 }' | with_total >"$tmp/calibrated"
with_total <"$tmp/module.2M" >"$tmp/module"
is "2M: plain probes' stages and total as the module's" "" "$(apart "$tmp/module" "$tmp/calibrated")"
note "2M, module and plain: $(beside "$tmp/module" "$tmp/calibrated"); the probes take $(paste -sd, "$tmp/cost")"
echo 1 >"$debugfs/enabled"

# ---- which level is taken ----

level_of() { # OPTION...
	run mr_probe explain --count 1 --warmup 0 --json "$tmp/report" "$@"
	printf '%s %s %s\n' "$ended" "$(mr_json "$tmp/report" level)" "$(mr_json "$tmp/report" level_reason)"
}
is "with the module, by the module" "0 module null" "$(level_of)"
echo 0 >"$debugfs/enabled"
like "switched off, by BPF" "^0 bpf mrscope.ko is disabled" "$(level_of)"
echo 1 >"$debugfs/enabled"
unload
like "without it, by BPF" "^0 bpf mrscope.ko is not loaded" "$(level_of)"
is "and on request without a reason" "0 bpf null" "$(level_of --level bpf)"
like "the report says so" "^level bpf: .*" "$(grep '^level' "$tmp/out")"
echo 0 >/proc/sys/kernel/ftrace_enabled
run mr_probe explain --level bpf
is "BPF where ftrace is off: a prerequisite" "3 1" "$ended $(wc -l <"$tmp/err")"
like "  which has a remedy" "echo 1 > /proc/sys/kernel/ftrace_enabled" "$(cat "$tmp/err")"
like "  else the caller's time alone" "^0 user mrscope.ko is not loaded.* BPF.*/ftrace_enabled" "$(level_of)"
echo 1 >/proc/sys/kernel/ftrace_enabled

# ---- record, by BPF ----

run mr_probe record --json "$tmp/record" -- sh -c 'mr_reg --count 2; mr_reg --count 3 --leave kill; mr_reg --unmapped'
is "record: each of the tree, and how they ended" "6 ioctl,ioctl,cleanup,cleanup,cleanup" \
	"$(mr_json "$tmp/record" 'reg[*].seq' | wc -l) $(mr_json "$tmp/record" 'dereg[*].entry' | paste -sd,)"
is "record: the one that failed, and where" "EFAULT pin" \
	"$(mr_json "$tmp/record" 'reg[errno=EFAULT]' errno failed_stage)"
check "record: stages add up" sound "$tmp/record"
is "record: keys without their variant" "" \
	"$(mr_json "$tmp/record" 'reg[*].lkey.variant' | grep -v null)"
run mr_probe record --keys --json "$tmp/record" -- mr_reg --count 2
is "record --keys: whole" "mr_reg mr_reg" "$(mr_json "$tmp/record" 'reg[*].comm' | xargs)"
is "nothing is left attached" "" "$(cat $tracefs/enabled_functions; find /sys/fs/bpf -mindepth 1)"
load

finish
