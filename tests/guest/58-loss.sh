#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# What is lost is counted and shown: mr_probe is stopped while a program makes
# more records than its buffer holds.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

document=$tmp/report.json

# Waits for a file, so that mr_probe can be stopped before it goes on.
mr_probe record --buffer-size 64K --json "$document" -- \
	sh -c "until [ -e $tmp/go ]; do sleep 0.1; done
		mr_many --threads 2 --count 1500 >$tmp/made; touch $tmp/done" >"$tmp/out" 2>"$tmp/err" &
probe=$!
background+=("$probe")
eventually test -d "$tracefs/instances/mrscope-$probe"
sleep 1
kill -STOP "$probe"
touch "$tmp/go"
check "the program runs while mr_probe does not" eventually test -e "$tmp/done"
kill -CONT "$probe"
wait "$probe"
is "mr_probe succeeds" "0 " "$? $(cat "$tmp/err")"

made=$(cat "$tmp/made")
taken=$(($(mr_json "$document" 'reg[*].seq' | wc -l) + $(mr_json "$document" 'dereg[*].seq' | wc -l)))
lost=$(mr_json "$document" lost)
note "made $made, taken $taken, lost $lost"
at_least "records were lost" 1 "$lost"
at_least "and some were taken" 1 "$taken"
is "in the buffer, not in the module" "$lost 0" "$(mr_json "$document" lost_detail buffer module)"
# The ends of processes are events too, and may be among those lost.
at_least "taken and lost are what was made" "$made" $((taken + lost))
at_most "and hardly more" $((made + 50)) $((taken + lost))
like "people are told" "lost $lost|$lost (events|records)" "$(cat "$tmp/out" "$tmp/err")"
is "the module has recorded all" "$made" "$(status_of records)"

finish
