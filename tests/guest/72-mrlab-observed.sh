#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# long: bookworm sid
# vm: --icount --iommu strict
# The observer and mr_probe see mrlab0 as any other device, and what the device
# says of its own stages is what the observer has measured.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

insmod "$MRSCOPE_KMOD/mrlab/mrlab.ko" || exit
is "it is known, though it has no verbs for the kernel" "device mrlab0 mrlab" \
	"$(grep '^device mrlab0' $debugfs/status)"

# ---- the same registrations, by both ----

echo 1 >$tracefs/events/mrlab/enable
own() { # FIELD: of each registration, as the device says
	sed -nE "s/.*mrlab_reg_mr:.* $1=(0x)?([0-9a-f-]+).*/\2/p" "$tmp/own"
}
lowest() { sort -n | head -n 1; }

for size in 4K 64K 2M; do
	echo >$tracefs/trace
	check "$size: explained" mr_probe explain --device mrlab0 --size $size --buffer anon \
		--untouched --count 20 --warmup 5 --json "$tmp/report"
	grep 'mrlab_reg_mr:' $tracefs/trace | tail -n 20 >"$tmp/own"
	check "$size: the sum holds" sound "$tmp/report"
	is "$size: complete, and none lost" "20 0" "$(mr_json "$tmp/report" 'cases[*].reg[*].incomplete' | grep -c false) $(
		mr_json "$tmp/report" lost)"
	is "$size: what pins itself has account inside of prepare" '[["prepare","account"]]' \
		"$(mr_json "$tmp/report" 'cases[*].reg[*].merged' | sort -u)"
	for field in sg_entries dma_entries length; do
		name=$field
		[ $field != length ] || name=pages
		is "$size: $name" "$(own $field | awk -v field=$field '{ print field == "length" ? $1 / 4096 : $1 }' | xargs)" \
			"$(mr_json "$tmp/report" "cases[*].reg[*].$name" | xargs)"
	done
	for pair in pin:pin sg:scatter dma:map; do
		ours=$(mr_json "$tmp/report" "cases[*].reg[*].stages_ns.${pair%:*}" | lowest)
		its=$(own "${pair#*:}_ns" | lowest)
		note "$size ${pair%:*}: observed $ours, told $its"
		# Its clock has the probes on the other side.
		is "$size: ${pair%:*} as the device says" "" "$(awk -v ours="$ours" -v its="$its" 'BEGIN {
			apart = its > ours ? its - ours : ours - its
			if (apart > 1000 + ours / 100) print "observed " ours ", told " its }')"
	done
done
echo 0 >$tracefs/events/mrlab/enable

# ---- the stock umem in place of its own ----

echo 1 >/sys/module/mrlab/parameters/stock_umem
mr_probe explain --device mrlab0 --size 64K --buffer anon --untouched --count 5 --json "$tmp/report" >/dev/null
is "with the stock umem each stage is told apart" "" \
	"$(mr_json "$tmp/report" 'cases[*].reg[*].merged' | grep -v '^\[\]$')"
echo 0 >/sys/module/mrlab/parameters/stock_umem

# ---- failures ----

run mr_probe record --json "$tmp/record" -- env MR_DEVICE=mrlab0 mr_reg --unmapped
is "a bad page: where and why" "EFAULT pin" \
	"$(mr_json "$tmp/record" 'reg[errno=EFAULT]' errno failed_stage)"

export MR_DEVICE=mrlab0
pinned=$(pages_pinned)
run mr_probe record --json "$tmp/record" -- mr_kill $((256 << 20))
is "killed in the middle of a pin" "EINTR pin" \
	"$(mr_json "$tmp/record" 'reg[errno=EINTR]' errno failed_stage | sort -u)"
is "  nothing stays pinned" "$pinned" "$(pages_pinned)"

rmmod mrlab
finish
