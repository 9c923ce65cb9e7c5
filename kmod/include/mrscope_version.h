/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The version of all of mrscope: modules, library, programs, packages.
 * CMake takes it from here; debian/changelog must agree
 * (tests/unit/version.sh).
 */
#ifndef MRSCOPE_VERSION_H
#define MRSCOPE_VERSION_H

#define MRSCOPE_VERSION "0.1.0"

#endif
