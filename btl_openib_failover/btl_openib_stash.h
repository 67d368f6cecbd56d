/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Completions that service takes and keeps for progress. See DESIGN.txt 15.1.
 */
#ifndef BTL_OPENIB_STASH_H
#define BTL_OPENIB_STASH_H

#include "bfo_assert.h"
#include "btl_openib_mail.h"
#include "btl_openib_types.h"

/* The WRITE that proves a queue pair: service counts them, whoever reaps. */
static inline void ofo_proof_completed(ofo_qpset_t *qps)
{
    const int32_t left = __atomic_sub_fetch(&qps->proving, 1, __ATOMIC_SEQ_CST);

    BFO_ASSERT(0 <= left);
    if (0 == left) {
        ofo_tell_service(qps->ep, OFO_MAIL_PROVED, qps->gen, NULL, NULL);
    }
}
/* Takes completions from the CQs, because a set proves itself or is about to be destroyed with what is in them: proofs
 * are counted, all else is kept for progress in order. False: progress is at it. Context: service. */
bool ofo_poll_and_keep(ofo_module_t *module);
/* iWARP: receives of queue pairs that are destroyed come back all the same. They are kept and those of the set thrown away,
 * before its memory goes. False: progress is at it. Context: service. */
bool ofo_poll_and_forget(const ofo_qpset_t *qps);

#endif /* BTL_OPENIB_STASH_H */
