/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels, and only that.  Differences are decided by what
 * the kernel at hand compiles, never by a version number: distributions
 * backport.  Functions that were renamed are handled by the symbol lists of the
 * probes.
 */
#ifndef MRSCOPE_COMPAT_H
#define MRSCOPE_COMPAT_H

#include <linux/ftrace.h>
#include <linux/ptrace.h>
#include <linux/timex.h>
#ifdef CONFIG_X86
#include <asm/tsc.h>
#endif

/*
 * The arguments of a function whose entry ftrace reports.  The accessor came
 * after the structure, which held plain registers before.
 */
#ifdef ftrace_regs_get_argument
#define mrs_ftrace_argument(fregs, n)	ftrace_regs_get_argument(fregs, n)
#else
#define mrs_ftrace_argument(fregs, n)	\
	regs_get_kernel_argument(&(fregs)->regs, n)
#endif

/* Does get_cycles() run at one rate, on all CPUs alike? */
static inline bool mrs_cycles_stable(void)
{
#if defined(CONFIG_X86_64)
	return boot_cpu_has(X86_FEATURE_TSC) && !check_tsc_unstable();
#elif defined(CONFIG_ARM64)
	return true;	/* the architected timer */
#else
	return false;
#endif
}

#endif /* MRSCOPE_COMPAT_H */
