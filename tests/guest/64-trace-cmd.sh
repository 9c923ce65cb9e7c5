#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The recipes for trace-cmd in tracing/README.md show what a program did.
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

if [ -e $tracefs/events/mrscope/mr_stage/hist ]; then
	check "trace-cmd start, with a histogram of the stages" trace-cmd start \
		-e mrscope:mr_stage -R 'hist:keys=name:vals=ns:sort=ns.descending'
	mr_reg --count 3 >/dev/null
	like "  each stage with its time" 'name: pin +\} hitcount: +3 +ns: +[1-9]' \
		"$(cat $tracefs/events/mrscope/mr_stage/hist)"
	check "trace-cmd reset" trace-cmd reset

	check "trace-cmd start, with a histogram of the ranges" trace-cmd start \
		-e mrscope:mr_reg -R 'hist:keys=tgid,addr.hex,length:sort=hitcount.descending'
	reg_bench --size 8192 --warmup 1 --count 4 >/dev/null
	like "  the range that comes again" 'length: +8192 \} hitcount: +5' \
		"$(cat $tracefs/events/mrscope/mr_reg/hist)"
	check "trace-cmd reset" trace-cmd reset
else
	skip "histograms" "the kernel has none"
fi
is "  nothing is left behind" "0 " \
	"$(cat $tracefs/events/mrscope/enable) $(grep -v '^#' $tracefs/events/mrscope/mr_reg/trigger)"

finish
