# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# shellcheck disable=SC2154  # what lib.sh defines
# What the tests of the bpftrace scripts share: running one during a workload,
# and reading what it printed. To be sourced after lib.sh.

[ -e /sys/kernel/btf/vmlinux ] || skip_all "bpftrace needs the kernel's types: this one has no BTF"

scripts=/repo/tracing
out=$tmp/out

# Runs a script while COMMANDS run; what both printed is in $out. Its parameters
# are a process (0: all) and microseconds.
ask() { # SCRIPT COMMANDS [US]
	printf '%s\n' "$2" >"$tmp/commands"
	run bpftrace "$scripts/$1" 0 "${3:-0}" -c "/bin/sh $tmp/commands"
	is "$1 runs" "0 " "$ended $(said)"
}

# What bpftrace says beside the results. That of sid tells there that it has
# attached, and warns of what the older ones want: three lines for each warning.
said() {
	if [ "$suite" = sid ]; then
		awk '/^Attached [0-9]+ probes?$/ { next }
			/: WARNING: / { skip = 3 }
			skip-- > 0 { next }
			{ print }' "$tmp/err"
	else
		cat "$tmp/err"
	fi
}

# "KEY count N total N" of what stats() keeps under the keys that match. bpftrace
# 0.27 writes it as a structure.
printed() { # MAP KEY_REGEX
	sed -nE "s/^@$1\[($2)\]: [^0-9]*([0-9]+)[^0-9]+[0-9]+[^0-9]+([0-9]+)( \})?$/\1 count \2 total \3/p" "$out"
}

# "count N total N" of what MAP[COMM, pid] holds.
process() { # MAP COMM
	printed "$1" "$2, [0-9]+" | sed -E 's/^.*(count)/\1/'
}

# How many of them.
how_many() { # MAP COMM
	process "$1" "$2" | cut -d' ' -f2
}

# What a map that counts or sums holds under the key that matches.
value() { # MAP KEY_REGEX
	sed -nE "s/^@$1\[($2)\]: (-?[0-9]+)$/\2/p" "$out"
}

# The same of MAP[COMM, pid].
counted() { # MAP COMM
	value "$1" "$2, [0-9]+"
}

# "KEY N" of each histogram of a map: how many samples it has, sorted. The key of
# a map without one is empty.
samples() { # MAP
	awk -v start="@$1" '
		/^@/ {
			inside = $0 ~ "^" start "(\\[.*\\])?: *$"
			key = substr($0, length(start) + 1)
			gsub(/^\[|\]?: *$/, "", key)
		}
		inside && /\|/ { split($0, part, ")"); sum[key] += part[2] }
		END { for (key in sum) print key, sum[key] }' "$out" | sort
}

# The maps that a script prints; not what it only computes with.
maps() {
	sed -nE 's/^@([a-z_]+)(\[.*\])?:.*/\1/p' "$out" | sort -u | xargs
}

# The calls that the workload says it made (call_log.h): fields of those that
# match.
calls() { # REGEX FIELD...
	local fields
	fields=$(printf ',%s' "${@:2}")
	grep -E "^$1" "$out" | cut -d' ' -f"${fields#,}"
}

# ---- the questions that have two forms, which must give the same answers ----

# The folder of the form, and what it calls a deregistration that was asked for.
forms() { # FORM
	form=$1
	folder=''
	asked=ioctl
	[ "$form" = module ] || {
		folder=plain/
		asked=destroy
	}
}

# What the two halves of a map's time add up to, less the whole; 0 is right.
unaccounted() { # COMM WHOLE PART...
	local part sum=0 whole
	for part in "${@:3}"; do
		part=$(process "$part" "$1")
		sum=$((sum + ${part##* }))
	done
	whole=$(process "$2" "$1")
	echo $((${whole##* } - sum))
}

# Each range once, and one of them again.
ask_churn() {
	ask "${folder}mr_churn.bt" "mr_reg --count 2
$MRSCOPE_BUILD/bin/reg_bench --size 8192 --warmup 1 --count 4"
	is "  what comes again" "8192 4" \
		"$(sed -nE 's/^@again\[reg_bench, [0-9]+, [0-9]+, ([0-9]+)\]: ([0-9]+)$/\1 \2/p' "$out")"
	is "  the first ones, and those again" "2 1 4" \
		"$(how_many first_ns mr_reg) $(how_many first_ns reg_bench) $(how_many again_ns reg_bench)"
	is "  nothing else" "again again_ns first_ns" "$(maps)"
}

ask_dereg() {
	ask "${folder}mr_dereg.bt" "mr_reg --count 2
mr_reg --count 3 --leave exit"
	is "  how many were asked for, how many came by exit" "$asked count 2 cleanup count 3" \
		"$(for how in $asked cleanup; do printed total_ns "$how" | cut -d' ' -f1-3; done | xargs)"
	is "  how many gave pages back" "2 3" \
		"$(for how in $asked cleanup; do printed unpin_ns "$how" | cut -d' ' -f3; done | xargs)"
	is "  all are in the histogram" " 5" "$(samples total_hist_ns)"
	if [ "$form" = module ]; then
		is "  their pages" "3 6" "$(value pages ioctl) $(value pages cleanup)"
	else
		is "  their bytes" "12288 24576" "$(value bytes destroy) $(value bytes cleanup)"
	fi
	is "  none failed" "" "$(grep '^@failed' "$out")"
}

ask_dma() {
	ask "${folder}mr_dma.bt" "mr_reg --count 3 --size 61440"
	if [ "$form" = module ]; then
		is "  how many were mapped" "rxe0 count 3" "$(printed map_ns rxe0 | cut -d' ' -f1-3)"
		is "  all are in the histogram" "rxe0 3" "$(samples map_hist_ns)"
		at_least "  their scatter entries" 3 "$(value sg_entries rxe0)"
		is "  which a software device does not join" "$(value sg_entries rxe0)" \
			"$(value dma_entries rxe0)"
	else
		is "  how many were mapped" 3 "$(how_many virt_map_ns mr_reg)"
		is "  all are in the histogram" " 3" "$(samples virt_map_hist_ns)"
		at_least "  their scatter entries" 3 "$(counted virt_sg_entries mr_reg)"
		is "  which a software device does not join" "$(counted virt_sg_entries mr_reg)" \
			"$(counted virt_dma_entries mr_reg)"
	fi
	is "  there is no IOMMU" "" "$(grep -E '^@(iommu|unmap|map_ns\[mr).*: [^0]' "$out")"
}

# The line about the mapping behind that of a failure. The program's own may come
# between.
where() { # REGEX
	grep -A2 "$1" "$out" | grep -m1 '^  the pin'
}

ask_errors() {
	local addr mapping
	ask "${folder}mr_errors.bt" "mr_reg --count 2
mr_reg --unmapped --size 8192
mr_reg --read-only --size 16384
mr_reg --access remote_write
prlimit --memlock=65536 setpriv --inh-caps=-ipc_lock --bounding-set=-ipc_lock mr_reg --size 1048576"
	is "  how many of each errno and stage" "12, account 1
14, pin 1
14, pin 1
22, uverbs 1" "$(sed -nE 's/^@failed\[mr_reg, [0-9]+, ([^]]+)\]: /\1 /p' "$out" | sort)"
	is "  of how many registrations" "1 1 1 1 2" \
		"$(counted registrations mr_reg | sort | xargs)"
	# Each line has what the program knows of the call that failed.
	is "  address, length, access and errno are the program's" \
		"$(calls 'reg .* [1-9][0-9]*$' 3 4 5 8 | sort)" \
		"$(sed -nE 's/^mr_reg [0-9]+: ([0-9]+) bytes at (0x[0-9a-f]+), access (0x[0-9a-f]+): errno ([0-9]+) .*/\2 \1 \3 \4/p' "$out" | sort)"
	is "  an unmapped range has no mapping" "  the pin came to no mapping" \
		"$(where ': 8192 bytes')"
	addr=$(calls 'reg .* 16384 .* 14$' 3)
	mapping=$(where ': 16384 bytes')
	like "  a read-only range has one that is not writable" \
		'to mapping 0x[0-9a-f]+-0x[0-9a-f]+, readable 1, writable 0, PFN 0$' "$mapping"
	is "  in which it lies" yes "$(
		read -r from to <<<"$(sed -nE 's/.*mapping (0x[0-9a-f]+)-(0x[0-9a-f]+),.*/\1 \2/p' <<<"$mapping")"
		((from <= addr && addr + 16384 <= to)) && echo yes)"
	is "  what did not pin has none" 2 "$(grep -c '^  the pin' "$out")"
}

ask_faults() {
	ask "${folder}mr_faults.bt" "mr_reg --count 2 --size 61440 --untouched"
	is "  the pages" 31 "$(counted pages mr_reg)"
	if [ "$form" = module ]; then
		is "  how many registrations" 2 "$(counted registrations mr_reg)"
		at_least "  each page was faulted in" 31 "$(counted faults_minor mr_reg)"
		is "  none came from a disk" 0 "$(counted faults_major mr_reg)"
		is "  the cost of a page is one that was faulted in" " 2" "$(samples page_faulting_ns)"
	else
		is "  how many pins" "2 2" "$(counted pins mr_reg) $(how_many pin_ns mr_reg)"
		is "  each page was faulted in" 31 "$(counted faults mr_reg)"
		is "  all faults are in the histogram" " 31" "$(samples fault_hist_ns)"
	fi

	echo 1 >"$debugfs/deep"
	ask "${folder}mr_faults.bt" "mr_reg --size 61440"
	echo 0 >"$debugfs/deep"
	if [ "$form" = module ]; then
		is "  a touched one in deep mode" "15 0 0 0" "$(for map in pages faults_minor slow_calls \
			migrations; do counted $map mr_reg; done | xargs)"
		is "  the cost of a page is one that was there" " 1" "$(samples page_present_ns)"
	else
		is "  a touched one has none" "15 1 " \
			"$(counted pages mr_reg) $(counted pins mr_reg) $(counted faults mr_reg)"
	fi
}

ask_leaks() {
	ask "${folder}mr_leaks.bt" "mr_reg --count 2
mr_reg --count 3 --leave exit"
	is "  what was left at the exit" "3 24576 3" \
		"$(counted left mr_reg) $(counted left_bytes mr_reg) $(how_many left_ns mr_reg)"
	[ "$form" = plain ] || is "  nothing is held now" "0 0" "$(counted held_bytes mr_reg | xargs)"
}

ask_slow() {
	local call
	ask "${folder}mr_slow.bt" "mr_reg --size $((32 << 20)) --untouched
mr_reg" 20000
	call=$(calls "reg .* $((32 << 20)) " 3)
	is "  the slow one alone" "mr_reg $((32 << 20)) bytes at $call ret 0" \
		"$(sed -nE 's/^(mr_reg) [0-9]+: (.*) took .* us, (.*)$/\1 \2 \3/p' "$out")"
	is "  and how many that were" 1 "$(how_many slow mr_reg)"
	like "  nearly all of it in the pins" yes "$(awk '
		/ took / { for (i = 1; i < NF; i++) if ($i == "took") took = $(i + 1) }
		{ for (i = 1; i < NF; i++) if ($i == "pin") pin = $(i + 1) + 0 }
		END { if (pin <= took && pin > took / 2) print "yes"; else print pin, "of", took }' "$out")"
	like "  the kernel's stacks lead through the pin to its caller" \
		'__gup_longterm_locked\+[0-9]+ .*rxe_reg_user_mr\+[0-9]+ .*ib_uverbs_reg_mr\+[0-9]+' "$(xargs -d '\n' <"$out")"
}

ask_syscall() {
	ask "${folder}mr_syscall.bt" "mr_reg --count 3
mr_reg --leave exit
mr_reg --by-write --count 2"
	is "  the system calls" "1 3 3" \
		"$(how_many reg_syscall_ns mr_reg | sort | xargs) $(how_many dereg_syscall_ns mr_reg)"
	is "  each with its registration" "1 3 3" \
		"$(how_many reg_kernel_ns mr_reg | sort | xargs) $(how_many dereg_kernel_ns mr_reg)"
	is "  those by write, and at exit" "2 1 2" \
		"$(counted reg_no_ioctl mr_reg) $(counted dereg_no_ioctl mr_reg | sort | xargs)"
	ask "${folder}mr_syscall.bt" "mr_reg --count 3"
	is "  the system call is the kernel's part and the rest" "0 0" \
		"$(for op in reg dereg; do
			unaccounted mr_reg ${op}_syscall_ns ${op}_kernel_ns ${op}_outside_ns
		done | xargs)"
}

ask_both() { # FORM
	local question
	forms "$1"
	for question in churn dereg dma errors faults leaks slow syscall; do
		ask_$question
	done
}
