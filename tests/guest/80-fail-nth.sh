#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# One allocation after another fails: of a registration, of arming, of loading.
# The registration's record names the stage; the module loads as a whole or not
# at all, arms what it can and says what it could not, and leaks nothing.
# kernels: debug
# vm: --timeout 600
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

allow_failures || skip_all "the kernel has no fault injection"

# ---- a registration ----

mr_reg >/dev/null
stages=()
unrecorded=0
odd=
for ((n = 1; n < 200; n++)); do
	before=$(status_of records)
	how=$(mr_fail $n reg 65536)
	case $how in
	"none 0") break ;;
	# Something else was done instead.
	"injected 0") [ $(($(status_of records) - before)) -eq 2 ] || odd+="$n: no two records"$'\n' ;;
	"injected ENOMEM")
		# Before the observer's root there is nothing to record.
		if [ "$(status_of records)" -eq "$before" ]; then
			unrecorded=$((unrecorded + 1))
			continue
		fi
		line=$(last ' reg ')
		[ "$(after ret "$line")" = -12 ] || odd+="$n: $line"$'\n'
		stages+=("$(after in "$line")")
		;;
	*) odd+="$n: $how"$'\n' ;;
	esac
done
is "$((n - 1)) allocations failed one by one, each in a stage or not at all" "" "$odd"
at_least "that is: some" 10 $((n - 1))
at_most "without a record: a few" 5 "$unrecorded"
note "failed in: $(printf '%s\n' "${stages[@]}" | sort | uniq -c | xargs), before the root: $unrecorded"
at_least "failed in stages of several kinds" 3 "$(printf '%s\n' "${stages[@]}" | sort -u | wc -l)"
is "nothing is under way" 0 "$(status_of contexts)"
is "as many pages released as pinned" 0 "$(pages_pinned)"

# ---- arming: everything at growing distances, a pair at small ones ----

odd=
arming_fails() { # DISTANCE: an expression of n
	partly=
	for ((n = 1; n < 5000; n += $1)); do
		echo 0 >"$debugfs/enabled"
		how=$(mr_fail $n write "$debugfs/enabled" 1)
		[ "$how" = "none 0" ] && break
		# Not even the word was taken: nothing has changed.
		[ "$how $(status_of enabled)" = "injected ENOMEM 0" ] && continue
		lacking=$(unarmed | sed '/on request/d')
		[ -z "$lacking" ] || partly+=" $n"
		! grep -v 'no memory' <<<"$lacking" | grep -q . || odd+="$n: $how: $lacking"$'\n'
		mr_reg >/dev/null
	done
}
arming_fails "1 + n / 2"
note "everything: $n allocations or less"
# Entries have a second way where memory lacks, pairs have not.
awk '$1 == "boundary" && $2 != "uverbs" { print $2 }' "$debugfs/status" | sort -u | paste -sd, >"$debugfs/disarm"
arming_fails 9
echo >"$debugfs/disarm"
is "arming: what lacks memory is unarmed, and says so" "" "$odd"
at_least "that was so" 1 "$(wc -w <<<"$partly")"
note "a pair: $n allocations or less, not armed without${partly:- any}"
echo 0 >"$debugfs/enabled"
echo 1 >"$debugfs/enabled"
is "armed again, nothing lacks" "" "$(unarmed)"
mr_reg >/dev/null
is "and a registration has all stages" "" "$(last ' reg ' | tr ' ' '\n' | grep -E '^(null|merged)$')"

# ---- loading ----

odd=
refused=0
for ((n = 1; n < 10000; n += 1 + n / 2)); do
	unload
	how=$(mr_fail $n insmod "$module")
	[ "$how" = "none 0" ] && break
	case $how in
	"injected ENOMEM")
		refused=$((refused + 1))
		[ ! -e "$debugfs" ] && [ ! -e /sys/module/mrscope ] || odd+="$n: refused, but something is there"$'\n'
		;;
	"injected 0") grep -q '^enabled 1' "$debugfs/status" || odd+="$n: loaded, not enabled"$'\n' ;;
	*) odd+="$n: $how"$'\n' ;;
	esac
done
is "insmod is refused as a whole, or works" "" "$odd"
at_least "it was refused" 5 "$refused"
note "$n allocations or less, refused $refused times of those tried"
load
is "selftest passes" pass "$(cat "$debugfs/selftest")"
is "nothing has leaked" "" "$(leaks)"

finish
