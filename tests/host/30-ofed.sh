#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# make kmod OFED=: built against the headers and symbols of an ib_core that is not
# the kernel's own, here a mock of MLNX_OFED's tree; what does not fit together is
# told in one sentence, when it is built and when it is loaded.
set -uo pipefail

repo=$(cd "$(dirname "$0")/../.." && pwd)
vm=$repo/tools/vm
suite=trixie
work=$repo/build/$suite/ofed
trap 'rm -rf "$work"' EXIT
rm -rf "$work"
mkdir -p "$work"

# In a root of the suite, whose changes are forgotten: prints TAP lines.
"$vm/layer" "$suite" /repo/tests/host/ofed/build "/repo/build/$suite/ofed" >"$work/out" 2>"$work/err" ||
	sed 's/^/# /' "$work/err" | tail -n 20
cat "$work/out"

# The module for the other ib_core, on a kernel with its own.
# shellcheck disable=SC2016  # for the guest's shell
"$vm/run" --suite "$suite" --bare --no-build -- sh -c '
	insmod "$1" && exit
	mr_probe status --json - | tr "\n" " "' - "/repo/build/$suite/ofed/other.ko" \
	>"$work/status" 2>"$work/err"
if grep -q 'the kernel refused it: it was built for another ib_core.*OFED=/usr/src/ofa_kernel/default' \
	"$work/status"; then
	echo "ok - loaded on another ib_core: mr_probe status says why the kernel refuses it"
else
	echo "not ok - loaded on another ib_core: mr_probe status says why the kernel refuses it"
	sed 's/^/# /' "$work/err" "$work/status" | cut -c1-2000
fi
echo "1..$(($(grep -cE '^(not )?ok ' "$work/out") + 1))"
