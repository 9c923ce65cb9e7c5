#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# iommu: off lazy strict
# Other people's programs on mrlab0, as they are installed, without options for
# RoCE: ibv_devinfo, ibv_rc_pingpong, perftest.
# shellcheck disable=SC2317  # functions that check calls
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

port=18515
listening() { ss -Hltn | grep -q ":$port "; }

# Runs COMMAND as server and, once it listens, as its client.
pair() { # COMMAND...
	local server status=0
	"$@" >"$tmp/server" 2>&1 </dev/null &
	server=$!
	background+=("$server")
	eventually listening || status=1
	timeout 60 "$@" 127.0.0.1 >"$tmp/client" 2>&1 </dev/null || status=1
	[ "$status" -eq 0 ] || kill "$server" 2>/dev/null
	wait "$server" || status=1
	[ "$status" -eq 0 ] || cat "$tmp/server" "$tmp/client"
	return "$status"
}

check "the driver loads" insmod "$MRSCOPE_KMOD/mrlab/mrlab.ko"

run ibv_devinfo -v -d mrlab0
is "ibv_devinfo: no error" "0 " "$ended $(cat "$tmp/err")"
info() { awk -v key="$1:" '$1 == key { print $2; exit }' "$tmp/out"; }
is "ibv_devinfo: the port" "PORT_ACTIVE InfiniBand 1 4096" \
	"$(info state) $(info link_layer) $(info port_lid) $(info active_mtu)"

pingpong=(ibv_rc_pingpong -d mrlab0 -n 200)
check "ping-pong" pair "${pingpong[@]}"
check "ping-pong with events" pair "${pingpong[@]}" -e
check "ping-pong on demand" pair "${pingpong[@]}" -o

# A client's last table has a row for the size that was asked for.
perftest() { # PROGRAM OPTION...
	local size=4096
	[ "$1" != ib_atomic_bw ] || size=8
	pair "$@" -d mrlab0 || return
	awk -v size="$size" '$1 == size && $NF ~ /^[0-9.]+$/ { found = 1 } END { exit !found }' \
		"$tmp/client" && return
	cat "$tmp/client"
	return 1
}
for program in ib_write_bw ib_read_bw ib_send_bw; do
	check "$program" perftest $program -n 200 -s 4096
done
for program in ib_write_lat ib_read_lat ib_send_lat; do
	check "$program" perftest $program -n 200 -s 4096
	check "$program, small: inline where it can be" pair $program -n 200 -s 16 -d mrlab0
done
check "ib_atomic_bw" perftest ib_atomic_bw -n 200

check "the driver can go" rmmod mrlab
finish
