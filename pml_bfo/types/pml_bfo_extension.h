/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Asks a BTL with failover: only this header calls the functions of the extension (bfo_btl_ext.h; tests/docs/tables_are_the_code.pl).
 * A rail without failover has no extension, and each function says what that means. DESIGN.txt section 4.
 */
#ifndef PML_BFO_EXTENSION_H
#define PML_BFO_EXTENSION_H

#include "types/pml_bfo.h"

/* ---- a rail ---------------------------------------------------------------------------------------- */

/* False: the rail has no failover, or its BTL does not know the peer, and *info is not set. */
static inline bool bfo_ext_rail_state(const bfo_peer_t *peer, const bfo_rail_t *rail, bfo_rail_info_t *info)
{
    return NULL != rail->ext && OPAL_SUCCESS == rail->ext->rail_state(rail->btl, &peer->proc->super, info);
}

/* Has the BTL nothing to do for the peer on this rail? True without failover, because then nobody knows. */
static inline bool bfo_ext_is_flushed(const bfo_peer_t *peer, const bfo_rail_t *rail)
{
    return NULL == rail->ext || rail->ext->flush(rail->btl, &peer->proc->super);
}

/* Does the device say that the local port is up? False without failover. */
static inline bool bfo_ext_port_is_up(const bfo_rail_t *rail)
{
    return NULL != rail->ext && rail->ext->port_is_up(rail->btl);
}

/* Asks for the fence of a generation of a rail with failover. False: its BTL does not know the rail. */
static inline bool bfo_ext_fence(const bfo_peer_t *peer, const bfo_rail_t *rail, uint8_t name, uint16_t gen)
{
    return OPAL_SUCCESS == rail->ext->fence(rail->btl, &peer->proc->super, name, gen);
}

/* The penalty of the rail for its failures; 0 without failover. */
static inline uint32_t bfo_ext_penalty(const bfo_peer_t *peer, const bfo_rail_t *rail, bool *is_held)
{
    *is_held = false;
    return NULL == rail->ext ? 0 : rail->ext->penalty(rail->btl, &peer->proc->super, is_held);
}

/* Tells the BTL that the rail takes no new work even if no other is left, or does again. Does nothing without failover. */
static inline void bfo_ext_stand_out(const bfo_peer_t *peer, const bfo_rail_t *rail, bool stands_out)
{
    if (NULL != rail->ext) {
        rail->ext->stand_out(rail->btl, &peer->proc->super, stands_out);
    }
}

/* Tells the BTL, and through it the peer, that the peer is declared. Does nothing without failover. */
static inline void bfo_ext_declare(const bfo_peer_t *peer)
{
    if (NULL != peer->rails[0].ext) {
        peer->rails[0].ext->declare(peer->rails[0].btl, &peer->proc->super);
    }
}

/* ---- a module -------------------------------------------------------------------------------------- */

/* The process that sent a fragment, from its endpoint; NULL if the module is not of the BTL with failover. */
static inline ompi_proc_t *bfo_ext_source(mca_btl_base_module_t *btl, const bfo_arrival_t *des)
{
    if (!PML_BFO || btl->btl_component != bfo.failover_component) {
        return NULL;
    }
    return (ompi_proc_t *) bfo_btl_ext(btl)->des_peer(btl, des);
}

/* Names the ports of the module's rail to the peer; only the local one if `peer` is NULL. False: the module has no names, and *ports stays. */
static inline bool bfo_ext_name_ports(mca_btl_base_module_t *btl, const bfo_peer_t *peer, bfo_btl_ports_t *ports)
{
    if (BFO_BTL_EXT_OK != bfo_btl_ext_check(btl) || NULL == bfo_btl_ext(btl)->name_ports) {
        return false;
    }
    bfo_btl_ext(btl)->name_ports(btl, NULL == peer ? NULL : &peer->proc->super, ports);
    return true;
}

/* Gives a module with failover the directory of the figures, or -1. */
static inline void bfo_ext_share(mca_btl_base_module_t *btl, int directory)
{
    bfo_btl_ext(btl)->share(btl, directory);
}

/* A module with failover offers messages of others with these tags to `take` first. */
static inline void bfo_ext_guard(mca_btl_base_module_t *btl, bfo_btl_take_frag_fn_t take, mca_btl_base_tag_t first, mca_btl_base_tag_t last)
{
    if (BFO_BTL_EXT_OK == bfo_btl_ext_check(btl)) {
        bfo_btl_ext(btl)->take_frag = take;
        bfo_btl_ext(btl)->guard(btl, first, last);
    }
}

#endif /* PML_BFO_EXTENSION_H */
