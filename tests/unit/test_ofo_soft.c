/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What becomes of the messages of a rail that seems silent: who is told of their end, what moves, what is copied once, and when their rail
 * ends. The PML, the clock and the rest of the BTL are played here. DESIGN.txt 10.2, "Silence".
 */
#include "bfo_config.h"

#include "types/btl_openib_clock.h"
#include "out/btl_openib_coalesce.h"
#include "out/btl_openib_complete.h"
#include "fault/btl_openib_deadline.h"
#include "qp/btl_openib_drain.h"
#include "out/btl_openib_frag.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "fault/btl_openib_soft.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FRAGS = 4, TAG_TAKEN = 0x41, TAG_REFUSED = 0x46, LENGTH = 40 };

ofo_component_t mca_btl_openib_component;

static ofo_module_t module;
static ofo_peer_t peer;
static ofo_endpoint_t ep;
static ofo_qpset_t *qps, *other;
static ofo_frag_list_t fragments;
static ofo_frag_t *frag[FRAGS];
static bfo_traffic_t traffic;
static uint64_t now;
static bool waits, accepts;

/* ---- what the room calls ------------------------------------------------------------------------ */

static unsigned passed_on; /* letters to service, which tells the peer */
static unsigned told, calmed, offered, called, returned_by_error, failed;
static uint8_t last_returned; /* tag of the last message that failed_frag got */
static const void *offers[16];
static const mca_btl_base_descriptor_t *owners[16];

uint64_t ofo_now_ms(void)
{
    return now;
}
void ofo_log(unsigned level, const char *format, ...) {}
void ofo_tell_service(ofo_endpoint_t *of, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *set)
{
    assert_int_equal(kind, OFO_MAIL_SOFTENED);
    ++passed_on;
}
bool ofo_deadline_still_waits(const ofo_endpoint_t *of, uint16_t gen)
{
    return waits;
}
ofo_frag_t *ofo_frag_alloc_whole(ofo_module_t *of, unsigned queue)
{
    return NULL;
}
void ofo_rail_failed(ofo_qpset_t *of, const char *why)
{
    assert_ptr_equal(of, qps);
    ++failed;
}

static bool rail_soft(mca_btl_base_module_t *btl, opal_proc_t *proc, uint8_t rail, uint16_t gen, bool is_soft)
{
    told += is_soft;
    calmed += !is_soft;
    return accepts;
}

static bool send_again(mca_btl_base_module_t *btl, opal_proc_t *proc, mca_btl_base_tag_t tag, const void *data, size_t length,
                       const mca_btl_base_descriptor_t *des)
{
    assert_int_equal(length, LENGTH);
    offers[offered] = data;
    owners[offered++] = des;
    return TAG_TAKEN == tag;
}

static void failed_frag(mca_btl_base_module_t *btl, ofo_endpoint_t *of, mca_btl_base_tag_t tag, const void *data, size_t length, int status)
{
    last_returned = tag;
    ++returned_by_error;
}

static void owner_called(mca_btl_base_module_t *btl, ofo_endpoint_t *of, mca_btl_base_descriptor_t *des, int status)
{
    ++called;
}

/* ---- set-up ------------------------------------------------------------------------------------- */

static void make(int i, uint8_t tag, ofo_qpset_t *posted_on)
{
    static uint8_t memory[FRAGS][256];

    frag[i] = (ofo_frag_t *) opal_free_list_get(&fragments.free);
    frag[i]->list = &fragments.free;
    frag[i]->ep = &ep;
    frag[i]->parts = NULL;
    frag[i]->is_sendi = frag[i]->is_silent = false;
    frag[i]->joined = 0;
    frag[i]->goes_over = false;
    frag[i]->hdr = (ofo_data_hdr_t *) memory[i];
    frag[i]->hdr->tag = tag;
    frag[i]->segment.seg_addr.pval = memory[i] + sizeof(ofo_data_hdr_t);
    frag[i]->segment.seg_len = LENGTH;
    frag[i]->base.order = MCA_BTL_NO_ORDER;
    frag[i]->base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
    frag[i]->base.des_cbfunc = owner_called;
    frag[i]->work.qps = posted_on;
    frag[i]->next_of_all = module.all_frags;
    module.all_frags = frag[i];
    ++ep.sends_out;
}

static int begin(void **state)
{
    memset(&module, 0, sizeof(module));
    memset(&ep, 0, sizeof(ep));
    memset(&traffic, 0, sizeof(traffic));
    OBJ_CONSTRUCT(&fragments.free, opal_free_list_t);
    assert_int_equal(OPAL_SUCCESS, opal_free_list_init(&fragments.free, sizeof(ofo_frag_t), 8, OBJ_CLASS(opal_free_list_item_t), 0, 0, FRAGS, FRAGS,
                                                       1, NULL, 0, NULL, NULL, NULL));
    qps = calloc(2, sizeof(*qps));
    other = qps + 1;
    qps->module = other->module = &module;
    qps->ep = &ep;
    qps->drain.own = OFO_DRAIN_LIVE;
    OFO.module[0] = &module;
    OFO.module_count = 1;
    OFO.queues.count = 1;
    OFO.queues.queue[0].size = 256;
    OFO.params.use_message_coalescing = true;
    module.whole[0] = &fragments;
    OFO.copied_bytes = 0;
    module.ext.traffic = &traffic;
    module.ext.rail_soft = rail_soft;
    module.ext.send_again = send_again;
    module.ext.failed_frag = failed_frag;
    ep.module = &module;
    ep.peer = &peer;
    ep.qps = qps;
    OBJ_CONSTRUCT(&ep.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&ep.pending[0], opal_list_t);
    now = 5000;
    waits = accepts = true;
    passed_on = told = calmed = offered = called = returned_by_error = failed = 0;
    return 0;
}

static int end(void **state)
{
    while (NULL != opal_list_remove_first(&ep.pending[0])) {
    }
    OBJ_DESTRUCT(&ep.pending[0]);
    OBJ_DESTRUCT(&ep.lock);
    OBJ_DESTRUCT(&fragments.free);
    free(qps);
    return 0;
}

static void add_waiting(int i)
{
    opal_list_append(&ep.pending[0], &frag[i]->base.super.super);
    ++ep.pending_count;
}

/* ---- the verdict -------------------------------------------------------------------------------- */

static void posted_message_with_a_copy_tells_nobody_of_its_end(void **state)
{
    make(0, TAG_TAKEN, qps);
    make(1, TAG_TAKEN, qps);
    frag[1]->is_sendi = true;
    ofo_soft_begin(&ep, 0);
    assert_int_equal(told, 1);
    assert_int_equal(offered, 2);
    assert_ptr_equal(offers[1], frag[0]->segment.seg_addr.pval);
    assert_ptr_equal(owners[1], &frag[0]->base);
    assert_null(owners[0]);
    assert_int_equal(ep.sends_out, 2); /* flush waits for the first copies */
    assert_int_equal(module.count.copies, 2);
    ofo_send_complete(frag[0], OPAL_SUCCESS);
    ofo_send_complete(frag[1], OPAL_ERROR);
    assert_int_equal(called + returned_by_error, 0);
    assert_int_equal(ep.sends_out, 0);
}

static void message_that_the_pml_refuses_keeps_its_owner(void **state)
{
    make(0, TAG_REFUSED, qps);
    ofo_soft_begin(&ep, 0);
    assert_int_equal(offered, 1);
    assert_int_equal(ep.copies_due, 0);
    ofo_send_complete(frag[0], OPAL_SUCCESS);
    assert_int_equal(called, 1);
}

static void messages_of_other_sets_copies_and_first_copies_are_not_offered(void **state)
{
    make(0, TAG_TAKEN, other);
    make(1, TAG_TAKEN, NULL);
    make(2, TAG_TAKEN, qps);
    frag[2]->base.des_flags |= BFO_BTL_DES_COPY;
    make(3, TAG_TAKEN, qps);
    ofo_soft_begin(&ep, 0);
    ofo_soft_begin(&ep, 0);
    assert_int_equal(offered, 1);
    assert_ptr_equal(offers[0], frag[3]->segment.seg_addr.pval);
}

static void parts_of_a_carrier_are_copied_one_by_one(void **state)
{
    make(0, OFO_TAG_MANY, qps);
    make(1, TAG_TAKEN, NULL);
    make(2, TAG_REFUSED, NULL);
    frag[0]->parts = frag[1];
    frag[1]->next_part = frag[2];
    frag[2]->next_part = NULL;
    --ep.sends_out; /* a carrier is no message */
    ofo_soft_begin(&ep, 0);
    assert_int_equal(offered, 2);
    ofo_send_complete(frag[0], OPAL_ERROR);
    assert_int_equal(called, 1); /* the refused part's */
    assert_int_equal(ep.sends_out, 0);
}

static void waiting_messages_move_and_the_others_keep_their_order(void **state)
{
    make(0, TAG_REFUSED, NULL);
    make(1, TAG_TAKEN, NULL);
    make(2, TAG_REFUSED, NULL);
    add_waiting(0);
    add_waiting(1);
    add_waiting(2);
    ofo_soft_begin(&ep, 0);
    assert_int_equal(ep.pending_count, 2);
    assert_int_equal(ep.sends_out, 2);
    assert_int_equal(module.count.copies, 0);
    assert_ptr_equal(opal_list_remove_first(&ep.pending[0]), frag[0]);
    assert_ptr_equal(opal_list_remove_first(&ep.pending[0]), frag[2]);
    assert_int_equal(called, 0);
}

static void copies_are_a_twentieth_of_the_bytes_and_a_fixed_part(void **state)
{
    OFO.copied_bytes = 64 * 1024;
    make(0, TAG_TAKEN, qps);
    traffic.sent_bytes = 20 * LENGTH - 1;
    ofo_soft_begin(&ep, 0);
    assert_int_equal(offered, 0);
    traffic.sent_bytes = 20 * LENGTH;
    ofo_soft_begin(&ep, 0);
    assert_int_equal(offered, 1);
    assert_int_equal(OFO.copied_bytes, 64 * 1024 + LENGTH);
}

static void verdict_is_void_if_work_has_ended_or_the_pml_has_no_other_rail(void **state)
{
    make(0, TAG_TAKEN, qps);
    waits = false;
    ofo_soft_begin(&ep, 0);
    assert_int_equal(told, 0);
    waits = true;
    accepts = false;
    ofo_soft_begin(&ep, 0);
    assert_int_equal(told, 1);
    assert_int_equal(offered, 0);
    module.ext.rail_soft = NULL;
    ofo_soft_begin(&ep, 0);
    ofo_soft_end(&ep, 0);
    assert_int_equal(told + calmed, 1);
    assert_int_equal(passed_on, 0);
}

/* Its own work may have been posted a moment ago. */
static void verdict_of_the_peer_copies_whatever_is_out_and_goes_no_further(void **state)
{
    make(0, TAG_TAKEN, qps);
    waits = false;
    ofo_soft_adopt(&ep, 1); /* of another generation */
    assert_int_equal(told, 0);
    ofo_soft_adopt(&ep, 0);
    assert_int_equal(told, 1);
    assert_int_equal(offered, 1);
    assert_int_equal(passed_on, 0);
    accepts = false;
    ofo_soft_adopt(&ep, 0);
    ep.qps = NULL;
    ofo_soft_adopt(&ep, 0);
    assert_int_equal(told, 2);
    assert_int_equal(offered, 1);
}

static void own_verdict_is_passed_on_if_the_pml_agrees(void **state)
{
    ofo_soft_begin(&ep, 0);
    assert_int_equal(passed_on, 1);
    accepts = false;
    ofo_soft_begin(&ep, 0);
    assert_int_equal(passed_on, 1);
}

/* ---- the end of first copies -------------------------------------------------------------------- */

static void rail_ends_when_a_first_copy_is_out_for_a_minute(void **state)
{
    make(0, TAG_TAKEN, qps);
    ofo_soft_begin(&ep, 0);
    make(1, TAG_TAKEN, qps);
    now += 1000;
    ofo_soft_begin(&ep, 0);
    assert_int_equal(ep.copies_due, 65000);
    now = 65000;
    frag[0]->work.qps = NULL; /* it has come back */
    ofo_soft_overdue(&ep, 0);
    assert_int_equal(failed, 0);
    assert_int_equal(ep.copies_due, 66000);
    now = 66000;
    ofo_soft_overdue(&ep, 1); /* another generation */
    assert_int_equal(failed, 0);
    ofo_soft_overdue(&ep, 0);
    assert_int_equal(failed, 1);
}

static void rail_whose_first_copies_have_come_back_is_left_alone(void **state)
{
    make(0, TAG_TAKEN, qps);
    ofo_soft_begin(&ep, 0);
    ofo_send_complete(frag[0], OPAL_SUCCESS);
    now += 100000;
    ofo_soft_overdue(&ep, 0);
    assert_int_equal(failed, 0);
    assert_int_equal(ep.copies_due, 0);
}

/* Nobody copies for a process or a peer that ends, or for a rail that is ended already. */
static void verdict_is_void_at_the_end(void **state)
{
    make(0, TAG_TAKEN, qps);
    OFO.closing = true;
    ofo_soft_begin(&ep, 0);
    OFO.closing = false;
    peer.closing = true;
    ofo_soft_begin(&ep, 0);
    ofo_soft_end(&ep, 0);
    peer.closing = false;
    qps->drain.own = OFO_DRAIN_FAILED;
    ofo_soft_begin(&ep, 0);
    qps->drain.own = OFO_DRAIN_LIVE;
    assert_int_equal(told + calmed + offered + passed_on, 0);
    ofo_soft_end(&ep, 0);
    assert_int_equal(calmed, 1);
}

/* A carrier of other fragments that waits stays. */
static void waiting_carrier_does_not_move(void **state)
{
    make(0, OFO_TAG_MANY, NULL);
    make(1, TAG_TAKEN, NULL);
    frag[0]->parts = frag[1];
    frag[1]->next_part = NULL;
    --ep.sends_out;
    add_waiting(0);
    ofo_soft_begin(&ep, 0);
    assert_int_equal(ep.pending_count, 1);
    assert_ptr_equal(opal_list_remove_first(&ep.pending[0]), frag[0]);
}

/* A waiting message of sendi and others that have joined it, with these tags. */
static void make_joined(const uint8_t *tags, unsigned count)
{
    make(0, tags[0], NULL);
    frag[0]->is_sendi = true;
    frag[0]->base.des_cbfunc = NULL;
    add_waiting(0);
    for (unsigned i = 1; i < count; ++i) {
        void *to = ofo_coalesce_join(&ep, LENGTH, tags[i], MCA_BTL_NO_ORDER, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
        assert_non_null(to);
        memset(to, (int) i, LENGTH);
    }
    assert_int_equal(ep.sends_out, count);
}

/* The joined messages are out. */
static void post_joined(void)
{
    assert_ptr_equal(opal_list_remove_first(&ep.pending[0]), frag[0]);
    ep.pending_count = 0;
    frag[0]->work.qps = qps;
}

static void joined_messages_beyond_the_share_of_copies_have_none(void **state)
{
    make_joined((const uint8_t[]){TAG_TAKEN, TAG_TAKEN}, 2);
    post_joined();
    ofo_soft_overdue(&ep, 0);
    assert_int_equal(ep.copies_due, 0);
    OFO.copied_bytes = 64 * 1024;
    traffic.sent_bytes = 20 * LENGTH;
    ofo_soft_begin(&ep, 0);
    assert_int_equal(offered, 1);
    assert_int_equal(ep.copies_due, 65000);
    ofo_send_complete(frag[0], OPAL_ERROR);
    assert_int_equal(returned_by_error, 1);
}

static void joined_messages_are_copied_one_by_one(void **state)
{
    make_joined((const uint8_t[]){TAG_TAKEN, TAG_REFUSED, TAG_TAKEN, TAG_REFUSED}, 4);
    post_joined();
    ofo_soft_begin(&ep, 0);
    assert_int_equal(offered, 4);
    assert_int_equal(module.count.copies, 2);
    assert_null(owners[0]);
    now += 1000;
    ofo_soft_begin(&ep, 0); /* those that have a copy are not offered again */
    assert_int_equal(offered, 6);
    assert_int_equal(ep.copies_due, 65000);
    ofo_soft_overdue(&ep, 0);
    assert_int_equal(ep.copies_due, 65000);
    assert_int_equal(ep.sends_out, 4);
    ofo_send_complete(frag[0], OPAL_ERROR);
    assert_int_equal(returned_by_error, 2);
    assert_int_equal(last_returned, TAG_REFUSED);
    assert_int_equal(ep.sends_out, 0);
}

/* A carrier of the next queue may hold fragments that other messages have joined. */
static void joined_messages_in_a_carrier_are_copied_one_by_one(void **state)
{
    make_joined((const uint8_t[]){TAG_TAKEN, TAG_REFUSED, TAG_TAKEN}, 3);
    post_joined();
    make(1, OFO_TAG_MANY, qps);
    --ep.sends_out; /* a carrier is no message */
    frag[0]->work.qps = NULL;
    frag[0]->next_part = NULL;
    frag[1]->parts = frag[0];
    ofo_soft_begin(&ep, 0);
    assert_int_equal(offered, 3);
    assert_int_equal(module.count.copies, 2);
    ofo_send_complete(frag[1], OPAL_ERROR);
    assert_int_equal(returned_by_error, 1);
    assert_int_equal(last_returned, TAG_REFUSED);
    assert_int_equal(ep.sends_out, 0);
}

static void waiting_joined_messages_move_and_the_others_keep_their_order(void **state)
{
    const uint8_t *bytes;
    size_t at = 0, length;
    ofo_part_t part;

    make_joined((const uint8_t[]){TAG_REFUSED, TAG_TAKEN, TAG_REFUSED, TAG_TAKEN}, 4);
    ofo_soft_begin(&ep, 0);
    bytes = frag[0]->segment.seg_addr.pval;
    length = frag[0]->segment.seg_len;
    assert_int_equal(offered, 4);
    assert_int_equal(ep.pending_count, 1);
    assert_int_equal(ep.sends_out, 2);
    assert_int_equal(frag[0]->joined, 2);
    assert_true(ofo_parts_next(bytes, length, &at, &part));
    assert_true(ofo_parts_next(bytes, length, &at, &part));
    assert_int_equal(part.tag, TAG_REFUSED);
    assert_int_equal(part.length, LENGTH);
    assert_int_equal(bytes[part.at], 2);
    assert_int_equal(bytes[part.at + LENGTH - 1], 2);
    assert_false(ofo_parts_next(bytes, length, &at, &part));
    ofo_send_complete(frag[0], OPAL_ERROR);
    assert_int_equal(returned_by_error, 2);
    assert_int_equal(ep.sends_out, 0);
}

static void fragment_is_free_when_all_its_joined_messages_move(void **state)
{
    make_joined((const uint8_t[]){TAG_TAKEN, TAG_TAKEN}, 2);
    ofo_soft_begin(&ep, 0);
    assert_int_equal(ep.pending_count + ep.sends_out, 0);
    assert_true(opal_list_is_empty(&ep.pending[0]));
    assert_int_equal(returned_by_error, 0);
}

/* The oldest of several first copies counts, also if it is part of a carrier. */
static void rail_ends_by_the_oldest_part_of_a_carrier(void **state)
{
    make(0, OFO_TAG_MANY, qps);
    make(1, TAG_TAKEN, NULL);
    make(2, TAG_TAKEN, NULL);
    frag[0]->parts = frag[1];
    frag[1]->next_part = frag[2];
    frag[2]->next_part = NULL;
    --ep.sends_out;
    ofo_soft_begin(&ep, 0);
    assert_int_equal(offered, 2);
    frag[1]->copied_at = 9000;
    frag[2]->copied_at = 8000;
    now = 10000;
    ofo_soft_overdue(&ep, 0);
    assert_int_equal(ep.copies_due, 68000);
    frag[2]->copied_at = 9500;
    ofo_soft_overdue(&ep, 0);
    assert_int_equal(ep.copies_due, 69000);
    now = 69000;
    qps->drain.own = OFO_DRAIN_FAILED; /* it has ended already */
    ofo_soft_overdue(&ep, 0);
    assert_int_equal(failed, 0);
    qps->drain.own = OFO_DRAIN_LIVE;
    ofo_soft_overdue(&ep, 0);
    assert_int_equal(failed, 1);
    ep.qps = NULL;
    ofo_soft_overdue(&ep, 0);
    assert_int_equal(failed, 1);
    assert_int_equal(ep.copies_due, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(posted_message_with_a_copy_tells_nobody_of_its_end),
        TEST(message_that_the_pml_refuses_keeps_its_owner),
        TEST(messages_of_other_sets_copies_and_first_copies_are_not_offered),
        TEST(parts_of_a_carrier_are_copied_one_by_one),
        TEST(waiting_messages_move_and_the_others_keep_their_order),
        TEST(copies_are_a_twentieth_of_the_bytes_and_a_fixed_part),
        TEST(verdict_is_void_if_work_has_ended_or_the_pml_has_no_other_rail),
        TEST(verdict_of_the_peer_copies_whatever_is_out_and_goes_no_further),
        TEST(own_verdict_is_passed_on_if_the_pml_agrees),
        TEST(rail_ends_when_a_first_copy_is_out_for_a_minute),
        TEST(rail_whose_first_copies_have_come_back_is_left_alone),
        TEST(verdict_is_void_at_the_end),
        TEST(waiting_carrier_does_not_move),
        TEST(joined_messages_are_copied_one_by_one),
        TEST(joined_messages_in_a_carrier_are_copied_one_by_one),
        TEST(joined_messages_beyond_the_share_of_copies_have_none),
        TEST(waiting_joined_messages_move_and_the_others_keep_their_order),
        TEST(fragment_is_free_when_all_its_joined_messages_move),
        TEST(rail_ends_by_the_oldest_part_of_a_carrier),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
