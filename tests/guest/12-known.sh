#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# What can be observed on rxe is the same on every kernel: one list for all
# suites, of what mr_probe status says.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

document=$tmp/status.json
check "mr_probe status succeeds" mr_probe status --json "$document"

boundaries() { # RESULT
	mr_json "$document" "checks[result=$1].name" | tr -d '"' | sed -n 's/^boundary //p' | sort -u | xargs
}
is "known" \
	"attach commit dereg destroy dma driver finish ioctl key page_size pin release sg table umem uverbs" \
	"$(boundaries ok)"
# The DMA API is not rxe's, the rest is for deep mode.
is "known only elsewhere or in deep mode" "dma migrate slow unmap" "$(boundaries reduced)"
is "missing" "" "$(boundaries missing)"

is "the self-test passes" ok "$(mr_json "$document" 'checks[name=selftest].result' | tr -d '"')"
mr_reg >/dev/null
is "each stage of a registration has a time" "" "$(last ' reg ' | tr ' ' '\n' | grep -E '^(null|merged)$')"
is "and of a deregistration" "" "$(last ' dereg ' | tr ' ' '\n' | grep -E '^(null|merged)$')"

# What can be sent to others.
check "status --report succeeds" mr_probe status --report "$document"
is "it has tried each manner on rxe0" "anon 4 KiB,anon 4 MiB,thp 4 MiB,anon 64 KiB, no access,unmapped 64 KiB" \
	"$(mr_json "$document" 'devices[name=rxe0].trials[*].name' | tr -d '"' | paste -sd,)"
is "none could not be tried" "null" "$(all "$document" 'devices[*].trials[*].error')"
is "all were recorded in full" "true false" \
	"$(all "$document" 'devices[*].trials[*].cases[*].reg' recorded incomplete)"
is "the last one failed in the pin" "EFAULT pin" \
	"$(mr_json "$document" 'devices[*].trials[*].cases[*]' errno failed_stage | tail -n 1)"
is "no address, key, process or host is in it" "" \
	"$(grep -oE '0x[0-9a-f]+|"(l|r)key[^"]*"|"comm"|"pid"|mrscope-guest' "$document")"
finish
