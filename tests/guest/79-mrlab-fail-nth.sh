#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# One allocation after another fails while mrlab0 registers memory or makes a
# completion queue or a queue pair: that is refused with ENOMEM, and nothing is
# left of it.
# long: bookworm sid
# vm: --iommu strict --timeout 600
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

allow_failures || skip_all "the kernel has no fault injection"
lab=/sys/kernel/debug/mrlab/mrlab0
insmod "$MRSCOPE_KMOD/mrlab/mrlab.ko" table_page=4k || exit
pinned=$(pages_pinned)
export MR_DEVICE=mrlab0

fails() { # WHAT...: as mr_fail takes it
	local n how odd='' refused=0
	for ((n = 1; n < 200; n++)); do
		how=$(mr_fail $n "$@")
		case $how in
		"none 0") break ;;
		# Something else was done instead.
		"injected 0") ;;
		"injected ENOMEM") refused=$((refused + 1)) ;;
		*) odd+="$n: $how"$'\n' ;;
		esac
	done
	is "$*: one allocation after another fails" "" "$odd"
	is "  until none is left to" "none 0" "$how"
	at_least "  of $((n - 1)), that was refused" 3 "$refused"
	for file in mrs pds qps; do
		is "  nothing in $file" 1 "$(wc -l <"$lab/$file")"
	done
	is "  all pages are released" "$pinned" "$(pages_pinned)"
}
fails reg 8388608
fails make cq
fails make qp

check "the module can go" rmmod mrlab
is "it has left nothing behind" "" "$(leaks)"
finish
