/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The file of figures that this process keeps for the command bfo. The path of a message calls nothing here. Context: any thread;
 * without a file each call returns at once. DESIGN.txt section 19.
 */
#ifndef PML_BFO_FIGURES_H
#define PML_BFO_FIGURES_H

#include "bfo_figures.h"
#include "types/pml_bfo_types.h"

/* Makes the file, unless pml_bfo_status_dir forbids it. If this fails, the job goes on without the file. */
void bfo_figures_open(void) BFO_COLD;
/* Removes the file at the end of the PML. */
void bfo_figures_close(void) BFO_COLD;

/* Records that the rails of a peer are known. `missing`: why the loss of a rail would not be survived, or NULL. `memory`: shared memory,
 * which does not fail, reaches the peer. Locks: bfo.lock, so this comes before any loss of these rails. */
void bfo_figures_connected(bfo_peer_t *peer, const char *missing, bool memory) BFO_COLD;
/* Records that a rail to a peer is lost from now on. `told`: together with its port, which bfo_figures_port_down() has recorded. */
void bfo_figures_rail_lost(bfo_peer_t *peer, uint8_t rail, const char *cause, bool told) BFO_COLD;
/* Records that the rail is in use again. */
void bfo_figures_rail_back(bfo_peer_t *peer, uint8_t rail) BFO_COLD;
/* Records that the device reports a port as down. */
void bfo_figures_port_down(mca_btl_base_module_t *btl, const char *cause) BFO_COLD;
/* Records that a peer is given up. Called before its rails that are still in use are taken down. */
void bfo_figures_peer_lost(bfo_peer_t *peer, const char *cause) BFO_COLD;
/* Records the result of a wish for a parameter that may change, and its value now. */
void bfo_figures_parameter(uint32_t parameter, int64_t value, const char *what) BFO_COLD;
/* Records that all wishes of the list with that number are obeyed or refused. */
void bfo_figures_obeyed(uint64_t number) BFO_COLD;
/* Records how far the rails of a port that stands out have drained; NULL: the port is back in service. */
typedef struct {
    uint32_t kept, draining, drained; /* rails, as in bfo_figures_port_t */
} bfo_drained_t;
void bfo_figures_out(const char *port, const bfo_drained_t *rails) BFO_COLD;
/* Counts a message to the peer that is sent again. */
void bfo_figures_resent(const bfo_peer_t *peer) BFO_COLD;
/* Records that the peer's requests wait because no rail to it is left, or that they no longer wait. */
void bfo_figures_waits(bfo_peer_t *peer, bool waits) BFO_COLD;
/* Reads the penalties of rails, if any rail was ever lost. Called from time to time. */
void bfo_figures_refresh(void) BFO_COLD;
/* The current figures, for MPI_T: never NULL. The caller reads them without locks. */
const bfo_figures_t *bfo_figures_now(void) BFO_COLD;

#endif /* PML_BFO_FIGURES_H */
