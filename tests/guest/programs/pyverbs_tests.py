#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Runs some of rdma-core's own tests, as python3-pyverbs brings them, on one device.

Usage: pyverbs_tests.py DEVICE GID_INDEX NAME...    MODULE, or MODULE.CLASS.TEST

Prints a line for each test, and the tracebacks of those that failed on standard error:
  pass MODULE.CLASS.TEST
  skip MODULE.CLASS.TEST REASON
  fail MODULE.CLASS.TEST
Fails if nothing was run. What the tests draw by lot is the same in every run.
"""

import gc
import gzip
import importlib
import os
import random
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

INSTALLED = Path("/usr/share/doc/rdma-core/tests")
PACKAGE = "tests"  # as the modules import one another


def unpack(modules, folder):
    """The modules that are asked for, and what is no test: the package imports what it finds."""
    folder.mkdir()
    for file in INSTALLED.iterdir():
        name = file.name.removesuffix(".gz")
        if name.startswith("test_") and name.removesuffix(".py") not in modules:
            continue
        data = file.read_bytes()
        (folder / name).write_bytes(gzip.decompress(data) if file.suffix == ".gz" else data)


class Lines(unittest.TestResult):
    @staticmethod
    def line(word, test, *more):
        print(word, test.id().removeprefix(PACKAGE + "."), *more, flush=True)

    def addSuccess(self, test):
        self.line("pass", test)

    def addSkip(self, test, reason):
        self.line("skip", test, " ".join(reason.split()))

    def addError(self, test, err):
        super().addError(test, err)
        self.line("fail", test)
        print(self.errors[-1][1], file=sys.stderr)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.line("fail", test)
        print(self.failures[-1][1], file=sys.stderr)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    device, gid, *names = sys.argv[1:]
    warnings.simplefilter("ignore")
    random.seed(1)
    # The collector, and Python's end, take what is left of a test apart in any order: a CQ may
    # then be destroyed after its context is freed.
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        unpack({name.partition(".")[0] for name in names}, Path(folder) / PACKAGE)
        # The package's own parser is imported from beside its modules.
        sys.path[:0] = [folder, f"{folder}/{PACKAGE}"]
        sys.argv[1:] = ["--dev", device, "--gid", gid]
        importlib.import_module("args_parser").parser.parse_args()
        result = Lines()
        for name in names:
            unittest.defaultTestLoader.loadTestsFromName(f"{PACKAGE}.{name}").run(result)
    sys.stderr.flush()
    os._exit(0 if result.testsRun else 1)


main()
