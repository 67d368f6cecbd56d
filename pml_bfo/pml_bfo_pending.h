/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Work that waits for resources of a BTL, and control messages, which are the most common such work.
 * Nothing aborts for lack of resources: it waits here. DESIGN.txt sections 9 and 14.4.
 */
#ifndef PML_BFO_PENDING_H
#define PML_BFO_PENDING_H

#include "pml_bfo.h"

/* Work that waits for the peer's rails: progress tries it again with `retry`. The caller has counted it in the events of its
 * request. False: it waits already, nothing was changed; the caller takes its event back. */
bool bfo_work_queue(bfo_peer_t *peer, bfo_work_t *work, int (*retry)(bfo_work_t *work));

/* The same for what is sent again after an error: it also waits until bfo_resend_may_go(peer). */
bool bfo_work_queue_resend(bfo_peer_t *peer, bfo_work_t *work, int (*retry)(bfo_work_t *work));
/* Counts one more resend to the peer; false: enough for this call of progress (pml_bfo_resend_burst). */
bool bfo_resend_may_go(bfo_peer_t *peer) BFO_COLD;
/* The peer goes: nothing of its queue is tried any more. */
void bfo_work_forget(bfo_peer_t *peer);

/* Progress function: visits each peer with work that waits once, and ends a visit after a bounded number of refusals. Returns
 * how many pieces of work got done. */
int bfo_progress(void);

/* Flags of every descriptor the PML allocates: one callback, then the BTL frees it. */
#define BFO_DES_FLAGS (MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_SEND_ALWAYS_CALLBACK)

/* Where a control message may go. */
typedef struct {
    uint8_t rail;  /* BFO_MAX_RAILS: any */
    bool bound;    /* only this rail */
    uint8_t order; /* BTL order tag, MCA_BTL_NO_ORDER */
} bfo_path_t;
#define BFO_ANY_PATH ((bfo_path_t){BFO_MAX_RAILS, false, MCA_BTL_NO_ORDER})

/* Sends a header, or for a re-send a whole first fragment, of `length` bytes, or queues a copy. `done` is called exactly once if OMPI_SUCCESS is
 * returned, possibly inside this call; with NULL the message is self-contained: sent again until one copy
 * succeeds. des_cbdata is `context`, des_context the peer.
 * Errors: OMPI_ERR_UNREACH (no rail, or the bound rail is down), OMPI_ERR_OUT_OF_RESOURCE (no memory). */
int bfo_ctl_send(bfo_peer_t *peer, bfo_path_t path, const void *header, size_t length,
                 mca_btl_base_completion_fn_t done, void *context);

/* Sends a message without request again, over any rail: now, or when its turn comes. OMPI_SUCCESS or an error. */
int bfo_ctl_resend(bfo_peer_t *peer, const void *header, size_t length) BFO_COLD;

/* Sends a FIN that nothing has to overtake or follow, by btl_sendi where there is one. As bfo_ctl_send() without `done`. */
int bfo_fin_send(bfo_peer_t *peer, const bfo_fin_hdr_t *fin);

#endif /* PML_BFO_PENDING_H */
