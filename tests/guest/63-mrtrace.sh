#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# long: bookworm sid
# vm: --timeout 600
# mrtrace chooses the form, says in one sentence what is missing, runs a script
# during a command, and leaves nothing attached.
# shellcheck disable=SC2317  # functions that check calls
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/questions.sh
. "$(dirname "$0")/questions.sh"

PATH=$scripts:$PATH

# What is probed now, by whoever; and who holds the module's events.
probes() {
	cut -d' ' -f3- /sys/kernel/debug/kprobes/list | sort
	cut -d' ' -f1 $tracefs/enabled_functions | sort
	cat $tracefs/uprobe_events
	cat /sys/module/mrscope/refcnt
}
before=$(probes)
left_alone() {
	is "  nothing is left attached" "$before " "$(probes) $(pgrep -x bpftrace)"
}
attached() { [ "$(cat /sys/module/mrscope/refcnt)" -gt 0 ]; }

# It ends with one sentence that matches.
refused() { # WHAT STATUS REGEX [ARGUMENT...]
	run mrtrace "${@:4}"
	is "$1: the status" "$2" "$ended"
	is "$1: one sentence" "1 0" "$(wc -l <"$tmp/err") $(wc -l <"$tmp/out")"
	like "$1: which says so" "^mrtrace: .*$3" "$(cat "$tmp/err")"
}

# ---- wrong use ----

run mrtrace
is "without a question, all of them" "churn dereg dma errors faults join leaks mmap_lock odp slow stages syscall" \
	"$(cut -d' ' -f1 "$out" | xargs)"
like "  with their forms" $'\n''odp +plain +on-demand paging' "$(cat "$out")"
run mrtrace --help
is "--help" "0 Usage:" "$ended $(cut -d' ' -f1 "$out" | head -n 1)"
refused "no such question" 2 "no question 'nothing'; there are: churn " nothing
refused "no such option" 2 "no option '--nothing'" --nothing
refused "a number that is none" 2 "--over needs a number, not '1ms'" slow --over 1ms
refused "no rounds" 2 "--rounds begins at 1" stages --during true --rounds 0
refused "rounds of nothing" 2 "--rounds is for --during" stages --rounds 2
refused "both forms" 2 "exclude each other" stages --plain --module
refused "a form that is none" 2 "no form for mrscope.ko" odp --module
refused "no process" 4 "process 999999 does not run" stages --pid 999999

# ---- what is missing ----

run setpriv --reuid=65534 --clear-groups mrtrace stages
is "not root" "3 1" "$ended $(grep -c '^mrtrace: not root: .*sudo' "$tmp/err")"

# Puts FILE in the place of another while COMMAND runs.
instead() { # PLACE FILE COMMAND...
	busybox mount --bind "$2" "$1"
	"${@:3}"
	busybox umount "$1"
}
mkdir "$tmp/empty"
instead $tracefs "$tmp/empty" refused "no tracefs" 3 "tracefs is not mounted.*mount -t tracefs" stages
instead /sys/kernel/btf "$tmp/empty" refused "no BTF" 3 "no BTF .*CONFIG_DEBUG_INFO_BTF" errors
instead "$(command -v bpftrace)" /dev/null refused "no bpftrace" 3 "bpftrace is missing" stages
printf '#!/bin/sh\necho bpftrace v0.16.0\n' >/var/tmp/old-bpftrace
chmod +x /var/tmp/old-bpftrace
instead "$(command -v bpftrace)" /var/tmp/old-bpftrace refused "an old bpftrace" 3 "0.16 is too old.* 0.17" stages
grep -v pin_user_pages_fast $tracefs/available_filter_functions >"$tmp/functions"
instead $tracefs/available_filter_functions "$tmp/functions" \
	refused "a function that is inlined" 3 "no function pin_user_pages_fast to probe.* 'faults'" faults --plain
mkdir -p "$tmp/security"
echo 'none integrity [confidentiality]' >"$tmp/security/lockdown"
instead /sys/kernel/security "$tmp/security" refused "lockdown" 3 "locked down .*lockdown=confidentiality" stages
echo 0 >"$debugfs/enabled"
refused "a disabled module" 3 "mrscope.ko is disabled.*echo 1" stages
echo 1 >"$debugfs/enabled"
sleep 600 &
background+=($!)
refused "a process without libibverbs" 3 "process $! uses no libibverbs.*mrtrace syscall" join --pid $!
left_alone

# ---- until it is ended, or its process is ----

# In the background, as $follower; what it printed is in $tmp/followed.
follow() { # ARGUMENT...
	mrtrace "$@" >"$tmp/followed" 2>"$tmp/followed.err" &
	follower=$!
	check "it attaches" eventually attached
}

mr_reg --leave wait >/dev/null &
holder=$!
background+=("$holder")
follow leaks --pid $holder
refused "two at once" 5 "another mrtrace runs" stages
kill -TERM $holder
wait $follower
is "it ends with its process" 0 $?
mv "$tmp/followed" "$out"
is "  of which it tells" "1 4096" "$(counted left mr_reg) $(counted left_bytes mr_reg)"
left_alone

follow dereg
mr_reg --count 2 >/dev/null
# Not by SIGINT, which a background command of a script ignores.
kill -TERM $follower
wait $follower
is "it ends by SIGTERM" 0 $?
mv "$tmp/followed" "$out"
is "  and tells what it saw" "ioctl count 2" "$(printed total_ns ioctl | cut -d' ' -f1-3)"
left_alone

follow dereg
kill -KILL $follower
wait $follower 2>/dev/null
check "killed, it leaves nothing" eventually eval '! pgrep -x bpftrace'
left_alone

# ---- during a command ----

run mrtrace stages --during 'mr_reg --count 3 --size 61440'
is "during a command" "0 " "$ended $(said)"
is "  its registrations while it was attached" "64 count 2 1024 count 1" \
	"$(for class in 64 1024; do printed reg_all_sum_ns $class | cut -d' ' -f1-3; done | xargs)"
is "  and what it printed then" 6 "$(grep -cE '^(de)?reg ' "$out")"
is "  and its time, without and with" 2 "$(grep -cE '^== the command, with(out)? tracing: [0-9]+ ms$' "$out")"
left_alone

run mrtrace join --during 'mr_probe explain --size 64K --count 5 --touched --warmup 0'
is "during mr_probe explain" "0 " "$ended $(said)"
is "  each call has its work in the kernel" "5 5 5 5" \
	"$(for map in reg_user_ns reg_kernel_ns dereg_user_ns dereg_kernel_ns; do how_many $map mr_probe; done | xargs)"
like "  and its own report" 'anon, touched: 64 KiB on rxe0' "$(cat "$out")"

# Server and client, each with one MR, twice.
run mrtrace leaks --during 'ib_write_bw -d rxe0 -x 1 -n 200 >/dev/null & sleep 2
	ib_write_bw -d rxe0 -x 1 -n 200 127.0.0.1; wait' --rounds 2
is "during ib_write_bw" "0 " "$ended $(said)"
is "  what both have registered, they have given back" "0 0 0 0" "$(counted held_bytes ib_write_bw | xargs)"
like "  its bandwidth, without and with, and the ratio" \
	'BW average\[MiB/sec\] +[0-9.]+ \([0-9.]+-[0-9.]+\) +[0-9.]+ \([0-9.]+-[0-9.]+\) +[0-9]+\.[0-9]{4}' "$(cat "$out")"
left_alone

run mrtrace stages --during 'false'
is "a command that fails" 6 "$ended"
like "  is named" "^mrtrace: the command ended with status 1 without tracing: false" "$(cat "$tmp/err")"
left_alone

# ---- without the module ----

unload
refused "no module" 3 "mrscope.ko is not loaded.*--plain" stages --module
run mrtrace churn --during 'mr_reg --count 2'
is "without the module, plain probes" "0 mrtrace: mrscope.ko is not loaded: plain kernel probes, which cost more and know less" \
	"$ended $(said)"
is "  which see it" 2 "$(how_many first_ns mr_reg)"
like "  and are named" '== churn \(plain form\)' "$(cat "$out")"
load
finish
