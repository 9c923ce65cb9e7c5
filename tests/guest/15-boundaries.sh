#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Without one boundary the stages that it separates are merged or null, the
# others are as before, and the sum still holds.
# shellcheck disable=SC2317  # functions that check calls
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

disarm() { echo "$1" >"$debugfs/disarm"; }
trap 'disarm ""; tidy' EXIT

explain() { # FILE
	mr_probe explain --size 256K --count 2 --warmup 1 --untouched --json "$1" >/dev/null
}

both() { # FILE
	mr_stages "$1" 'cases[*].reg[*]'
	mr_stages "$1" 'cases[*].dereg[*]'
}

# What a boundary's absence does to registrations and to deregistrations: stages
# without a time, then the groups of merged stages. The key is named only within
# the driver.
effects() {
	cat <<-'END'
		ioctl | syscall: library,syscall | syscall: library,syscall
		uverbs | REG: library,REG |
		driver | prepare key: uverbs,prepare,key | invalidate: uverbs,invalidate
		key | key: prepare,key |
		umem | account: key,account |
		pin | pin sg: account,pin,sg |
		sg | sg: pin,sg |
		dma | dma table: sg,dma,table |
		table | TABLE |
		finish | publish: table,publish |
		commit | return: publish,return |
		destroy | | syscall uverbs: library,syscall,uverbs
		dereg | | DEREG: library,DEREG
		release | | unmap unpin free: invalidate,unmap,unpin,free
		pin,dma | pin sg dma table: account,pin,sg,dma,table |
	END
}
reg="syscall uverbs prepare key account pin sg dma attach table publish unwind return"
dereg="syscall uverbs invalidate unmap unpin free return"
with_names() {
	# Linux 6.1 tells it by the end of the DMA mapping.
	[ "$suite" = bookworm ] || table="table: dma,table"
	sed "s/TABLE/${table-}/; s/,DEREG/,${dereg// /,}/; s/DEREG/$dereg/; s/,REG/,${reg// /,}/; s/REG/$reg/"
}

explain "$tmp/before.json"
is "armed, no stage is unknown" "" "$(both "$tmp/before.json")"

while IFS='|' read -r which reg_effect dereg_effect; do
	which=${which%% *}
	document=$tmp/$which.json
	disarm "$which"
	is "$which: disarm reads back" "$which" "$(cat "$debugfs/disarm")"
	is "$which: status says why it is unarmed, and of nothing else" "" "$(awk -v list=",$which," '
		$1 != "boundary" || /no device (maps through the DMA API|needs it)/ { next }
		index(list, "," $2 ",") ? $3 == "armed" || !/disarmed on request$/ : /disarmed on request/
		' "$debugfs/status")"
	check "$which: explain succeeds" explain "$document"
	check "$which: the sum holds" sound "$document"
	is "$which: registrations" "$(xargs <<<"$reg_effect")" "$(mr_stages "$document" 'cases[*].reg[*]')"
	is "$which: deregistrations" "$(xargs <<<"$dereg_effect")" \
		"$(mr_stages "$document" 'cases[*].dereg[*]')"
	# Scatter entries are counted where they are mapped, pages on their way into them.
	counts=$(all "$document" 'cases[*].reg[*].pages')
	[[ $which != *pin* && $which != sg ]] || is "$which: pages are unknown" null "$counts"
	entries=$(mr_json "$document" 'cases[*].reg[*].sg_entries' | sort -u | xargs)
	case $which in
	*dma*) is "$which: scatter entries are unknown" null "$entries" ;;
	pin) like "$which: scatter entries are known" '^[1-9][0-9]*( [1-9][0-9]*)*$' "$entries" ;;
	esac
done < <(effects | with_names)

disarm ""
is "nothing is disarmed any more" "" "$(cat "$debugfs/disarm")$(grep 'on request' "$debugfs/status")"
explain "$tmp/after.json"
is "and no stage is unknown again" "" "$(both "$tmp/after.json")"

finish
