#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The Debian packages, there and back again, for each suite: built; installed in
# a root that has nothing to build with; used and purged in a guest of that root.
# And what make install installs, make uninstall takes away.
# long
set -uo pipefail

repo=$(cd "$(dirname "$0")/../.." && pwd)
vm=$repo/tools/vm
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' "$repo/debian/changelog")
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR" "$repo"/build/*/packages' EXIT

count=0
result() { # NAME; the status before it decides
	local status=$?
	count=$((count + 1))
	if [ "$status" -eq 0 ]; then echo "ok $count - $1"; else echo "not ok $count - $1"; fi
	return "$status"
}

# Runs COMMAND, of which only the end is of interest, and only if it fails.
quietly() { # COMMAND...
	local log
	log=$(mktemp)
	"$@" >"$log" 2>&1 && return
	tail -n 30 "$log" | sed 's/^/# /'
	return 1
}

lint() { # SUITE
	# The project has no address.
	quietly "$vm/layer" --keep "$("$vm/build-layer" "$1" deb)" "$1" lintian --allow-root \
		--suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
		"/repo/build/$1/deb/mrscope_${version}_amd64.changes"
}

round_trip() { # SUITE
	local suite=$1 debs=/repo/build/$1/deb dir=build/$1/packages
	quietly "$vm/build" "$suite" deb
	result "$suite: make deb" || return
	lint "$suite"
	result "$suite: lintian finds no error"

	"$vm/layer" "$suite" /repo/tests/host/packages/develop "$debs" >"$TMPDIR/out" 2>"$TMPDIR/err"
	[ "$(xargs <"$TMPDIR/out")" = "$version $version" ] || {
		sed 's/^/# /' "$TMPDIR/out" "$TMPDIR/err"
		false
	}
	result "$suite: a program builds with libmrscope-dev by CMake and pkg-config"

	mkdir -p "$repo/$dir"
	quietly "$vm/layer" --image "$repo/$dir/root.ext4" "$suite" \
		/repo/tests/host/packages/install "$debs" "/repo/$dir/files"
	result "$suite: the packages install in a clean root" || return
	"$vm/run" --suite "$suite" --no-build --bare --root "$repo/$dir/root.ext4" -- \
		/repo/tests/host/packages/use-and-purge "$version" "/repo/$dir/files" \
		>"$TMPDIR/guest"
	result "$suite: and the guest ends well"
	cat "$TMPDIR/guest"
	count=$((count + $(grep -cE '^(not )?ok ' "$TMPDIR/guest")))
}

# In a suite's root, where the kernel's headers are, with what is built already.
make_in_root() { # SUITE TARGET
	quietly "$vm/layer" "$1" setpriv --reuid "$(stat -c %u "$repo")" \
		--regid "$(stat -c %g "$repo")" --clear-groups \
		make -C /repo "$2" "BUILD=build/$1" "KDIR=/lib/modules/$kernel/build" \
		"MODDIR=/lib/modules/$kernel/updates/mrscope" "DESTDIR=/repo/build/$1/packages/install"
}

# Somebody else's files stay.
install_and_uninstall() { # SUITE
	local suite=$1 root=$repo/build/$1/packages/install kernel file left
	kernel=$(cat "$("$vm/build-root" "$suite")/kernel-release")
	quietly "$vm/build" "$suite"
	mkdir -p "$root/usr/local/bin"
	echo other >"$root/usr/local/bin/other"
	make_in_root "$suite" install
	result "make install DESTDIR=" || return
	for file in "lib/modules/$kernel/updates/mrscope/mrscope.ko" usr/local/bin/mr_probe \
		usr/local/include/mrscope/explain.h usr/local/share/man/man1/mr_probe.1 \
		usr/local/share/bash-completion/completions/mr_probe \
		usr/local/lib/libibverbs/libmrlab-rdmav34.so usr/local/include/mrlabdv.h \
		etc/libibverbs.d/mrlab.driver usr/local/bin/mrtrace usr/local/share/mrscope/tracing/mr_stages.bt \
		usr/local/share/mrscope/tracing/plain/mr_stages.bt; do
		[ -s "$root/$file" ]
		result "installs $file"
	done
	make_in_root "$suite" uninstall
	result "make uninstall"
	left=$(cd "$root" && find . ! -type d -o -name 'mrscope*')
	[ "$left" = ./usr/local/bin/other ] || {
		echo "# left: ${left//$'\n'/ }"
		false
	}
	result "leaves nothing but what was there before"
}

for suite in bookworm trixie; do
	round_trip "$suite"
done
install_and_uninstall trixie

echo "1..$count"
