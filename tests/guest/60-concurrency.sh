#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Eight threads register at once, with a CPU hog beside them: each call has one
# record with its tid, address, length, access, keys and errno; none is lost.
#
# Usage: 60-concurrency.sh [REGISTRATIONS [SEED]]
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

count=${1:-6000}
seed=${2:-$RANDOM}
note "$count registrations, seed $seed"
document=$tmp/report.json
calls=$tmp/calls

while :; do :; done &
background+=($!)

before=$(status_of records)
mr_probe record --keys --json "$document" -- \
	mr_many --threads 8 --count "$count" --seed "$seed" --log "$calls" >"$tmp/out" 2>"$tmp/err"
is "mr_probe succeeds" "0 " "$? $(cat "$tmp/err")"
kill -KILL "${background[0]}"
wait "${background[0]}" 2>/dev/null
made=$(wc -l <"$calls")
note "$made calls, $(stat -c %s "$document") bytes of report"
at_least "registrations and deregistrations were made" $((count * 19 / 10)) "$made"
is "the module has recorded each" "$made" $(($(status_of records) - before))
is "and lost none" 0 "$(status_of lost)"
matched=$(mr_match "$calls" "$document")
report $? "each call has its record, with everything as logged" "$matched"
note "$matched"
check "stages add up, and no thread does two things at once" sound "$document"
is "by eight threads" 8 "$(cut -d' ' -f2 "$calls" | sort -u | wc -l)"
is "no probe was missed" "" "$(awk '$1 == "boundary" { missed = $5 ~ /^\[/ ? $7 : $6; if (missed) print }' \
	"$debugfs/status")"

finish
