#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Devices that come, go and are renamed are observed under the name they have.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

devices() { sed -n 's/^device \([^ ]*\) .*/\1/p' "$debugfs/status" | xargs; }
device_of() { last ' reg ' | cut -d' ' -f2; }

mr_reg >/dev/null
is "a record names its device" rxe0 "$(device_of)"

rdma dev set rxe0 name rxe9
is "renamed: status" rxe9 "$(devices)"
mr_reg >/dev/null
is "renamed: the record" rxe9 "$(device_of)"
echo rxe9 >"$debugfs/filter_device"
mr_reg --size 12288 >/dev/null
is "renamed: the filter takes the new name" 12288 "$(after length "$(last ' reg ')")"
echo >"$debugfs/filter_device"
like "renamed: its figures go on" '^rxe9 reg count 3 ' "$(grep ' reg count' "$debugfs/stats")"
rdma dev set rxe9 name rxe0

# More names than there is room for; those of devices that are gone give way.
ip link add dummy1 type dummy
ip link set dummy1 up
for ((i = 10; i < 50; i++)); do
	rdma link add "rxe$i" type rxe netdev dummy1 && rdma link del "rxe$i"
done
rdma link add rxe50 type rxe netdev dummy1
like "after 40 others a new device has a place" '(^| )rxe50$' "$(devices | tr ' ' '\n' | sort -V | tail -n 1)"
like "and an old one its own" '(^| )rxe0( |$)' "$(devices)"
mr_probe explain --device rxe50 --size 4K --count 2 --json "$tmp/report.json" >/dev/null
is "and the new one's records name it" rxe50 "$(all "$tmp/report.json" 'cases[*].reg[*].device')"
is "and are counted" 1 "$(grep -c '^rxe50 reg count' "$debugfs/stats")"
rdma link del rxe50

finish
