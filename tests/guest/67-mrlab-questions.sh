#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# long: bookworm sid
# vm: --iommu strict
# The bpftrace scripts on what rxe has not: a mapping by an IOMMU, and memory that
# the device pages in itself. mrlab0 has both on each kernel.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/questions.sh
. "$(dirname "$0")/questions.sh"

check "mrlab.ko loads" insmod "$MRSCOPE_KMOD/mrlab/mrlab.ko"
export MR_DEVICE=mrlab0

# Three registrations of 60 to 68 KiB, of pages that lie anywhere.
ask mr_dma.bt "mr_reg --count 3 --size 61440"
is "  how many were mapped" "mrlab0 count 3" "$(printed map_ns mrlab0 | cut -d' ' -f1-3)"
is "  the IOMMU makes one entry of each one's" 3 "$(value dma_entries mrlab0)"
at_least "  of as many or more" 3 "$(value sg_entries mrlab0)"

ask plain/mr_dma.bt "mr_reg --count 3 --size 61440"
is "  how many were mapped" 3 "$(how_many map_ns mr_reg)"
is "  none by a software device" "" "$(how_many virt_map_ns mr_reg)"
is "  all are in the histogram" " 3" "$(samples map_hist_ns)"
is "  the IOMMU makes one entry of each one's" 3 "$(counted dma_entries mr_reg)"
at_least "  of as many or more" 3 "$(counted sg_entries mr_reg)"
at_least "  each in a mapping of its own or more" 3 "$(sed -n 's/^@iommu_maps: //p' "$out")"
at_least "  of all the bytes" $((3 * 61440)) "$(sed -n 's/^@iommu_bytes: //p' "$out")"

# Server and client send each other messages in a region on demand.
ask plain/mr_odp.bt "ibv_rc_pingpong -d mrlab0 -n 20 -o >/dev/null &
until ss -Hltn sport = :18515 | grep -q .; do sleep 0.2; done
ibv_rc_pingpong -d mrlab0 -n 20 -o 127.0.0.1 >/dev/null
wait"
is "  the MRs of both" 2 "$(value mrs ibv_rc_pingpong)"
at_least "  both have pages faulted in" 2 "$(value faults ibv_rc_pingpong)"
is "  by nothing else" "" "$(value snapshots ibv_rc_pingpong)"
at_least "  and get them" 2 "$(value pages ibv_rc_pingpong)"
is "  each takes its time" "$(value faults ibv_rc_pingpong)" "$(printed fault_ns ibv_rc_pingpong | cut -d' ' -f3)"
is "  none fails" "" "$(grep '^@failed' "$out")"
at_least "  until they end" 2 "$(value invalidations ibv_rc_pingpong)"
sed 's/^/# /' "$out"

rmmod mrlab
finish
