# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the benchmarks share: a guest without mrscope.ko whose clock counts
instructions, and the lines that it prints, as words and pairs of name and
number.
"""

import pathlib
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
KERNELS = {"trixie": "Linux 6.12", "bookworm": "Linux 6.1", "sid": "Linux 7.2"}


class BenchError(Exception):
    """No figures could be had."""


def lines_of(suite, command, vm_options=()):
    """What COMMAND prints in a guest of SUITE, line by line, in words."""
    guest = subprocess.run(
        [REPO / "tools/vm/run", "--suite", suite, "--icount", "--bare", *vm_options, "--",
         *command], stdout=subprocess.PIPE, text=True, check=False)
    if guest.returncode != 0:
        raise BenchError(f"the {suite} guest ended with {guest.returncode}")
    return [line.split() for line in guest.stdout.splitlines()]


def pairs(words):
    """{name: number} of a line's end."""
    return dict(zip(words[::2], map(int, words[1::2])))


def run(main, name="bench"):
    """Ends with main()'s status; without figures, with one sentence and 1."""
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
