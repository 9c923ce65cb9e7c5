#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The same with 300,000 commands.
# long
# vm: --iommu strict --mem 3G --timeout 1200 --append dma_debug=off
# kernels: debug
exec "$(dirname "$0")/78-mrlab-fuzz.sh" 300000
