#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Deep mode names the slow path of the pin: taken where pages must be faulted
# in, not taken where they are there.
# shellcheck disable=SC2317  # functions that check calls
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

report=$tmp/report.json
trap 'echo 0 >"$debugfs/deep"; tidy' EXIT

explain() {
	mr_probe explain --size 4M --count 2 --warmup 1 --json "$report" >/dev/null
}

explain
is "not deep: the figures are unknown" "null null null" \
	"$(all "$report" 'cases[*].reg[*]' slow_ns slow_calls migrations)"

echo 1 >"$debugfs/deep"
is "deep reads back" "1 1" "$(cat "$debugfs/deep") $(status_of deep)"
like "the slow path is armed" '^boundary slow armed' "$(grep '^boundary slow' "$debugfs/status")"
like "migration is armed" '^boundary migrate armed' "$(grep '^boundary migrate' "$debugfs/status")"
trace_start
explain
all_events=$(trace_lines mr_reg | wc -l)
echo 'flags & 0x100' >"$events/events/mrscope/mr_reg/filter"
echo >"$events/trace"
explain
is "each event has the flag of deep mode" "$all_events" "$(trace_lines mr_reg | wc -l)"
at_least "of several events" 4 "$all_events"
trace_stop
check "stages add up" sound "$report"
is "untouched: a slow path for each batch of 512 pages" 2 \
	"$(all "$report" 'cases[touched=false].reg[*].slow_calls')"
is "touched: none" "0 0" "$(all "$report" 'cases[touched=true].reg[*]' slow_calls slow_ns)"
within_pin() {
	local slow pin
	while read -r slow pin; do
		((slow > pin / 2 && slow <= pin)) || { echo "slow $slow of pin $pin"; return 1; }
	done < <(mr_json "$report" 'cases[touched=false].reg[*]' slow_ns stages_ns.pin)
}
check "untouched: its time is most of the pin's, and within it" within_pin
is "migrations are counted" 0 "$(all "$report" 'cases[touched=true].reg[*].migrations')"

echo 0 >"$debugfs/deep"
like "the slow path is unarmed" 'only in deep mode$' "$(grep '^boundary slow' "$debugfs/status")"
explain
is "the figures are unknown again" "null null null" \
	"$(all "$report" 'cases[*].reg[*]' slow_ns slow_calls migrations)"

finish
