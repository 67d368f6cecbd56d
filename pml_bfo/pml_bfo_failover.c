/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Symptoms of failure. In this stage of the product a lost rail is taken out of use, what needs no request
 * is sent again on another one, and a peer whose transfer was torn is declared unreachable: its requests
 * end with MPI_ERR_OTHER and the job goes on. DESIGN.txt sections 11 and 14.6.
 */
#include "pml_bfo.h"

#include "bfo_help.h"
#include "pml_bfo_component.h"
#include "pml_bfo_failover.h"
#include "pml_bfo_params.h"
#include "pml_bfo_pending.h"
#include "pml_bfo_rails.h"
#include "pml_bfo_recv.h"
#include "pml_bfo_send.h"
#include "pml_bfo_show.h"
#include "pml_bfo_stats.h"

#include "orte/util/name_fns.h"
#include "opal/util/output.h"

#if PML_BFO
static void sendi_failed(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_tag_t tag,
                         const void *data, size_t length, int status);
#endif

/* ---- is failover in force? ------------------------------------------------------------------------- */

bfo_btl_ext_t *bfo_failover_adopt(mca_btl_base_module_t *btl)
{
#if PML_BFO
    if (BFO_BTL_EXT_OK == bfo_btl_ext_check(btl)) {
        bfo.failover_component = btl->btl_component;
        ++bfo.n_failover_btls;
        bfo_btl_ext(btl)->failed_frag = sendi_failed;
        return bfo_btl_ext(btl);
    }
#endif
    return NULL;
}

#if PML_BFO
static const char *reason_of(mca_btl_base_module_t *btl, char *room, size_t size)
{
    const char *name = btl->btl_component->btl_version.mca_component_name;

    switch (bfo_btl_ext_check(btl)) {
    case BFO_BTL_EXT_OTHER_COMPONENT:
        snprintf(room, size, "the BTL %s has no failover", name);
        break;
    case BFO_BTL_EXT_NO_MAGIC:
        snprintf(room, size, "this BTL %s is not the one of bfo, or was built without failover", name);
        break;
    case BFO_BTL_EXT_WRONG_VERSION:
        snprintf(room, size, "this BTL %s speaks another version of the interface than this PML", name);
        break;
    default:
        return NULL;
    }
    return room;
}
#endif

/* A peer on this node is reached through memory, which does not fail. */
static bool cannot_fail(const mca_btl_base_module_t *btl)
{
    const char *name = btl->btl_component->btl_version.mca_component_name;

    return 0 == strcmp(name, "self") || 0 == strcmp(name, "vader") || 0 == strcmp(name, "sm");
}

void bfo_failover_announce(const bfo_peer_t *peer)
{
    static bool said;
    const char *reason = "the PML was built without failover (configure --disable-pml-failover)";
    const char *remedy = "Build bfo with --enable-pml-failover to have it.";
#if PML_BFO
    char room[128];
#endif

    if (said || !bfo_params.warn_no_failover || cannot_fail(peer->rails[0].btl)) {
        return;
    }
#if PML_BFO
    remedy = "Failover needs the BTL openib of bfo on every rail: put its directory in front of\n"
             "mca_base_component_path and give --mca btl openib,vader,self.";
    reason = NULL;
    for (uint8_t r = 0; r < peer->n_rails && NULL == reason; ++r) {
        reason = reason_of(peer->rails[r].btl, room, sizeof(room));
    }
    if (NULL == reason && peer->n_rails < 2) {
        reason = "there is only one rail to at least one other process";
        remedy = "Failover needs two: a second port in both machines.";
    }
#endif
    if (NULL == reason) {
        return;
    }
    said = true;
    bfo_help_say("help-pml-bfo.txt", "no-failover", OPAL_PROC_MY_HOSTNAME, reason, remedy);
}

uint8_t bfo_failover_write_order(const bfo_peer_t *peer, uint8_t rail)
{
    return MCA_BTL_NO_ORDER;
}

/* ---- rails and peers ------------------------------------------------------------------------------- */

void bfo_failover_rail_lost(bfo_peer_t *peer, uint8_t rail, const char *cause)
{
    bfo_stat_add(BFO_STAT_ERRORS, 1);
    if (rail >= BFO_MAX_RAILS || !bfo_rail_take_down(peer, rail)) {
        return;
    }
    bfo_stat_add(BFO_STAT_RAILS_LOST, 1);
    opal_output(0, "bfo: rail %d (%s) to %s lost: %s, %d left", rail,
                peer->rails[rail].btl->btl_component->btl_version.mca_component_name,
                OPAL_NAME_PRINT(peer->proc->super.proc_name), cause, __builtin_popcount(peer->send_mask));
    if (0 == peer->send_mask) {
        bfo_failover_declare(peer, rail, cause);
    }
}

void bfo_failover_btl_error(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *info)
{
    const char *cause = NULL == info ? "the BTL reports an error" : info;
    ompi_proc_t *each;

    if (NULL != proc) {
        bfo_peer_t *peer = bfo_peer_get((ompi_proc_t *) proc);

        if (NULL != peer && peer->ready) {
            bfo_failover_rail_lost(peer, bfo_rail_index(peer, btl), cause);
        }
        return;
    }
    OPAL_LIST_FOREACH(each, &ompi_proc_list, ompi_proc_t) {
        bfo_peer_t *peer = each->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];

        if (NULL != peer && peer->ready) {
            bfo_failover_rail_lost(peer, bfo_rail_index(peer, btl), cause);
        }
    }
}

void bfo_failover_declare(bfo_peer_t *peer, uint8_t rail, const char *cause)
{
    char name[80] = "none";

    if (__atomic_exchange_n(&peer->declared, true, __ATOMIC_SEQ_CST)) {
        return;
    }
    bfo_stat_add(BFO_STAT_PEERS_LOST, 1);
    if (rail < peer->n_rails) {
        snprintf(name, sizeof(name), "%d (%s)", rail,
                 peer->rails[rail].btl->btl_component->btl_version.mca_component_name);
    }
    bfo_help_say("help-pml-bfo.txt", "peer-lost", OPAL_PROC_MY_HOSTNAME,
                   OPAL_NAME_PRINT(peer->proc->super.proc_name), name, cause);
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        (void) bfo_rail_take_down(peer, r);
    }
    for (uint32_t i = 0; i < bfo_load(&bfo.sends.size); ++i) {
        bfo_send_t *req = bfo_container(bfo_ids_at(&bfo.sends, i), bfo_send_t, name);

        bfo_send_get(req);
        if (bfo_send_state_is_open(bfo_se_state(bfo_se_load(&req->m))) && req->lane->peer == peer) {
            bfo_send_fail(req, MPI_ERR_OTHER);
        }
        bfo_send_put(req);
    }
    for (uint32_t i = 0; i < bfo_load(&bfo.recvs.size); ++i) {
        bfo_recv_t *req = bfo_container(bfo_ids_at(&bfo.recvs, i), bfo_recv_t, name);

        bfo_recv_get(req);
        if (bfo_recv_state_is_open(bfo_se_state(bfo_se_load(&req->m))) && NULL != req->lane && req->lane->peer == peer) {
            bfo_recv_fail(req, MPI_ERR_OTHER);
        }
        bfo_recv_put(req);
    }
}

/* ---- error completions ----------------------------------------------------------------------------- */

void bfo_failover_rts_failed(bfo_send_t *req, uint8_t rail, int status)
{
    bfo_peer_t *peer = req->lane->peer;

    bfo_failover_rail_lost(peer, rail, "a first fragment came back with an error");
    /* lost or delivered: the receiver drops a second copy by its number */
    if (!peer->declared && OPAL_ERR_FATAL != status && !req->resp && BFO_MSG_RGET != req->rts_type
        && OMPI_SUCCESS == bfo_send_post_first(req)) {
        bfo_stat_add(BFO_STAT_RESENDS, 1);
        return;
    }
    if (req->resp) {
        req->rts_done = true;
        (void) bfo_add_size(&req->bytes, req->rts_length);
        return;
    }
    bfo_send_fail(req, MPI_ERR_OTHER);
    bfo_failover_declare(peer, rail, "a first fragment could not be sent again");
}

void bfo_failover_data_failed(bfo_send_t *req, uint8_t rail, int status)
{
    bfo_peer_t *peer = req->lane->peer;

    bfo_failover_rail_lost(peer, rail, "a data fragment came back with an error");
    bfo_send_fail(req, MPI_ERR_OTHER);
    bfo_failover_declare(peer, rail, "a message was torn and cannot be restarted yet");
}

void bfo_failover_answer_failed(bfo_recv_t *req, uint8_t rail, int status)
{
    bfo_peer_t *peer = req->lane->peer;

    bfo_failover_rail_lost(peer, rail, "an answer came back with an error");
    bfo_recv_fail(req, MPI_ERR_OTHER);
    bfo_failover_declare(peer, rail, "a message was torn and cannot be restarted yet");
}

/* What can be sent again without knowing its request. A second MATCH is dropped by its number, a second FIN by the
 * generation of its fragment. The FIN of a WRITE must not pass the fence of the rail that carried the WRITE. */
static bool is_resendable(const bfo_hdr_t *h)
{
    return BFO_MSG_MATCH == h->common.type
           || (BFO_MSG_FIN == h->common.type && 0 == (h->fin.fflags & BFO_FIN_WRITE));
}

void bfo_failover_ctl_failed(bfo_peer_t *peer, uint8_t rail, const void *header, size_t length, int status)
{
    bfo_failover_rail_lost(peer, rail, "a message came back with an error");
    if (peer->declared) {
        return;
    }
    if (OPAL_ERR_FATAL != status && is_resendable(header)
        && OMPI_SUCCESS == bfo_ctl_send(peer, BFO_ANY_PATH, header, length, NULL, NULL)) {
        bfo_stat_add(BFO_STAT_RESENDS, 1);
        return;
    }
    bfo_failover_declare(peer, rail, "a message could not be sent again");
}

#if PML_BFO
/* A fragment of btl_sendi failed: the BTL hands back its bytes. */
static void sendi_failed(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_tag_t tag,
                         const void *data, size_t length, int status)
{
    ompi_proc_t *proc;

    OPAL_LIST_FOREACH(proc, &ompi_proc_list, ompi_proc_t) {
        bfo_peer_t *peer = proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];
        const uint8_t rail = NULL == peer || !peer->ready ? BFO_MAX_RAILS : bfo_rail_index(peer, btl);

        if (BFO_MAX_RAILS != rail && peer->rails[rail].endpoint == endpoint) {
            bfo_failover_ctl_failed(peer, rail, data, length, status);
            return;
        }
    }
}
#endif
