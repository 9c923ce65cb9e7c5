#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Each subcommand and each option that --help of mr_probe and mrtrace prints is in
# the manual page and in the completion; each question of mrtrace, in the README of
# the scripts.
#
# Usage: tests/unit/documented.sh MR_PROBE
set -euo pipefail
mr_probe=$1
cd "$(dirname "$0")/../.."
. tools/mr_probe/completion.bash
. tracing/completion.bash

failed=
missing() {
	echo "missing: $*"
	failed=1
}

options_of() { # SUBCOMMAND...
	"$mr_probe" "$@" --help | grep -oE '^ +(-[a-z],)?--[a-z-]+' | grep -oE -- '--.*'
}

completions_of() { # WORD...: what stands before the word that is completed
	COMP_WORDS=(mr_probe "$@" -)
	COMP_CWORD=$(($# + 1))
	_mr_probe
	printf '%s\n' "${COMPREPLY[@]}"
}

documented() { # PAGE COMPLETIONS OPTION...
	local option
	for option in "${@:3}"; do
		grep -qE "^\.It.* Fl Fl ${option#--}( |$)" "docs/man/$1.1" ||
			missing "$option in docs/man/$1.1"
		grep -qx -- "$option" <<<"$2" ||
			missing "$option of $1 in tools/mr_probe/completion.bash"
	done
}

mapfile -t options < <(options_of)
documented mr_probe "$(completions_of)" "${options[@]}"

mapfile -t subcommands < <("$mr_probe" --help |
	sed -n '/^Subcommands:/,/^$/s/^  \([a-z]\+\) .*/\1/p')
[ ${#subcommands[@]} -ge 3 ] || missing "subcommands in --help"
COMP_WORDS=(mr_probe '')
COMP_CWORD=1
_mr_probe
for subcommand in "${subcommands[@]}"; do
	grep -qE "^\.It Cm $subcommand$" docs/man/mr_probe.1 ||
		missing "$subcommand in docs/man/mr_probe.1"
	[[ " ${COMPREPLY[*]} " == *" $subcommand "* ]] ||
		missing "$subcommand in tools/mr_probe/completion.bash"
done
for subcommand in "${subcommands[@]}"; do
	page=mr_probe-$subcommand
	[ -e "docs/man/$page.1" ] || {
		missing "docs/man/$page.1"
		continue
	}
	mapfile -t options < <(options_of "$subcommand")
	[ ${#options[@]} -ge 2 ] || missing "options in $subcommand --help"
	documented "$page" "$(completions_of "$subcommand")" "${options[@]}"
done

# mrtrace has no subcommands.
mapfile -t options < <(tracing/mrtrace --help | grep -oE '^  --[a-z]+' | tr -d ' ')
[ ${#options[@]} -ge 6 ] || missing "options in mrtrace --help"
COMP_WORDS=(mrtrace -)
COMP_CWORD=1
_mrtrace
for option in "${options[@]}"; do
	grep -qE "^\.It.* Fl Fl ${option#--}( |$)" docs/man/mrtrace.1 ||
		missing "$option in docs/man/mrtrace.1"
	[[ " ${COMPREPLY[*]} " == *" $option "* ]] ||
		missing "$option of mrtrace in tracing/completion.bash"
done
while read -r question _; do
	grep -q "^| \`$question\` |" tracing/README.md || missing "$question in tracing/README.md"
done < <(tracing/mrtrace --list)
[ -z "$failed" ]
