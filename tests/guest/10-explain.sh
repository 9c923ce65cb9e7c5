#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# mr_probe explain: every nanosecond has its stage, and what the report says of
# pages, faults and scatter entries is what the kernel must have done.
# shellcheck disable=SC2317  # functions that check calls
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

size=$((64 << 20))
pages=$((size / 4096))
count=3

explain() { # FILE OPTION...
	run mr_probe explain --size 64M --count $count --warmup 1 --json - "${@:2}"
	cp "$tmp/out" "$1"
	is "explain ${*:2} succeeds" "0 " "$ended $(cat "$tmp/err")"
	check "  its stdout is one JSON document" mr_json "$1" .
	check "  stages add up to the total of each operation" sound "$1"
	is "  every registration is joined with its record" exact "$(all "$1" 'cases[*].reg[*].join')"
	is "  every deregistration too" exact "$(all "$1" 'cases[*].dereg[*].join')"
}

# pin takes more than 80 % of the kernel's time in every registration.
pin_dominates() { # FILE
	local pin total status=0
	while read -r pin total; do
		((pin * 100 > total * 80)) || { echo "pin $pin of $total"; status=1; }
	done < <(mr_json "$1" 'cases[touched=false].reg[*]' stages_ns.pin kernel_total_ns)
	return "$status"
}

anon=$tmp/anon.json
explain "$anon" --buffer anon
is "schema" mrscope.explain/1 "$(mr_json "$anon" schema)"
is "environment names the kernel" "$(uname -r)" "$(mr_json "$anon" environment.kernel)"
is "environment names the module" "$(status_of mrscope)" "$(mr_json "$anon" environment.module)"
is "level" module "$(mr_json "$anon" level)"
is "cases" "anon false $size rxe0 anon true $size rxe0" \
	"$(mr_json "$anon" 'cases[*]' buffer touched size_bytes device | xargs)"
is "as many registrations as asked for" "$((2 * count)) $((2 * count))" \
	"$(mr_json "$anon" 'cases[*].reg[*].op' | wc -l) $(mr_json "$anon" 'cases[*].dereg[*].op' | wc -l)"
is "untouched: a fault for each page" "$pages 0" \
	"$(all "$anon" 'cases[touched=false].reg[*]' faults_minor faults_major)"
check "untouched: pin takes more than 80 %" pin_dominates "$anon"
is "touched: no fault" "0 0" "$(all "$anon" 'cases[touched=true].reg[*]' faults_minor faults_major)"
is "pages, batches of 512, length" "$pages $((pages / 512)) $size" \
	"$(all "$anon" 'cases[*].reg[*]' pages pin_batches length)"
is "no stage is unknown on rxe" "" "$(mr_stages "$anon" 'cases[*].reg[*]')$(mr_stages "$anon" 'cases[*].dereg[*]')"
is "access" local_write,remote_write,remote_read "$(all "$anon" 'cases[*].reg[*].access')"
is "pid, entry, purpose" "mr_probe ioctl user" "$(all "$anon" 'cases[*].reg[*]' comm entry purpose)"
is "deregistrations: pages, length, owner" "$pages $size mr_probe" \
	"$(all "$anon" 'cases[*].dereg[*]' pages length owner.comm)"
is "addresses of registrations and deregistrations" \
	"$(mr_json "$anon" 'cases[*].reg[*]' addr lkey_index | xargs)" \
	"$(mr_json "$anon" 'cases[*].dereg[*]' addr lkey_index | xargs)"
is "keys are not told" "null null" "$(all "$anon" 'cases[*].reg[*]' lkey rkey)"
like "their index is" '^0x[0-9a-f]+' "$(mr_json "$anon" 'cases[*].reg[*].lkey_index' | head -n 1)"

# Whole keys, when asked for, and only then.
run mr_probe explain --size 64K --count 2 --keys --json "$tmp/keys.json"
is "explain --keys succeeds" 0 "$ended"
index_agrees() {
	local lkey index
	while read -r lkey index; do
		[[ $lkey == 0x* ]] && (((lkey >> 8) == index)) && continue
		echo "$lkey $index"
		return 1
	done < <(mr_json "$tmp/keys.json" 'cases[*].reg[*]' lkey lkey_index)
}
check "  whole keys, whose index is the index" index_agrees
is "  and the module no longer tells them" 0 "$(status_of keys)"

# Huge pages need few scatter entries. Their pool is given back.
echo 40 >/proc/sys/vm/nr_hugepages
explain "$tmp/huge.json" --buffer huge2m
echo 0 >/proc/sys/vm/nr_hugepages
at_most "huge2m: scatter entries" 64 "$(mr_json "$tmp/huge.json" 'cases[*].reg[*].sg_entries' | sort -n | tail -n 1)"
if [ "$suite" = bookworm ]; then
	skip "huge2m: a fault for each 2 MiB" "Linux 6.1 does not count the faults of hugetlb pages in a pin"
else
	is "huge2m: a fault for each 2 MiB" "$((size >> 21))" \
		"$(all "$tmp/huge.json" 'cases[touched=false].reg[*].faults_minor')"
fi
is "huge2m: backed by 2 MiB" 2097152 "$(all "$tmp/huge.json" 'cases[*].backing.page_size')"

explain "$tmp/thp.json" --buffer thp
at_most "thp: scatter entries" 64 "$(mr_json "$tmp/thp.json" 'cases[*].reg[*].sg_entries' | sort -n | tail -n 1)"
is "thp: backed by huge pages" "$size" "$(all "$tmp/thp.json" 'cases[*].backing.thp_bytes')"

run mr_probe explain --size 64K --count 2
like "without --json it is for people" 'pin .* %' "$(cat "$tmp/out")"

finish
