# SPDX-License-Identifier: GPL-2.0
#
# Asks the kernel at hand what it has, by compiling: included by the Kbuild of
# each module.  config/NAME.c that compiles becomes -DMRS_HAVE_NAME, in
# capitals.  kernel.c must compile: without it, each "no" would be a lie.

# Only where the compiling is done: linking and cleaning read Kbuild files too.
ifneq ($(filter %/Makefile.build,$(MAKEFILE_LIST)),)

# MRS_OFED: the sources of MLNX_OFED or DOCA (tools/build-kmod OFED=...).  Their
# headers come before the kernel's own, of which they replace some.
ifneq ($(MRS_OFED),)
LINUXINCLUDE := -I$(MRS_OFED)/include -I$(MRS_OFED)/include/uapi \
	$(addprefix -include ,$(wildcard $(MRS_OFED)/include/linux/compat-2.6.h)) \
	$(LINUXINCLUDE)
endif

mrs-config := $(src)/../config
# $(1): a probe.  Warnings are none of its business, missing declarations are.
mrs-compiles = $(CC) $(NOSTDINC_FLAGS) $(LINUXINCLUDE) $(KBUILD_CPPFLAGS) \
	$(KBUILD_CFLAGS) $(KBUILD_CFLAGS_MODULE) -DMODULE \
	-DKBUILD_MODNAME='"probe"' -Wno-error -Werror=implicit-function-declaration \
	-fsyntax-only $(mrs-config)/$(1).c

mrs-broken := $(shell $(call mrs-compiles,kernel) 2>&1 >/dev/null || echo failed)
ifneq ($(mrs-broken),)
$(error The headers of this kernel do not compile a module (linux-headers incomplete, or for another compiler): $(mrs-broken))
endif

mrs-probes := $(filter-out kernel,$(basename $(notdir $(sort $(wildcard $(mrs-config)/*.c)))))
mrs-found := $(strip $(foreach p,$(mrs-probes),\
	$(if $(shell $(call mrs-compiles,$(p)) 2>/dev/null && echo y),$(p))))
$(info mrscope: of $(mrs-probes), this kernel has: $(or $(mrs-found),none))

ccflags-y += $(foreach p,$(mrs-found),-DMRS_HAVE_$(shell echo $(p) | tr a-z A-Z))

# What mrscope cannot do without, in words.
$(foreach o,KPROBES DYNAMIC_FTRACE DEBUG_FS INFINIBAND INFINIBAND_USER_ACCESS,\
	$(if $(CONFIG_$(o)),,$(error This kernel has no CONFIG_$(o): mrscope cannot be built for it)))

endif
