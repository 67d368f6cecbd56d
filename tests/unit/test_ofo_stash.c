/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Completions that service polls: proofs count, all others are kept for progress in their order, and those of a set that is freed are thrown
 * away. Completion queues, memory and letters are played here. DESIGN.txt section 15.3.
 */
#include "bfo_config.h"

#include "types/btl_openib_lock.h"
#include "types/btl_openib_mail.h"
#include "formats/btl_openib_qpmap.h"
#include "qp/btl_openib_heard.h"
#include "qp/btl_openib_stash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 300 };

ofo_component_t mca_btl_openib_component;

static ofo_module_t module;
static ofo_qpset_t set[2];
static struct ibv_wc waiting[MOST]; /* in the completion queue */
static unsigned n_waiting, next;
static unsigned proved, kept;
static bool has_no_memory;

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    if (next == n_waiting) {
        return 0;
    }
    *wc = waiting[next++];
    return 1;
}
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
    return has_no_memory ? NULL : __real_realloc(old, size);
}
void ofo_tell_service(ofo_endpoint_t *ep, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps)
{
    proved += OFO_MAIL_PROVED == kind;
}
void ofo_recv_kept(ofo_module_t *of, const ofo_recv_t *recv, uint32_t qpn)
{
    ++kept;
}
void ofo_qpmap_trim(ofo_qpmap_t *map) {}

static int begin(void **state)
{
    static struct ibv_context context = {.ops = {.poll_cq = poll_cq}};
    static struct ibv_cq cq = {.context = &context};

    memset(&module, 0, sizeof(module));
    memset(set, 0, sizeof(set));
    set[0].module = set[1].module = &module;
    module.cq[0] = &cq;
    module.cq_count = 1;
    module.transport = &ofo_transport_infiniband;
    n_waiting = next = proved = kept = 0;
    has_no_memory = OFO.closing = false;
    return 0;
}

static int end(void **state)
{
    free(module.stash);
    return 0;
}

static void completes(ofo_work_t *work, enum ibv_wc_status status)
{
    assert_true(n_waiting < MOST);
    waiting[n_waiting] = (struct ibv_wc){.wr_id = (uintptr_t) work, .status = status, .qp_num = n_waiting};
    ++n_waiting;
}

static void proofs_count_and_all_others_are_kept_in_order(void **state)
{
    ofo_work_t proof = {.kind = OFO_WORK_PROVE, .qps = &set[0]}, alive = {.kind = OFO_WORK_ALIVE, .qps = &set[0]};

    set[0].proving = 2;
    completes(&alive, IBV_WC_SUCCESS);
    completes(&proof, IBV_WC_SUCCESS);
    completes(&proof, IBV_WC_WR_FLUSH_ERR); /* a proof that failed is kept: progress brings the rail down */
    assert_true(ofo_poll_and_keep(&module));
    assert_int_equal(proved, 0);
    completes(&proof, IBV_WC_SUCCESS);
    completes(&alive, IBV_WC_SUCCESS);
    assert_true(ofo_poll_and_keep(&module));
    assert_int_equal(proved, 1);
    assert_int_equal(module.stash_count, 3);
    assert_int_equal(module.stash[0].qp_num, 0);
    assert_int_equal(module.stash[1].qp_num, 2);
    assert_int_equal(module.stash[2].qp_num, 4);
    assert_true(ofo_poll_try_lock(&module)); /* it was given back */
}

static void nothing_is_polled_while_progress_polls(void **state)
{
    ofo_work_t alive = {.kind = OFO_WORK_ALIVE, .qps = &set[0]};

    completes(&alive, IBV_WC_SUCCESS);
    assert_true(ofo_poll_try_lock(&module));
    assert_false(ofo_poll_and_keep(&module));
    assert_false(ofo_poll_and_forget(&set[0]));
    assert_int_equal(next, 0);
}

static void stash_grows_and_without_memory_the_queue_keeps_the_rest(void **state)
{
    ofo_work_t alive = {.kind = OFO_WORK_ALIVE, .qps = &set[0]};

    has_no_memory = true;
    completes(&alive, IBV_WC_SUCCESS);
    assert_true(ofo_poll_and_keep(&module));
    assert_int_equal(next, 0);
    has_no_memory = false;
    while (n_waiting < 100) {
        completes(&alive, IBV_WC_SUCCESS);
    }
    assert_true(ofo_poll_and_keep(&module));
    assert_int_equal(module.stash_count, 100);
    has_no_memory = true;
    while (n_waiting < 200) {
        completes(&alive, IBV_WC_SUCCESS);
    }
    assert_true(ofo_poll_and_keep(&module));
    assert_int_equal(module.stash_count, module.stash_size);
    assert_int_equal(next, module.stash_size);
    for (unsigned i = 0; i < module.stash_count; ++i) {
        assert_int_equal(module.stash[i].qp_num, i);
    }
}

static void receives_of_iwarp_are_noted(void **state)
{
    ofo_recv_t recv = {.work = {.kind = OFO_WORK_RECV, .qps = &set[0]}};
    ofo_work_t alive = {.kind = OFO_WORK_ALIVE, .qps = &set[0]};

    completes(&recv.work, IBV_WC_SUCCESS);
    assert_true(ofo_poll_and_keep(&module));
    assert_int_equal(kept, 0); /* no iWARP */
    module.transport = &ofo_transport_iwarp;
    completes(&recv.work, IBV_WC_SUCCESS);
    completes(&recv.work, IBV_WC_WR_FLUSH_ERR);
    completes(&alive, IBV_WC_SUCCESS);
    assert_true(ofo_poll_and_keep(&module));
    assert_int_equal(kept, 1);
    OFO.closing = true;
    completes(&recv.work, IBV_WC_SUCCESS);
    assert_true(ofo_poll_and_keep(&module));
    assert_int_equal(kept, 1);
    assert_int_equal(module.stash_count, 5);
}

static void completions_of_a_set_that_is_freed_are_thrown_away(void **state)
{
    ofo_work_t first = {.kind = OFO_WORK_ALIVE, .qps = &set[0]}, second = {.kind = OFO_WORK_ALIVE, .qps = &set[1]};

    for (unsigned i = 0; i < 10; ++i) {
        completes(0 == i % 3 ? &second : &first, IBV_WC_SUCCESS);
    }
    assert_true(ofo_poll_and_forget(&set[0]));
    assert_int_equal(module.stash_count, 4);
    for (unsigned i = 0; i < module.stash_count; ++i) {
        assert_int_equal(module.stash[i].qp_num, 3 * i);
    }
    assert_true(ofo_poll_and_forget(&set[1]));
    assert_int_equal(module.stash_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(proofs_count_and_all_others_are_kept_in_order),           TEST(nothing_is_polled_while_progress_polls),
        TEST(stash_grows_and_without_memory_the_queue_keeps_the_rest), TEST(receives_of_iwarp_are_noted),
        TEST(completions_of_a_set_that_is_freed_are_thrown_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
