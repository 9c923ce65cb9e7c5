#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Captures that overlap: whole keys stay on until the last that asked for them
# has ended, however it ended, and captures of one pid in two pid namespaces do
# not meet.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

instances() { find "$tracefs/instances" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort -V | xargs; }
keys=/sys/module/mrscope/parameters/keys

# A capture whose program runs, and waits for finish_capture before it registers.
capture() { # NAME WRAPPER... -- OPTION...
	local name=$1 wrapper=()
	shift
	while [ "$1" != -- ]; do
		wrapper+=("$1")
		shift
	done
	shift
	rm -f "$tmp/$name.up"
	in_background "${wrapper[@]}" mr_probe record --json "$tmp/$name.json" "$@" -- \
		sh -c "echo \$\$ >$tmp/$name.up; until [ -e $tmp/$name.go ]; do sleep 0.1; done; mr_reg --count 2" \
		>/dev/null 2>"$tmp/$name.err"
	pids[$name]=$!
	eventually sh -c "[ -s $tmp/$name.up ] || [ -s $tmp/$name.err ]"
}
declare -A pids
finish_capture() { # NAME
	touch "$tmp/$1.go"
	wait "${pids[$1]}"
	rm "$tmp/$1.go"
	is "$1 has both of its MRs" "2 2" "$(mr_json "$tmp/$1.json" 'reg[*].seq' | wc -l) $(
		mr_json "$tmp/$1.json" 'dereg[*].seq' | wc -l)"
}
kill_capture() { # NAME
	kill -KILL "${pids[$1]}"
	wait "${pids[$1]}" 2>/dev/null
	# Its program is on its own now.
	kill "$(cat "$tmp/$1.up")"
}
has_keys() { # NAME
	like "$1 has whole keys" '^0x[0-9a-f]+ 0x[0-9a-f]+$' "$(mr_json "$tmp/$1.json" 'reg[*].lkey' | xargs)"
}

# ---- whole keys ----

capture first -- --keys
capture second -- --keys
is "two captures with keys" "mrscope-${pids[first]}-keys mrscope-${pids[second]}-keys" "$(instances)"
finish_capture first
has_keys first
is "the first has ended: keys are on" 1 "$(status_of keys)"
finish_capture second
has_keys second
is "the second has ended: keys are off" 0 "$(status_of keys)"

capture first -- --keys
capture second -- --keys
kill_capture first
run mr_probe explain --size 4K --count 1 --warmup 0
is "the first was killed and cleaned up: keys are on" "1 mrscope-${pids[second]}-keys" \
	"$(status_of keys) $(instances)"
finish_capture second
has_keys second
is "then they are off" 0 "$(status_of keys)"

capture first -- --keys
capture second -- --keys
kill_capture first
finish_capture second
is "the last to end cleans up after the one that was killed" "0 " "$(status_of keys) $(instances)"

capture first -- --keys
kill_capture first
is "a killed one leaves them on" 1 "$(status_of keys)"
run mr_probe explain --size 4K --count 1 --warmup 0
is "the next capture switches them off" "0 0 " "$ended $(status_of keys) $(instances)"

echo Y >$keys
capture first -- --keys
finish_capture first
has_keys first
is "who switched them on by hand has them on" 1 "$(status_of keys)"
echo N >$keys

# ---- pids ----

# The pid of a capture that is gone, and of this shell now.
mkdir "$tracefs/instances/mrscope-$$"
run mr_probe explain --size 4K --count 1 --warmup 0
is "an instance is left over, though its pid is in use" "0 " "$ended $(instances)"

namespace=(unshare --pid --fork --mount-proc)
capture first "${namespace[@]}" --
capture second "${namespace[@]}" --
is "pid 1 of two namespaces" "mrscope-1 mrscope-1-2" "$(instances)"
run mr_probe explain --size 4K --count 1 --warmup 0
is "they are not taken for left over" "0 mrscope-1 mrscope-1-2" "$ended $(instances)"
finish_capture first
finish_capture second
is "they leave no instance" "" "$(instances)"

finish
