/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Raises the events of a set of queue pairs. Each action is a C function of the action's name, defined in the file that its work
 * belongs to. Therefore a caller can raise an event without knowing that file. See DESIGN.txt 10.3.
 */
#ifndef BTL_OPENIB_DRAIN_H
#define BTL_OPENIB_DRAIN_H

#include "types/btl_openib_types.h"

/* The actions. `why` is text for the PML, or NULL. */
#define ACTION(name) void ofo_drain_act_##name(ofo_qpset_t *qps, const char *why);
#include "tables/btl_openib_drain.def"

/* Takes the event's row and runs its action. False if there is no row. Locks: ep->lock held, or not, as the event says in
 * btl_openib_drain.def. Context: progress, in MPI or by service in its place; the poll lock is held for each event that is not HELD. */
bool ofo_drain_raise(ofo_qpset_t *qps, ofo_drain_event_t event, const char *why);

/* The set failed: refuses posts and reports to the PML and to service. Context: progress, no lock held. */
void ofo_rail_failed(ofo_qpset_t *qps, const char *why);
/* For transport->closes: the peer closed the connection. Context: progress, no lock held. */
void ofo_rail_closed(ofo_qpset_t *qps);

#endif /* BTL_OPENIB_DRAIN_H */
