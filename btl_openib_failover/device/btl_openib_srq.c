/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Shared receive queues of a module (S in btl_openib_receive_queues): buffers for all its peers. Received buffers are
 * posted again in batches. At a limit event the number of buffers doubles, up to the count that the user asked for. When
 * a rail fails the buffers stay posted, because they belong to the module. It cannot be known which buffers were lost with
 * a queue pair that had to be destroyed; new ones replace as many as it may have had. See DESIGN.txt 15.
 */
#include "device/btl_openib_srq.h"

#include "bfo_assert.h"
#include "types/btl_openib_atomic.h"
#include "device/btl_openib_buffers.h"
#include "device/btl_openib_device.h"
#include "types/btl_openib_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Buffers that were made together. */
struct ofo_chunk {
    ofo_chunk_t *next;
    uint8_t *memory;
    struct ibv_mr *mr;
    uint32_t count;
    ofo_recv_t recv[];
};

static void free_chunk(ofo_chunk_t *chunk)
{
    if (NULL != chunk->mr) {
        ibv_dereg_mr(chunk->mr);
    }
    free(chunk->memory);
    free(chunk);
}

static ofo_chunk_t *make_chunk(const ofo_module_t *module, const ofo_srq_t *srq, uint32_t count)
{
    ofo_chunk_t *chunk = calloc(1, sizeof(*chunk) + count * sizeof(chunk->recv[0]));
    size_t size = (size_t) count * srq->size;

    if (NULL == chunk) {
        return NULL;
    }
    BFO_ASSERT(0 < count);
    chunk->count = count;
    chunk->memory = ofo_pages_alloc(size);
    if (NULL == chunk->memory) {
        free_chunk(chunk);
        return NULL;
    }
    chunk->mr = ibv_reg_mr(module->device->pd, chunk->memory, size, IBV_ACCESS_LOCAL_WRITE);
    if (NULL == chunk->mr) {
        if (NULL == srq->chunks && (ENOMEM == errno || EAGAIN == errno)) { /* only at first: a queue that cannot grow stays as it is */
            ofo_device_say_locked_memory(module->device);
        }
        free_chunk(chunk);
        return NULL;
    }
    for (uint32_t i = 0; i < count; ++i) {
        ofo_recv_init(&chunk->recv[i], NULL, srq->index, chunk->memory + (size_t) i * srq->size, srq->size, chunk->mr->lkey);
    }
    return chunk;
}

/* Makes `count` more buffers and posts them. Buffers that the queue does not take are kept for the next call. Locks: srq->lock held. */
static bool add_buffers(ofo_module_t *module, ofo_srq_t *srq, uint32_t count)
{
    uint32_t more = count > srq->spare.count ? count - srq->spare.count : 0, posted;
    ofo_chunk_t *chunk = 0 < more ? make_chunk(module, srq, more) : NULL;

    if (NULL != chunk) {
        chunk->next = srq->chunks;
        srq->chunks = chunk;
        for (uint32_t i = 0; i < more; ++i) {
            ofo_recv_collect(&srq->spare, &chunk->recv[i]);
        }
    }
    posted = 0 < srq->spare.count ? ofo_recv_post_chain(&srq->spare, NULL, srq->srq) : 0;
    BFO_ASSERT(posted <= srq->most);
    OFO_STORE(srq->buffers, srq->buffers + posted);
    return posted >= count;
}

static void arm_limit(ofo_srq_t *srq)
{
    struct ibv_srq_attr attr = {.srq_limit = srq->limit};

    (void) ibv_modify_srq(srq->srq, &attr, IBV_SRQ_LIMIT); /* if it fails the queue keeps its size */
}

/* Locks: srq->lock held. */
static void grow(ofo_srq_t *srq)
{
    uint32_t more = srq->buffers < srq->most - srq->buffers ? srq->buffers : srq->most - srq->buffers;

    BFO_ASSERT(srq->buffers <= srq->most);
    if (!OFO.params.enable_srq_resize || 0 == more || !add_buffers(srq->module, srq, more)) {
        ofo_log(1, "%s: shared queue %u stays at %u buffers", srq->module->name, srq->index, srq->buffers);
        return; /* not armed again, because the event would come at once, again and again */
    }
    ++srq->module->count.srq_growths;
    ofo_log(1, "%s: shared queue %u grows to %u buffers", srq->module->name, srq->index, srq->buffers);
    if (srq->buffers < srq->most) {
        arm_limit(srq);
    }
}

void ofo_srq_limit_reached(ofo_srq_t *srq)
{
    pthread_mutex_lock(&srq->lock);
    grow(srq);
    pthread_mutex_unlock(&srq->lock);
}

void ofo_srq_buffers_missing(ofo_srq_t *srq, uint32_t count)
{
    pthread_mutex_lock(&srq->lock);
    count = count < srq->buffers ? count : srq->buffers;
    BFO_ASSERT(count <= srq->buffers);
    OFO_STORE(srq->buffers, srq->buffers - count);
    if (!add_buffers(srq->module, srq, count)) {
        arm_limit(srq); /* fewer were lost, or there is no memory now */
    }
    ofo_log(1, "%s: shared queue %u has %u buffers after the loss of at most %u", srq->module->name, srq->index, srq->buffers, count);
    pthread_mutex_unlock(&srq->lock);
}

/* How many buffers are collected before they are posted: never more than may be missing by the user's `low`. */
static uint32_t batch_of(const ofo_srq_t *srq)
{
    uint32_t buffers = OFO_LOAD(srq->buffers), batch = (uint32_t) ((uint64_t) buffers * srq->slack / srq->most);

    BFO_ASSERT(0 != srq->most && srq->slack <= srq->most);
    return batch < 1 ? 1 : batch < OFO_SRQ_BATCH ? batch : OFO_SRQ_BATCH;
}

/* Buffers that the queue does not take now stay collected, and the next progress tries them again: if all buffers are collected, nothing is
 * received any more that would post them. */
static void post_collected(ofo_srq_t *srq)
{
    (void) ofo_recv_post_chain(&srq->again, NULL, srq->srq);
    if (OPAL_UNLIKELY(0 != srq->again.count)) {
        (void) __atomic_fetch_or(&srq->module->wants, OFO_WANTS_BUFFERS, __ATOMIC_RELAXED);
    }
}

void ofo_srq_return(ofo_srq_t *srq, ofo_recv_t *recv)
{
    BFO_ASSERT(NULL == recv->work.qps && srq->index == recv->work.qp);
    ofo_recv_collect(&srq->again, recv);
    if (srq->again.count >= batch_of(srq)) {
        post_collected(srq);
    }
}

void ofo_srqs_post_refused(ofo_module_t *module)
{
    for (unsigned i = 0; i < OFO_MAX_QPS; ++i) {
        if (NULL != module->srq[i] && 0 != module->srq[i]->again.count) {
            post_collected(module->srq[i]);
        }
    }
}

static int create(ofo_module_t *module, unsigned index)
{
    const ofo_queue_t *queue = &OFO.queues.queue[index];
    struct ibv_srq_init_attr init = {.attr = {.max_wr = queue->count, .max_sge = 1}};
    ofo_srq_t *srq = calloc(1, sizeof(*srq));

    if (NULL == srq) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    BFO_ASSERT(NULL == module->srq[index]);
    BFO_ASSERT(queue->low <= queue->count);
    module->srq[index] = srq;
    srq->module = module;
    pthread_mutex_init(&srq->lock, NULL);
    srq->index = (uint8_t) index;
    srq->size = queue->size;
    srq->most = queue->count;
    srq->slack = queue->count - queue->low;
    srq->limit = queue->limit;
    if (0 < module->device->attr.max_srq_wr && (int) srq->most > module->device->attr.max_srq_wr) {
        srq->most = init.attr.max_wr = (uint32_t) module->device->attr.max_srq_wr;
    }
    init.srq_context = srq;
    srq->srq = ibv_create_srq(module->device->pd, &init);
    if (NULL == srq->srq || !add_buffers(module, srq, queue->start < srq->most ? queue->start : srq->most)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (srq->buffers < srq->most) {
        arm_limit(srq);
    }
    return OPAL_SUCCESS;
}

/* Can there be shared queues? A process has them on all its ports or on none, because a rail's queues do not depend on the port. */
static bool are_to_be_had(const ofo_module_t *module)
{
    int wanted = 0;

    for (unsigned i = 0; i < OFO.queues.count; ++i) {
        wanted += 'S' == OFO.queues.queue[i].type;
    }
    if (wanted > module->device->attr.max_srq && !OFO.no_srq) {
        OFO.no_srq = true;
        ofo_log(1, "%s: no shared receive queues, every peer gets its own", module->name);
    }
    return !OFO.no_srq;
}

int ofo_srqs_create(ofo_module_t *module)
{
    if (!are_to_be_had(module)) {
        return OPAL_SUCCESS;
    }
    for (unsigned i = 0; i < OFO.queues.count; ++i) {
        if ('S' == OFO.queues.queue[i].type && OPAL_SUCCESS != create(module, i)) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
    }
    return OPAL_SUCCESS;
}

unsigned ofo_srqs_buffers_max(const ofo_module_t *module)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < OFO.queues.count; ++i) {
        sum += NULL != module->srq[i] ? module->srq[i]->most : 0;
    }
    return sum;
}

void ofo_srqs_destroy(ofo_module_t *module)
{
    for (unsigned i = 0; i < OFO_MAX_QPS; ++i) {
        ofo_srq_t *srq = module->srq[i];
        if (NULL == srq || (NULL != srq->srq && 0 != ibv_destroy_srq(srq->srq))) {
            continue; /* a queue pair still uses it, so its memory stays */
        }
        while (NULL != srq->chunks) {
            ofo_chunk_t *chunk = srq->chunks;
            srq->chunks = chunk->next;
            free_chunk(chunk);
        }
        pthread_mutex_destroy(&srq->lock);
        free(srq);
        module->srq[i] = NULL;
    }
}
