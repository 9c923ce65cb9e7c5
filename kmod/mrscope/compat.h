/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels, and only that.  Differences are decided by
 * compiling a snippet against the kernel at hand, never by a version number:
 * distributions backport.  Linux 6.1 and 6.12 need none so far; names that
 * moved are handled by the symbol lists of the probes.
 */
#ifndef MRSCOPE_COMPAT_H
#define MRSCOPE_COMPAT_H

#endif /* MRSCOPE_COMPAT_H */
