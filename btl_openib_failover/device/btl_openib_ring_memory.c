/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The memory of an eager ring that a peer writes into. See DESIGN.txt 15.4.
 */
#include "device/btl_openib_ring_memory.h"

#include "bfo_assert.h"
#include "device/btl_openib_device.h"

#include <stdlib.h>
#include <string.h>

int ofo_ring_create(ofo_qpset_t *qps)
{
    ofo_ring_in_t *in = &qps->ring_in;
    size_t size = (size_t) OFO.params.eager_rdma_num * ofo_ring_slot_size();

    BFO_ASSERT(NULL == in->memory && !in->is_open);
    BFO_ASSERT(0 < OFO.params.eager_rdma_num && OFO_RING_SLOTS_MAX >= OFO.params.eager_rdma_num);
    in->memory = ofo_pages_alloc(size);
    if (NULL == in->memory) {
        return -1;
    }
    memset(in->memory, 0, size);
    in->mr = ibv_reg_mr(qps->module->device->pd, in->memory, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (NULL == in->mr) {
        free(in->memory);
        in->memory = NULL;
        return -1; /* no ring: messages go on as sends */
    }
    in->slots = OFO.params.eager_rdma_num;
    in->head = 0;
    in->turn = 1;
    return 0;
}

void ofo_ring_destroy(ofo_qpset_t *qps)
{
    BFO_ASSERT((NULL == qps->ring_in.mr) == (NULL == qps->ring_in.memory));
    if (NULL != qps->ring_in.mr) {
        ibv_dereg_mr(qps->ring_in.mr);
    }
    free(qps->ring_in.memory);
}
