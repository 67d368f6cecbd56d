/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Put and get. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_RDMA_H
#define BTL_OPENIB_RDMA_H

#include "types/btl_openib_types.h"

int ofo_put(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, void *local_address, uint64_t remote_address,
            mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
            mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);
int ofo_get(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, void *local_address, uint64_t remote_address,
            mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
            mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);
/* Posts parts while there are slots. True when all parts are posted. Locks: ep->lock held. */
bool ofo_rdma_post(ofo_rdma_t *rdma, ofo_qpset_t *qps);
/* One part completed. Runs the callback after the last one. Context: progress. */
void ofo_rdma_part_done(ofo_rdma_t *rdma, int status);
/* Ends an operation whose remaining parts will not be posted. Context: progress. */
void ofo_rdma_abandon(ofo_rdma_t *rdma);

#endif /* BTL_OPENIB_RDMA_H */
