#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# vm: --timeout 600
# The bpftrace scripts on the module's events say what the programs did.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/questions.sh
. "$(dirname "$0")/questions.sh"

ask_both module
finish
