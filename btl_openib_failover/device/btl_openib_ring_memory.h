/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The memory of eager rings: slots of one size. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_RING_MEMORY_H
#define BTL_OPENIB_RING_MEMORY_H

#include "types/btl_openib_types.h"

enum { OFO_RING_QP = 0 };

/* Last 8 bytes of a slot. */
typedef struct {
    uint32_t length; /* header and payload, network byte order */
    uint8_t pad[3];
    uint8_t turn; /* 1 to TURNS: written last */
} ofo_ring_footer_t;

static inline uint32_t ofo_ring_round_up(uint32_t length)
{
    return (length + 7) / 8 * 8;
}

static inline uint32_t ofo_ring_slot_size(void)
{
    return ofo_ring_round_up(OFO.queues.queue[OFO_RING_QP].size) + (uint32_t) sizeof(ofo_ring_footer_t);
}

/* Makes the memory of the ring that the peer writes into; 0, or -1 on failure. Context: service. */
int ofo_ring_create(ofo_qpset_t *qps);
void ofo_ring_destroy(ofo_qpset_t *qps);

#endif /* BTL_OPENIB_RING_MEMORY_H */
