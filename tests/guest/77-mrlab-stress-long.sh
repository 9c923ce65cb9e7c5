#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The same for ten minutes.
# long
# vm: --iommu strict --mem 2G --timeout 1800
# kernels: stock debug
exec "$(dirname "$0")/77-mrlab-stress.sh" 600
