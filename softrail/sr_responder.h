/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The receiving side of a queue pair. The process that sends runs it.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_RESPONDER_H
#define SR_RESPONDER_H

#include "sr_objects.h"

/* Answers below zero mean "not now" or "no answer"; those above zero are the wc status that the requester gets. */
enum { SR_ANSWER_OK = 0, SR_ANSWER_RNR = -1, SR_ANSWER_BUSY = -2, SR_ANSWER_LOST = -3 };
int sr_respond(struct sr_peer *peer, struct sr_qp_shm *remote, struct sr_qp *qp, struct sr_wqe *wqe);

/* Puts the target's queue pair into the error state as if it broke by itself, but only if it would accept the message. */
void sr_respond_break(struct sr_peer *peer, struct sr_qp_shm *remote, const struct sr_qp *qp, const struct sr_wqe *wqe);

#endif /* SR_RESPONDER_H */
