#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Everything at once, for a while: processes that register all kinds of memory
# and are killed in the middle of it (mr_stress), while the observer is switched,
# read, consumed or reloaded, memory is short and allocations fail; drivers are
# reloaded in between. Afterwards nothing is left, and each record is accounted
# for. `make stress` runs it longer, on the debug kernel.
#
# Usage: 90-stress.sh [MINUTES [SEED]]
# vm: --timeout 600 --mem 2G
# kernels: stock debug
# long: bookworm sid
# shellcheck disable=SC2030,SC2031  # activities count for themselves
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

minutes=${1:-1}
seed=${2:-$RANDOM}
burst_seconds=$((12 + 6 * minutes))
ledger=$tracefs/instances/mrscope-guest-ledger
note "$minutes minutes, seed $seed"
RANDOM=$seed

# ---- what was done ----

declare -A total=()
add() { # NAME [NUMBER]
	total[$1]=$((${total[$1]:-0} + ${2:-1}))
}
add_file() { # FILE: lines of a name and a number
	local word number
	while read -r word number; do add "$word" "$number"; done <"$1"
}

# Activities run beside this shell: what they did is in a file of theirs, and
# what went wrong in one for all.
wrong=$tmp/wrong
complain() { printf '%s\n' "$*" >>"$wrong"; }
going_on() { [ ! -e "$tmp/stop" ]; }
mkfifo "$tmp/never"
# Sleeps without another process: TIME is in tenths of a second.
nap() { read -rt "$(($1 / 10)).$(($1 % 10))" <>"$tmp/never"; }

# ---- the ledger: what was published, by the ring buffer's own count ----

ledger_begin() {
	ledger_base=$(status_of records)
	ledger_lost=$(status_of lost)
	echo >"$ledger/trace"
	echo 1 >"$ledger/events/mrscope/mr_reg/enable"
	echo 1 >"$ledger/events/mrscope/mr_dereg/enable"
}

# Every record is an event that can be taken, or counted as lost.
ledger_end() {
	local made taken lost
	made=$(($(status_of records) - ledger_base))
	read -r taken lost < <(cat "$ledger"/per_cpu/cpu*/stats | awk '
		/^(entries|read events):/ { taken += $NF }
		/^(overrun|commit overrun|dropped events):/ { lost += $NF }
		END { print taken, lost }')
	echo 0 >"$ledger/events/mrscope/enable"
	add records "$made"
	add taken "$taken"
	add overrun "$lost"
	add module_lost $(($(status_of lost) - ledger_lost))
	[ "$made" -eq $((taken + lost)) ] ||
		complain "$made records, but $taken taken and $lost lost of the ring"
}

# ---- activities ----

# Not the self-test each time: it arms and disarms, which all others wait for.
readers() {
	local file reads=0
	while going_on; do
		for file in "$debugfs"/*; do
			[ "${file##*/}" != reset ] || continue
			[ "${file##*/}" != selftest ] || [ $((RANDOM % 10)) -eq 0 ] || continue
			{ mapfile -t <"$file" && reads=$((reads + 1)); } 2>/dev/null
		done
		nap 5
	done
	echo "reads $reads"
}

refused() { # FILE TEXT
	! echo "$2" 2>/dev/null >"$debugfs/$1" || complain "$1 took '$2'"
}

switches() {
	local names switches=0
	mapfile -t names < <(awk '$1 == "boundary" { print $2 }' "$debugfs/status" | sort -u)
	some() { echo "${names[RANDOM % ${#names[@]}]}"; }
	while going_on; do
		case $((RANDOM % 9)) in
		0 | 1) echo $((RANDOM % 2)) >"$debugfs/enabled" ;;
		2) echo $((RANDOM % 2)) >"$debugfs/deep" ;;
		3) echo "$(some),$(some)" >"$debugfs/disarm" ;;
		4) echo >"$debugfs/disarm" ;;
		5) echo 1 >"$debugfs/reset" ;;
		6) echo $((RANDOM % 2)) >/sys/module/mrscope/parameters/keys ;;
		# Filters that everything passes.
		7) echo 1 >"$debugfs/filter_min_ns"; echo >"$debugfs/filter_device" ;;
		8)
			refused enabled maybe
			refused disarm "no-such-boundary,$(some)"
			refused filter_tgid x
			;;
		esac
		switches=$((switches + 1))
		nap $((RANDOM % 4))
	done
	echo "switches $switches"
}

consumers() {
	local consumers=0 kinds=5 own=$tracefs/instances/mrscope-guest-consumer
	# bpftrace needs the kernel's types.
	[ ! -e /sys/kernel/btf/vmlinux ] || kinds=6
	while going_on; do
		case $((RANDOM % kinds)) in
		0 | 1)
			mkdir "$own"
			echo 1 >"$own/events/mrscope/enable"
			timeout 0.5 cat "$own/trace_pipe" >/dev/null
			# Gone with its events still on, now and then.
			[ $((RANDOM % 2)) -eq 0 ] || echo 0 >"$own/events/enable"
			rmdir "$own" || complain "an instance stays"
			;;
		2)
			mr_probe record --json "$tmp/consumer.json" -- mr_reg --count 2 >/dev/null 2>"$tmp/consumer" ||
				complain "record: $(cat "$tmp/consumer")"
			;;
		3)
			mr_probe explain --size 16K --count 2 >/dev/null 2>"$tmp/consumer" ||
				complain "explain: $(cat "$tmp/consumer")"
			;;
		4)
			echo 1 >"$tracefs/events/mrscope/enable"
			nap $((RANDOM % 5))
			echo 0 >"$tracefs/events/mrscope/enable"
			;;
		5)
			bpftrace -e 'tracepoint:mrscope:mr_reg { @ = count(); } interval:s:1 { exit(); }' \
				>/dev/null 2>"$tmp/consumer" || complain "bpftrace: $(cat "$tmp/consumer")"
			;;
		esac
		consumers=$((consumers + 1))
	done
	echo "consumers $consumers"
}

# A file that is being read keeps the module for a moment: "in use", or EAGAIN
# where it was opened after rmmod had looked.
rmmod_soon() {
	local i
	for ((i = 0; i < 100; i++)); do
		rmmod mrscope 2>"$tmp/rmmod" && return
		nap 1
	done
	complain "rmmod: $(cat "$tmp/rmmod")"
	return 1
}

# An insmod in which one allocation fails: refused as a whole, or loaded with
# what could be had.
insmod_failing() {
	local how
	how=$(mr_fail $((1 + RANDOM % 400)) insmod "$module")
	case $how in
	*" 0") ;;
	"injected ENOMEM") [ ! -e "$debugfs" ] || complain "insmod failed, but debugfs is there" ;;
	*) complain "insmod: $how" ;;
	esac
	add failed_insmods
}

# Under load. Every other one is looked at while nothing is under way, the rest
# go in the middle of it all.
reloads() {
	local way
	while going_on; do
		rmmod_soon || break
		[ -z "$failing" ] || [ $((RANDOM % 3)) -ne 0 ] || insmod_failing
		way=$((RANDOM % 2))
		if [ ! -e /sys/module/mrscope ]; then
			insmod "$module" "enabled=$way" || { complain "insmod failed"; break; }
			if [ "$way" -eq 0 ]; then
				ledger_begin
				echo 1 >"$debugfs/enabled"
				nap $((1 + RANDOM % 5))
				echo 0 >"$debugfs/enabled"
				ledger_end
			fi
		fi
		add loads
		nap $((RANDOM % 3))
	done
	[ -e /sys/module/mrscope ] || insmod "$module"
	for way in "${!total[@]}"; do echo "$way ${total[$way]}"; done
}

# Runs in a subshell of its own until the burst is over.
beside() { # ACTIVITY
	(
		total=()
		RANDOM=$((burst_seed + ${#1}))
		"$1" >"$tmp/did.$1"
	) &
	beside+=($!)
}

# ---- bursts ----

choose_load() {
	load=(mr_stress --seconds "$burst_seconds" --seed "$burst_seed"
		--workers $((2 + RANDOM % 2)) --threads $((1 + RANDOM % 3)))
	[ "$suite" != sid ] || load+=(--method)
	[ -z "$pressure" ] || load+=(--pressure)
	[ -z "$failing" ] || load+=(--failing)
}

# Within what the programs know: a call that its thread was killed in may or may
# not have come through, and one that failed may not have come as far as that.
within() { # WHAT LEAST MOST GOT
	(($2 <= $4 && $4 <= $3)) || complain "$1: $4, not within $2 and $3"
}

# Nothing is switched: what was recorded is what was done.
burst_steady() {
	local document=$tmp/steady.json word number
	local -A did=() got=()
	ledger_begin
	# shellcheck disable=SC2016  # for the inner shell
	mr_probe record --json "$document" -- \
		sh -c 'exec "$@" >"$0"' "$tmp/load" "${load[@]}" >/dev/null 2>"$tmp/err" ||
		complain "record: $(cat "$tmp/err")"
	ledger_end
	while read -r word number; do did[$word]=$number; done <"$tmp/load"
	while read -r number word; do got[$word]=$number; done < <(
		{
			mr_json "$document" 'reg[*]' op errno
			mr_json "$document" 'dereg[*]' op errno
		} | awk '{ print $1 ($2 == "null" ? "_ok" : "_failed") }' | sort | uniq -c)
	within "registrations that succeeded" \
		"${did[reg_ok]}" $((did[reg_begun] - did[reg_failed])) "${got[reg_ok]:-0}"
	# An allocation may have failed before the observer's root.
	number=${did[reg_failed]}
	[ -z "$failing" ] || number=0
	within "registrations that failed" \
		"$number" $((did[reg_begun] - did[reg_ok])) "${got[reg_failed]:-0}"
	within "deregistrations" "${got[reg_ok]:-0}" "${got[reg_ok]:-0}" "${got[dereg_ok]:-0}"
	within "lost of the consumer's buffer" 0 0 "$(mr_json "$document" lost)"
	mr_invariants "$document" >"$tmp/out" || complain "$(head -n 5 "$tmp/out")"
}

burst_beside() { # ACTIVITY
	local pid
	# Without a priority of its own the load would keep the CPUs from all that
	# (un)loading and arming wait for.
	nice -n 19 "${load[@]}" >"$tmp/load" 2>"$tmp/err" &
	pid=$!
	background+=("$pid")
	beside readers
	beside "$1"
	wait "$pid" || complain "mr_stress: $(cat "$tmp/err")"
	touch "$tmp/stop"
	wait "${beside[@]}"
	cat "$tmp"/did.* >"$tmp/did"
	add_file "$tmp/did"
}

with_ledger() { # COMMAND...
	ledger_begin
	"$@"
	ledger_end
}

burst_switches() { with_ledger burst_beside switches; }
burst_consumers() { with_ledger burst_beside consumers; }
burst_reloads() { burst_beside reloads; }

# Back to how the module comes.
restore() {
	echo >"$debugfs/disarm"
	echo 0 >"$debugfs/filter_min_ns"
	echo 0 >"$debugfs/deep"
	echo 0 >/sys/module/mrscope/parameters/keys
	echo 1 >"$debugfs/enabled"
}

pins_released() { [ "$(pages_pinned)" = 0 ]; }
no_context() { [ "$(status_of contexts)" = 0 ]; }

# What has to hold after each burst.
settle() {
	eventually no_context || complain "contexts under way: $(status_of contexts)"
	eventually pins_released || complain "pages stay pinned: $(pages_pinned)"
	restore
	[ "$(cat "$debugfs/selftest")" = pass ] || complain "selftest: $(cat "$debugfs/selftest")"
	complaints >>"$wrong"
	cat "$wrong"
	[ ! -s "$wrong" ]
}

one_burst() { # TYPE
	beside=()
	rm -f "$tmp/stop" "$tmp"/did*
	: >"$wrong"
	choose_load
	"burst_$1"
	add_file "$tmp/load"
	add bursts
	settle
}

# The drivers go and come back, with the observer there or not.
reload_drivers() {
	rdma link del rxe0 || return
	[ $((RANDOM % 2)) -eq 0 ] || rmmod mrscope || return
	rmmod rdma_rxe || return
	[ $((RANDOM % 2)) -eq 0 ] || rmmod rdma_ucm ib_uverbs || return
	[ $((RANDOM % 2)) -eq 0 ] || load || return
	modprobe -a ib_uverbs rdma_rxe rdma_ucm && load &&
		rdma link add rxe0 type rxe netdev dummy0 || return
	add driver_reloads
}

# ---- it begins ----

mkdir "$ledger"
trap 'rmdir "$ledger" 2>/dev/null; tidy' EXIT
echo 8192 >"$ledger/buffer_size_kb"
can_fail=
! allow_failures || can_fail=1

began=$SECONDS
order=(steady switches reloads consumers reloads)
for ((burst = 0; burst < ${#order[@]} || SECONDS - began < minutes * 60; burst++)); do
	burst_seed=$((seed + burst * 101))
	RANDOM=$burst_seed
	pressure=
	failing=
	[ $((RANDOM % 3)) -ne 0 ] || pressure=1
	[ -z "$can_fail" ] || [ $((RANDOM % 2)) -ne 0 ] || failing=1
	type=${order[burst % ${#order[@]}]}
	what="burst $burst at $((SECONDS - began)) s: $type"
	what+=${pressure:+, memory pressure}${failing:+, failing allocations}
	one_burst "$type" >"$tmp/said" 2>&1
	report $? "$what" "$(cat "$tmp/said")"
	reload_drivers >"$tmp/said" 2>&1
	report $? "drivers reloaded" "$(cat "$tmp/said")"
	[ "$test_failures" -lt 10 ] || break
done

# ---- what is left ----

check "the module can go" rmmod mrscope
is "it has left nothing behind" "" "$(leaks)"
load
for what in reg_ok dereg_ok reg_failed killed left forks records taken loads reads switches \
	consumers driver_reloads ${can_fail:+injected}; do
	at_least "there were: $what" 1 "${total[$what]:-0}"
done
for what in "${!total[@]}"; do note "$what ${total[$what]}"; done
note "in $((SECONDS - began)) s, by seed $seed"
finish
