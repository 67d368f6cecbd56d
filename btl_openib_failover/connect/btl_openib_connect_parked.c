/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The passive side of rdmacm. A set of queue pairs comes as one connect for each, and the rail's machine gets the REQ when
 * all are here. Until it has decided they are parked in a list of the module. The service thread's timer rejects a connect
 * that waits too long for the others of its set. Context: service. See DESIGN.txt 15.3.
 */
#include "connect/btl_openib_connect_parked.h"

#include "bfo_assert.h"

#include <stdlib.h>

/* An incoming connect for one queue pair. */
typedef struct ofo_cm_parked {
    struct ofo_cm_parked *next;
    struct rdma_cm_id *id;
    ofo_ctl_t ctl;  /* the REQ it brought */
    uint64_t since; /* ms */
} parked_t;

static bool is_for(const parked_t *parked, const ofo_endpoint_t *ep, uint16_t gen)
{
    return parked->ctl.jobid == ep->peer->name.jobid && parked->ctl.vpid == ep->peer->name.vpid && parked->ctl.rail == ep->rail
           && parked->ctl.gen == gen;
}

static bool same_request(const ofo_ctl_t *a, const ofo_ctl_t *b)
{
    return a->jobid == b->jobid && a->vpid == b->vpid && a->src_inc == b->src_inc && a->rail == b->rail && a->gen == b->gen;
}

/* Takes the connect at this place out of the list and rejects it. */
static void reject(parked_t **at, const uint8_t *data, size_t length)
{
    parked_t *parked = *at;

    *at = parked->next;
    rdma_reject(parked->id, data, (uint8_t) length);
    rdma_destroy_id(parked->id);
    free(parked);
}

bool ofo_parked_add(ofo_module_t *module, struct rdma_cm_id *id, const ofo_ctl_t *ctl, uint64_t now)
{
    parked_t *parked = calloc(1, sizeof(*parked)), **at = &module->cm.parked;
    unsigned count = 1;

    if (NULL == parked) {
        rdma_reject(id, NULL, 0);
        rdma_destroy_id(id);
        return false;
    }
    while (NULL != *at) {
        bool same = same_request(&(*at)->ctl, ctl);
        if (same && (*at)->ctl.qp_index == ctl->qp_index) {
            reject(at, NULL, 0);
        } else {
            count += same;
            at = &(*at)->next;
        }
    }
    BFO_ASSERT(NULL == module->cm.parked || module->cm.parked->since <= now); /* the latest is the first */
    *parked = (parked_t){.id = id, .ctl = *ctl, .since = now, .next = module->cm.parked};
    module->cm.parked = parked;
    return count == ctl->nqp;
}

void ofo_parked_reject(ofo_endpoint_t *ep, uint16_t gen, const uint8_t *data, size_t length)
{
    parked_t **at = &ep->module->cm.parked;

    while (NULL != *at) {
        if (is_for(*at, ep, gen)) {
            reject(at, data, length);
        } else {
            at = &(*at)->next;
        }
    }
}

struct rdma_cm_id *ofo_parked_take(ofo_endpoint_t *ep, uint16_t gen, unsigned *index)
{
    for (parked_t **at = &ep->module->cm.parked; NULL != *at; at = &(*at)->next) {
        parked_t *parked = *at;
        if (is_for(parked, ep, gen)) {
            struct rdma_cm_id *id = parked->id;
            *index = parked->ctl.qp_index;
            *at = parked->next;
            free(parked);
            return id;
        }
    }
    return NULL;
}

void ofo_parked_drop(ofo_module_t *module, const struct rdma_cm_id *id)
{
    for (parked_t **at = &module->cm.parked; NULL != *at; at = &(*at)->next) {
        parked_t *parked = *at;
        if (parked->id == id) {
            *at = parked->next;
            rdma_destroy_id(parked->id);
            free(parked);
            return;
        }
    }
}

uint64_t ofo_parked_expire(ofo_module_t *module, uint64_t now)
{
    parked_t **at = &module->cm.parked;
    uint64_t next = 0;

    while (NULL != *at) {
        uint64_t due = (*at)->since + OFO_PARKED_MS;
        if (due <= now) {
            reject(at, NULL, 0);
        } else {
            next = 0 == next || due < next ? due : next;
            at = &(*at)->next;
        }
    }
    BFO_ASSERT(0 == next || now < next); /* otherwise service would call again without end */
    return next;
}

void ofo_parked_free(ofo_module_t *module)
{
    while (NULL != module->cm.parked) {
        reject(&module->cm.parked, NULL, 0);
    }
}
