#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The recipes for trace-cmd and perf in tracing/README.md show what a program did.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

cd "$tmp" || exit
# The buffers of all CPUs are small: so is what is recorded.
record() { # ARGUMENT...: of trace-cmd record
	check "trace-cmd record ${*}" trace-cmd record -q -b 512 "$@"
	trace-cmd report -q 2>/dev/null >"$tmp/report"
}
events() { # EVENT [REGEX]: how many
	grep -cE " (mrscope:)?$1: .*${2-}" "$tmp/report"
}
program=$(command -v mr_reg)

record -e mrscope:mr_reg -e mrscope:mr_dereg "$program" --count 3
is "  each registration and deregistration" "3 3" "$(events mr_reg) $(events mr_dereg)"

record -e mrscope:mr_reg -f 'ret != 0' sh -c "$program --count 3; $program --unmapped"
is "  those that fail" "1 1" "$(events mr_reg) $(events mr_reg 'ret=-14|ret=4294967282')"

record -e mrscope:mr_reg -f 'total_ns > 20000000' sh -c \
	"$program --count 3; $program --size $((32 << 20)) --untouched"
is "  those that take long" "1 1" "$(events mr_reg) $(events mr_reg "$((32 << 20))")"

# A histogram of an event while a command runs, by the event's trigger.
histogram() { # EVENT KEYS-AND-VALUES COMMAND...
	local event=$1
	check "trace-cmd start, hist:$2" trace-cmd start -e "mrscope:$event" -R "hist:$2"
	"${@:3}" >/dev/null
	cat "$tracefs/events/mrscope/$event/hist" >"$tmp/report"
	check "  trace-cmd reset" trace-cmd reset
}
if [ -e $tracefs/events/mrscope/mr_stage/hist ]; then
	histogram mr_stage keys=name:vals=ns:sort=ns.descending mr_reg --count 3
	like "  each stage with its time" 'name: pin +\} hitcount: +3 +ns: +[1-9]' "$(cat "$tmp/report")"
	histogram mr_reg keys=tgid,addr.hex,length:sort=hitcount.descending \
		reg_bench --size 8192 --warmup 1 --count 4
	like "  the range that comes again" 'length: +8192 \} hitcount: +5' "$(cat "$tmp/report")"
else
	skip "histograms" "the kernel has none"
fi

# ---- perf ----

perf_record() { # ARGUMENT...: of perf record
	check "perf record ${*}" perf record -q -a -o "$tmp/perf.data" "$@"
	perf script -i "$tmp/perf.data" 2>/dev/null >"$tmp/report"
}
perf_record -e mrscope:mr_reg -e mrscope:mr_dereg -- "$program" --count 3
is "  each registration and deregistration" "3 3" "$(events mr_reg) $(events mr_dereg)"

perf_record -g -e mrscope:mr_reg --filter 'total_ns > 20000000' -- sh -c \
	"$program --count 3; $program --size $((32 << 20)) --untouched"
is "  those that take long" "1 1" "$(events mr_reg) $(events mr_reg "$((32 << 20))")"
like "  with their stacks" 'ib_uverbs_ioctl' "$(cat "$tmp/report")"

perf stat -a -x, -e mrscope:mr_reg -e mrscope:mr_dereg -o "$tmp/counts" -- "$program" --count 4 >/dev/null
is "perf stat counts them" "4 mrscope:mr_dereg 4 mrscope:mr_reg" \
	"$(awk -F, '/mrscope:/ { print $1, $3 }' "$tmp/counts" | sort -k2 | xargs)"
is "  nothing is left behind" "0 " \
	"$(cat $tracefs/events/mrscope/enable) $(grep -v '^#' $tracefs/events/mrscope/mr_reg/trigger)"

finish
