#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# rdma_rxe and ib_uverbs go and come back, in varied orders with mrscope and
# between bursts of registrations: the boundaries are armed anew each time.
# With contexts open a driver stays, and the deregistrations of a device that
# is being removed are recorded.
#
# Usage: 70-reload.sh [ROUNDS]
# shellcheck disable=SC2317  # functions that check calls
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

rounds=${1:-10}
document=$tmp/report.json

add_link() { rdma link add rxe0 type rxe netdev dummy0; }
restore() {
	modprobe -a ib_uverbs rdma_rxe rdma_ucm
	load
	[ -e /sys/class/infiniband/rxe0 ] || add_link
}
trap 'restore >/dev/null 2>&1; tidy' EXIT

# What a burst leaves: the records of mr_reg's five MRs, each whole.
burst() {
	mr_probe record --json "$document" -- mr_reg --count 5 >/dev/null || return
	sound "$document" || return
	[ "$(mr_json "$document" 'reg[*].seq' | wc -l) $(mr_json "$document" 'dereg[*].seq' | wc -l)" = "5 5" ] ||
		{ echo "not five of each"; return 1; }
	# Unknown is only what the caller alone can know.
	[ "$(mr_stages "$document" 'reg[*]')" = "library return" ] ||
		{ mr_stages "$document" 'reg[*]'; return 1; }
}

driver_armed() { grep -c '^boundary driver armed' "$debugfs/status"; }

burst
drivers=$(driver_armed)
at_least "the driver's operations are armed" 2 "$drivers"

# Orders of loading; a module that another needs comes with it at the latest.
orders=(
	"mrscope ib_uverbs rdma_rxe"
	"ib_uverbs mrscope rdma_rxe"
	"ib_uverbs rdma_rxe mrscope"
	"rdma_rxe mrscope ib_uverbs"
	"mrscope rdma_rxe ib_uverbs"
)
one_round() { # ROUND
	local word keep=$(($1 % 2))
	# Every other round mrscope stays loaded while the others go.
	rdma link del rxe0 || return
	((keep)) || rmmod mrscope || return
	rmmod rdma_rxe || return
	# In every third round only the driver goes.
	if (($1 % 3)); then
		for word in rdma_ucm ib_uverbs; do
			[ ! -e "/sys/module/$word" ] || rmmod "$word" || return
		done
	fi
	if ((keep)); then
		[ "$(driver_armed)" = 0 ] || { echo "a driver that is gone has probes"; return 1; }
	fi
	for word in ${orders[$(($1 % ${#orders[@]}))]}; do
		case $word in
		mrscope) load ;;
		*) modprobe "$word" ;;
		esac || return
	done
	add_link || return
	[ -z "$(unarmed)" ] || { unarmed; return 1; }
	[ "$(driver_armed)" = "$drivers" ] || { grep driver "$debugfs/status"; return 1; }
	burst
}
for ((round = 0; round < rounds; round++)); do
	check "round $round: ${orders[$((round % ${#orders[@]}))]}" one_round $round
done
modprobe rdma_ucm
is "one device, whatever came and went" "rxe0 rdma_rxe" \
	"$(awk '$1 == "device" { print $2, $3 }' "$debugfs/status" | sort -u)"

# ---- with contexts open ----

reset
mr_reg --count 3 --leave wait >"$tmp/calls" &
holder=$!
background+=("$holder")
check "a program holds three MRs" eventually sh -c "[ \$(wc -l <$tmp/calls) = 3 ]"
run rmmod rdma_rxe
is "rmmod rdma_rxe is refused" 1 "$ended"
like "in use" 'in use' "$(cat "$tmp/err")"
rdma link del rxe0 &
removal=$!
background+=("$removal")
sleep 1
check "removing the link waits" is_running "$removal"
is "nothing has been deregistered yet" 0 "$(grep -c ' dereg ' "$debugfs/last")"
kill -KILL "$holder"
wait "$holder" 2>/dev/null
check "after the last close it ends" eventually ended "$removal"
is "the three deregistrations are recorded" 3 "$(grep -c ' rxe0 dereg cleanup ret 0 ' "$debugfs/last")"
is "with their owner" 3 "$(grep -c " owner $holder mr_reg" "$debugfs/last")"
check "the device is gone" test ! -e /sys/class/infiniband/rxe0
check "then the driver can go" rmmod rdma_rxe
is "and its probes with it" 0 "$(driver_armed)"
modprobe rdma_rxe
add_link
check "and when it comes back, all is recorded" burst

# A reload between an MR's registration and its end, of mrscope alone.
mr_reg --count 3 --leave wait >"$tmp/calls" &
holder=$!
background+=("$holder")
eventually sh -c "[ \$(wc -l <$tmp/calls) = 3 ]"
rmmod mrscope
load
kill -TERM "$holder"
wait "$holder"
is "MRs that it never saw registered" 3 "$(grep -c ' rxe0 dereg cleanup ret 0 ' "$debugfs/last")"

finish
