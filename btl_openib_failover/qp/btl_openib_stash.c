/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Completions that service polls in the place of progress are kept here for progress. See DESIGN.txt 15.1.
 */
#include "qp/btl_openib_stash.h"

#include "qp/btl_openib_heard.h"
#include "types/btl_openib_atomic.h"
#include "types/btl_openib_lock.h"
#include "formats/btl_openib_qpmap.h"

#include <stdlib.h>

/* Makes room for one more completion before it is polled. */
static bool stash_has_room(ofo_module_t *module)
{
    unsigned size = 0 == module->stash_size ? 64 : 2 * module->stash_size;
    struct ibv_wc *grown;

    if (module->stash_count < module->stash_size) {
        return true;
    }
    grown = realloc(module->stash, size * sizeof(*grown));
    if (NULL == grown) {
        return false;
    }
    module->stash = grown;
    module->stash_size = size;
    return true;
}

bool ofo_poll_and_keep(ofo_module_t *module)
{
    struct ibv_wc wc;

    if (!ofo_poll_try_lock(module)) {
        return false; /* progress polls */
    }
    ofo_qpmap_trim(&module->qpmap);
    for (int c = 0; c < module->cq_count; ++c) {
        while (stash_has_room(module) && 0 < ibv_poll_cq(module->cq[c], 1, &wc)) {
            ofo_work_t *work = (ofo_work_t *) (uintptr_t) wc.wr_id;
            if (IBV_WC_SUCCESS == wc.status && OFO_WORK_PROVE == work->kind) {
                ofo_proof_completed(work->qps);
            } else {
                BFO_ASSERT(module->stash_count < module->stash_size);
                module->stash[module->stash_count++] = wc;
            }
            if (module->transport->acceptor_listens && !OFO_LOAD(OFO.closing) && IBV_WC_SUCCESS == wc.status && OFO_WORK_RECV == work->kind) {
                ofo_recv_kept(module, (ofo_recv_t *) ((uint8_t *) work - offsetof(ofo_recv_t, work)), wc.qp_num);
            }
        }
    }
    ofo_poll_unlock(module);
    return true;
}

bool ofo_poll_and_forget(const ofo_qpset_t *qps)
{
    ofo_module_t *module = qps->module;
    unsigned kept = 0;

    if (!ofo_poll_and_keep(module) || !ofo_poll_try_lock(module)) {
        return false;
    }
    for (unsigned i = 0; i < module->stash_count; ++i) {
        if (qps != ((const ofo_work_t *) (uintptr_t) module->stash[i].wr_id)->qps) {
            module->stash[kept++] = module->stash[i];
        }
    }
    BFO_ASSERT(kept <= module->stash_count);
    module->stash_count = kept;
    ofo_poll_unlock(module);
    return true;
}
