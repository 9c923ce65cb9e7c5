#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The same with 50 cycles.
# long
# vm: --timeout 1800
exec "$(dirname "$0")/65-load-unload.sh" 50
