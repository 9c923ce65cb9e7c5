#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# While mr_probe captures, the module is in use; a capture that was killed
# leaves nothing that the next one does not clean up.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

instances() { find "$tracefs/instances" -mindepth 1 -maxdepth 1 -printf '%f\n' | xargs; }

capture() {
	mr_probe record --json "$tmp/report.json" -- mr_reg --count 2 --leave wait >/dev/null 2>&1 &
	probe=$!
	background+=("$probe")
	eventually pgrep -x mr_reg
	eventually sh -c "[ \$(grep -c 'comm mr_reg' $debugfs/last) -ge 2 ]"
}

reset
capture
is "a capture has an instance of its own" "mrscope-$probe" "$(instances)"
run rmmod mrscope
is "rmmod is refused" 1 "$ended"
like "and says why" 'in use' "$(cat "$tmp/err")"
check "the module is still there" test -e "$debugfs/status"
kill -TERM "$probe"
wait "$probe"
is "the capture has lost nothing" "2 2 0" "$(mr_json "$tmp/report.json" 'reg[*].seq' | wc -l) $(
	mr_json "$tmp/report.json" 'dereg[*].seq' | wc -l) $(mr_json "$tmp/report.json" lost)"
is "its instance is gone" "" "$(instances)"
run rmmod mrscope
is "then rmmod succeeds" "0 " "$ended $(cat "$tmp/err")"
load

reset
capture
kill -KILL "$probe"
wait "$probe" 2>/dev/null
pkill -TERM -x mr_reg
eventually sh -c "! pgrep -x mr_reg"
is "a killed capture leaves its instance" "mrscope-$probe" "$(instances)"
run mr_probe explain --size 4K --count 1
is "the next one works" 0 "$ended"
is "and leaves none" "" "$(instances)"
is "whole keys are not left on" 0 "$(status_of keys)"
run rmmod mrscope
is "and the module can go" "0 " "$ended $(cat "$tmp/err")"
load

# Only what is left over is cleaned up: not another capture, nor other tools'.
mkdir "$tracefs/instances/not-ours"
reset
capture
run mr_probe explain --size 4K --count 1
is "two captures at once" "0 mrscope-$probe not-ours" "$ended $(instances | tr ' ' '\n' | sort | xargs)"
kill -TERM "$probe"
wait "$probe"
rmdir "$tracefs/instances/not-ours"
is "the other one has all of its records" "2 2" "$(mr_json "$tmp/report.json" 'reg[*].seq' | wc -l) $(
	mr_json "$tmp/report.json" 'dereg[*].seq' | wc -l)"

finish
