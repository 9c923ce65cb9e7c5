#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# vm: --timeout 600
# The bpftrace scripts on plain kernel probes say what the programs did, and the
# same as those on the module's events.
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/questions.sh
. "$(dirname "$0")/questions.sh"

ask_both plain

# The stages are gaps, so that they add up to the whole.
total() { # MAP: of all keys
	printed "$1" '.*' | awk '{ sum += $NF } END { print sum + 0 }'
}
ask plain/mr_stages.bt "mr_reg --count 3 --size 61440
mr_reg --unmapped"
for op in reg dereg; do
	is "  $op: each size is in its class" "64 count 2 1024 count 1" \
		"$(for class in 64 1024; do printed ${op}_all_sum_ns $class | cut -d' ' -f1-3; done | xargs)"
	is "  $op: the stages add up to the whole" "$(total ${op}_all_sum_ns)" "$(total ${op}_sum_ns)"
done
is "  reg: each has its stages" "account 2 dma 2 pin 2 prepare 2 publish 2 sg 2 table 2 uverbs 2" \
	"$(printed reg_sum_ns '64, [a-z]+' | awk '{ print $2, $4 }' | sort | xargs)"
is "  dereg: each has its stages" "free 2 invalidate 2 unpin 2 uverbs 2" \
	"$(printed dereg_sum_ns '64, [a-z]+' | awk '{ print $2, $4 }' | sort | xargs)"
is "  the one that fails, by its errno" 1 "$(value reg_failed 14)"

run bpftrace "$scripts/plain/mr_join.bt" 0 0 -c "$(command -v mr_reg) --count 3"
is "plain/mr_join.bt runs" "0 " "$ended $(said)"
for op in reg dereg; do
	is "  $op: each call has its work in the kernel" "3 3 3" "$(how_many ${op}_user_ns mr_reg) $(
		how_many ${op}_kernel_ns mr_reg) $(how_many ${op}_outside_ns mr_reg)"
	is "  $op: the call is the kernel's part and the rest" 0 \
		"$(unaccounted mr_reg ${op}_user_ns ${op}_kernel_ns ${op}_outside_ns)"
	is "  $op: nothing is unjoined" "" "$(grep -E "^@${op}_(user|kernel)_only" "$out")"
done

# A pin of present pages takes no lock, one of 8 MiB faults in and takes some.
ask plain/mr_mmap_lock.bt "mr_reg
mr_reg --size 8388608 --untouched"
is "  the pins of present pages" "1 " \
	"$(how_many pins mr_reg | sort -n | head -n 1) $(how_many lock_wait_ns mr_reg | sed 1d)"
is "  the pins of 8 MiB" 4 "$(how_many pins mr_reg | sort -n | tail -n 1)"
at_least "  each of which takes the lock" 4 "$(how_many lock_wait_ns mr_reg)"
is "  all waits are in the histogram" " $(how_many lock_wait_ns mr_reg)" \
	"$(samples lock_wait_hist_ns)"

# Only rxe of Linux 7.2 pages on demand. Its registration takes what is there.
ask plain/mr_odp.bt "mr_reg --size 16384 --access local_write,on_demand"
case $suite in
sid)
	is "  the MRs" 1 "$(value mrs mr_reg)"
	is "  the snapshots, and their pages" "1 4" "$(value snapshots mr_reg) $(value pages mr_reg)"
	is "  which take their time" 1 "$(printed fault_ns mr_reg | cut -d' ' -f3)"
	at_least "  at its end it is unmapped" 1 "$(value invalidations mr_reg)"
	;;
*) is "  nothing pages on demand" "" "$(maps)" ;;
esac

finish
