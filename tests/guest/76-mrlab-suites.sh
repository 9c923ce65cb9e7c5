#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# long: trixie
# iommu: off lazy strict
# rdma-core's own tests on mrlab0: none fails. What it skips is run on rxe0: what
# passes there is what docs/limitations.md names, and no other.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

modules=(test_device test_pd test_mr test_cq test_cqex test_cq_events test_qp test_atomic
	test_odp test_fork test_relaxed_ordering)

# Runs the tests NAME... on DEVICE; leaves $tmp/DEVICE.pass, .skip and .fail with
# their names, sorted.
run_on() { # DEVICE GID_INDEX NAME...
	local device=$1 word status=0
	python3 tests/guest/programs/pyverbs_tests.py "$@" >"$tmp/$device" 2>"$tmp/$device.err" \
		</dev/null || status=$?
	for word in pass skip fail; do
		awk -v word=$word '$1 == word { print $2 }' "$tmp/$device" | sort >"$tmp/$device.$word"
		note "$device: $(wc -l <"$tmp/$device.$word") $word"
	done
	report "$status" "$device: the tests come to their end" "$(tail -n 20 "$tmp/$device.err")"
}

check "the driver loads" insmod "$MRSCOPE_KMOD/mrlab/mrlab.ko"
run_on mrlab0 0 "${modules[@]}"
at_least "mrlab0 passes tests" 50 "$(wc -l <"$tmp/mrlab0.pass")"
report "$(wc -l <"$tmp/mrlab0.fail")" "mrlab0 fails none" \
	"$(cat "$tmp/mrlab0.fail" "$tmp/mrlab0.err")"

mapfile -t skipped <"$tmp/mrlab0.skip"
run_on rxe0 1 "${skipped[@]}"
at_least "rxe0 passes some of what mrlab0 skips" 20 "$(wc -l <"$tmp/rxe0.pass")"
# shellcheck disable=SC2016  # names in the document are in backticks
grep -oE '`test_[a-z_]+\.[A-Za-z]+\.test_[a-z0-9_]+`' docs/limitations.md | tr -d '`' |
	sort -u >"$tmp/documented"
is "what rxe0 passes and mrlab0 skips is documented" "" \
	"$(comm -23 "$tmp/rxe0.pass" "$tmp/documented")"
is "what is documented is still so" "" "$(comm -12 "$tmp/documented" "$tmp/mrlab0.pass")"
is "of test_mr, memory windows, device memory and a GPU's dmabuf alone are skipped" "" \
	"$(grep '^test_mr\.' "$tmp/mrlab0.skip" | grep -vE '\.(MWTest|DeviceMemory[A-Za-z]*|DmaBuf[A-Za-z]*)\.')"
is "of test_odp, other transports, implicit regions, huge pages and extended QPs alone" "" \
	"$(grep '^test_odp\.' "$tmp/mrlab0.skip" | grep -vE '_(implicit|ud|xrc|srq|huge|qp_ex)_')"

check "the driver can go" rmmod mrlab
finish
