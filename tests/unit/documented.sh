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

options_of() { # COMMAND...
	"$@" --help | grep -oE '^ +(-[a-z],)?--[a-z-]+' | grep -oE -- '--.*'
}

completions_of() { # WORD...: the first is the program, the last is completed
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	"_$1"
	printf '%s\n' "${COMPREPLY[@]}"
}

documented() { # PAGE COMPLETIONS OPTION...: as the page and the completion have them
	local option
	for option in "${@:3}"; do
		grep -qE "^\.It.* Fl Fl ${option#--}( |$)" "docs/man/$1.1" ||
			missing "$option in docs/man/$1.1"
		grep -qx -- "$option" <<<"$2" ||
			missing "$option of $1 in the completion"
	done
}

mapfile -t options < <(options_of "$mr_probe")
documented mr_probe "$(completions_of mr_probe -)" "${options[@]}"

mapfile -t subcommands < <("$mr_probe" --help |
	sed -n '/^Subcommands:/,/^$/s/^  \([a-z]\+\) .*/\1/p')
[ ${#subcommands[@]} -ge 3 ] || missing "subcommands in --help"
completions=$(completions_of mr_probe '')
for subcommand in "${subcommands[@]}"; do
	grep -qE "^\.It Cm $subcommand$" docs/man/mr_probe.1 ||
		missing "$subcommand in docs/man/mr_probe.1"
	grep -qx -- "$subcommand" <<<"$completions" || missing "$subcommand in the completion"
done
for subcommand in "${subcommands[@]}"; do
	page=mr_probe-$subcommand
	[ -e "docs/man/$page.1" ] || {
		missing "docs/man/$page.1"
		continue
	}
	mapfile -t options < <(options_of "$mr_probe" "$subcommand")
	[ ${#options[@]} -ge 2 ] || missing "options in $subcommand --help"
	documented "$page" "$(completions_of mr_probe "$subcommand" -)" "${options[@]}"
done

# mrtrace has no subcommands.
mapfile -t options < <(options_of tracing/mrtrace)
[ ${#options[@]} -ge 6 ] || missing "options in mrtrace --help"
documented mrtrace "$(completions_of mrtrace -)" "${options[@]}"
while read -r question _; do
	grep -q "^| \`$question\` |" tracing/README.md || missing "$question in tracing/README.md"
done < <(tracing/mrtrace --list)
[ -z "$failed" ]
