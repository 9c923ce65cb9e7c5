#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The module is loaded and unloaded, again and again, while four threads
# register: no oops, no warning, no context left, and recording works
# afterwards.
#
# Usage: 65-load-unload.sh [CYCLES]
# shellcheck disable=SC2317  # functions that check calls
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

cycles=${1:-5}
note "$cycles cycles"

# Without a priority of their own the threads would keep the CPUs from all that
# (un)loading waits for.
nice -n 19 mr_many --threads 4 --count 0 >"$tmp/made" &
many=$!
background+=("$many")
check "registrations are under way" eventually grep -q 'comm mr_many' "$debugfs/last"

cycle() {
	rmmod mrscope && insmod "$module" || return
	# Now and then in the middle of something, now and then at once.
	[ $((RANDOM % 2)) -eq 0 ] || sleep "0.$((RANDOM % 4))"
}
all_cycles() {
	local i
	for ((i = 0; i < cycles; i++)); do
		cycle || { echo "cycle $i"; return 1; }
		is_running "$many" || { echo "cycle $i: the program has ended"; return 1; }
	done
}
check "$cycles times unloaded and loaded" all_cycles
check "registrations of this load are recorded" eventually grep -q 'comm mr_many' "$debugfs/last"

# Switched off and on in the middle of registrations, too.
switches() {
	local i
	for ((i = 0; i < cycles; i++)); do
		echo $((i % 2)) >"$debugfs/enabled" || return
		echo $((i / 2 % 2)) >"$debugfs/deep" || return
	done
	echo 1 >"$debugfs/enabled"
	echo 0 >"$debugfs/deep"
}
check "$cycles times switched" switches
kill -TERM "$many"
wait "$many"
is "the program has ended well" 0 $?
at_least "and has registered all the while" 100 "$(cat "$tmp/made")"

is "selftest passes" pass "$(cat "$debugfs/selftest")"
run mr_probe explain --size 64K --count 3 --json "$tmp/report.json"
is "recording works afterwards" 0 "$ended"
check "with all stages" sound "$tmp/report.json"
is "  none unknown" "" "$(mr_stages "$tmp/report.json" 'cases[*].reg[*]')"

finish
