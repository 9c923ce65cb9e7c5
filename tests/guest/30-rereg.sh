#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A re-registration has a record of its own and leaves nothing behind. rxe
# changes access and protection domain in place and refuses a new translation;
# on Linux 6.1 it has no rereg at all.
# shellcheck disable=SC2317  # functions that check calls
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

report=$tmp/report.json
outcome=

rereg() { # WHAT
	mr_probe record --json "$report" --keys -- mr_rereg "$1" >"$tmp/out" 2>"$tmp/err"
	outcome=$(grep '^rereg ' "$tmp/out")
	check "$1: stages add up" sound "$report"
	is "$1: nothing is left on the stack" 0 "$(status_of contexts)"
}

if ! grep -q ' rxe_rereg_user_mr ' "$debugfs/status"; then
	rereg access
	is "access: refused before the driver" EOPNOTSUPP "${outcome##* }"
	is "access: the registration itself is recorded" "reg 65536" "$(all "$report" 'reg[*]' op length)"
	for what in access pd translation; do
		skip "$what: a record of its own" "rxe of this kernel has no rereg: EOPNOTSUPP"
	done
	finish
fi

for what in access pd; do
	rereg $what
	read -r _ _ _ lkey errno <<<"$outcome"
	is "$what: succeeds" 0 "$errno"
	is "$what: a registration and a record of its own" "reg rereg" \
		"$(mr_json "$report" 'reg[*].op' | xargs)"
	is "$what: without an error" "null null false" \
		"$(all "$report" 'reg[op=rereg]' errno failed_stage nested)"
	is "$what: pins nothing" "0 0 0" \
		"$(all "$report" 'reg[op=rereg]' stages_ns.account stages_ns.pin stages_ns.dma)"
	is "$what: keeps its key" "$lkey $lkey" "$(mr_json "$report" 'reg[*].lkey' | xargs)"
	is "$what: one deregistration, of it" "$lkey" "$(mr_json "$report" 'dereg[*].lkey')"
	at_least "$what: the driver is seen" 1 "$(hits rxe_rereg_user_mr)"
	is "$what: in debugfs" 0 "$(after ret "$(last ' rereg ')")"
done
is "access: the new access" local_write,remote_read "$(
	rereg access >/dev/null
	mr_json "$report" 'reg[op=rereg].access')"

rereg translation
read -r _ addr length _ errno <<<"$outcome"
is "translation: the driver refuses" EOPNOTSUPP "$errno"
is "translation: recorded, with what was asked for" "EOPNOTSUPP $addr $length" \
	"$(mr_json "$report" 'reg[op=rereg]' errno addr length)"
is "translation: in the driver" prepare "$(mr_json "$report" 'reg[op=rereg].failed_stage')"
is "translation: then deregistered" 1 "$(mr_json "$report" 'dereg[*].seq' | wc -l)"

like "statistics know it" 'rxe0 rereg count 3 .* errors 1 ' "$(grep ' rereg ' "$debugfs/stats") "

finish
