#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# tools/vm/run keeps its promises: what a command writes, how it ends, and what
# becomes of a guest that does not end well.
set -uo pipefail

repo=$(cd "$(dirname "$0")/../.." && pwd)
run=("$repo/tools/vm/run" --no-build --bare)
# Leftovers of these runs, and only of these, would be seen here.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

count=0
result() { # NAME; the status before it decides
	local status=$?
	count=$((count + 1))
	if [ "$status" -eq 0 ]; then echo "ok $count - $1"; else echo "not ok $count - $1"; fi
}

ends_with() { # STATUS OPTION... -- COMMAND...
	local wanted=$1 status=0
	shift
	"${run[@]}" "$@" >"$TMPDIR/out" 2>"$TMPDIR/err" </dev/null || status=$?
	[ "$status" -eq "$wanted" ] && return
	echo "# status $status, not $wanted"
	sed 's/^/# /' "$TMPDIR/err"
	return 1
}

saw() { # REGEX FILE
	grep -q "$1" "$TMPDIR/$2" && return
	echo "# not in $2: $1"
	sed 's/^/# /' "$TMPDIR/$2"
	return 1
}

ends_with 7 -- sh -c 'echo out; echo err >&2; exit 7'
result "the command's exit status"
[ "$(cat "$TMPDIR/out")" = out ] && [ "$(grep -v ^run: "$TMPDIR/err")" = err ]
result "standard output and error arrive apart and alone"

# shellcheck disable=SC2016  # for the guest
ends_with 0 -- bash -c 'head -c 3000001 /dev/urandom | tee >(sha256sum >&2)'
result "three megabytes of noise"
[ "$(sha256sum <"$TMPDIR/out")" = "$(grep -v ^run: "$TMPDIR/err")" ]
result "arrive byte for byte"

ends_with 127 -- /no/such/program
result "no such command is 127"
# shellcheck disable=SC2016  # for the guest
ends_with 137 -- sh -c 'kill -KILL $$'
result "a killed command is 128 and the signal"

head -c 2000001 /dev/urandom >"$TMPDIR/in"
"${run[@]}" -i -- sha256sum <"$TMPDIR/in" 2>/dev/null | cmp -s - <(sha256sum <"$TMPDIR/in")
result "standard input, when asked for"

[ "$(echo short | "${run[@]}" -i -- cat 2>/dev/null)" = short ]
result "a short input too, with its end"
ends_with 0 -- cat
result "and else it is empty"

# What is said right before a panic may not have left the guest when it ends.
ends_with 121 -- sh -c 'echo before; sleep 2; echo c >/proc/sysrq-trigger; sleep 60'
result "a panic is 121"
saw 'sysrq triggered crash' err && saw '^before$' out
result "and shows the console's end"
ends_with 122 -- sh -c 'echo o >/proc/sysrq-trigger; sleep 60'
result "a guest that goes away is 122"
ends_with 123 -- sh -c 'echo "<4>WARNING: made up" >/dev/kmsg'
result "a kernel warning is 123"
ends_with 0 --allow-warnings -- sh -c 'echo "<4>WARNING: made up" >/dev/kmsg'
result "unless allowed"
# shellcheck disable=SC2016  # for the guest
shortage='for line in "page allocation failure: made up" "Call Trace:" " </TASK>"; do
	echo "<4>$line" >/dev/kmsg; done'
ends_with 0 -- sh -c "$shortage"
result "a report of short memory is none"
ends_with 123 -- sh -c "$shortage; echo '<4>WARNING: made up' >/dev/kmsg"
result "but what comes behind it is one"
ends_with 124 --timeout 30 -- sh -c 'echo started; sleep 600'
result "the time limit is 124"
[ "$(cat "$TMPDIR/out")" = started ]
result "and the output until then is there"

"${run[@]}" -- sh -c 'sleep 1; echo one' >"$TMPDIR/one" 2>/dev/null </dev/null &
first=$!
"${run[@]}" -- sh -c 'sleep 1; echo two' >"$TMPDIR/two" 2>/dev/null </dev/null
result "two runs at once: the second"
wait "$first" && [ "$(cat "$TMPDIR/one" "$TMPDIR/two" | xargs)" = "one two" ]
result "two runs at once: the first, and each its own output"

"${run[@]}" -- sh -c 'echo ready; sleep 600' >"$TMPDIR/out" 2>/dev/null </dev/null &
victim=$!
for _ in $(seq 60); do
	[ -s "$TMPDIR/out" ] && break
	sleep 1
done
qemu=$(pgrep -P "$victim")
kill -TERM "$victim"
wait "$victim"
[ $? -eq 143 ] && ! kill -0 "$qemu" 2>/dev/null
result "TERM ends the run and its QEMU"

! ls -d "$TMPDIR"/mrscope-vm.* 2>/dev/null
result "no temporary file is left"

for suite in bookworm trixie; do
	kernel=$(cat "$("$repo/tools/vm/build-root" "$suite")/kernel-release")
	ends_with 0 --suite $suite --icount --iommu strict -- sh -c 'uname -r; nproc; ls /sys/class/iommu'
	[ "$(xargs <"$TMPDIR/out")" = "$kernel 1 dmar0" ]
	result "$suite with a strict IOMMU under icount"
done

echo "1..$count"
