# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# What the guest tests share: results as TAP, the observer's files, its
# reports. To be sourced. A test ends with finish, which adds the checks that
# hold after everything: nothing left under way, no complaint of the kernel.

set -uo pipefail

debugfs=/sys/kernel/debug/mrscope
tracefs=/sys/kernel/tracing
module=$MRSCOPE_KMOD/mrscope/mrscope.ko
PATH=$MRSCOPE_BUILD/tests/guest:$PATH
# shellcheck disable=SC2034  # for the tests
suite=$MRSCOPE_SUITE

tmp=$(mktemp -d)
trap tidy EXIT
test_count=0
test_failures=0
background=()
test_name=${0##*/}
echo "<6>mrscope test: begin $test_name" >/dev/kmsg

# Runs at the end, however it comes.
tidy() {
	local pid
	for pid in "${background[@]}"; do kill -KILL "$pid" 2>/dev/null; done
	trace_stop
	rm -rf "$tmp"
}

# ---- results ----

report() { # STATUS DESCRIPTION [DIAGNOSTICS]
	test_count=$((test_count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $test_count - $2"
		return
	fi
	test_failures=$((test_failures + 1))
	echo "not ok $test_count - $2"
	[ -z "${3-}" ] || printf '%s\n' "$3" | head -n 40 | sed 's/^/# /'
}

check() { # DESCRIPTION COMMAND...: it succeeds
	local output status=0
	output=$("${@:2}" 2>&1) || status=$?
	report "$status" "$1" "$output"
}

is() { # DESCRIPTION WANTED GOT
	local status=0
	[ "$2" = "$3" ] || status=1
	report "$status" "$1" "wanted: $2"$'\n'"got:    $3"
}

like() { # DESCRIPTION REGEX GOT
	local status=0
	[[ $3 =~ $2 ]] || status=1
	report "$status" "$1" "wanted: $2"$'\n'"got:    $3"
}

at_least() { # DESCRIPTION NUMBER GOT
	local status=0
	[[ $3 =~ ^[0-9]+$ ]] && [ "$3" -ge "$2" ] || status=1
	report "$status" "$1" "wanted: $2 or more"$'\n'"got:    $3"
}

at_most() { # DESCRIPTION NUMBER GOT
	local status=0
	[[ $3 =~ ^[0-9]+$ ]] && [ "$3" -le "$2" ] || status=1
	report "$status" "$1" "wanted: $2 or less"$'\n'"got:    $3"
}

skip() { # DESCRIPTION REASON
	test_count=$((test_count + 1))
	echo "ok $test_count - $1 # SKIP $2"
}

note() { printf '# %s\n' "$*"; }

skip_all() { # REASON
	echo "1..0 # SKIP $1"
	exit 0
}

# What the kernel has said since this test began. Without the first line of it
# in the log, all of the log. That memory was short is no complaint, though it
# comes with a call trace.
complaints() {
	dmesg | awk -v begin="mrscope test: begin $test_name" '
		index($0, begin) { text = ""; next }
		/vmalloc error:|page allocation failure:/ { shortage = 1 }
		shortage { if (/<\/TASK>/) shortage = 0; next }
		/WARNING|BUG|Oops|Call Trace|general protection|lockdep|refcount_t|stall|blocked for more/ {
			text = text $0 "\n"
		}
		END { printf "%s", text }'
}

finish() {
	local complaint
	if [ -n "${ends_unloaded-}" ]; then
		is "the module is not there" "" "$(ls -d /sys/module/mrscope 2>/dev/null)"
	elif [ -e "$debugfs/status" ]; then
		is "nothing is left under way" 0 "$(status_of contexts)"
	else
		report 1 "the module is loaded at the end"
	fi
	complaint=$(complaints)
	is "the kernel has no complaint" "" "$complaint"
	[ -z "$complaint" ] ||
		dmesg | grep -F -B 8 -A 40 -m 1 "$(head -n 1 <<<"$complaint")" | sed 's/^/# /'
	echo "1..$test_count"
	[ "$test_failures" -eq 0 ]
	exit
}

# ---- running ----

# Runs COMMAND with its output in $tmp/out and $tmp/err, and remembers its
# status in $ended.
run() { # COMMAND...
	ended=0
	# shellcheck disable=SC2034  # for the tests
	"$@" >"$tmp/out" 2>"$tmp/err" </dev/null || ended=$?
}

# Waits until COMMAND succeeds: 20 seconds at most, more on a kernel that is slow.
eventually() { # COMMAND...
	local i tries=200
	[ "$MRSCOPE_KERNEL" = stock ] || tries=1200
	for ((i = 0; i < tries; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	echo "never: $*"
	return 1
}

in_background() { # COMMAND...
	"$@" &
	background+=($!)
}

ended() { ! kill -0 "$1" 2>/dev/null; } # PID
is_running() { kill -0 "$1" 2>/dev/null; } # PID

# ---- reports ----

# Distinct values in a report, sorted, on one line.
all() { # FILE PATH [FIELD...]
	mr_json "$@" | sort -u | xargs
}

# mr_invariants holds for a report of at least one operation.
sound() { # FILE
	local count
	count=$(mr_invariants "$1") && return
	echo "$count"
	return 1
}

# ---- the observer ----

status_of() { # KEYWORD: the word behind it
	awk -v key="$1" '$1 == key { print $2 }' "$debugfs/status"
}

boundary() { # SYMBOL: its line in status
	awk -v symbol="$1" '$1 == "boundary" && $4 == symbol' "$debugfs/status"
}

# Boundaries that should be armed with rxe0 there, and are not.
unarmed() {
	awk '$1 == "boundary" && $3 == "unarmed" && !/deep mode|DMA API|needs it|not every kernel/' "$debugfs/status"
}

# References that are held on pages of the whole system.
pages_pinned() {
	awk '/^nr_foll_pin_/ { sum += $1 ~ /acquired/ ? $2 : -$2 } END { print sum + 0 }' /proc/vmstat
}

hits() { # SYMBOL...: of all of them together
	awk -v symbols="$*" '
		BEGIN { n = split(symbols, s); for (i = 1; i <= n; i++) wanted[s[i]] = 1 }
		$1 == "boundary" && $4 in wanted {
			# The module of a symbol stands behind it in brackets.
			sum += $5 ~ /^\[/ ? $6 : $5
		}
		END { print sum + 0 }' "$debugfs/status"
}

last() { # REGEX: the latest record that matches
	grep -E "$1" "$debugfs/last" | tail -n 1
}

# The value behind WORD in a line of words.
after() { # WORD LINE
	awk -v word="$1" '{ for (i = 1; i < NF; i++) if ($i == word) { print $(i + 1); exit } }' <<<"$2"
}

load() { [ -e /sys/module/mrscope ] || insmod "$module"; }
unload() { [ ! -e /sys/module/mrscope ] || rmmod mrscope; }
reset() { echo 1 >"$debugfs/reset"; }

# ---- what only a debug kernel has ----

# Lets slab allocations fail where a program asks for it (/proc/PID/fail-nth),
# those too that could wait for memory, and without a word in the log. Not those
# that the kernel itself warns of: of whole pages where it could wait, and of the
# events of a module that is being loaded. Fails where the kernel has nothing of
# that.
allow_failures() {
	local filter=/sys/kernel/debug/failslab notify end
	[ -e /proc/self/fail-nth ] || return
	# There are two of that name, and all between them is tracing, too.
	read -r notify end < <(sort /proc/kallsyms | awk '
		last { end = $1; last = 0 }
		$3 == "trace_module_notify" { last = 1; if (!first) first = $1 }
		END { print first, end }')
	echo "0x$notify" >$filter/reject-start
	echo "0x$end" >$filter/reject-end
	echo 0 >$filter/verbose
	echo N >$filter/ignore-gfp-wait
}

kmemleak=/sys/kernel/debug/kmemleak

# What was allocated since this test began and is found nowhere any more; nothing
# where the kernel does not look for it.
leaks() {
	local i
	[ -e "$kmemleak" ] || return 0
	# An object counts when it is five seconds old and was missing in two scans.
	for i in 1 2; do
		sleep 6
		echo scan >"$kmemleak"
	done
	cat "$kmemleak"
}
[ ! -e "$kmemleak" ] || echo clear >"$kmemleak"

# ---- events, in an instance of our own ----

events=$tracefs/instances/mrscope-guest-test

trace_start() {
	mkdir -p "$events"
	echo 1 >"$events/events/mrscope/enable"
	echo 1 >"$events/tracing_on"
}

trace_lines() { # EVENT [REGEX]
	grep -E " $1: .*${2-}" "$events/trace"
}

trace_stop() {
	[ -d "$events" ] || return 0
	echo 0 >"$events/events/enable"
	rmdir "$events"
}
