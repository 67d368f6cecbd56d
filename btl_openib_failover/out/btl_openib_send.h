/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Messages to a peer. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_SEND_H
#define BTL_OPENIB_SEND_H

#include "types/btl_openib_types.h"

int ofo_send(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, mca_btl_base_descriptor_t *des, mca_btl_base_tag_t tag);
int ofo_sendi(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, struct opal_convertor_t *convertor, void *header, size_t header_size,
              size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor);
/* Posts the endpoint's waiting messages and RDMA operations while there are slots and credits. Locks: takes ep->lock. Context: progress
 * or a post. */
void ofo_pending_flush(ofo_endpoint_t *ep);
/* As ofo_pending_flush(), for a set whose gate is not open yet. Locks: ep->gate_lock and ep->lock held. */
void ofo_pending_post(ofo_endpoint_t *ep, ofo_qpset_t *qps);
/* Returns the credits that are due on the queue pairs of a set whose gate is not open yet. Locks: ep->gate_lock and ep->lock held. */
void ofo_credits_post(ofo_endpoint_t *ep, ofo_qpset_t *qps);
/* Sends a message that returns credits, if it is due. Locks: takes ep->lock. */
void ofo_credits_return(ofo_endpoint_t *ep, ofo_qpset_t *qps, unsigned index);

/* Sends a message of the BTL itself, without a callback. If it fails the fragment stays the caller's. */
int ofo_send_own(ofo_endpoint_t *ep, ofo_frag_t *frag, uint8_t tag);

#endif /* BTL_OPENIB_SEND_H */
