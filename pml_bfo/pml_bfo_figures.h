/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The file of figures that this process keeps for the command bfo. Nothing here is called on the way of a message. Any thread;
 * without a file each call returns at once. DESIGN.txt section 19.
 */
#ifndef PML_BFO_FIGURES_H
#define PML_BFO_FIGURES_H

#include "bfo_figures.h"
#include "pml_bfo_types.h"

/* Makes the file, if pml_bfo_status_dir does not forbid it. Whatever fails, the job goes on without. */
void bfo_figures_open(void) BFO_COLD;
/* The end: removes it. */
void bfo_figures_close(void) BFO_COLD;

/* The rails of a peer are known. `missing`: why a lost rail would not be survived, or NULL. `memory`: it is reached through memory,
 * which does not fail. Locks: bfo.lock, so this is told before any loss of these rails. */
void bfo_figures_connected(bfo_peer_t *peer, const char *missing, bool memory) BFO_COLD;
/* A rail to a peer is out of use since this moment. `told`: with its port, which bfo_figures_port_down() wrote down. */
void bfo_figures_rail_lost(bfo_peer_t *peer, uint8_t rail, const char *cause, bool told) BFO_COLD;
/* It is in use again. */
void bfo_figures_rail_back(bfo_peer_t *peer, uint8_t rail) BFO_COLD;
/* The device says that a port is down. */
void bfo_figures_port_down(mca_btl_base_module_t *btl, const char *cause) BFO_COLD;
/* A peer is given up; its rails that are still in use are taken down after this. */
void bfo_figures_peer_lost(bfo_peer_t *peer, const char *cause) BFO_COLD;
/* What became of a wish for a parameter that may change, and the value that it has now. */
void bfo_figures_parameter(uint32_t parameter, int64_t value, const char *what) BFO_COLD;
/* All wishes of the list of that number are obeyed or refused. */
void bfo_figures_obeyed(uint64_t number) BFO_COLD;
/* A port that stands out: how far its rails are; NULL: it is given back. */
typedef struct {
    uint32_t kept, draining, drained; /* rails, as in bfo_figures_port_t */
} bfo_drained_t;
void bfo_figures_out(const char *port, const bfo_drained_t *rails) BFO_COLD;
/* A message to the peer is sent again. */
void bfo_figures_resent(const bfo_peer_t *peer) BFO_COLD;
/* No rail to the peer is left, and its requests wait; or they wait no more. */
void bfo_figures_waits(bfo_peer_t *peer, bool waits) BFO_COLD;
/* Looks at the penalties of rails, if any was ever lost. Called now and then. */
void bfo_figures_refresh(void) BFO_COLD;
/* The figures as they are, for MPI_T: never NULL. Read without locks. */
const bfo_figures_t *bfo_figures_now(void) BFO_COLD;

#endif /* PML_BFO_FIGURES_H */
