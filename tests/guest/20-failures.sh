#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A registration that fails is recorded with the right errno in the right
# stage: in debugfs, in the trace event, and in what mr_probe says of it.
# shellcheck disable=SC2317  # functions that check calls
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

length=$((1 << 20))
# The numbers of the stages in the event's failed_stage.
declare -A stage_number=([uverbs]=1 [account]=4 [pin]=5)
declare -A errno_number=([EPERM]=1 [EINTR]=4 [ENOMEM]=12 [EFAULT]=14 [EINVAL]=22)

no_ipc_lock=(setpriv --inh-caps=-ipc_lock --bounding-set=-ipc_lock)

# The record in debugfs and the event of the one failure since the last reset.
recorded() { # WHAT ERRNO STAGE ADDR LENGTH
	local line event stages
	line=$(last ' reg ioctl ret -')
	is "$1: the errno" "-${errno_number[$2]}" "$(after ret "$line")"
	is "$1: the stage" "$3" "$(after in "$line")"
	is "$1: address and length" "$4 $5" "$(after addr "$line") $(after length "$line")"
	stages=$(awk '{ for (i = 1; i < NF; i++) if ($i == "total_ns") break
		for (i += 2; i < NF && $i != "pages" && $i != "faults"; i += 2)
			if ($(i + 1) ~ /^[0-9]+$/) sum += $(i + 1)
		print sum }' <<<"$line")
	is "$1: stages add up" "$(after total_ns "$line")" "$stages"

	event=$(trace_lines mr_reg "ret=-" | tail -n 1)
	like "$1: the event" \
		"rxe0 reg ret=-${errno_number[$2]} addr=$4 length=$5 .* failed_stage=${stage_number[$3]} " \
		"$event"
}

fail_by_program() { # WHAT ERRNO STAGE COMMAND...
	local call addr errno
	reset
	echo >"$events/trace"
	call=$("${@:4}")
	addr=$(cut -d' ' -f3 <<<"$call")
	errno=$(cut -d' ' -f8 <<<"$call")
	is "$1: the program's own errno" "${errno_number[$2]}" "$errno"
	recorded "$1" "$2" "$3" "$addr" "$length"
}

fail_by_probe() { # WHAT ERRNO STAGE OPTION...
	local report=$tmp/report.json
	run mr_probe explain --size 1M --count 1 --json - "${@:4}"
	cp "$tmp/out" "$report"
	is "$1: mr_probe's status" 1 "$ended"
	is "$1: one sentence, which names both" 1 \
		"$(grep -c "$2 .*stage $3" "$tmp/err")"
	is "$1: and nothing more" 1 "$(wc -l <"$tmp/err")"
	is "$1: the report" "$2 $3" "$(all "$report" 'cases[*].failure' errno stage)"
	is "$1: the operation" "$2 $3" "$(all "$report" 'cases[*].reg[*]' errno failed_stage)"
	check "$1: its stages add up" sound "$report"
}

trace_start

fail_by_program "MEMLOCK too small" ENOMEM account prlimit --memlock=65536 "${no_ipc_lock[@]}" mr_reg --size $length
fail_by_probe "MEMLOCK too small" ENOMEM account --memlock 64K
fail_by_program "MEMLOCK zero" EPERM account prlimit --memlock=0 "${no_ipc_lock[@]}" mr_reg --size $length
fail_by_probe "MEMLOCK zero" EPERM account --memlock 0
fail_by_program "unmapped range" EFAULT pin mr_reg --size $length --unmapped
fail_by_probe "unmapped range" EFAULT pin --unmapped
fail_by_program "read-only mapping" EFAULT pin mr_reg --size $length --read-only
fail_by_probe "read-only mapping" EFAULT pin --read-only

# The core refuses this by itself: the driver is never called.
before=$(hits rxe_reg_user_mr)
fail_by_program "remote_write alone" EINVAL uverbs mr_reg --size $length --access remote_write
is "remote_write alone: the driver is not called" "$before" "$(hits rxe_reg_user_mr)"
fail_by_probe "remote_write alone" EINVAL uverbs --access remote_write
is "remote_write alone: nothing is pinned" "prepare 0 account 0 pin 0" "$(
	line=$(last ' reg ioctl ret -22 in uverbs')
	for stage in prepare account pin; do echo "$stage $(after $stage "$line")"; done | xargs)"

# Within the limit nothing fails: it was the limit, and no other thing.
is "MEMLOCK large enough: no error" 0 "$(prlimit --memlock=$((length * 2)) \
	"${no_ipc_lock[@]}" mr_reg --size $length |
	cut -d' ' -f8 | sort -u)"

# Killed in mid-pin: what was pinned is released again, which takes its time.
reset
echo >"$events/trace"
length=$((512 << 20))
killed=$(mr_kill $length)
like "SIGKILL: a try has hit" '^reg ' "$killed"
recorded SIGKILL EINTR pin "$(cut -d' ' -f3 <<<"$killed")" $length
line=$(last ' reg ioctl ret -4 in pin')
at_least "SIGKILL: unwinding takes time" 1000 "$(after unwind "$line")"
at_least "SIGKILL: some pages were faulted in" 1 "$(after faults "$line" | cut -d/ -f1)"
is "SIGKILL: the tid" "$(cut -d' ' -f2 <<<"$killed")" "$(after tid "$line")"

report=$tmp/killed.json
mr_probe record --json "$report" -- mr_kill $length >/dev/null 2>"$tmp/err"
check "SIGKILL under record: stages add up" sound "$report"
is "SIGKILL under record: the operation" "EINTR pin $length mr_kill" \
	"$(all "$report" 'reg[errno=EINTR]' errno failed_stage length comm)"

trace_stop
finish
