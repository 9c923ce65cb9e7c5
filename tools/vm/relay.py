#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The host's end of a guest: starts QEMU, hands the agent in the guest one
command, and passes on its output, input and exit status.

Not for people: tools/vm/run calls it. The frames are described in
guest/agent.cpp. @TMP@ in an argument of QEMU is this run's own folder.

Usage: relay.py [options] QEMU_ARGC QEMU_ARG... COMMAND...
"""

import argparse
import ctypes
import fcntl
import os
import re
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import tty

EXIT_PANIC = 121
EXIT_DIED = 122
EXIT_WARNED = 123
EXIT_TIMEOUT = 124
EXIT_BED = 125

HEADER = struct.Struct("<cI")
INPUT_WINDOW = 256 * 1024  # sent and not yet taken by the command
TAIL_LINES = 60

BEGIN_MARK = "mrscope-vm: begin"
PANIC = re.compile(r"Kernel panic|\bOops\b|\bBUG: |general protection fault")
WARNING = re.compile(r"WARNING:|BUG:|Call Trace|UBSAN:|\bOops\b")
# That memory was short is no complaint, though it comes with a call trace.
SHORTAGE = re.compile(r"vmalloc error:|page allocation failure:")
SHORTAGE_END = re.compile(r"</TASK>")


class Ended(Exception):
    """The run is over, with this status."""

    def __init__(self, status, reason=None):
        super().__init__(reason)
        self.status = status
        self.reason = reason


def say(text):
    sys.stderr.write("tools/vm: " + text + "\n")
    sys.stderr.flush()


def write_all(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def die_with_parent():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def window_size(fd):
    try:
        rows, columns, _, _ = struct.unpack(
            "HHHH", fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8)
        )
        return rows, columns
    except OSError:
        return 24, 80


class RawTerminal:
    """Passes keys on as they are while it is entered."""

    def __init__(self, wanted):
        self.saved = termios.tcgetattr(0) if wanted else None

    def __enter__(self):
        if self.saved:
            tty.setraw(0)

    def __exit__(self, *_):
        if self.saved:
            termios.tcsetattr(0, termios.TCSADRAIN, self.saved)


class Guest:
    def __init__(self, qemu, folder):
        ours, theirs = socket.socketpair()
        self.socket = ours
        self.started = time.monotonic()
        args = [a.replace("@TMP@", folder) for a in qemu]
        args += [
            "-chardev",
            f"socket,id=agent,fd={theirs.fileno()}",
            "-device",
            "virtserialport,bus=serial0.0,chardev=agent,name=mrscope",
        ]
        self.process = subprocess.Popen(
            args,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=open(os.path.join(folder, "qemu.log"), "wb"),
            start_new_session=True,  # a Ctrl-C is ours to handle
            preexec_fn=die_with_parent,
            env={**os.environ, "TMPDIR": folder},  # of the disk's snapshot
        )
        theirs.close()

    def send(self, kind, body):
        self.socket.sendall(HEADER.pack(kind, len(body)) + body)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Relay:
    def __init__(self, guest, options, command):
        self.guest = guest
        self.options = options
        self.received = bytearray()
        self.unconsumed = 0
        self.up = False
        self.resized = False
        self.selector = selectors.PollSelector()
        self.selector.register(guest.socket, selectors.EVENT_READ)
        self.execute(command)

    def execute(self, command):
        body = b"\1" if self.options.tty else b"\0"
        body += struct.pack("<II", *window_size(0))
        strings = [self.options.cwd, *self.options.env, "", *command]
        body += b"".join(os.fsencode(s) + b"\0" for s in strings)
        self.guest.send(b"E", body)
        if not self.options.stdin and not self.options.tty:
            self.guest.send(b"i", b"")

    def run(self):
        """Returns the command's status, or raises Ended."""
        while True:
            self.watch_input()
            for key, _ in self.selector.select(1):
                if key.fileobj is self.guest.socket:
                    status = self.take_output()
                    if status is not None:
                        return status
                else:
                    self.take_input()
            if self.resized:
                self.resized = False
                self.guest.send(b"w", struct.pack("<II", *window_size(0)))
            if not self.up and time.monotonic() - self.guest.started > self.options.boot_limit:
                raise Ended(EXIT_DIED, f"the guest was not up after {self.options.boot_limit:.0f} s")

    def watch_input(self):
        wanted = self.options.stdin and self.unconsumed < INPUT_WINDOW
        watched = 0 in self.selector.get_map()
        if wanted and not watched:
            self.selector.register(0, selectors.EVENT_READ)
        elif watched and not wanted:
            self.selector.unregister(0)

    def take_input(self):
        data = os.read(0, 32768)
        self.guest.send(b"i", data)
        self.unconsumed += len(data)
        if not data:
            self.selector.unregister(0)
            self.options.stdin = False

    def take_output(self):
        try:
            data = self.guest.socket.recv(1 << 20)
        except ConnectionError:
            data = b""
        if not data:
            raise Ended(EXIT_DIED, "the guest died before the command ended")
        self.received += data
        while len(self.received) >= HEADER.size:
            kind, length = HEADER.unpack_from(self.received)
            end = HEADER.size + length
            if len(self.received) < end:
                break
            body = bytes(self.received[HEADER.size : end])
            del self.received[:end]
            if kind == b"x":
                return struct.unpack("<I", body)[0]
            self.handle(kind, body)
        return None

    def handle(self, kind, body):
        if kind == b"o":
            write_all(1, body)
        elif kind == b"e":
            write_all(2, body)
        elif kind == b"c":
            self.unconsumed -= struct.unpack("<I", body)[0]
        elif kind == b"m":
            for line in body.decode(errors="replace").splitlines():
                say(line)
        elif kind == b"H":
            self.up = True
            if self.options.verbose:
                elapsed = time.monotonic() - self.guest.started
                say(
                    f"guest up after {elapsed:.1f} s, of which the kernel counts "
                    + body.decode().split()[0]
                )


class Console:
    def __init__(self, path):
        self.path = path

    def lines(self):
        try:
            with open(self.path, errors="replace") as file:
                return file.read().splitlines()
        except OSError:
            return []

    def print_tail(self):
        lines = self.lines()[-TAIL_LINES:]
        say(f"last {len(lines)} lines of the guest's console:")
        for line in lines:
            sys.stderr.write("  | " + line + "\n")

    def panicked(self):
        return any(PANIC.search(line) for line in self.lines())

    def warnings(self):
        """What the kernel complained of since the guest was ready."""
        lines = self.lines()
        start = next((i for i, l in enumerate(lines) if BEGIN_MARK in l), len(lines))
        shortage = False
        for i in range(start, len(lines)):
            shortage = shortage or bool(SHORTAGE.search(lines[i]))
            if WARNING.search(lines[i]) and not shortage:
                return lines[i : i + TAIL_LINES]
            shortage = shortage and not SHORTAGE_END.search(lines[i])
        return []


def on_signal(number, _):
    raise Ended(128 + number)


def on_alarm(*_):
    raise Ended(EXIT_TIMEOUT, "time limit reached")


def run(guest, options, command):
    relay = Relay(guest, options, command)
    if options.tty:

        def resized(*_):
            relay.resized = True

        signal.signal(signal.SIGWINCH, resized)
    with RawTerminal(options.tty):
        return relay.run()


def supervise(options, qemu, command, folder):
    console = Console(os.path.join(folder, "console.log"))
    guest = Guest(qemu, folder)
    try:
        status = run(guest, options, command)
    except Ended as end:
        status = end.status
        if end.reason:
            guest.kill()
            if status == EXIT_DIED and console.panicked():
                status, end.reason = EXIT_PANIC, "the guest's kernel panicked"
            say(end.reason)
            with open(os.path.join(folder, "qemu.log"), errors="replace") as log:
                sys.stderr.write(log.read())
            console.print_tail()
    except BrokenPipeError:
        status = 128 + signal.SIGPIPE
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        guest.kill()
        if options.console:
            shutil.copyfile(console.path, options.console)

    if status not in (EXIT_PANIC, EXIT_DIED) and not options.allow_warnings:
        warnings = console.warnings()
        if warnings:
            say("the guest's kernel complained:")
            for line in warnings:
                sys.stderr.write("  | " + line + "\n")
            status = status or EXIT_WARNED
    return status


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--timeout", type=float, default=0)
    parser.add_argument("--boot-limit", type=float, default=180)
    parser.add_argument("--console", help="keep the console's log here")
    parser.add_argument("--allow-warnings", action="store_true")
    parser.add_argument("--stdin", action="store_true")
    parser.add_argument("--tty", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--gdb", action="store_true")
    parser.add_argument("--cwd", default="/")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("qemu_argc", type=int)
    parser.add_argument("args", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    qemu = options.args[: options.qemu_argc]
    command = options.args[options.qemu_argc :]

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    signal.signal(signal.SIGALRM, on_alarm)
    folder = tempfile.mkdtemp(prefix="mrscope-vm.")
    try:
        if options.gdb:
            say(f"waiting for gdb: target remote {folder}/gdb.sock")
        if options.timeout:
            signal.setitimer(signal.ITIMER_REAL, options.timeout)
        status = supervise(options, qemu, command, folder)
    except Ended as end:  # between two of the steps above
        status = end.status
    except OSError as error:
        say(str(error))
        status = EXIT_BED
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(status)


main()
