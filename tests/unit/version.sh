#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The packages have the version of the program.
#
# Usage: tests/unit/version.sh MR_PROBE
set -euo pipefail
changelog=$(dirname "$0")/../../debian/changelog

packages=$(sed -n '1s/^mrscope (\(.*\)) .*/\1/p' "$changelog")
program=$("$1" --version)
echo "debian/changelog: $packages, program: $program"
[ "$program" = "mr_probe $packages" ]
