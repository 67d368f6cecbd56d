/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Received messages. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_RECV_H
#define BTL_OPENIB_RECV_H

#include "btl_openib_types.h"

/* `qpn`: of the queue pair, as the completion names it; tells the sender on a shared queue. */
void ofo_recv_handle(ofo_module_t *module, ofo_recv_t *recv, uint32_t length, uint32_t qpn);
/* A message that arrived, checked for length: its credits and its payload. `length` with the header. */
void ofo_recv_message(ofo_module_t *module, ofo_qpset_t *qps, ofo_data_hdr_t *hdr, uint32_t length);
/* iWARP: one was received, and service keeps it for progress. Context: service, inside the poll lock. */
void ofo_recv_kept(ofo_module_t *module, const ofo_recv_t *recv, uint32_t qpn);
/* Payload to the callback of its tag. */
void ofo_recv_deliver(ofo_module_t *module, uint8_t tag, void *bytes, size_t length);
/* The queue pair a receive came by; NULL: none we know. */
ofo_qp_t *ofo_recv_qp(ofo_module_t *module, const ofo_recv_t *recv, uint32_t qpn);
/* Work and scatter entry of a buffer; it is then posted by its `wr` for good. `qps` NULL: of a shared queue. */
void ofo_recv_init(ofo_recv_t *recv, ofo_qpset_t *qps, unsigned index, void *buffer, uint32_t size, uint32_t lkey);
static inline void ofo_recv_collect(ofo_recv_chain_t *chain, ofo_recv_t *recv)
{
    recv->wr.next = NULL;
    if (0 == chain->count) {
        chain->first = recv;
    } else {
        chain->last->wr.next = &recv->wr;
    }
    chain->last = recv;
    ++chain->count;
}
/* The chain is empty then; or what verbs do not take now stays in it and is not counted. Returns how many were taken. */
uint32_t ofo_recv_post_chain(ofo_recv_chain_t *chain, struct ibv_qp *qp, struct ibv_srq *srq);

#endif /* BTL_OPENIB_RECV_H */
