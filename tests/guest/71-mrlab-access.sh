#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# long: bookworm
# vm: --iommu strict
# mrlab0 lets through what its rules allow, and refuses the rest: with the right
# status, counted by its reason, and without a byte written.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

lab=/sys/kernel/debug/mrlab/mrlab0
ko=$MRSCOPE_KMOD/mrlab/mrlab.ko

check "mrlab.ko loads" insmod "$ko"
is "behind an IOMMU" "iommu translates" "$(grep ^iommu $lab/device)"

run lab_access
is "each case is heard" "0 " "$ended $(cat "$tmp/err")"
cp "$tmp/out" "$tmp/cases"
said() { # CASE WANTED
	is "$1" "$1: $2" "$(grep "^$1: " "$tmp/cases")"
}
follows() { # CASE WANTED: the line after it
	is "  $2" "  $2" "$(grep -A1 "^$1: " "$tmp/cases" | tail -n 1)"
}

# Controls.
said "write" "success, 64 bytes changed, refused"
said "read" "success, 64 bytes changed, refused"
said "write of no bytes, any key" "success, 0 bytes changed, refused"
said "zero-based" "success, 64 bytes changed, refused"
follows "zero-based" "at its first byte: 1"
said "another iova" "success, 64 bytes changed, refused"
said "where it was before" "remote access error, 0 bytes changed, refused bounds"
said "re-registered elsewhere" "success, 64 bytes changed, refused"
follows "re-registered elsewhere" "there: 1, by another key: 1"
said "inline, without a key" "success, 64 bytes changed, refused"
said "send with invalidate" "success, 64 bytes changed, refused"
follows "send with invalidate" "received: success, the key is told: 1"

# Keys.
said "write by the invalidated key" "remote access error, 64 bytes changed, refused invalidated"
said "lkey of another PD" "local protection error, 0 bytes changed, refused other_pd"
said "rkey of another PD" "remote access error, 0 bytes changed, refused other_pd"
said "write after dereg" "remote access error, 0 bytes changed, refused no_key"
said "the index comes again" "1, the key does not: 1"
said "write by a stale key" "remote access error, 0 bytes changed, refused stale_key"

# Bounds and rights.
said "one byte past the end" "remote access error, 0 bytes changed, refused bounds"
said "one byte before the beginning" "remote access error, 0 bytes changed, refused bounds"
said "local, one byte past the end" "local protection error, 0 bytes changed, refused bounds"
said "read of a write-only region" "remote access error, 0 bytes changed, refused mr_access"
said "read into a region without local write" \
	"local protection error, 0 bytes changed, refused mr_access"
said "write to a queue pair that allows reads" \
	"remote access error, 0 bytes changed, refused qp_access"
follows "write to a queue pair that allows reads" "the responder is in the error state: 1"
said "atomic across a word" "remote invalid request error, 0 bytes changed, refused alignment"
said "atomic in a zero-based region that lies askew" \
	"remote invalid request error, 0 bytes changed, refused alignment"

# Messages.
said "send without a receive" "RNR retry counter exceeded, 0 bytes changed, refused"
said "receive one byte too short" "remote invalid request error, 0 bytes changed, refused"
follows "receive one byte too short" "received: local length error"
said "nobody answers" "transport retry counter exceeded, 0 bytes changed, refused"
follows "nobody answers" "and the next: Work Request Flushed Error"
said "while nobody answers" "none, given up: Work Request Flushed Error"

said "a change of state that is refused" "EINVAL, the message: success, 1"
if grep -q '^secret memory: there is none' "$tmp/cases"; then
	skip "secret memory" "the kernel has none"
else
	said "secret memory" "pinned EFAULT"
	said "secret memory on demand" "remote access error, 0 bytes changed, refused no_translation"
fi

# More than the device says, which is not what the memory lacks.
said "a region of at most 512 GiB" "one byte more EINVAL, of no bytes EINVAL"

# ---- memory of another driver ----

run lab_dmabuf
if [ "$ended" -eq 77 ]; then
	skip "a dmabuf" "the kernel has no udmabuf"
else
	is "a dmabuf is reached, and what is none is refused" "0 
write: success
all of it, and no more: 1
read: success
all of it: 1
no descriptor: EBADF
no dmabuf: EINVAL
beyond its end: EINVAL
of no length: EINVAL
on demand: EINVAL" "$ended $(cat "$tmp/err")
$(cat "$tmp/out")"
fi

# ---- a bus master that is no CPU ----

faults() { dmesg | grep -c 'DMAR: \[DMA Write.*Request device .*00:01.0\] fault'; }
before=$(faults)
run lab_access dma
is "the bus master copies by DMA addresses" "the bus master copies: 1, 64 bytes changed" \
	"$(head -n 1 "$tmp/out")"
is "after the unmapping it changes nothing" "and after dereg: 1, 0 bytes changed" \
	"$(tail -n 1 "$tmp/out")"
at_least "  the IOMMU says so" $((before + 1)) "$(faults)"

# What a message needs is taken away while the bus master carries it.
echo 1 >/sys/module/mrlab/parameters/bus_master
run lab_access taken
is "taken away from a message: nobody waits for the end of it" "137
the remote region: remote access error, soon: 1
the local region: local protection error, soon: 1
the responder: transport retry counter exceeded, soon: 1
the responder's queue pair: transport retry counter exceeded, soon: 1
the requester: none, soon: 1
killed" "$ended
$(cat "$tmp/out")"
nothing_left() { [ "$(cat "$lab/mrs" "$lab/qps" | wc -l)" -eq 2 ]; }
check "  nor does a process that is killed" eventually nothing_left

# The same messages, each carried by the bus master; but for the large one.
run lab_access
echo 0 >/sys/module/mrlab/parameters/bus_master
is "carried by the bus master, all is the same" "" "$(diff "$tmp/cases" "$tmp/out")"

# ---- without an IOMMU in between, and where DMA would bounce ----

check "mrlab.ko goes" rmmod mrlab
check "on a platform device" insmod "$ko" parent=platform
is "  DMA addresses are physical" "iommu none: DMA addresses are physical" \
	"$(grep ^iommu $lab/device)"
run lab_access
is "  all is the same" "" "$(diff "$tmp/cases" "$tmp/out")"
is "  there is no bus master" "" "$(echo 0 0 1 2>/dev/null >$lab/dma_copy && echo written)"
check "  it goes" rmmod mrlab

refused() { # WANTED PARAMETER...
	run insmod "$ko" "${@:2}"
	is "${*:2}: refused" 1 "$ended"
	like "  with the reason" "$1" "$(dmesg | tail -n 3)"
	is "  nothing is left" "" "$(ls -d /sys/module/mrlab /sys/kernel/debug/mrlab 2>/dev/null)"
}
refused "DMA addresses of 31 bits do not reach all memory.*dma_bits=64 or an IOMMU" \
	parent=platform dma_bits=31
refused "parent is auto, edu or platform" parent=none
refused "key_variant is counter, random or constant" key_variant=none
refused "key_index is lowest or cyclic" key_index=none
refused "table_page is best or 4k" table_page=2m
refused "table_levels is 0, 1 or 2" table_levels=3
refused "max_mr is from 1 to" max_mr=0
refused "dma_bits is from 24 to 64" dma_bits=65

# ---- limits ----

check "two regions at a time" insmod "$ko" max_mr=2
is "  as the device says" 2 "$(ibv_devinfo -v -d mrlab0 | awk '$1 == "max_mr:" { print $2 }')"
export MR_DEVICE=mrlab0
is "  the third is refused: ENOMEM" "0 0 12" "$(mr_reg --count 3 | awk '$1 == "reg" { print $NF }' | xargs)"
is "  nothing is left" 1 "$(wc -l <$lab/mrs)"
rmmod mrlab

# ---- other policies ----

check "one level, cyclic and random keys" insmod "$ko" table_levels=1 table_page=4k \
	key_index=cyclic key_variant=random
run lab_access
is "  all is the same, but for the index" "$(sed 's/^the index comes again: 1/the index comes again: 0/
	s/^\(write by a stale key: .*refused\) stale_key/\1 no_key/' "$tmp/cases")" "$(cat "$tmp/out")"
rmmod mrlab
check "constant keys" insmod "$ko" key_variant=constant
run lab_access
is "  an old key opens a new region" "the index comes again: 1, the key does not: 0
write by a stale key: success, 64 bytes changed, refused" "$(grep -E '^(the index|write by a stale)' "$tmp/out")"
rmmod mrlab

finish
