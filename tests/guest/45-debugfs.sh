#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The observer's files: who may open them, what they refuse, that their
# numbers are those of what was done, and what the switches and filters do.
# shellcheck disable=SC2317  # functions that check calls
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

restore() {
	echo 1 >/proc/sys/kernel/ftrace_enabled
	echo 1 >/sys/kernel/debug/kprobes/enabled
	echo 0 >"$debugfs/filter_tgid"
	echo 0 >"$debugfs/filter_min_ns"
	echo >"$debugfs/filter_device"
	echo N >/sys/module/mrscope/parameters/keys
	echo 1 >"$debugfs/enabled"
	echo 0 >"$debugfs/deep"
	echo >"$debugfs/disarm"
}
trap 'restore 2>/dev/null; tidy' EXIT

# ---- modes ----

files() {
	cat <<-'END'
		deep 600
		disarm 600
		enabled 600
		filter_device 600
		filter_min_ns 600
		filter_tgid 600
		histogram 400
		last 400
		reset 200
		selftest 400
		stats 400
		status 400
	END
}
is "files and their modes" "$(files)" "$(cd "$debugfs" && stat -c '%n %a' ./* | sed 's|^\./||' | sort)"
readable() {
	local file mode
	while read -r file mode; do
		[ "$mode" = 200 ] || cat "$debugfs/$file" >/dev/null || return
	done < <(files)
}
mr_reg >/dev/null
check "each is readable" readable
not_for_others() {
	local file mode
	while read -r file mode; do
		! setpriv --reuid=65534 --regid=65534 --clear-groups cat "$debugfs/$file" 2>/dev/null || return
	done < <(files)
}
check "but not by others" not_for_others

# ---- bad writes ----

settings() {
	cat "$debugfs"/{enabled,deep,disarm,filter_tgid,filter_min_ns,filter_device}
}
mr_reg >/dev/null
before=$(settings; cat "$debugfs"/{stats,last})
refused() { # FILE TEXT
	local error
	error=$(printf '%s' "$2" 2>&1 >"$debugfs/$1") && { echo "taken"; return 1; }
	[[ $error == *"Invalid argument"* ]] || { echo "$error"; return 1; }
}
check "enabled refuses a word" refused enabled maybe
check "enabled refuses nothing" refused enabled ' '
check "deep refuses a number above 1" refused deep 2
check "disarm refuses an unknown boundary" refused disarm nonsense
check "disarm refuses a list with one unknown" refused disarm pin,nonsense
check "disarm refuses what is too long" refused disarm "$(printf 'pin,%.0s' $(seq 200))"
check "filter_tgid refuses a word" refused filter_tgid abc
check "filter_min_ns refuses a word" refused filter_min_ns abc
check "filter_tgid refuses what no process has" refused filter_tgid 4294967296
# Nothing is cut off, or hidden behind a zero byte.
hidden() { # FILE TEXT: as printf has it
	# shellcheck disable=SC2059  # the text is a format
	! printf "$2" >"$debugfs/$1" 2>/dev/null
}
for file in enabled deep reset filter_tgid filter_min_ns; do
	check "$file refuses what follows a number" refused $file 00000000000000000000000001garbage
	check "$file refuses what follows a zero byte" hidden $file '1\0garbage'
done
check "disarm refuses what follows a zero byte" hidden disarm 'pin\0nonsense'
check "filter_device refuses what follows a zero byte" hidden filter_device 'rxe0\0junk'
all_refuse() {
	local file mode
	while read -r file mode; do
		refused "$file" nonsense || { echo "$file, of mode $mode"; return 1; }
	done < <(files)
}
check "every file refuses nonsense" all_refuse
check "reset refuses a no" refused reset 0
check "filter_device refuses what is too long" refused filter_device "$(printf 'x%.0s' $(seq 80))"
is "and nothing has changed" "$before" "$(settings; cat "$debugfs"/{stats,last})"

# ---- the self-test ----

is "selftest passes" pass "$(cat "$debugfs/selftest")"
echo 0 >/proc/sys/kernel/ftrace_enabled
like "without ftrace it fails and says so" '^fail: .*ftrace_enabled' "$(cat "$debugfs/selftest")"
echo 1 >/proc/sys/kernel/ftrace_enabled
is "with ftrace again it passes" pass "$(cat "$debugfs/selftest")"
echo 0 >/sys/kernel/debug/kprobes/enabled
like "without kprobes it fails and says so" '^fail: .*kprobes/enabled' "$(cat "$debugfs/selftest")"
run mr_probe status
is "mr_probe status then ends with 3" 3 "$ended"
echo 1 >/sys/kernel/debug/kprobes/enabled
is "with kprobes again it passes" pass "$(cat "$debugfs/selftest")"
run mr_probe status --test
is "and so does mr_probe status --test" 0 "$ended"

# ---- statistics ----

# count, bytes and errors of an operation
stat_of() { # OPERATION
	awk -v op="$1" '$2 == op && $3 == "count" { print $4, $6, $8 }' "$debugfs/stats"
}
samples() { # OPERATION STAGE
	awk -v op="$1" -v stage="$2" '$2 == op && $3 == stage { sum += $7 } END { print sum + 0 }' \
		"$debugfs/histogram"
}
reset
is "reset empties statistics, histogram and last" 0 \
	"$(cat "$debugfs"/{stats,histogram,last} | wc -l)"
mr_reg --count 20 >/dev/null
mr_reg --count 3 --access remote_write >/dev/null
# The core has refused those; the driver refuses these.
mr_reg --count 2 --unmapped >/dev/null
bytes=$((20 * 4096 + 4096 * 20 * 19 / 2))
is "registrations, bytes, errors" "20 $bytes 5" "$(stat_of reg)"
is "deregistrations, bytes, errors" "20 $bytes 0" "$(stat_of dereg)"
like "errors by errno" ' errno14=2 errno22=3' "$(grep 'reg count' "$debugfs/stats")"
is "as many in the histogram" "20 20 20" "$(samples reg total) $(samples reg pin) $(samples dereg total)"
is "the latest records" "25 20" "$(grep -c ' reg ' "$debugfs/last") $(grep -c ' dereg ' "$debugfs/last")"
increasing() {
	awk '$1 == "stage" || NF != 4 { next }
		$2 > $3 || $3 > $4 { print; bad = 1 }
		{ rows++ }
		END { exit bad || !rows }' "$debugfs/stats"
}
check "p50, p99 and max are in order" increasing
mr_reg --count 50 >/dev/null
is "last keeps 64 at most" 64 "$(wc -l <"$debugfs/last")"
cat "$debugfs/selftest" >/dev/null
is "and the self-test takes none away" 64 "$(wc -l <"$debugfs/last")"

# ---- switches and filters ----

records() { # COMMAND...: how many records it leaves in last
	reset
	"$@" >/dev/null
	wc -l <"$debugfs/last"
}
counted() { stat_of reg | cut -d' ' -f1; }

is "all are recorded" 4 "$(records mr_reg --count 2)"
echo 0 >"$debugfs/enabled"
is "disabled: none" "0 0" "$(records mr_reg --count 2) $(status_of enabled)"
is "disabled: nothing is armed" 0 "$(grep -c '^boundary [a-z_]* armed' "$debugfs/status")"
is "disabled: status says why" 0 "$(grep '^boundary' "$debugfs/status" | grep -vc 'disabled$')"
echo 1 >"$debugfs/enabled"
is "enabled: all again" 4 "$(records mr_reg --count 2)"

echo $$ >"$debugfs/filter_tgid"
is "filter_tgid: others are left out" 0 "$(records mr_reg --count 2)"
is "filter_tgid: but counted" 2 "$(counted)"
# The program that takes this shell's place has its number.
reset
(
	echo "$BASHPID" >"$debugfs/filter_tgid"
	exec mr_reg --count 2 >/dev/null
)
is "filter_tgid: its own are there" 4 "$(wc -l <"$debugfs/last")"
reset
(
	echo "$BASHPID" >"$debugfs/filter_tgid"
	exec mr_reg --count 2 --leave heir >/dev/null
)
eventually grep -q ' dereg cleanup ' "$debugfs/last" >/dev/null
is "filter_tgid: an owner's, whoever deregisters" 4 "$(wc -l <"$debugfs/last")"
echo 0 >"$debugfs/filter_tgid"

echo 1000000000000 >"$debugfs/filter_min_ns"
is "filter_min_ns: the short ones are left out" 0 "$(records mr_reg --count 2)"
is "filter_min_ns: but counted" 2 "$(counted)"
echo 1 >"$debugfs/filter_min_ns"
is "filter_min_ns: the others are there" 4 "$(records mr_reg --count 2)"
echo 0 >"$debugfs/filter_min_ns"

ip link add dummy1 type dummy
ip link set dummy1 up
rdma link add rxe1 type rxe netdev dummy1
echo rxe1 >"$debugfs/filter_device"
rdma link del rxe1
is "filter_device: reads back" rxe1 "$(cat "$debugfs/filter_device")"
is "filter_device: other devices are left out" 0 "$(records mr_reg --count 2)"
echo rxe0 >"$debugfs/filter_device"
is "filter_device: status says so" rxe0 "$(status_of filter_device)"
is "filter_device: its own are there" 4 "$(records mr_reg --count 2)"
echo >"$debugfs/filter_device"
is "filter_device: empty means all" 4 "$(records mr_reg --count 2)"

# ---- keys ----

# How many events have a key whose variant is not 0, of registrations and
# deregistrations.
whole_keys() {
	local event
	trace_start
	for event in mr_reg mr_dereg; do
		echo 'lkey & 0xff || rkey & 0xff' >"$events/events/mrscope/$event/filter"
	done
	mr_reg --count 8 >/dev/null
	# One variant in 256 is 0 by chance.
	echo "$(trace_lines mr_reg | wc -l) $(trace_lines mr_dereg | wc -l)"
	trace_stop
}
is "keys are masked in all events" "0 0" "$(whole_keys)"
echo Y >/sys/module/mrscope/parameters/keys
like "unless asked for" '^[4-8] [4-8]$' "$(whole_keys)"
is "status says so" 1 "$(status_of keys)"
echo N >/sys/module/mrscope/parameters/keys

finish
