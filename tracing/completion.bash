# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# Completion of mrtrace's questions, options and their values. Uses nothing of
# bash-completion, which only loads it.

_mrtrace() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words
	COMPREPLY=()
	case $before in
	--pid)
		words=$(cd /proc && echo [0-9]*)
		;;
	--over | --rounds) return ;;
	--during)
		mapfile -t COMPREPLY < <(compgen -c -- "$word")
		return
		;;
	*)
		words='--list --module --plain --pid --over --during --rounds --help'
		[[ $word == -* ]] || words=$(mrtrace --list 2>/dev/null | cut -d' ' -f1)
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _mrtrace mrtrace
