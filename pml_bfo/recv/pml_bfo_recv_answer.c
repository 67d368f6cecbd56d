/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The answers of a receive: ACK, and the sending of a PUT. DESIGN.txt section 14.3.
 */
#include "types/pml_bfo.h"

#include "tables/pml_bfo_failover_fire.h"
#include "failover/pml_bfo_failover_errors.h"
#include "rails/pml_bfo_pending.h"
#include "rails/pml_bfo_rails.h"
#include "recv/pml_bfo_recv_answer.h"
#include "ends/pml_bfo_recv_complete.h"

/* An ACK or PUT has completed, or failed. */
static void answer_completed(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_descriptor_t *des, int status)
{
    bfo_recv_t *req = des->des_cbdata;

    BFO_ASSERT(0 < bfo_events_load(&req->m)); /* that of the answer */
    if (bfo_unlikely(OPAL_SUCCESS != status)) {
        bfo_failover_answer_failed(req, bfo_rail_index(req->lane->peer, btl), status);
        return;
    }
    if (!bfo_recv_fire_at(&req->m, BFO_SEEN(&req->m), BFO_REV_RESPONSE_OK, bfo_threads, req, NULL)) {
        BFO_ASSERT(0 != (req->life & BFO_LIFE_ABANDONED)); /* the BTL of a process that passes for failed may still return the answer */
    }
    bfo_recv_put(req);
}

int bfo_recv_answer(bfo_recv_t *req, bfo_path_t path, const void *header, size_t length)
{
    int rc;

    bfo_recv_get(req);
    rc = bfo_ctl_send(req->lane->peer, path, header, length, answer_completed, req);
    if (bfo_unlikely(OMPI_ERR_OUT_OF_RESOURCE == rc)) {
        bfo_recv_unget(req);
    } else if (bfo_unlikely(OMPI_SUCCESS != rc)) {
        bfo_failover_answer_failed(req, BFO_MAX_RAILS, OPAL_ERROR); /* takes the event */
    }
    return rc;
}

/* Asks the sender for everything from `next` on. */
static int ack_post(bfo_recv_t *req)
{
    bfo_ack_hdr_t ack;

    BFO_ASSERT(req->next <= req->length); /* the sender would refuse another range */
    bfo_hdr_pack_ack(&ack, bfo_se_epoch(req->m.se), req->src_id, bfo_name_id(&req->name), req->next, req->length - req->next);
    return bfo_recv_answer(req, BFO_ANY_PATH, &ack, sizeof(ack));
}

/* There was no memory to queue the ACK itself. Therefore the request's own work is queued, which no PUT or READ needs in this attempt. */
static int ack_retry(bfo_work_t *work)
{
    bfo_recv_t *req = bfo_container(work, bfo_recv_t, work);

    if (BFO_RECV_ACTIVE == bfo_se_state(bfo_se_load(&req->m)) && OMPI_ERR_OUT_OF_RESOURCE == ack_post(req)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    bfo_recv_put(req);
    return OMPI_SUCCESS;
}

void bfo_recv_ask(bfo_recv_t *req, size_t offset)
{
    BFO_ASSERT(bfo_threads || 0 == req->open); /* no PUT or READ brings bytes that come as FRAGs now; another thread may be giving up one more */
    req->next = req->end = offset;
    if (bfo_unlikely(OMPI_ERR_OUT_OF_RESOURCE == ack_post(req))) {
        bfo_recv_get(req);
        (void) bfo_work_queue(req->lane->peer, &req->work, ack_retry);
    }
}
