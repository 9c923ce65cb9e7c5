#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# mr_probe record runs any program as it is, and lists each of its
# registrations and deregistrations once: compared with what a preloaded
# library saw the program do, and with what the programs are known to do.
# shellcheck disable=SC2317  # functions that check calls
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

report=$tmp/report.json
calls=$tmp/calls

# Waits long: a program that is behind takes its time on a slow kernel.
record() { # COMMAND...
	run mr_probe record --linger 20 --json - -- "$@"
	cp "$tmp/out" "$report"
}

recorded_all() { # WHAT
	check "$1: one JSON document on stdout" mr_json "$report" .
	check "$1: stages add up" sound "$report"
	is "$1: nothing is known of the caller's side" "null null" \
		"$(all "$report" 'reg[*]' stages_ns.library stages_ns.return)"
}

# A server in the background, and a client once it listens.
pair() { # SERVER CLIENT PORT
	echo "$1 >/dev/null & until grep -q ':$(printf %04X "$3") .* 0A ' /proc/net/tcp*; do sleep 0.2; done
		$2 >/dev/null; wait"
}

# ---- ibv_rc_pingpong: 4096 bytes, local_write, one MR on each side ----

pingpong="ibv_rc_pingpong -d rxe0 -g 1 -n 20"
pingpong_pair=$(pair "$pingpong" "$pingpong 10.0.0.1" 18515)
record sh -c "$pingpong_pair"
is "pingpong: succeeds" 0 "$ended"
recorded_all pingpong
is "pingpong: two registrations" 2 "$(mr_json "$report" 'reg[*].seq' | wc -l)"
is "pingpong: of 4096 bytes, local_write" "4096 local_write null ibv_rc_pingpong user" \
	"$(all "$report" 'reg[*]' length access errno comm purpose)"
is "pingpong: one in each process" 2 "$(mr_json "$report" 'reg[*].pid' | sort -u | wc -l)"
is "pingpong: and the same deregistered" \
	"$(mr_json "$report" 'reg[*]' pid addr length lkey_index | sort | xargs)" \
	"$(mr_json "$report" 'dereg[*]' pid addr length lkey_index | sort | xargs)"
is "pingpong: by itself" "ioctl ibv_rc_pingpong" "$(all "$report" 'dereg[*]' entry owner.comm)"
is "pingpong: its processes are named" 2 \
	"$(mr_json "$report" 'processes[comm=ibv_rc_pingpong].pid' | wc -l)"

rm -f "$calls"
mr_probe record --json "$report" --keys -- env LD_PRELOAD="$MRSCOPE_BUILD/tests/guest/libmr_log.so" \
	MR_LOG="$calls" sh -c "$pingpong_pair" >/dev/null
check "pingpong: each as the programs made it, with its keys" mr_match "$calls" "$report"

# ---- ib_write_bw: remote access too ----

write_bw="ib_write_bw -d rxe0 -x 1 -n 200 -s 8192 -F"
write_pair=$(pair "$write_bw" "$write_bw 10.0.0.1" 18515)
record sh -c "$write_pair"
is "ib_write_bw: succeeds" 0 "$ended"
recorded_all ib_write_bw
is "ib_write_bw: one registration in each of two processes" "2 2" \
	"$(mr_json "$report" 'reg[*].pid' | wc -l) $(mr_json "$report" 'reg[*].pid' | sort -u | wc -l)"
like "ib_write_bw: access" 'local_write.*remote_write' "$(all "$report" 'reg[*].access')"
is "ib_write_bw: and the same deregistered" \
	"$(mr_json "$report" 'reg[*]' pid addr length lkey_index | sort | xargs)" \
	"$(mr_json "$report" 'dereg[*]' pid addr length lkey_index | sort | xargs)"

rm -f "$calls"
mr_probe record --json "$report" --keys -- env LD_PRELOAD="$MRSCOPE_BUILD/tests/guest/libmr_log.so" \
	MR_LOG="$calls" sh -c "$write_pair" >/dev/null
check "ib_write_bw: each as the programs made it, with its keys" mr_match "$calls" "$report"

# ---- programs that leave their MRs to the kernel ----

lengths() { # PATH
	mr_json "$report" "$1" length | sort -n | xargs
}

for how in exit kill; do
	record mr_reg --count 3 --leave $how
	recorded_all "leave by $how"
	is "leave by $how: registered" "4096 8192 12288" "$(lengths 'reg[*]')"
	is "leave by $how: deregistered" "4096 8192 12288" "$(lengths 'dereg[*]')"
	is "leave by $how: in the cleanup, by its owner" "cleanup mr_reg mr_reg" \
		"$(all "$report" 'dereg[*]' entry owner.comm task.comm)"
	is "leave by $how: owner and task are one" "$(all "$report" 'reg[*].pid')" \
		"$(all "$report" 'dereg[*]' owner.pid task.pid | tr ' ' '\n' | sort -u)"
done
is "leave by kill: mr_probe says so" "1 SIGKILL" "$ended $(mr_json "$report" exit.signal)"

# The child that inherits the file closes it last: others' MRs, its task.
record mr_reg --count 3 --leave heir
recorded_all heir
is "heir: deregistered" "4096 8192 12288" "$(lengths 'dereg[*]')"
is "heir: owner and task are named" "cleanup mr_reg heir" \
	"$(all "$report" 'dereg[*]' entry owner.comm task.comm)"
is "heir: the owner is who registered" "$(all "$report" 'reg[*].pid')" \
	"$(all "$report" 'dereg[*].owner.pid')"
check "heir: the task is another" test "$(all "$report" 'dereg[*].task.pid')" != \
	"$(all "$report" 'dereg[*].owner.pid')"

# ---- the command's end ----

record /no/such/program
is "no such program: status" 1 "$ended"
is "no such program: one sentence" 1 "$(wc -l <"$tmp/err")"
like "no such program: which names it" '/no/such/program' "$(cat "$tmp/err")"
is "no such program: the report" "mrscope.record/1 false null" \
	"$(mr_json "$report" . schema exit.started exit.code)"

record sh -c 'mr_reg --count 2; exit 7'
is "status 7: mr_probe ends with 1" 1 "$ended"
is "status 7: the report tells it, and has the records" "7 2" \
	"$(mr_json "$report" exit.code) $(mr_json "$report" 'reg[*].seq' | wc -l)"

record sh -c 'mr_reg --count 2; kill -SEGV $$'
is "SIGSEGV: the report tells it, and has the records" "SIGSEGV 2" \
	"$(mr_json "$report" exit.signal) $(mr_json "$report" 'reg[*].seq' | wc -l)"

# The command's stdout goes to stderr where the report is on stdout.
record echo words
like "the command's words" words "$(cat "$tmp/err")"

# Interrupted: passed on, and what was taken is kept.
mr_probe record --json "$report" -- mr_reg --count 2 --leave wait >"$tmp/out" 2>&1 &
probe=$!
background+=("$probe")
check "interrupted: it registers" eventually pgrep -x mr_reg
check "interrupted: twice" eventually sh -c "[ \$(grep -c 'comm mr_reg' $debugfs/last) -ge 2 ]"
kill -TERM "$probe"
wait "$probe"
is "interrupted: the report" "true 2 2" "$(mr_json "$report" interrupted) $(
	mr_json "$report" 'reg[*].seq' | wc -l) $(mr_json "$report" 'dereg[*].seq' | wc -l)"

# Records are written as they come, one JSON object a line.
run mr_probe record --output "$tmp/lines" -- mr_reg --count 3
is "--output: a line for each" "6 6" "$(wc -l <"$tmp/lines") $(grep -c '^{.*}$' "$tmp/lines")"

# Programs that others run are not listed.
mr_many --threads 1 --count 0 >/dev/null &
many=$!
background+=("$many")
record mr_reg --count 2
kill "$many"
is "others' registrations are not listed" "2 mr_reg" \
	"$(mr_json "$report" 'reg[*].seq' | wc -l) $(all "$report" 'reg[*].comm')"
wait "$many" 2>/dev/null

finish
