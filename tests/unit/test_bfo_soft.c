/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which messages of a rail that seems silent the PML sends a second time, and with whose callback. The BTL and the rest of the PML are
 * played here. DESIGN.txt 9, rule 13.
 */
#include "bfo_config.h"

#include "types/pml_bfo.h"

#include "rails/pml_bfo_post.h"
#include "rails/pml_bfo_rails.h"
#include "rails/pml_bfo_soft.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

bfo_t bfo;

static mca_btl_base_module_t btl, other;
static bfo_btl_ext_t ext;
static ompi_proc_t proc;
static bfo_peer_t *peer;

/* ---- what the room calls ------------------------------------------------------------------------ */

static unsigned copies;
static mca_btl_base_completion_fn_t done;
static void *context;
static int answer;

uint8_t bfo_rail_index(const bfo_peer_t *of, const mca_btl_base_module_t *module)
{
    return module == &btl ? 0 : BFO_MAX_RAILS;
}
bool bfo_rail_soften(bfo_peer_t *of, uint8_t rail, bool is_soft)
{
    assert_int_equal(rail, 0);
    of->soft = is_soft ? 1 : 0;
    of->eager_mask = is_soft ? 2 : 3;
    return true;
}
int bfo_ctl_copy(bfo_peer_t *of, const void *message, size_t length, mca_btl_base_completion_fn_t of_old, void *data)
{
    ++copies;
    done = of_old;
    context = data;
    return answer;
}

/* ---- set-up ------------------------------------------------------------------------------------- */

static void old_done(mca_btl_base_module_t *module, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_descriptor_t *des, int status) {}

static int begin(void **state)
{
    peer = calloc(1, sizeof(*peer) + 2 * sizeof(peer->rails[0]));
    peer->n_rails = 2;
    peer->ready = peer->failover = true;
    peer->rails[0].gen = 3;
    proc.proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML] = peer;
    bfo_soft_init();
    ext = (bfo_btl_ext_t){.rail_soft = bfo.callbacks.rail_soft, .send_again = bfo.callbacks.send_again};
    copies = 0;
    answer = OMPI_SUCCESS;
    return 0;
}

static int end(void **state)
{
    free(peer);
    return 0;
}

static bool offers(uint8_t type, uint8_t fflags, const mca_btl_base_descriptor_t *des)
{
    bfo_hdr_t h;

    memset(&h, 0, sizeof(h));
    h.common.type = type;
    if (BFO_MSG_FIN == type) {
        h.fin.fflags = fflags;
    }
    return ext.send_again(&btl, &proc.super, BFO_TAG(type), &h, sizeof(h), des);
}

static void make_soft(void)
{
    assert_true(ext.rail_soft(&btl, &proc.super, 0, 3, true));
}

/* ---- the tests ---------------------------------------------------------------------------------- */

static void only_messages_whose_second_copy_is_dropped_are_copied(void **state)
{
    const bool copied[BFO_MSG_MAX] = {[BFO_MSG_MATCH] = true, [BFO_MSG_RNDV] = true, [BFO_MSG_ACK] = true, [BFO_MSG_FIN] = true};
    mca_btl_base_descriptor_t des = {.des_cbfunc = old_done};

    make_soft();
    for (uint8_t type = 1; type < BFO_MSG_MAX; ++type) {
        assert_int_equal(offers(type, 0, &des), copied[type]);
    }
    assert_int_equal(copies, 4);
    assert_false(offers(BFO_MSG_FIN, BFO_FIN_WRITE, &des));
    assert_false(offers(BFO_MSG_FIN, BFO_FIN_WRITE | BFO_FIN_RESENT, &des));
}

static void second_copy_has_the_callback_of_the_first(void **state)
{
    mca_btl_base_descriptor_t des = {.des_cbfunc = old_done, .des_cbdata = &des};

    make_soft();
    assert_true(offers(BFO_MSG_RNDV, 0, &des));
    assert_true(old_done == done);
    assert_ptr_equal(context, &des);
    assert_true(offers(BFO_MSG_MATCH, 0, NULL)); /* by btl_sendi: self-contained */
    assert_true(NULL == done);
}

static void bytes_of_other_senders_and_tags_are_left_alone(void **state)
{
    const bfo_hdr_t h = {.common = {.type = BFO_MSG_MATCH}};

    make_soft();
    assert_false(ext.send_again(&btl, &proc.super, BFO_TAG(BFO_MSG_ACK), &h, sizeof(h), NULL));
    assert_false(ext.send_again(&btl, &proc.super, 0x20, &h, sizeof(h), NULL));
    assert_false(ext.send_again(&btl, &proc.super, BFO_TAG(BFO_MSG_MATCH), &h, sizeof(bfo_match_hdr_t) - 1, NULL));
    assert_int_equal(copies, 0);
}

static void nothing_is_taken_on_rails_that_are_not_soft_or_carry_everything(void **state)
{
    assert_false(offers(BFO_MSG_MATCH, 0, NULL));
    make_soft();
    peer->eager_mask = 1; /* the other rails have failed since */
    assert_false(offers(BFO_MSG_MATCH, 0, NULL));
    peer->eager_mask = 2;
    answer = OMPI_ERR_OUT_OF_RESOURCE;
    assert_false(offers(BFO_MSG_MATCH, 0, NULL));
    answer = OMPI_SUCCESS;
    peer->declared = true;
    assert_false(offers(BFO_MSG_MATCH, 0, NULL));
}

static void verdict_on_another_generation_module_or_peer_is_void(void **state)
{
    assert_false(ext.rail_soft(&btl, &proc.super, 0, 2, true));
    assert_false(ext.rail_soft(&other, &proc.super, 0, 3, true));
    peer->ready = false;
    assert_false(ext.rail_soft(&btl, &proc.super, 0, 3, true));
    peer->ready = true;
    peer->failover = false;
    assert_false(ext.rail_soft(&btl, &proc.super, 0, 3, true));
    proc.proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML] = NULL;
    assert_false(ext.rail_soft(&btl, &proc.super, 0, 3, true));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_messages_whose_second_copy_is_dropped_are_copied), TEST(second_copy_has_the_callback_of_the_first),
        TEST(bytes_of_other_senders_and_tags_are_left_alone),        TEST(nothing_is_taken_on_rails_that_are_not_soft_or_carry_everything),
        TEST(verdict_on_another_generation_module_or_peer_is_void),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
