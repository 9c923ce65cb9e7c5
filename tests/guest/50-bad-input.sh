#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# What goes wrong is said in one sentence with the remedy, and told by the exit
# status: 1 what was asked for failed, 2 usage, 3 a prerequisite is missing.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

trap 'restore >/dev/null 2>&1; tidy' EXIT
restore() {
	load
	echo 1 >/sys/kernel/debug/kprobes/enabled
	echo 1 >/proc/sys/kernel/ftrace_enabled
	echo >"$debugfs/filter_device"
	[ -e /sys/class/infiniband/rxe0 ] || rdma link add rxe0 type rxe netdev dummy0
}

says() { # WHAT STATUS REGEX COMMAND...
	run "${@:4}"
	is "$1: status" "$2" "$ended"
	is "$1: one line on stderr" 1 "$(wc -l <"$tmp/err")"
	like "$1: which says it" "$3" "$(cat "$tmp/err")"
	is "$1: nothing on stdout" "" "$(cat "$tmp/out")"
}

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
quick=(--count 1 --warmup 0)

# ---- usage ----

says "size 0" 2 'size' mr_probe explain --size 0
says "size of no number" 2 'size.*lots|lots' mr_probe explain --size lots
says "size beyond memory" 2 'memory|host has' mr_probe explain --size 64T
says "size beyond numbers" 2 'size|large' mr_probe explain --size 99999999999999999999G
says "unknown buffer kind" 2 'anon.*thp.*huge2m' mr_probe explain --buffer paper
says "unknown access flag" 2 'local_write' mr_probe explain --access fly
says "count 0" 2 'count' mr_probe explain --count 0
says "unknown option" 2 'frobnicate' mr_probe explain --frobnicate
says "unknown subcommand" 2 'frobnicate' mr_probe frobnicate
says "no subcommand" 2 'explain' mr_probe
says "record without a command" 2 '--' mr_probe record
says "record with an empty command" 2 '--' mr_probe record --
says "JSON to a folder that is not there" 1 '/no/such' \
	mr_probe explain "${quick[@]}" --json /no/such/folder/file

# ---- prerequisites ----

says "unknown device" 3 'mlx5_9.*rxe0|rxe0.*mlx5_9' mr_probe explain --device mlx5_9
echo 0 >/proc/sys/vm/nr_hugepages
echo 0 >/proc/sys/vm/nr_overcommit_hugepages
says "no huge pages" 3 'nr_hugepages' mr_probe explain --buffer huge2m
says "explain without permission" 3 'root' "${nobody[@]}" mr_probe explain --level module
says "record without permission" 3 'root' "${nobody[@]}" mr_probe record -- true
run "${nobody[@]}" mr_probe status
is "status without permission: status" 3 "$ended"
like "status without permission: says what is missing" 'root' "$(cat "$tmp/out")"

# Nothing would be seen, and nothing would say so.
for switch in /sys/kernel/debug/kprobes/enabled /proc/sys/kernel/ftrace_enabled; do
	echo 0 >"$switch"
	says "explain with ${switch##*/} 0" 3 "echo 1 > $switch" mr_probe explain --level module "${quick[@]}"
	says "record with ${switch##*/} 0" 3 "echo 1 > $switch" mr_probe record --level module -- true
	echo 1 >"$switch"
done

# Of a device that is gone.
ip link add dummy1 type dummy
ip link set dummy1 up
rdma link add rxe1 type rxe netdev dummy1
echo rxe1 >"$debugfs/filter_device"
rdma link del rxe1
warns() { # WHAT COMMAND...
	run "${@:2}"
	is "$1: it is done, and one line on stderr" "0 1" "$ended $(wc -l <"$tmp/err")"
	like "$1: which says what hides records" 'filter_device rxe1' "$(cat "$tmp/err")"
}
warns "explain with a filter" mr_probe explain "${quick[@]}"
warns "record with a filter" mr_probe record -- mr_reg
run mr_probe status
like "status with a filter: the remedy" "echo '' > $debugfs/filter_device" "$(cat "$tmp/out")"
echo >"$debugfs/filter_device"
run mr_probe record -- mr_reg
is "without it no word" "0 " "$ended $(cat "$tmp/err")"

unload
says "explain without the module" 3 'mrscope.*(insmod|modprobe|load)' mr_probe explain --level module
says "record without the module" 3 'mrscope.*(insmod|modprobe|load)' mr_probe record --level module -- true
run mr_probe status
is "status without the module: status" 3 "$ended"
like "status without the module: the remedy" 'insmod|modprobe' "$(cat "$tmp/out")"
report=$tmp/user.json
run mr_probe explain --level user "${quick[@]}" --json "$report"
is "explain --level user works without it" "0 user null" "$ended $(mr_json "$report" level) $(mr_json "$report" level_reason)"
check "its sum holds" sound "$report"
run "${nobody[@]}" mr_probe explain --size 4K "${quick[@]}" --json -
cp "$tmp/out" "$report"
is "explain without permission, too" "0 user " "$ended $(mr_json "$report" level) $(cat "$tmp/err")"
like "which says why not better" 'not loaded.*BPF.*run as root' "$(mr_json "$report" level_reason)"
load

rdma link del rxe0
says "explain without a device" 3 'device' mr_probe explain
rdma link add rxe0 type rxe netdev dummy0
run mr_probe explain "${quick[@]}"
is "with everything there it works again" 0 "$ended"

# Nothing of all this is left behind.
is "no instance is left in tracefs" "" "$(ls "$tracefs/instances")"

finish
