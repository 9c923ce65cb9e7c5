#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Registration by write(2), as old libraries ask for it: the same stages,
# except that the entry into the system call is not known.
# shellcheck disable=SC2317  # functions that check calls
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

document=$tmp/report.json
calls=$tmp/calls

mr_probe record --json "$document" --keys -- mr_reg --by-write --count 3 >"$tmp/out" 2>"$tmp/err"
grep -E "^(de)?reg " "$tmp/out" >"$calls"
check "each as the program made it, with its keys" mr_match "$calls" "$document"
check "stages add up" sound "$document"
is "registrations: entry, no system call stage" "write null" \
	"$(all "$document" 'reg[*]' entry stages_ns.syscall)"
is "registrations: all other stages of the kernel" "library syscall return" \
	"$(mr_stages "$document" 'reg[*]')"
# A slow kernel that preempts may switch the task out right before the root: what
# was noted of its way there does not count then, and is unknown.
switched=
[ "$MRSCOPE_KERNEL" != debug ] || switched='unknown null|library syscall uverbs return'
seen() { sort -u | grep -vxE "${switched:-nothing}"; }
is "deregistrations: entry, no system call stage" "write null" \
	"$(mr_json "$document" 'dereg[*]' entry stages_ns.syscall | seen)"
is "deregistrations: all other stages of the kernel" "library syscall return" \
	"$(mr_stages "$document" 'dereg[*]' | seen)"
is "debugfs says null" null "$(after syscall "$(last ' reg write ')")"

# A system call entry by ioctl that was noted before is not taken for this one.
mr_probe record --json "$document" -- sh -c 'mr_reg; mr_reg --by-write; mr_reg' >/dev/null
is "between ioctls" "ioctl write ioctl" "$(mr_json "$document" 'reg[*].entry' | xargs)"
is "has no system call stage" null "$(mr_json "$document" 'reg[entry=write].stages_ns.syscall')"
like "which the others have" '^[0-9]+$' \
	"$(mr_json "$document" 'reg[entry=ioctl].stages_ns.syscall' | head -n 1)"

mr_reg --by-write --access remote_write >"$calls"
is "refused by the core: the program's errno" 22 "$(cut -d' ' -f8 <"$calls")"
line=$(last ' reg write ret -22 ')
is "refused by the core: the record" "uverbs $(cut -d' ' -f3-4 <"$calls")" \
	"$(after in "$line") $(after addr "$line") $(after length "$line")"

mr_probe record --json "$document" -- mr_reg --by-write --count 2 --leave exit >/dev/null
is "left to the kernel: the cleanup" "cleanup 2" \
	"$(all "$document" 'dereg[*].entry') $(mr_json "$document" 'dereg[*].seq' | wc -l)"

# The registration succeeds in the driver, but the answer cannot be told: the
# core undoes it.
mr_probe record --json "$document" -- mr_reg --bad-answer >"$tmp/out" 2>"$tmp/err"
check "undone: stages add up" sound "$document"
is "undone: the registration has failed" "write EFAULT publish" \
	"$(all "$document" 'reg[*]' entry errno failed_stage)"
is "undone: its deregistration is named so" "abort null" "$(all "$document" 'dereg[*]' entry errno)"
is "undone: of the same memory" "$(mr_json "$document" 'reg[*]' addr length)" \
	"$(mr_json "$document" 'dereg[*]' addr length)"

finish
