# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# What the tools in this folder share: where things are, the table of suites,
# and how they speak to a person. To be sourced.

VM_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
REPO=$(cd "$VM_DIR/../.." && pwd)
CACHE=${MRSCOPE_CACHE:-$REPO/.cache}

# A failure of the test bed itself, as opposed to one of what runs in it.
readonly VM_EXIT_BED=125

# suite | kernel series | extra options for mmdebstrap
vm_suites() {
	cat <<-'END'
		bookworm | 6.1  |
		trixie   | 6.12 |
		sid      | 7.2  | --aptopt=Acquire::Check-Valid-Until "false"
	END
}

# shellcheck disable=SC2034  # read by the scripts that source this one
VM_DEFAULT_SUITE=trixie

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
	say "$*"
	exit "$VM_EXIT_BED"
}

# One column of a suite's row; fails if there is no such suite.
suite_field() { # SUITE COLUMN
	vm_suites | awk -F'|' -v suite="$1" -v col="$2" '
		{ name = $1; gsub(/^[ \t]+|[ \t]+$/, "", name) }
		name == suite {
			f = $col; gsub(/^[ \t]+|[ \t]+$/, "", f); print f; found = 1
		}
		END { exit !found }'
}

suite_check() { # SUITE
	suite_field "$1" 1 >/dev/null ||
		die "no suite '$1'; there are: $(vm_suites | awk -F'|' '{ printf "%s", $1 }' | xargs)"
}

# Lines of a package list without comments.
package_list() { # FILE
	sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "$1"
}

# To be raised when tools/vm/build-root makes something else of the same input.
readonly ROOT_RECIPE=1

# The folder of a suite's root. Its name holds a hash of all that goes into
# it, so another list of packages is another root.
root_dir() { # SUITE
	local hash
	hash=$(
		{
			echo "$ROOT_RECIPE"
			suite_field "$1" 3
			package_list "$VM_DIR/packages/base"
			grep -v '^#' "$VM_DIR/packages/dpkg.cfg"
		} | sha256sum | cut -c1-12
	)
	printf '%s/roots/%s-%s\n' "$CACHE" "$1" "$hash"
}

kernel_release() { # ROOT_DIR
	cat "$1/kernel-release"
}

# Kernels that we build ourselves: the fragments in tools/vm/kernel/.
kernel_check() { # KERNEL
	[ "$1" = stock ] || { [ "$1" != base ] && [ -e "$VM_DIR/kernel/$1.config" ]; } ||
		die "no kernel '$1'; there are: stock, debug"
}

# Where the modules for a kernel are built, in the repository.
kmod_dir() { # SUITE KERNEL
	if [ "$2" = stock ]; then echo "build/$1/kmod"; else echo "build/$1/kmod-$2"; fi
}

# To be raised when tools/vm/build-kernel makes something else of the same input.
readonly KERNEL_RECIPE=1

# The folder of a kernel of our own; by the version of its source, which is that
# of the suite's own kernel, and by its configuration.
kernel_dir() { # SUITE KERNEL
	local hash
	hash=$(
		{
			echo "$KERNEL_RECIPE"
			kernel_release "$("$VM_DIR/build-root" "$1")"
			cat "$VM_DIR/kernel/base.config" "$VM_DIR/kernel/$2.config" "$VM_DIR/packages/kernel"
		} | sha256sum | cut -c1-12
	)
	printf '%s/kernels/%s-%s-%s\n' "$CACHE" "$1" "$2" "$hash"
}

# A guest's disk of a folder.
make_disk() { # FOLDER IMAGE
	mke2fs -q -t ext4 -L mrscope -m 0 -J size=16 -E lazy_itable_init=1 -d "$1" "$2" 4G
}

# Run the calling script again as root, if it is not root yet.
become_root() { # "$@" of the script
	[ "$(id -u)" -ne 0 ] || return 0
	command -v sudo >/dev/null ||
		die "a root is built and used with chroot: run this as root, or install sudo"
	exec sudo --preserve-env=MRSCOPE_CACHE -- "$0" "$@"
}

# Run "$@" and show how far it has come: one live line on a terminal, else
# its lines as they are. All of it goes to LOG, whose end is shown on failure.
with_progress() { # LABEL LOG CMD...
	local label=$1 log=$2 start=$SECONDS status=0
	shift 2
	if [ -t 2 ]; then
		"$@" >"$log" 2>&1 &
		local pid=$!
		while kill -0 "$pid" 2>/dev/null; do
			printf '\r\033[K%s (%d s): %.60s' "$label" $((SECONDS - start)) \
				"$(tail -n1 "$log" | tr -d '\r')" >&2
			sleep 0.5
		done
		wait "$pid" || status=$?
		printf '\r\033[K' >&2
	else
		say "$label ..."
		"$@" >"$log" 2>&1 || status=$?
	fi
	if [ "$status" -eq 0 ]; then
		say "$label: done in $((SECONDS - start)) s"
	else
		tail -n 40 "$log" >&2
		say "$label: FAILED, the whole log is $log"
	fi
	return "$status"
}
