#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# long: bookworm sid
# vm: --iommu strict
# mrlab0 is taken away under processes that use it: they are told, nothing is
# left, and the observer records the deregistrations of the teardown.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

ko=$MRSCOPE_KMOD/mrlab/mrlab.ko
driver=/sys/bus/pci/drivers/mrlab
instance=$tracefs/instances/mrscope-guest-removal
function=0000:00:01.0

here() { [ -e /sys/class/infiniband/mrlab0 ]; }
gone() { ! here; }
all_ready() { [ "$(cat "$tmp"/busy.* 2>/dev/null | grep -c ready)" -eq "$1" ]; }
all_ended() { [ "$(cat "$tmp"/busy.* 2>/dev/null | grep -c requests)" -eq "$1" ]; }

# Processes with regions of all kinds, or as the options say, busy.
busy() { # NUMBER [OPTION...]
	local i options
	rm -f "$tmp"/busy.*
	for ((i = 0; i < $1; i++)); do
		options=(--regions 8)
		((i % 2)) || options+=(--on-demand --size 65536)
		[ $# -eq 1 ] || options=("${@:2}")
		lab_busy "${options[@]}" >"$tmp/busy.$i" 2>&1 &
		background+=("$!")
	done
	eventually all_ready "$1"
}
records() { # EVENT
	grep -c " $1: " "$instance/trace"
}

insmod "$ko" || exit
mkdir "$instance"
echo 1 >"$instance/events/mrscope/mr_reg/enable"
echo 1 >"$instance/events/mrscope/mr_dereg/enable"

for round in 1 2 3; do
	echo >"$instance/trace"
	check "round $round: four processes are busy" busy 4
	sleep 1
	check "  the device is taken away" sh -c "echo $function >$driver/unbind"
	check "  it is gone" gone
	check "  the processes end" eventually all_ended 4
	note "$(cat "$tmp"/busy.* | grep requests | sort | uniq -c | sed -E 's/[0-9]+ requests/N requests/' | xargs)"
	is "  each of them was told" "" "$(cat "$tmp"/busy.* | grep requests | grep -E 'stopped|^0 ')"
	is "  each region's end is recorded" "32 32" "$(records mr_reg) $(records mr_dereg)"
	is "  of its device, and by whom" "mrlab0 32" "$(
		grep ' mr_dereg: ' "$instance/trace" | grep -o 'mrlab0' | sort | uniq -c | awk '{ print $2, $1 }')"
	is "  nothing is left under way" 0 "$(status_of contexts)"
	check "  it comes back" sh -c "echo $function >$driver/bind"
	check "  it is there" here
done

# ---- in the middle of messages that would take minutes ----

echo 1 >/sys/module/mrlab/parameters/bus_master
check "two processes have the bus master carry 8 MiB" busy 2 --regions 2 --size 8388608
sleep 1
begun=$SECONDS
check "  the device is taken away" sh -c "echo $function >$driver/unbind"
at_most "  and does not wait for their ends, seconds" 30 $((SECONDS - begun))
check "  the processes end" eventually all_ended 2
echo 0 >/sys/module/mrlab/parameters/bus_master
check "  it comes back" sh -c "echo $function >$driver/bind"

# ---- the module can go under them, too ----

echo >"$instance/trace"
check "four processes are busy" busy 4
check "  the module is unloaded" rmmod mrlab
check "  the processes end" eventually all_ended 4
is "  each region's end is recorded" "32 32" "$(records mr_reg) $(records mr_dereg)"
is "  no boundary of its is left" "" "$(grep 'mrlab' $debugfs/status | grep boundary)"

rmdir "$instance"
finish
