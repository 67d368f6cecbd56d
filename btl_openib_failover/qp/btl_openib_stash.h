/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Completions that service polls and keeps for progress. See DESIGN.txt 15.1.
 */
#ifndef BTL_OPENIB_STASH_H
#define BTL_OPENIB_STASH_H

#include "bfo_assert.h"
#include "types/btl_openib_mail.h"
#include "types/btl_openib_types.h"

/* A WRITE that proves a queue pair completed, polled by service or by progress. Service is notified after the last one of the set. */
static inline void ofo_proof_completed(ofo_qpset_t *qps)
{
    const int32_t left = __atomic_sub_fetch(&qps->proving, 1, __ATOMIC_SEQ_CST);

    BFO_ASSERT(0 <= left);
    if (0 == left) {
        ofo_tell_service(qps->ep, OFO_MAIL_PROVED, qps->gen, NULL, NULL);
    }
}
/* Polls the completion queues, because a set proves itself, or because its completions would be lost when it is destroyed. Proofs are counted;
 * all others are kept for progress, in their order. False if progress polls at the moment. Context: service. */
bool ofo_poll_and_keep(ofo_module_t *module);
/* For transport->keeps_dead: receives of a destroyed queue pair still complete. Polls the completion queues, throws completions of this set away
 * before its memory is freed, and keeps the others. False if progress polls at the moment. Context: service. */
bool ofo_poll_and_forget(const ofo_qpset_t *qps);

#endif /* BTL_OPENIB_STASH_H */
