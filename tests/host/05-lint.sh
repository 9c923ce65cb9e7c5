#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# tests/lint.sh fails when anything that it runs does. All of that is played by
# one stub here, in a repository of three files.
set -uo pipefail

repo=$(cd "$(dirname "$0")/../.." && pwd)
lab=$(mktemp -d)
trap 'rm -rf "$lab"' EXIT

mkdir -p "$lab"/{bin,build/host,cache/checkpatch,kmod,tests,tools/vm}
cat >"$lab/stub" <<'END'
#!/bin/sh
! echo "${0##*/} $*" | grep -q "^$FAILS"
END
chmod +x "$lab/stub"
for tool in bin/{clang-format,clang-tidy,perl,shellcheck} tools/build-userspace \
	tools/vm/{build,install-packages,prerequisites}; do
	ln -s "$lab/stub" "$lab/$tool"
done
cp "$repo/tests/lint.sh" "$lab/tests/"
touch "$lab/cache/checkpatch/complete" "$lab/kmod/one.c" "$lab/one.cpp"
echo '[{"file": "one.cpp"}, {"file": "two.cpp"}]' >"$lab/build/host/compile_commands.json"
git -C "$lab" init -q

lint() { # WHAT_FAILS LINTER...
	local fails=$1
	shift
	FAILS=$fails MRSCOPE_CACHE=$lab/cache PATH=$lab/bin:$PATH "$lab/tests/lint.sh" "$@" \
		>"$lab/out" 2>&1
}

count=0
result() { # NAME; the status before it decides
	local status=$?
	count=$((count + 1))
	if [ "$status" -eq 0 ]; then
		echo "ok $count - $1"
	else
		echo "not ok $count - $1"
		sed 's/^/# /' "$lab/out"
	fi
}

lint nothing && grep -qx 'lint: clean' "$lab/out"
result "clean where nothing fails"
while read -r linter fails; do
	! lint "$fails" && grep -qx "lint: failed: $linter" "$lab/out"
	result "$linter fails with: $fails"
done <<'END'
checkpatch perl .*one.c
sparse prerequisites
sparse build trixie sparse
format clang-format .*one.cpp
tidy build-userspace
tidy clang-tidy .*two.cpp
tidy clang-tidy .*agent.cpp
shell shellcheck .*lint.sh
END

echo "1..$count"
