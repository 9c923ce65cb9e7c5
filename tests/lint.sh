#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Every linter over every source; installs the linters that are missing.
#
# Usage: tests/lint.sh [checkpatch|sparse|format|tidy|shell]...
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

readonly CACHE=${MRSCOPE_CACHE:-$PWD/.cache}
# The kernel that checkpatch and sparse speak for.
readonly SUITE=trixie

files() { # PATHSPEC...
	git ls-files --cached --others --exclude-standard -- "$@" |
		while read -r file; do [ ! -e "$file" ] || printf '%s\n' "$file"; done
}

cxx_files() {
	files '*.cpp' '*.h' ':!kmod/**' ':!userspace/bpf/**'
}

# checkpatch.pl and its word lists are in no package but the kernel's source.
fetch_checkpatch() {
	local dir=$CACHE/checkpatch package
	if [ ! -e "$dir/complete" ]; then
		rm -rf "$dir"
		mkdir -p "$dir"
		package=$(apt-cache depends linux-source | sed -n 's/.*Depends: //p')
		[ -n "$package" ] || {
			echo "apt knows no linux-source: apt-get update" >&2
			return 1
		}
		echo "taking checkpatch.pl out of $package ..." >&2
		(cd "$dir" && apt-get download -q -o APT::Sandbox::User=root "$package" >/dev/null)
		dpkg-deb --fsys-tarfile "$dir/$package"_*.deb |
			tar -xO --wildcards "./usr/src/$package.tar.*" |
			tar -xJ -C "$dir" --strip-components=2 --wildcards \
				'*/scripts/checkpatch.pl' '*/scripts/spelling.txt' \
				'*/scripts/const_structs.checkpatch'
		rm "$dir"/*.deb
		touch "$dir/complete"
	fi
	printf '%s\n' "$dir/checkpatch.pl"
}

lint_checkpatch() {
	local checkpatch sources
	mapfile -t sources < <(files 'kmod/*.c' 'kmod/*.h' 'kmod/**/*.c' 'kmod/**/*.h')
	[ ${#sources[@]} -gt 0 ] || return 0
	checkpatch=$(fetch_checkpatch)
	# No file of ours is in a MAINTAINERS, and the licence is the modules' own.
	perl "$checkpatch" --no-tree --strict --terse --show-types --no-summary \
		--ignore FILE_PATH_CHANGES,SPDX_LICENSE_TAG --file "${sources[@]}"
	# A constant that is set before BPF programs are loaded is volatile.
	mapfile -t sources < <(files 'userspace/bpf/*')
	perl "$checkpatch" --no-tree --strict --terse --show-types --no-summary \
		--ignore FILE_PATH_CHANGES,SPDX_LICENSE_TAG,VOLATILE --file "${sources[@]}"
}

lint_sparse() {
	tools/vm/prerequisites
	tools/vm/build "$SUITE" sparse
}

lint_format() {
	local sources
	mapfile -t sources < <(cxx_files)
	[ ${#sources[@]} -eq 0 ] || clang-format --dry-run -Werror "${sources[@]}"
}

lint_tidy() {
	local sources status=0
	tools/build-userspace build/host >build/lint-build.log || {
		cat build/lint-build.log
		return 1
	}
	mapfile -t sources < <(
		python3 -c 'import json, sys
for entry in json.load(open(sys.argv[1])):
    print(entry["file"])' build/host/compile_commands.json | sort -u
	)
	printf '%s\0' "${sources[@]}" |
		xargs -0 -n 4 -P "$(nproc)" clang-tidy -p build/host --quiet || status=1
	# Not built with CMake, as a guest that cannot be booted must not need it.
	clang-tidy --quiet tools/vm/guest/agent.cpp -- -std=c++20 || status=1
	return $status
}

lint_shell() {
	local scripts
	mapfile -t scripts < <(
		files | while read -r file; do
			head -c 64 "$file" | grep -aqE '^#!.*\b(ba|busybox )?sh$' && printf '%s\n' "$file"
			[[ $file != *.@(sh|bash) ]] || printf '%s\n' "$file"
		done | sort -u
	)
	shellcheck -x "${scripts[@]}"
}

declare -A packages=([checkpatch]=perl [sparse]=sparse [format]=clang-format [tidy]=clang-tidy
	[shell]=shellcheck)
all=(checkpatch sparse format tidy shell)
[ $# -gt 0 ] || set -- "${all[@]}"

wanted=()
for linter in "$@"; do
	[ -n "${packages[$linter]-}" ] || {
		echo "no linter '$linter'; there are: ${all[*]}" >&2
		exit 2
	}
	wanted+=("${packages[$linter]}")
done
tools/vm/install-packages git "${wanted[@]}"
mkdir -p build

failed=()
for linter in "$@"; do
	echo "== $linter"
	# A function left of || runs without set -e: what fails within would be lost.
	set +e
	(set -e && "lint_$linter")
	status=$?
	set -e
	[ $status -eq 0 ] || failed+=("$linter")
done
[ ${#failed[@]} -eq 0 ] || {
	echo "lint: failed: ${failed[*]}"
	exit 1
}
echo "lint: clean"
