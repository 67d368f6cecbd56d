/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Tells the user, once per node, that the loss of a rail would not be survived, why, and what helps. See DESIGN.txt section 14.6.
 */
#include "rails/pml_bfo_failover_announce.h"

#include "bfo_help.h"
#include "types/pml_bfo_extension.h"
#include "show/pml_bfo_figures.h"
#include "types/pml_bfo_params.h"

/* Peers on this node are reached through memory, which does not fail. */
bool bfo_failover_cannot_fail(const mca_btl_base_module_t *btl)
{
    const char *name = btl->btl_component->btl_version.mca_component_name;

    return 0 == strcmp(name, "self") || 0 == strcmp(name, "vader") || 0 == strcmp(name, "sm") || 0 == strcmp(name, "smcuda");
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
        snprintf(room, size, "this BTL %s is not the one of bfo, was built without failover, or its rails are iWARP", name);
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

/* Why the loss of a rail to the peer would not be survived, and what helps. NULL: it would be, or the peer is reached through memory. */
static const char *what_is_missing(const bfo_peer_t *peer, const char **remedy, char *room, size_t size)
{
    const char *reason = "the PML was built without failover (configure --disable-pml-failover)";

    *remedy = "Build bfo with --enable-pml-failover to have it.";
    if (bfo_failover_cannot_fail(peer->rails[0].btl)) {
        return NULL;
    }
#if PML_BFO
    *remedy = "Failover needs the BTL openib of bfo on every rail: put its directory in front of\n"
              "mca_base_component_path and give --mca btl openib," BFO_OMPI_SHARED_MEMORY_BTL ",self.";
    reason = NULL;
    for (uint8_t r = 0; r < peer->n_rails && NULL == reason; ++r) {
        reason = reason_of(peer->rails[r].btl, room, size);
    }
    if (NULL == reason && peer->n_rails < 2) {
        reason = "there is only one rail to at least one other process";
        *remedy = "Failover needs two: a second port in both machines.";
    }
#endif
    return reason;
}

/* Rails over ports of this host that have been down since the job started. */
static unsigned late_rails(const bfo_peer_t *peer)
{
    bfo_btl_ports_t ports;
    unsigned late = 0;

    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        if (bfo_ext_name_ports(peer->rails[r].btl, NULL, &ports)) {
            late += !ports.is_up && 0 == ports.downs;
        }
    }
    return late;
}

void bfo_failover_announce(bfo_peer_t *peer)
{
    static bool said;
    char room[160];
    const char *remedy, *reason = what_is_missing(peer, &remedy, room, sizeof(room));
    const bool in_memory = bfo_failover_cannot_fail(peer->rails[0].btl);

    bfo_figures_connected(peer, reason, in_memory);
    if (NULL == reason && !in_memory && !said && peer->n_rails < 2 + late_rails(peer)) { /* failover is in force, and has nowhere to go yet */
        reason = "at most one rail to at least one other process works, because a port of this host is down";
        remedy = "The job uses the port as soon as it is active.";
    }
    if (NULL == reason || said || !bfo_params.warn_no_failover) {
        return;
    }
    said = true;
    bfo_help_say("help-pml-bfo.txt", "no-failover", OPAL_PROC_MY_HOSTNAME, reason, remedy);
}
