#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The programs that check reports for the other tests refuse reports that are
# wrong: each is given a true one, and then the same with a mistake in it.
# shellcheck disable=SC2317  # functions that check calls
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

document=$tmp/report.json
calls=$tmp/calls
wrong=$tmp/wrong

mr_probe record --keys --json "$document" -- \
	mr_many --threads 2 --count 200 --log "$calls" >/dev/null
check "mr_match: a true log" mr_match "$calls" "$document"
check "mr_invariants: a true report" sound "$document"

refuses() { # COMMAND...
	run "$@"
	[ "$ended" = 1 ] && [ -s "$tmp/out" ] && return
	echo "status $ended"
	cat "$tmp/out"
	return 1
}
# The fields of a log's line: operation, tid, address, length, access, keys, errno.
changed_call() { # FIELD VALUE
	awk -v field="$1" -v value="$2" 'NR == 7 { $field = value } { print }' "$calls" >"$wrong"
	refuses mr_match "$wrong" "$document"
}
check "mr_match: another tid" changed_call 2 1
check "mr_match: another address" changed_call 3 0x1000
check "mr_match: another length" changed_call 4 99999
check "mr_match: another lkey" changed_call 6 0x99
check "mr_match: another rkey" changed_call 7 0x99
check "mr_match: another errno" changed_call 8 5
another_access() {
	sed '/^reg/s/ 0x1 / 0x4 /' "$calls" >"$wrong"
	refuses mr_match "$wrong" "$document"
}
check "mr_match: another access" another_access
missing_call() {
	sed 7d "$calls" >"$wrong"
	refuses mr_match "$wrong" "$document"
}
check "mr_match: a record of no call" missing_call
missing_record() {
	sed '0,/^{"op"/{/^{"op"/d}' "$document" >"$wrong"
	refuses mr_match "$calls" "$wrong"
}
check "mr_match: a call without a record" missing_record
second_call() {
	sed 7p "$calls" >"$wrong"
	refuses mr_match "$wrong" "$document"
}
check "mr_match: the same call twice" second_call
changed_report() { # COMMAND-OF-SED PROGRAM ARGUMENT...
	sed "$1" "$document" >"$wrong"
	! cmp -s "$document" "$wrong" || { echo "nothing changed"; return 1; }
	refuses "${@:2}" "$wrong"
}
check "mr_match: a lost record" changed_report 's/"lost": 0/"lost": 1/' mr_match "$calls"

check "mr_invariants: a sum that is off by one" \
	changed_report '0,/"unwind": 0/s//"unwind": 1/' mr_invariants
check "mr_invariants: an unknown stage that took time" \
	changed_report '0,/"pin": [0-9]*/s//"pin": null/' mr_invariants
check "mr_invariants: merged, with a time of its own" \
	changed_report '0,/"merged": \[\]/s//"merged": [["pin","sg"]]/' mr_invariants
check "mr_invariants: an incomplete record" \
	changed_report '0,/"incomplete": false/s//"incomplete": true/' mr_invariants
check "mr_invariants: a lost record" changed_report 's/"lost": 0/"lost": 1/' mr_invariants
broken() {
	head -c -10 "$document" >"$wrong"
	! mr_json "$wrong" . && ! mr_invariants "$wrong"
}
check "mr_json, mr_invariants: no whole document" broken
two() {
	cat "$document" "$document" >"$wrong"
	! mr_json "$wrong" .
}
check "mr_json: two documents" two

finish
