#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Commands of the uverbs ABI to mrlab0, plausible ones and mutations of these, by
# write(2) and by ioctl(2), from processes some of which are killed: each command
# comes back, the kernel has no complaint, and at the end nothing is left.
# Without the checks of the DMA API: of a page that several regions on demand share,
# the kernel's own ib_umem_odp_map_dma_and_lock() makes several mappings and does not
# say that it may, of which they complain whatever the driver.
#
# Usage: 78-mrlab-fuzz.sh [COMMANDS [SEED]]
# vm: --iommu strict --mem 3G --timeout 300 --append dma_debug=off
# long: bookworm sid
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

commands=${1:-20000}
[ "$MRSCOPE_KERNEL" = stock ] || commands=${1:-5000}
seed=${2:-$RANDOM}
lab=/sys/kernel/debug/mrlab/mrlab0
note "$commands commands, seed $seed"

insmod "$MRSCOPE_KMOD/mrlab/mrlab.ko" || exit
pinned=$(pages_pinned)
run lab_fuzz --commands "$commands" --seed "$seed" --patience 120
is "each command comes back" "0 " "$ended $(cat "$tmp/err")"
while read -r line; do note "$line"; done <"$tmp/out"

did() { # NAME
	awk -v name="$1" '$1 == name { print $2 }' "$tmp/out"
}
at_least "as many as were asked for" "$commands" "$(did commands)"
# So that it is no test of the first check alone.
at_least "of those without a mutation, a half succeeded" $(($(did plain) / 2)) "$(did plain_succeeded)"
is "of all that the device has, each kind succeeded" "" "$(
	awk '$2 == "succeeded" && $3 + 0 == 0 && !/EOPNOTSUPP|^get_context/' "$tmp/out")"
at_least "messages were carried" 10 "$(awk '$1 ~ /^(write|send|read)/ { sum += $2 } END { print sum }' "$lab/engine")"

all_unpinned() { [ "$(pages_pinned)" = "$pinned" ]; }
for file in mrs pds qps; do
	is "nothing in $file" 1 "$(wc -l <"$lab/$file")"
done
check "all pages are released" eventually all_unpinned
check "the module can go" rmmod mrlab
is "it has left nothing behind" "" "$(leaks)"
finish
