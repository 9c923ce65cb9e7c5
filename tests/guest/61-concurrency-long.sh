#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The same with 100,000 registrations.
# long
# vm: --timeout 1800
exec "$(dirname "$0")/60-concurrency.sh" 100000
