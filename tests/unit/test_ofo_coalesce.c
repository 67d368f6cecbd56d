/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Messages of sendi that join a fragment which waits, or leave in a carrier of the second queue: where they find room, and that each of
 * them ends exactly once, by success, by failure, or unreported. The rest of the BTL is played here. DESIGN.txt 15.4.
 */
#include "bfo_config.h"

#include "out/btl_openib_coalesce.h"
#include "out/btl_openib_complete.h"
#include "types/btl_openib_endpoints.h"
#include "out/btl_openib_frag.h"
#include "out/btl_openib_keepalive.h"
#include "out/btl_openib_silent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FRAGS = 3, LENGTH = 40, SIZE = 4096, TAG = 0x41, FLAGS = MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP };

ofo_component_t mca_btl_openib_component;

static ofo_module_t module;
static ofo_endpoint_t ep;
static ofo_qpset_t *qps;
static ofo_frag_list_t small, large;
static uint8_t memory[FRAGS][SIZE];
static unsigned made, returned;
static struct {
    uint8_t tag, first;
    size_t length;
    int status;
} got[8];

/* ---- what the files call ------------------------------------------------------------------------ */

static ofo_frag_t *carrier; /* of the second queue; NULL: no memory */
static uint8_t carried[SIZE];

ofo_frag_t *ofo_frag_alloc_whole(ofo_module_t *of, unsigned queue)
{
    assert_true(NULL == carrier || 1 == queue);
    return carrier;
}
void ofo_keepalive_post(ofo_endpoint_t *of, ofo_qpset_t *set) {}
void ofo_for_each_endpoint(ofo_module_t *of, void (*act)(ofo_endpoint_t *)) {}

static void failed_frag(mca_btl_base_module_t *btl, ofo_endpoint_t *of, mca_btl_base_tag_t tag, const void *data, size_t length, int status)
{
    assert_ptr_equal(of, &ep);
    got[returned].tag = tag;
    got[returned].first = *(const uint8_t *) data;
    got[returned].length = length;
    got[returned++].status = status;
}

/* ---- set-up ------------------------------------------------------------------------------------- */

static int begin(void **state)
{
    memset(&module, 0, sizeof(module));
    memset(&ep, 0, sizeof(ep));
    memset(memory, 0, sizeof(memory));
    OBJ_CONSTRUCT(&small.free, opal_free_list_t);
    assert_int_equal(OPAL_SUCCESS, opal_free_list_init(&small.free, sizeof(ofo_frag_t), 8, OBJ_CLASS(opal_free_list_item_t), 0, 0, FRAGS, FRAGS, 1,
                                                       NULL, 0, NULL, NULL, NULL));
    OBJ_CONSTRUCT(&ep.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&ep.pending[0], opal_list_t);
    qps = calloc(1, sizeof(*qps) + sizeof(qps->qp[0]));
    qps->ep = &ep;
    qps->nqp = 1;
    qps->qp[0].sq_free = qps->qp[0].sq_slots = 8;
    module.whole[0] = &small;
    module.ext.failed_frag = failed_frag;
    ep.module = &module;
    ep.qps = qps;
    OFO.queues.count = 1;
    OFO.queues.queue[0].size = 256;
    OFO.params.use_message_coalescing = true;
    made = returned = 0;
    carrier = NULL;
    return 0;
}

static int end(void **state)
{
    while (NULL != opal_list_remove_first(&ep.pending[0])) {
    }
    OBJ_DESTRUCT(&ep.pending[0]);
    OBJ_DESTRUCT(&ep.lock);
    OBJ_DESTRUCT(&small.free);
    free(qps);
    return 0;
}

/* A message of sendi that waits; its bytes are ones. */
static ofo_frag_t *wait_one(void)
{
    ofo_frag_t *frag = (ofo_frag_t *) opal_free_list_get(&small.free);
    uint8_t *at = memory[made++];

    frag->list = &small.free;
    frag->ep = &ep;
    frag->parts = NULL;
    frag->is_sendi = true;
    frag->is_silent = frag->in_ring = false;
    frag->joined = 0;
    frag->hdr = (ofo_data_hdr_t *) at;
    frag->hdr->tag = TAG;
    frag->segment.seg_addr.pval = at + sizeof(ofo_data_hdr_t);
    frag->segment.seg_len = LENGTH;
    frag->base.order = MCA_BTL_NO_ORDER;
    frag->base.des_flags = FLAGS;
    frag->base.des_cbfunc = NULL;
    frag->work = (ofo_work_t){.kind = OFO_WORK_SEND};
    memset(frag->segment.seg_addr.pval, 1, LENGTH);
    opal_list_append(&ep.pending[0], &frag->base.super.super);
    ++ep.pending_count;
    ++ep.sends_out;
    return frag;
}

/* A message with these bytes joins; its tag is the next one. */
static bool joins(uint8_t bytes, size_t length)
{
    void *to = ofo_coalesce_join(&ep, length, (uint8_t) (TAG + bytes - 1), MCA_BTL_NO_ORDER, FLAGS);

    if (NULL != to) {
        memset(to, bytes, length);
    }
    return NULL != to;
}

static ofo_frag_t *post_first(bool is_silent)
{
    ofo_frag_t *frag = (ofo_frag_t *) opal_list_remove_first(&ep.pending[0]);

    --ep.pending_count;
    frag->work.qps = qps;
    frag->place = qps->qp[0].place + 1;
    frag->is_silent = is_silent;
    --qps->qp[0].sq_free;
    ofo_silent_posted(&qps->qp[0], frag);
    return frag;
}

static unsigned free_fragments(void)
{
    opal_free_list_item_t *taken[FRAGS];
    unsigned count = 0;

    while (count < FRAGS && NULL != (taken[count] = opal_free_list_get(&small.free))) {
        ++count;
    }
    for (unsigned i = 0; i < count; ++i) {
        opal_free_list_return(&small.free, taken[i]);
    }
    return count;
}

/* ---- room --------------------------------------------------------------------------------------- */

static void message_joins_the_last_that_waits_as_a_part(void **state)
{
    const ofo_frag_t *first = wait_one(), *frag = wait_one();
    const uint8_t *bytes = frag->segment.seg_addr.pval;
    size_t at = 0;
    ofo_part_t part;

    assert_true(joins(2, 7));
    assert_true(joins(3, LENGTH));
    assert_int_equal(first->joined, 0);
    assert_int_equal(first->hdr->tag, TAG);
    assert_int_equal(frag->joined, 3);
    assert_int_equal(frag->hdr->tag, OFO_TAG_MANY);
    for (uint8_t i = 1; i <= 3; ++i) {
        assert_true(ofo_parts_next(bytes, frag->segment.seg_len, &at, &part));
        assert_int_equal(part.tag, TAG + i - 1);
        assert_int_equal(part.length, 2 == i ? 7 : LENGTH);
        assert_int_equal(bytes[part.at], i);
        assert_int_equal(bytes[part.at + part.length - 1], i);
    }
    assert_int_equal(at, frag->segment.seg_len);
    assert_int_equal(ep.pending_count, 2);
    assert_int_equal(ep.sends_out, 4);
    assert_int_equal(module.count.coalesced, 3);
    assert_int_equal(module.count.carriers, 1);
    assert_int_equal(module.count.queued_sends, 2);
}

static void no_message_joins_beyond_the_buffer_of_the_queue(void **state)
{
    const ofo_frag_t *frag = wait_one();

    assert_false(joins(2, 256 - 8 - 48 - 8 + 1)); /* headers of message and part, the first part */
    assert_int_equal(frag->joined, 0);
    assert_true(joins(2, 256 - 8 - 48 - 8));
    assert_int_equal(frag->segment.seg_len, 256 - 8);
    assert_false(joins(3, 0));
    assert_int_equal(frag->joined, 2);
}

static void no_more_messages_join_than_there_are_bits(void **state)
{
    unsigned count = 1;

    OFO.queues.queue[0].size = SIZE;
    for (wait_one(); joins(2, 8); ++count) {
    }
    assert_int_equal(count, OFO_JOINED_MAX);
}

static void message_joins_only_messages_of_its_own_kind(void **state)
{
    ofo_frag_t *frag;

    assert_false(joins(2, LENGTH)); /* nothing waits */
    frag = wait_one();
    frag->is_sendi = false; /* its sender waits for a callback */
    assert_false(joins(2, LENGTH));
    frag->is_sendi = true;
    frag->base.des_flags |= BFO_BTL_DES_COPY;
    assert_false(joins(2, LENGTH));
    frag->base.des_flags = FLAGS;
    frag->list = &large.free; /* it is posted on another queue pair, or its buffer is smaller */
    assert_false(joins(2, LENGTH));
    frag->list = &small.free;
    OFO.params.use_message_coalescing = false;
    assert_false(joins(2, LENGTH));
    OFO.params.use_message_coalescing = true;
    assert_int_equal(frag->joined, 0);
    assert_true(joins(2, LENGTH));
}

/* Such a fragment is a carrier already, whether it is the first that waits or not. */
static void joined_messages_are_not_packed_again(void **state)
{
    wait_one();
    wait_one();
    assert_true(joins(2, LENGTH));
    assert_false(ofo_coalesce(&ep, 0, 0));
    assert_int_equal(opal_list_get_size(&ep.pending[0]), 2);
    assert_int_equal(post_first(false)->joined, 0);
    assert_false(ofo_coalesce(&ep, 0, 0));
    assert_int_equal(post_first(false)->joined, 2);
    assert_int_equal(module.count.carriers, 1);
}

/* ---- the second queue --------------------------------------------------------------------------- */

/* There is memory for a carrier of the second queue, whose buffers hold `size` bytes. */
static void second_queue_begins(size_t size)
{
    OFO.queues.count = 2;
    OFO.queues.queue[1].size = size;
    carrier = (ofo_frag_t *) opal_free_list_get(&small.free);
    carrier->list = &small.free;
    carrier->hdr = (ofo_data_hdr_t *) carried;
    carrier->segment.seg_addr.pval = carried + sizeof(ofo_data_hdr_t);
    carrier->ep = &ep;
    carrier->joined = 0;
    carrier->is_sendi = false;
}

/* Checks that the carrier holds these messages, one after the other. */
static void holds(unsigned count)
{
    const uint8_t *bytes = carrier->segment.seg_addr.pval;
    size_t at = 0;
    ofo_part_t part;

    for (unsigned i = 0; i < count; ++i) {
        assert_true(ofo_parts_next(bytes, carrier->segment.seg_len, &at, &part));
        assert_int_equal(part.tag, TAG + (uint8_t) (bytes[part.at] - 1));
        assert_int_equal(part.length, LENGTH);
    }
    assert_int_equal(at, carrier->segment.seg_len);
}

static void waiting_messages_leave_in_a_carrier_of_the_second_queue(void **state)
{
    second_queue_begins(SIZE);
    wait_one();
    assert_true(joins(2, LENGTH));
    assert_true(joins(3, LENGTH));
    wait_one();
    assert_true(ofo_coalesce(&ep, 1, 0));
    assert_int_equal(opal_list_get_size(&ep.pending[0]), 1);
    assert_int_equal(ep.pending_count, 1);
    assert_ptr_equal(post_first(false), carrier);
    assert_int_equal(carrier->base.order, 1);
    holds(4);
    assert_int_equal(module.carriers_over, 1);
    ofo_send_complete(carrier, OPAL_SUCCESS);
    assert_int_equal(module.carriers_over, 0);
    assert_int_equal(returned, 0);
    assert_int_equal(ep.sends_out, 0);
    assert_int_equal(free_fragments(), FRAGS);
}

static void failure_of_such_a_carrier_returns_each_message_once(void **state)
{
    ofo_frag_t *third;

    second_queue_begins(SIZE);
    wait_one();
    assert_true(joins(2, LENGTH));
    third = wait_one();
    third->hdr->tag = TAG + 2;
    memset(third->segment.seg_addr.pval, 3, LENGTH);
    assert_true(ofo_coalesce(&ep, 1, 0));
    (void) post_first(false);
    ofo_send_complete(carrier, OPAL_ERR_FATAL);
    assert_int_equal(returned, 3);
    for (unsigned i = 0; i < 3; ++i) {
        assert_int_equal(got[i].tag, TAG + i);
        assert_int_equal(got[i].first, i + 1);
        assert_int_equal(got[i].status, 0 == i ? OPAL_ERR_FATAL : OPAL_ERROR);
    }
    assert_int_equal(ep.sends_out, 0);
    assert_int_equal(free_fragments(), FRAGS);
}

/* A message that its sender put in order, or that has a descriptor, may have to arrive after a put (A1), so it stays in its queue pair. */
static void message_in_order_stays_in_its_queue(void **state)
{
    for (int is_ordered = 0; is_ordered < 2; ++is_ordered) {
        ofo_frag_t *last;

        made = 0;
        second_queue_begins(SIZE);
        wait_one();
        last = wait_one();
        last->base.order = is_ordered ? 0 : MCA_BTL_NO_ORDER;
        last->is_sendi = is_ordered;
        OFO.queues.queue[0].size = sizeof(ofo_data_hdr_t) + 2 * (8 + LENGTH) - 1; /* too small for a carrier of both */
        assert_false(ofo_coalesce(&ep, 1, 0));
        assert_int_equal(opal_list_get_size(&ep.pending[0]), 2);
        assert_null(ofo_coalesce_join(&ep, LENGTH, TAG, MCA_BTL_NO_ORDER, FLAGS));
        for (int i = 0; i < 2; ++i) {
            opal_free_list_return(&small.free, (opal_free_list_item_t *) opal_list_remove_first(&ep.pending[0]));
        }
        opal_free_list_return(&small.free, &carrier->base.super);
    }
}

static void carrier_of_the_second_queue_holds_what_fits(void **state)
{
    second_queue_begins(sizeof(ofo_data_hdr_t) + 2 * (8 + LENGTH));
    wait_one();
    assert_true(joins(2, LENGTH));
    wait_one();
    assert_false(ofo_coalesce(&ep, 1, 0)); /* the second fragment does not fit, and one alone gains nothing */
    assert_int_equal(opal_list_get_size(&ep.pending[0]), 2);
}

/* Two messages fit a carrier of their own queue, which is enough; three do not. */
static void messages_go_over_only_if_more_wait_than_their_queue_carries(void **state)
{
    second_queue_begins(SIZE);
    wait_one();
    wait_one();
    OFO.queues.queue[0].size = sizeof(ofo_data_hdr_t) + 2 * (8 + LENGTH);
    assert_false(ofo_coalesce(&ep, 1, 0));
    OFO.queues.queue[0].size -= 1;
    module.carriers_over = 16; /* so many are in flight to others */
    assert_false(ofo_coalesce(&ep, 1, 0));
    module.carriers_over = 15;
    assert_true(ofo_coalesce(&ep, 1, 0));
}

/* ---- the end ------------------------------------------------------------------------------------ */

static void success_ends_all_joined_messages(void **state)
{
    ofo_frag_t *frag = wait_one();

    assert_true(joins(2, LENGTH));
    assert_true(joins(3, LENGTH));
    post_first(false);
    ofo_send_complete(frag, OPAL_SUCCESS);
    assert_int_equal(returned, 0);
    assert_int_equal(ep.sends_out, 0);
    assert_int_equal(free_fragments(), FRAGS);
}

static void failure_returns_each_joined_message_once(void **state)
{
    ofo_frag_t *frag = wait_one();

    assert_true(joins(2, 7));
    assert_true(joins(3, LENGTH));
    assert_true(joins(4, LENGTH));
    post_first(false);
    frag->copied = 4; /* the third is on its way over another rail as well */
    ofo_send_complete(frag, OPAL_ERR_FATAL);
    assert_int_equal(returned, 3);
    for (unsigned i = 0; i < 3; ++i) {
        const uint8_t which = 2 == i ? 4 : (uint8_t) (i + 1);
        assert_int_equal(got[i].tag, TAG + which - 1);
        assert_int_equal(got[i].first, which);
        assert_int_equal(got[i].length, 1 == i ? 7 : LENGTH);
        assert_int_equal(got[i].status, 0 == i ? OPAL_ERR_FATAL : OPAL_ERROR);
    }
    assert_int_equal(ep.sends_out, 0);
    assert_int_equal(free_fragments(), FRAGS);
}

static void waiting_joined_messages_fail_without_a_pml_that_hears_of_it(void **state)
{
    ofo_frag_t *frag = wait_one();

    assert_true(joins(2, LENGTH));
    module.ext.failed_frag = NULL;
    ofo_send_complete(frag, OPAL_ERROR);
    (void) opal_list_remove_first(&ep.pending[0]);
    assert_int_equal(ep.sends_out, 0);
}

static void joined_messages_that_nobody_reported_have_arrived_with_a_later_one(void **state)
{
    wait_one();
    assert_true(joins(2, LENGTH));
    wait_one();
    assert_true(joins(2, LENGTH));
    assert_true(joins(3, LENGTH));
    post_first(true);
    post_first(true);
    ofo_silent_arrived(qps, 0, 2);
    assert_int_equal(ep.sends_out, 3);
    assert_int_equal(qps->qp[0].sq_free, 7);
    ofo_silent_all_arrived(qps, 0);
    assert_int_equal(ep.sends_out, 0);
    assert_int_equal(qps->qp[0].sq_free, 8);
    assert_int_equal(qps->qp[0].n_send, 2); /* work requests, as the peer counts them */
    assert_int_equal(free_fragments(), FRAGS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(message_joins_the_last_that_waits_as_a_part),
        TEST(no_message_joins_beyond_the_buffer_of_the_queue),
        TEST(no_more_messages_join_than_there_are_bits),
        TEST(message_joins_only_messages_of_its_own_kind),
        TEST(joined_messages_are_not_packed_again),
        TEST(waiting_messages_leave_in_a_carrier_of_the_second_queue),
        TEST(failure_of_such_a_carrier_returns_each_message_once),
        TEST(message_in_order_stays_in_its_queue),
        TEST(carrier_of_the_second_queue_holds_what_fits),
        TEST(messages_go_over_only_if_more_wait_than_their_queue_carries),
        TEST(success_ends_all_joined_messages),
        TEST(failure_returns_each_joined_message_once),
        TEST(waiting_joined_messages_fail_without_a_pml_that_hears_of_it),
        TEST(joined_messages_that_nobody_reported_have_arrived_with_a_later_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
