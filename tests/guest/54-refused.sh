#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# vm: --bare
# Where the kernel refuses the module, or its files: mr_probe status says which
# it was, and what to do. Lockdown is what Secure Boot switches on.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

document=$tmp/status.json
check_of() { # NAME FIELD
	mr_probe status --json "$document" >/dev/null
	mr_json "$document" "checks[name=$1].$2"
}

# insmod does not load what a module needs.
rdma link del rxe0
for gone in rdma_ucm rdma_rxe ib_uverbs rdma_cm iw_cm ib_cm ib_uverbs_support ib_core; do
	[ ! -e "/sys/module/$gone" ] || rmmod "$gone"
done
run insmod "$module"
is "without ib_core insmod fails" "1 no" "$ended $([ -e /sys/module/ib_core ] && echo yes || echo no)"
like "and status says what is missing" 'refused it: ib_core is not loaded' "$(check_of module detail)"
like "and the remedy" 'modprobe ib_core' "$(check_of module remedy)"

modprobe -a rdma_rxe ib_uverbs rdma_ucm
rdma link add rxe0 type rxe netdev dummy0
load
check "loaded, explain works" mr_probe explain --size 4K --count 1
busybox mount -t securityfs securityfs /sys/kernel/security 2>/dev/null
if [ ! -e /sys/kernel/security/lockdown ]; then
	skip "lockdown" "this kernel has none"
	finish
fi
is "no lockdown" none "$(check_of lockdown detail | tr -d '"')"

echo integrity >/sys/kernel/security/lockdown
check "under lockdown (integrity) a module that is loaded goes on" \
	mr_probe explain --size 4K --count 1 --json "$tmp/report.json"
is "its records are there" exact "$(all "$tmp/report.json" 'cases[*].reg[*].join')"
is "status says what is closed" "integrity reduced" \
	"$(check_of lockdown detail | tr -d '"') $(check_of lockdown result | tr -d '"')"

echo confidentiality >/sys/kernel/security/lockdown
for level in module bpf; do
	run mr_probe explain --size 4K --count 1 --level $level
	is "under lockdown (confidentiality) explain cannot by $level" 3 "$ended"
	is "and says so in one sentence" 1 "$(wc -l <"$tmp/err")"
	like "which names it" 'lockdown' "$(cat "$tmp/err")"
done
run mr_probe explain --size 4K --count 1 --json "$tmp/report.json"
is "the caller's time is left" "0 user" "$ended $(mr_json "$tmp/report.json" level)"
like "with the reason" 'lockdown' "$(mr_json "$tmp/report.json" level_reason)"

unload
run insmod "$module"
is "under lockdown an unsigned module is refused" 1 "$ended"
like "and status says why" 'refused it: lockdown' "$(check_of module detail)"
like "and the remedy" 'sign mrscope.ko' "$(check_of module remedy)"

# shellcheck disable=SC2034  # for finish
ends_unloaded=1
finish
