/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The buffers of a shared receive queue, with verbs of this program: a queue that remembers which buffers were posted, raises
 * the limit event, and swallows buffers as a queue pair does when it is destroyed. DESIGN.txt section 15.4.
 */
#include "bfo_config.h"

#include "device/btl_openib_buffers.h"
#include "device/btl_openib_device.h"
#include "types/btl_openib_log.h"
#include "formats/btl_openib_queues.h"
#include "device/btl_openib_srq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MOST = 64, START = 8, LIMIT = 3 };

ofo_component_t mca_btl_openib_component;

/* ---- verbs -------------------------------------------------------------------------------------- */

static ofo_recv_t *posted[MOST];
static uint32_t posted_count;
static bool is_armed, is_refusing;
static struct ibv_srq verbs_srq;

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return calloc(1, sizeof(struct ibv_mr));
}
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    return calloc(1, sizeof(struct ibv_mr));
}
int ibv_dereg_mr(struct ibv_mr *mr)
{
    free(mr);
    return 0;
}
struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    assert_int_equal(init->attr.max_wr, MOST);
    return &verbs_srq;
}
int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    is_armed = true;
    return 0;
}
int ibv_destroy_srq(struct ibv_srq *srq)
{
    return 0;
}

/* ---- functions that the room calls -------------------------------------------------------------- */

void *ofo_pages_alloc(size_t size)
{
    return malloc(size);
}
void ofo_device_say_locked_memory(const ofo_device_t *device) {}
void ofo_log(unsigned level, const char *format, ...) {}
void ofo_recv_init(ofo_recv_t *recv, ofo_qpset_t *qps, unsigned index, void *buffer, uint32_t size, uint32_t lkey)
{
    recv->work = (ofo_work_t){.kind = OFO_WORK_RECV, .qp = (uint8_t) index, .qps = qps};
    recv->wr.next = NULL;
}
uint32_t ofo_recv_post_chain(ofo_recv_chain_t *chain, struct ibv_qp *qp, struct ibv_srq *srq)
{
    uint32_t taken = 0;

    assert_ptr_equal(srq, &verbs_srq);
    while (0 < chain->count && MOST > posted_count && !is_refusing) {
        struct ibv_recv_wr *next = chain->first->wr.next;
        posted[posted_count++] = chain->first;
        chain->first = NULL == next ? NULL : (ofo_recv_t *) ((uint8_t *) next - offsetof(ofo_recv_t, wr));
        --chain->count;
        ++taken;
    }
    return taken;
}

/* ---- tests -------------------------------------------------------------------------------------- */

static ofo_device_t device;
static ofo_module_t module;

static ofo_srq_t *begin(bool resize)
{
    static char text[64];

    posted_count = 0;
    is_armed = false;
    snprintf(text, sizeof(text), "S,4096,%u,%u,4,%u,%u", MOST, MOST - 4, START, LIMIT);
    assert_null(ofo_queues_parse(text, &OFO.queues));
    OFO.no_srq = false;
    OFO.params.enable_srq_resize = resize;
    device = (ofo_device_t){.attr = {.max_srq = 16, .max_srq_wr = 1000}};
    memset(&module, 0, sizeof(module));
    module.device = &device;
    assert_int_equal(ofo_srqs_create(&module), OPAL_SUCCESS);
    assert_int_equal(posted_count, START);
    return module.srq[0];
}

/* A message comes in: the oldest buffer is taken, and the limit event follows if it is due. */
static ofo_recv_t *arrive(ofo_srq_t *srq)
{
    ofo_recv_t *recv = posted[0];

    assert_true(0 < posted_count);
    --posted_count;
    memmove(posted, posted + 1, posted_count * sizeof(posted[0]));
    if (is_armed && posted_count < srq->limit) {
        is_armed = false;
        ofo_srq_limit_reached(srq);
    }
    return recv;
}

static void traffic(ofo_srq_t *srq, unsigned burst)
{
    ofo_recv_t *held[MOST];

    for (int round = 0; round < 100; ++round) {
        unsigned count = 0;
        while (count < burst && 0 < posted_count) {
            held[count++] = arrive(srq);
        }
        while (0 < count) {
            ofo_srq_return(srq, held[--count]);
        }
    }
}

static void queue_grows_when_it_runs_low(void **state)
{
    ofo_srq_t *srq = begin(true);

    traffic(srq, 4);
    assert_int_equal(srq->buffers, START); /* enough for four messages */
    traffic(srq, 40);
    assert_int_equal(srq->buffers, MOST);
    assert_true(posted_count + srq->again.count == MOST);
    ofo_srqs_destroy(&module);
}

static void buffers_that_went_with_a_queue_pair_are_replaced(void **state)
{
    for (int resize = 0; resize < 2; ++resize) {
        ofo_srq_t *srq = begin(resize);

        traffic(srq, 40);
        const uint32_t full = posted_count + srq->again.count;
        for (int death = 0; death < 30; ++death) {
            for (int i = 0; i < 4; ++i) {
                (void) arrive(srq);
            }
            ofo_srq_buffers_missing(srq, 4);
            traffic(srq, 40);
            assert_int_equal(posted_count + srq->again.count, full);
        }
        ofo_srqs_destroy(&module);
    }
}

/* If more buffers are reported missing than are missing, the queue takes as many as it has room for, and works on. */
static void buffers_that_were_not_missing_do_no_harm(void **state)
{
    ofo_srq_t *srq = begin(true);

    traffic(srq, 40);
    for (int i = 0; i < 10; ++i) {
        ofo_srq_buffers_missing(srq, 50);
        assert_true(srq->buffers <= MOST && 50 >= srq->spare.count);
        traffic(srq, 62);
    }
    traffic(srq, 40);
    assert_true(MOST - 8 <= posted_count);
    ofo_srqs_destroy(&module);
}

static void device_without_shared_queues_is_noted(void **state)
{
    assert_null(ofo_queues_parse("P,512,64:S,4096,64", &OFO.queues));
    OFO.no_srq = false;
    device = (ofo_device_t){.attr = {.max_srq = 0}};
    memset(&module, 0, sizeof(module));
    module.device = &device;
    assert_int_equal(ofo_srqs_create(&module), OPAL_SUCCESS);
    assert_true(OFO.no_srq);
    assert_null(module.srq[1]);
    assert_null(ofo_queues_parse("P,512,64:P,4096,64", &OFO.queues));
    OFO.no_srq = false;
    assert_int_equal(ofo_srqs_create(&module), OPAL_SUCCESS);
    assert_false(OFO.no_srq); /* the user asked for no shared queue */
}

/* All buffers were received, and the queue refuses each: nothing comes any more that would post them. */
static void refused_buffers_are_posted_without_another_message(void **state)
{
    ofo_srq_t *srq = begin(false);

    is_refusing = true;
    while (0 < posted_count) {
        ofo_srq_return(srq, arrive(srq));
    }
    assert_int_equal(module.wants, OFO_WANTS_BUFFERS);
    module.wants = 0;
    ofo_srqs_post_refused(&module);
    assert_int_equal(module.wants, OFO_WANTS_BUFFERS);
    is_refusing = false;
    module.wants = 0;
    ofo_srqs_post_refused(&module);
    assert_int_equal(posted_count, START);
    assert_int_equal(module.wants, 0);
    ofo_srqs_destroy(&module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_grows_when_it_runs_low),
        cmocka_unit_test(buffers_that_went_with_a_queue_pair_are_replaced),
        cmocka_unit_test(buffers_that_were_not_missing_do_no_harm),
        cmocka_unit_test(device_without_shared_queues_is_noted),
        cmocka_unit_test(refused_buffers_are_posted_without_another_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
