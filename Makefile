# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Entry points of a checkout. The programs are built with CMake, the modules
# with kbuild; what needs a kernel runs in a throw-away guest (tools/vm).

SUITE  ?= trixie
KDIR   ?= /lib/modules/$(shell uname -r)/build
PREFIX ?= /usr/local
MINUTES ?= 20
SEED    ?= $(shell date +%s)
GUESTS  ?= $(shell nproc)
MODDIR ?= /lib/modules/$(shell uname -r)/updates/mrscope
BUILD  := build/host

.PHONY: help demo check check-debug check-long stress bench kmod userspace deb deps lint install uninstall clean distclean

help:
	@echo 'make demo        registrations in a guest, explained; installs what it needs'
	@echo 'make check       all tests, on this machine and in guests of three suites'
	@echo 'make check-long  and those that take long'
	@echo 'make check-debug the guest tests on a kernel that checks everything (KASAN, lockdep, ...)'
	@echo 'make stress      everything at once on that kernel: MINUTES=20 SEED=number GUESTS=2'
	@echo 'make bench       the benchmarks'
	@echo 'make kmod        the modules for this kernel, or KDIR=headers OFED=sources, in $(BUILD)/kmod'
	@echo 'make userspace   the library and programs, in $(BUILD)'
	@echo 'make deb         the Debian packages for SUITE=bookworm or trixie, in build/SUITE/deb'
	@echo 'make deps        install what these builds and the guests need (apt-get)'
	@echo 'make lint        every linter over every source'
	@echo 'make install     modules into MODDIR, programs into PREFIX; uninstall undoes it'
	@echo 'make clean       remove build/; distclean: and the guests'\'' roots in .cache/'
	@echo
	@echo 'tools/vm/run CMD runs a command in a guest, tools/vm/shell is a shell in one.'

demo:
	@tools/vm/run --suite $(SUITE) -- mr_probe explain

check:
	@tools/vm/prerequisites
	@tests/run

check-long:
	@tools/vm/prerequisites
	@tests/run --long

check-debug:
	@tools/vm/prerequisites
	@tools/vm/build-kernel $(SUITE) debug
	@tests/run --kernel debug --suite $(SUITE)

stress:
	@tests/stress $(MINUTES) $(SEED) $(GUESTS) $(SUITE)

bench:
	@tests/bench/run && tests/bench/transfers

kmod:
	@tools/build-kmod "$(BUILD)/kmod" "$(KDIR)" "OFED=$(OFED)"

userspace:
	@tools/build-userspace $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX)

deb:
	@tools/vm/prerequisites
	@tools/vm/build $(SUITE) deb
	@ls build/$(SUITE)/deb/*.deb

deps:
	@tools/vm/prerequisites
	@tools/vm/install-packages --list tools/vm/packages/host

lint:
	@tests/lint.sh

install: kmod userspace
	install -d $(DESTDIR)$(MODDIR)
	install -m 644 $(BUILD)/kmod/*/*.ko $(DESTDIR)$(MODDIR)
	[ -n "$(DESTDIR)" ] || depmod
	cmake --install $(BUILD)

uninstall:
	rm -rf $(DESTDIR)$(MODDIR)
	[ -n "$(DESTDIR)" ] || depmod
	[ ! -e $(BUILD)/install_manifest.txt ] || \
		tools/uninstall $(BUILD)/install_manifest.txt "$(DESTDIR)"

clean:
	rm -rf build

distclean: clean
	rm -rf --one-file-system .cache
