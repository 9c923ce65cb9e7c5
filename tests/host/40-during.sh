#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# mrtrace --during with benchmarks: perftest, and UCX, which is large and in none
# of the suites' roots.
# long
set -uo pipefail

repo=$(cd "$(dirname "$0")/../.." && pwd)
vm=$repo/tools/vm
suite=trixie
work=build/$suite/during
trap 'rm -rf "${repo:?}/$work"' EXIT
mkdir -p "$repo/$work"

"$vm/layer" --image "$repo/$work/root.ext4" "$suite" sh -c \
	'apt-get -q update && apt-get -q -y --no-install-recommends install ucx-utils' >&2 || {
	echo "Bail out! UCX cannot be installed"
	exit 1
}
"$vm/run" --suite "$suite" --no-build --icount --timeout 1800 --root "$repo/$work/root.ext4" -- \
	/repo/tests/host/during/compare
