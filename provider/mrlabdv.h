/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What can be asked of mrlab's devices beyond verbs. The function is in the
 * provider itself, libmrlab-rdmav<NN>.so, with the version MRLABDV_1.
 */
#ifndef MRLABDV_H
#define MRLABDV_H

#include <infiniband/verbs.h>
#include <mrlab.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How the registration of a memory region went, stage by stage: of ibv_reg_mr()
 * and its like, or of the ibv_rereg_mr() that last made a new translation of it.
 * "size" of the answer is the number of bytes that the driver knew; what is
 * beyond is 0.
 *
 * Returns 0, or
 *   EOPNOTSUPP  the region is of another provider
 *   ENODATA     its driver did not say: a dmabuf, whose command has no room for it
 */
int mrlabdv_reg_stages(const struct ibv_mr* mr, struct mrlab_reg_mr_resp* stages);

#ifdef __cplusplus
}
#endif

#endif /* MRLABDV_H */
