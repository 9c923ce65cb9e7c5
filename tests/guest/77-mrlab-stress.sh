#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Eight processes use mrlab0 in all ways at once and check every byte: first all
# of them end well, and what was recorded is what was done; then they are killed
# in the middle of it. Afterwards nothing is left.
#
# Usage: 77-mrlab-stress.sh [SECONDS [SEED]]
# vm: --iommu strict --mem 2G --timeout 600
# long: bookworm sid
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

seconds=${1:-40}
[ "$MRSCOPE_KERNEL" = stock ] || seconds=$((seconds * 3))
seed=${2:-$RANDOM}
lab=/sys/kernel/debug/mrlab/mrlab0
ledger=$tracefs/instances/mrscope-guest-lab
note "$seconds seconds, seed $seed"

mkdir "$ledger"
trap 'rmdir "$ledger" 2>/dev/null; tidy' EXIT
echo 16384 >"$ledger/buffer_size_kb"
echo 1 >"$ledger/events/mrscope/mr_reg/enable"
echo 1 >"$ledger/events/mrscope/mr_dereg/enable"
records() { # EVENT
	grep -c " $1: " "$ledger/trace"
}
# Of the ring's own count.
taken_and_lost() {
	cat "$ledger"/per_cpu/cpu*/stats | awk '
		/^(entries|overrun|commit overrun|dropped events|read events):/ { sum += $NF }
		END { print sum }'
}

insmod "$MRSCOPE_KMOD/mrlab/mrlab.ko" || exit
echo 16 >/proc/sys/vm/nr_hugepages
# What the driver's own start has pinned.
pinned=$(pages_pinned)

did() { # NAME
	awk -v name="$1" '$1 == name { print $2 }' "$tmp/did"
}
stress() { # OPTION...
	# Where the kernel checks the use of the DMA API.
	[ ! -e /sys/kernel/debug/dma-api ] || set -- --one-mapping "$@"
	run lab_stress --workers 8 --seed "$seed" "$@"
	is "each byte and each status is what it must be" "0 " "$ended $(cat "$tmp/err")"
	cp "$tmp/out" "$tmp/did"
	note "$(xargs <"$tmp/did")"
}
all_unpinned() { [ "$(pages_pinned)" = "$pinned" ]; }
nothing_left() {
	local file
	for file in mrs pds qps; do
		is "  nothing in $file" 1 "$(wc -l <"$lab/$file")"
	done
	is "  nothing under way" 0 "$(status_of contexts)"
	check "  all pages are released" eventually all_unpinned
}

# ---- all end well ----

stress --no-kills --seconds $((seconds / 4))
at_least "  there were registrations" 1 "$(did reg)"
is "  each registration is recorded" $(($(did reg) + $(did rereg_in_place) + $(did rereg_anew))) \
	"$(records mr_reg)"
is "  and each deregistration, of what was replaced too" $(($(did dereg) + $(did rereg_anew))) \
	"$(records mr_dereg)"
is "  as many as registrations" "$(did reg)" "$(did dereg)"
nothing_left

# ---- they are killed ----

echo >"$ledger/trace"
before=$(status_of records)
stress --seconds $((seconds * 3 / 4))
is "  each record was taken or lost" $(($(status_of records) - before)) "$(taken_and_lost)"
nothing_left
for what in reg rereg_in_place rereg_anew write write_imm send send_imm send_inv read cas fetch_add \
	inline uc refused under_way reconnect discard prefetch forks killed; do
	at_least "there were: $what" 1 "$(did $what)"
done

check "the module can go" rmmod mrlab
is "it has left nothing behind" "" "$(leaks)"
finish
