/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Where an event of a set of queue pairs meets its row. Each action is a C function of the row's name, defined in the room that owns
 * it: who raises an event of a room further up does not know that room. See DESIGN.txt 10.3.
 */
#ifndef BTL_OPENIB_DRAIN_H
#define BTL_OPENIB_DRAIN_H

#include "btl_openib_types.h"

/* `why`: text for the PML, or NULL. */
#define ACTION(name) void ofo_drain_act_##name(ofo_qpset_t *qps, const char *why);
#include "btl_openib_drain.def"

/* Takes the event's row and runs the action. False: the cell is empty. Locks: ep->lock held, or not, as the event says in
 * btl_openib_drain.def. Context: progress, in MPI or by service in its place; the poll lock held for each event that is not HELD. */
bool ofo_drain_raise(ofo_qpset_t *qps, ofo_drain_event_t event, const char *why);

/* The set failed: refuse posts, tell PML and service. Context: progress, no lock held. */
void ofo_rail_failed(ofo_qpset_t *qps, const char *why);
/* iWARP: the peer closed the connection. Context: progress, no lock held. */
void ofo_rail_closed(ofo_qpset_t *qps);

#endif /* BTL_OPENIB_DRAIN_H */
