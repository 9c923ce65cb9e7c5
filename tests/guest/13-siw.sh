#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The other software device: what its driver does not call has no time of its
# own, and is told as unknown, never as 0. Debian's kernels have no siw.
# kernels: debug
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

document=$tmp/siw.json
modprobe siw
rdma link add siw0 type siw netdev dummy0
is "siw0 is there" siw "$(awk '$1 == "device" && $2 == "siw0" { print $3 }' "$debugfs/status")"

run mr_probe explain --device siw0 --size 256K --buffer anon --count 3 --json "$document"
is "explain succeeds" "0 " "$ended $(cat "$tmp/err")"
check "stages add up" sound "$document"
is "all are siw's" siw0 "$(all "$document" 'cases[*].reg[*].device')"

# It takes its key from a function that is no boundary. Up to 6.1 it pins by
# itself: all that lies between driver and commit is one group then.
case $suite in
bookworm) unknown="key account pin sg dma table: prepare,account,pin,sg,dma,table" ;;
*) unknown="key" ;;
esac
is "unknown of a registration" "$unknown" "$(mr_stages "$document" 'cases[*].reg[*]')"
is "no unknown stage reads 0" "null" \
	"$(for stage in ${unknown%%:*}; do mr_json "$document" 'cases[*].reg[*]' "stages_ns.$stage"; done | sort -u | xargs)"
mr_stages "$document" 'cases[*].dereg[*]' | sed 's/^/# dereg, unknown: /'
if [ "$suite" != bookworm ]; then
	is "untouched memory faults inside the pin" 64 "$(all "$document" 'cases[touched=false].reg[*].pages')"
fi

# The same in a refusal: no local_write.
run mr_probe explain --device siw0 --size 64K --buffer anon --count 3 --access remote_read --json "$document"
like "without local_write" '^[0-9]+$' "$ended"
check "rxe0 is observed as before" sh -c "mr_probe explain --device rxe0 --size 16K --count 2 --json $tmp/rxe.json >/dev/null && [ -z \"\$(mr_stages $tmp/rxe.json 'cases[*].reg[*]')\" ]"

rdma link del siw0
check "the driver can go" rmmod siw
is "and its probes with it" "" "$(grep ' siw_' "$debugfs/status")"
finish
