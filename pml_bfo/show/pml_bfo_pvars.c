/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * MPI_T performance variables, named pml_bfo_*: the counters, and the lengths of a communicator's queues. DESIGN.txt section 14.9.
 */
#include "types/pml_bfo.h"

#include "tables/pml_bfo_failover_fsm.h"
#include "types/pml_bfo_local.h"
#include "show/pml_bfo_pvars.h"
#include "show/pml_bfo_pvars_ports.h"

#include "opal/mca/base/mca_base_pvar.h"

#include <string.h>

/* ---- counters ------------------------------------------------------------------------------------------ */

/* The two times are no sums: they may go back to 0, and all threads keep them in one place. */
static bool is_sum(int s)
{
    return BFO_STAT_ERROR_AT != s && BFO_STAT_RESUMED_AT != s;
}

static int read_stat(const mca_base_pvar_t *pvar, void *value, void *object)
{
    *(unsigned long long *) value = bfo_local_stat((bfo_stat_t) (intptr_t) pvar->ctx);
    return OPAL_SUCCESS;
}

/* ---- lengths of a communicator's queues, one value per rank that can send to us ----------------------- */

static int queues_notify(mca_base_pvar_t *pvar, mca_base_pvar_event_t event, void *object, int *count)
{
    if (MCA_BASE_PVAR_HANDLE_BIND == event) {
        *count = (int) bfo_comm_of(object)->size;
    }
    return OPAL_SUCCESS;
}

/* Receives from any source belong to no rank and do not count. Reads without locks, as pml_dump does. */
static int read_posted(const mca_base_pvar_t *pvar, void *value, void *object)
{
    const uint32_t size = bfo_comm_of(object)->size;
    unsigned *length = value;

    memset(length, 0, size * sizeof(*length));
    for (uint32_t i = 0; i < bfo_load(&bfo.recvs.size); ++i) {
        const bfo_recv_t *req = bfo_container(bfo_ids_at(&bfo.recvs, i), bfo_recv_t, name);
        const mca_pml_base_request_t *base = &req->req_recv.req_base;

        if (BFO_RECV_UNMATCHED == bfo_se_state(req->m.se) && base->req_comm == object && (uint32_t) base->req_peer < size) {
            ++length[base->req_peer];
        }
    }
    return OPAL_SUCCESS;
}

static int read_unexpected(const mca_base_pvar_t *pvar, void *value, void *object)
{
    bfo_comm_t *bc = bfo_comm_of(object);

    memset(value, 0, bc->size * sizeof(unsigned));
    bfo_lock(&bc->lock);
    bfo_match_count_unexpected(&bc->match, value, bc->size);
    bfo_unlock(&bc->lock);
    return OPAL_SUCCESS;
}

static void register_queue(const char *name, const char *text, mca_base_get_value_fn_t read)
{
    (void) mca_base_component_pvar_register(&mca_pml_bfo_component.pmlm_version, name, text, OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_SIZE,
                                            MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, MCA_BASE_VAR_BIND_MPI_COMM,
                                            MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, read, NULL, queues_notify, NULL);
}

void bfo_pvars_register(void)
{
    bfo_pvars_register_ports();
    register_queue("posted_recvq_length", "receives posted for each rank of a communicator and not matched; without those from any source",
                   read_posted);
    register_queue("unexpected_msgq_length", "messages from each rank of a communicator that no receive has taken", read_unexpected);
    for (int i = 0; i < BFO_STAT_COUNT; ++i) {
        (void) mca_base_component_pvar_register(
            &mca_pml_bfo_component.pmlm_version, bfo_stat_name(i), bfo_stat_text(i), OPAL_INFO_LVL_4,
            is_sum(i) ? MCA_BASE_PVAR_CLASS_COUNTER : MCA_BASE_PVAR_CLASS_GENERIC, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
            MCA_BASE_VAR_BIND_NO_OBJECT, MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, read_stat, NULL, NULL, (void *) (intptr_t) i);
    }
}
