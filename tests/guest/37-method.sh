#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# suites: sid
# Newer kernels: registration by an ioctl method of its own, whose request is in
# attributes, and registration without a pin (ODP) on rxe.
# shellcheck disable=SC2317  # functions that check calls
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

document=$tmp/report.json
calls=$tmp/calls

mr_probe record --json "$document" --keys -- mr_reg --by-method --count 3 >"$tmp/out" 2>"$tmp/err"
grep -E "^(de)?reg " "$tmp/out" >"$calls"
is "three of each were made" "3 3" "$(grep -c '^reg .* 0$' "$calls") $(grep -c '^dereg .* 0$' "$calls")"
check "each as the program made it, with its keys" mr_match "$calls" "$document"
check "stages add up" sound "$document"
is "registrations: all stages of the kernel" "library return" "$(mr_stages "$document" 'reg[*]')"
is "deregistrations: all stages of the kernel" "library return" "$(mr_stages "$document" 'dereg[*]')"
is "by ioctl" "ioctl ioctl" "$(all "$document" 'reg[*].entry') $(all "$document" 'dereg[*].entry')"

mr_reg --by-method --access remote_write >"$calls"
is "refused by the core: the program's errno" 22 "$(cut -d' ' -f8 <"$calls")"
line=$(last ' reg ioctl ret -22 ')
is "refused by the core: the record" "uverbs $(cut -d' ' -f3-4 <"$calls")" \
	"$(after in "$line") $(after addr "$line") $(after length "$line")"

mr_reg --by-method --unmapped >"$calls"
is "unmapped: the program's errno" 14 "$(cut -d' ' -f8 <"$calls")"
is "unmapped: fails in the pin" pin "$(after in "$(last ' reg ioctl ret -14 ')")"

# ODP: nothing is pinned, which is 0 and not unknown.
mr_probe record --json "$document" --keys -- \
	mr_reg --size 65536 --access local_write,on_demand >"$tmp/out" 2>"$tmp/err"
grep -E "^(de)?reg " "$tmp/out" >"$calls"
check "on_demand: as the program made it" mr_match "$calls" "$document"
check "on_demand: stages add up" sound "$document"
is "on_demand: the pin did not happen" "0 0 0" \
	"$(all "$document" 'reg[*]' stages_ns.pin stages_ns.account pin_batches)"
is "on_demand: access" "local_write,on_demand" "$(all "$document" 'reg[*]' access)"

finish
