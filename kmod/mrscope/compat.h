/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels, and only that.  Differences are decided by what
 * the kernel at hand compiles (config/, which defines MRS_HAVE_...), never by a
 * version number: distributions backport.  Functions that were renamed are
 * handled by the symbol lists of the probes.
 */
#ifndef MRSCOPE_COMPAT_H
#define MRSCOPE_COMPAT_H

#include <linux/ftrace.h>
#include <linux/ptrace.h>
#include <linux/timex.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/uverbs_ioctl.h>
#ifdef CONFIG_X86
#include <asm/tsc.h>
#endif

/*
 * The arguments of a function whose entry ftrace reports.  The accessor came
 * after the structure, which held plain registers before.
 */
#ifdef MRS_HAVE_FTRACE_REGS_GET_ARGUMENT
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

/*
 * What an ioctl method of registration was asked for, read from its attributes;
 * false where the method registers something else.  Attributes as short as
 * these are held by value, and the short ones are zero-extended.
 */
#ifdef MRS_HAVE_REG_MR_METHOD
static inline u64 mrs_attribute(const struct uverbs_attr_bundle *attrs, u16 id)
{
	const struct uverbs_attr *attr = uverbs_attr_get(attrs, id);

	if (IS_ERR(attr) || attr->ptr_attr.len > sizeof(u64))
		return 0;
	return attr->ptr_attr.data;
}

static inline bool mrs_method_request(const struct uverbs_attr_bundle *attrs,
				      struct ib_uverbs_reg_mr *request)
{
	if (!uverbs_attr_is_valid(attrs, UVERBS_ATTR_REG_MR_ADDR))
		return false;
	request->start = mrs_attribute(attrs, UVERBS_ATTR_REG_MR_ADDR);
	request->length = mrs_attribute(attrs, UVERBS_ATTR_REG_MR_LENGTH);
	request->hca_va = mrs_attribute(attrs, UVERBS_ATTR_REG_MR_IOVA);
	request->access_flags =
		mrs_attribute(attrs, UVERBS_ATTR_REG_MR_ACCESS_FLAGS);
	return true;
}
#else
static inline bool mrs_method_request(const struct uverbs_attr_bundle *attrs,
				      struct ib_uverbs_reg_mr *request)
{
	return false;
}
#endif

/* A user buffer by its description, as drivers of newer kernels pin it. */
#ifdef MRS_HAVE_IB_UVERBS_BUFFER_DESC
static inline void mrs_described(const void *description, u64 *addr, u64 *length)
{
	const struct ib_uverbs_buffer_desc *desc = description;

	*addr = desc->addr;
	*length = desc->length;
}
#else
static inline void mrs_described(const void *description, u64 *addr, u64 *length)
{
}
#endif

#endif /* MRSCOPE_COMPAT_H */
