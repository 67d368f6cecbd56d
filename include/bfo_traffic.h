/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What a module of a BTL has carried for this process. The BTL counts what it posts and what arrives. The PML counts the peer's RDMA,
 * because only the PML hears of it. The PML moves the counters into its file of figures, so that a tool can read them at any
 * time without a copy. This header needs no header of Open MPI. DESIGN.txt section 19.1.
 */
#ifndef BFO_TRAFFIC_H
#define BFO_TRAFFIC_H

#include <stdint.h>

/* Sums since the module was made. A message sent again counts again. Bytes are those of messages with the headers of PML and BTL. */
typedef struct {
    uint64_t sent_messages, sent_bytes;
    uint64_t received_messages, received_bytes;
    uint64_t written_bytes, read_bytes;           /* by RDMA of this process, in the peer's memory */
    uint64_t peer_written_bytes, peer_read_bytes; /* by RDMA of the peer, in this process's memory */
} bfo_traffic_t;

/* `is_shared`: several threads may add to this counter at once. */
static inline void bfo_traffic_add(uint64_t *counter, uint64_t n, int is_shared)
{
    if (is_shared) {
        (void) __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
    } else {
        __atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED); /* atomic, because a tool may read it */
    }
}

#endif /* BFO_TRAFFIC_H */
