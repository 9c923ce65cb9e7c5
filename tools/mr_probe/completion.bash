# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# Completion of mr_probe's subcommands, options and their values. Uses nothing
# of bash-completion, which only loads it.

_mr_probe() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local subcommand=${COMP_WORDS[1]} options='' i
	COMPREPLY=()

	# Behind -- is somebody else's command.
	for ((i = 2; i < COMP_CWORD; i++)); do
		[ "${COMP_WORDS[i]}" != -- ] || {
			compopt -o default
			[ "$i" -ne $((COMP_CWORD - 1)) ] ||
				mapfile -t COMPREPLY < <(compgen -c -- "$word")
			return
		}
	done

	if [ "$COMP_CWORD" -eq 1 ]; then
		options='explain record status --help --version'
	else
		case $before in
		--device) options=$(ls /sys/class/infiniband 2>/dev/null) ;;
		--level) options='module bpf user' ;;
		--buffer) options='anon thp huge2m' ;;
		--access)
			_mr_probe_access "$word"
			return
			;;
		--json | --output | --report)
			compopt -o default
			[ "$word" != - ] || COMPREPLY=(-)
			return
			;;
		--size | --count | --warmup | --memlock | --rows | --linger | --buffer-size) return ;;
		*) options=$(_mr_probe_options "$subcommand") ;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
}

_mr_probe_options() { # SUBCOMMAND
	case $1 in
	explain)
		echo --device --size --buffer --touched --untouched --count --warmup --access \
			--json --keys --level --read-only --unmapped --memlock --no-ipc-lock
		;;
	record) echo --json --output --rows --linger --buffer-size --keys --level -- ;;
	status) echo --json --report --test ;;
	esac
	echo --help
}

# Flags separated by commas: the last one is completed.
_mr_probe_access() { # WORD
	local done=''
	[[ $1 != *,* ]] || done=${1%,*},
	compopt -o nospace
	mapfile -t COMPREPLY < <(compgen -P "$done" -W 'local_write remote_write remote_read
		remote_atomic mw_bind zero_based on_demand hugetlb flush_global flush_persistent
		relaxed_ordering none' -- "${1##*,}")
}

complete -F _mr_probe mr_probe
