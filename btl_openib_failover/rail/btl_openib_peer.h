/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Peers and their endpoints. See DESIGN.txt 15.2.
 */
#ifndef BTL_OPENIB_PEER_H
#define BTL_OPENIB_PEER_H

#include "types/btl_openib_types.h"

/* The peer of that name, made if we do not know it yet; NULL if it has no rail to us. Locks: takes peers_lock. Service passes no `proc`,
 * because only progress may use Open MPI's table of processes; OFO_MAIL_MET asks progress to set it later. */
ofo_peer_t *ofo_peer_get(const opal_process_name_t *name, opal_proc_t *proc);
/* The peer if it is known already. Any thread. */
ofo_peer_t *ofo_peer_find(uint32_t jobid, uint32_t vpid);
void ofo_peers_free(void);

#endif /* BTL_OPENIB_PEER_H */
