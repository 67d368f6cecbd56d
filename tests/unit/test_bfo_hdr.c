/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Headers: the offsets on the wire, and which damage the check refuses. DESIGN.txt section 6.
 */
#include "bfo_config.h"

#include "formats/pml_bfo_hdr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t at(const void *p, size_t offset, size_t bytes)
{
    uint64_t v = 0;

    memcpy(&v, (const char *) p + offset, bytes); /* only on a little-endian host, where the wire is little-endian too */
    return v;
}

static void match_fields_lie_at_their_offsets(void **state)
{
    bfo_match_hdr_t h;

    memset(&h, 0xff, sizeof(h));
    bfo_hdr_pack_match(&h, BFO_MSG_MATCH, BFO_FLAG_ACK, 0x1234, 7, -31, 0xdeadbeef);
    assert_int_equal(16, sizeof(h));
    assert_int_equal(1, at(&h, 0, 1));
    assert_int_equal(1, at(&h, 1, 1));
    assert_int_equal(0x1234, at(&h, 2, 2));
    assert_int_equal(7, at(&h, 4, 4));
    assert_int_equal((uint32_t) -31, at(&h, 8, 4));
    assert_int_equal(0xdeadbeef, at(&h, 12, 4));
}

static void ack_fields_lie_at_their_offsets(void **state)
{
    bfo_ack_hdr_t h;

    memset(&h, 0xff, sizeof(h));
    bfo_hdr_pack_ack(&h, 0x0102, 0x1111111122222222, 0x3333333344444444, 1000, 2000);
    assert_int_equal(40, sizeof(h));
    assert_int_equal(4, at(&h, 0, 1));
    assert_int_equal(0x0102, at(&h, 2, 2));
    assert_int_equal(0, at(&h, 4, 4));
    assert_true(0x1111111122222222 == at(&h, 8, 8));
    assert_true(0x3333333344444444 == at(&h, 16, 8));
    assert_int_equal(1000, at(&h, 24, 8));
    assert_int_equal(2000, at(&h, 32, 8));
}

static void fin_carries_the_message_without_type_and_flags(void **state)
{
    bfo_match_hdr_t m;
    bfo_fin_hdr_t h;

    bfo_hdr_pack_match(&m, BFO_MSG_RNDV, BFO_FLAG_PIN, 3, 4, 5, 6);
    memset(&h, 0xff, sizeof(h));
    bfo_hdr_pack_fin(&h, 9, BFO_FIN_WRITE, 0x500000001, 4096, &m);
    assert_int_equal(48, sizeof(h));
    assert_int_equal(9, at(&h, 0, 1));
    assert_int_equal(9, at(&h, 2, 2));
    assert_int_equal(0, at(&h, 4, 1));
    assert_int_equal(BFO_FIN_WRITE, at(&h, 5, 1));
    assert_int_equal(0, at(&h, 6, 2));
    assert_int_equal(4096, at(&h, 8, 8));
    assert_true(0x500000001 == at(&h, 16, 8));
    assert_int_equal(0, at(&h, 24, 2));
    assert_int_equal(3, at(&h, 26, 2));
    assert_int_equal(4, at(&h, 28, 4));
    assert_int_equal(6, at(&h, 36, 4));
}

static void restart_part_of_rget_is_aligned(void **state)
{
    assert_int_equal(56 + 13, bfo_hdr_size(BFO_MSG_RGET, 0, 13));
    assert_int_equal(72 + 16, bfo_hdr_size(BFO_MSG_RGET, BFO_FLAG_RESTART, 13));
    assert_int_equal(48, bfo_hdr_size(BFO_MSG_RNDV, BFO_FLAG_RESTART, 13));
    assert_int_equal(64, bfo_hdr_size(BFO_MSG_NACK, 0, 13));
    assert_int_equal(20, bfo_hdr_size(BFO_MSG_RAILS, 0, 13));
    assert_int_equal(40, bfo_hdr_size(BFO_MSG_LIFE, 0, 13));
    assert_int_equal(16, bfo_hdr_size(BFO_MSG_FOREIGN, 0, 13));
    assert_int_equal(0, bfo_hdr_size(15, 0, 13));
    assert_int_equal(0, bfo_hdr_size(255, 0, 13));
}

/* A header of each type is valid as packed, and refused when it is shorter, of another type, or in network byte order. */
static void header_too_short_or_of_another_type_is_refused(void **state)
{
    static const uint8_t types[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    const size_t h = 12;
    union {
        bfo_hdr_t hdr;
        char room[BFO_HDR_MAX];
    } u;

    for (size_t i = 0; i < sizeof(types); ++i) {
        const uint8_t t = types[i];
        const size_t size = bfo_hdr_size(t, 0, h);
        const size_t total = BFO_MSG_FRAG == t ? size + 1 : size;

        memset(&u, 0, sizeof(u));
        u.hdr.common.type = t;
        switch (t) {
        case BFO_MSG_RNDV:
            u.hdr.rndv.src_id = 1;
            break;
        case BFO_MSG_RGET:
            u.hdr.rndv.src_id = u.hdr.rget.frag_id = 1;
            break;
        case BFO_MSG_ACK:
            u.hdr.ack.src_id = 1;
            break;
        case BFO_MSG_FRAG:
            u.hdr.frag.dst_id = 1;
            break;
        case BFO_MSG_PUT:
            u.hdr.put.src_id = u.hdr.put.frag_id = u.hdr.put.dst_size = 1;
            break;
        case BFO_MSG_FIN:
            u.hdr.fin.frag_id = 1;
            break;
        case BFO_MSG_RAILS:
            u.hdr.rails.number = 1;
            break;
        case BFO_MSG_LIFE:
            u.hdr.life.number = 1;
            break;
        default:
            break;
        }
        assert_true(bfo_hdr_is_valid(t, &u, total, total, h));
        for (size_t n = 0; n < size; ++n) {
            assert_false(bfo_hdr_is_valid(t, &u, n, n, h));
        }
        assert_false(bfo_hdr_is_valid((uint8_t) (t + 1), &u, total, total, h));
        u.hdr.common.flags = BFO_FLAG_NBO;
        assert_false(bfo_hdr_is_valid(t, &u, total, total, h));
    }
}

static void lengths_that_contradict_are_refused(void **state)
{
    bfo_hdr_t h;

    memset(&h, 0, sizeof(h));
    bfo_hdr_pack_match(&h.match, BFO_MSG_RNDV, 0, 1, 2, 3, 4);
    h.rndv.src_id = 1;
    h.rndv.msg_length = 10;
    assert_true(bfo_hdr_is_valid(BFO_MSG_RNDV, &h, 42, 42, 0));
    assert_false(bfo_hdr_is_valid(BFO_MSG_RNDV, &h, 43, 43, 0)); /* more payload than the message has */
    h.rndv.msg_length = UINT64_MAX;
    assert_false(bfo_hdr_is_valid(BFO_MSG_RNDV, &h, 42, 42, 0));
    bfo_hdr_pack_ack(&h.ack, 0, 1, 2, UINT64_MAX - 1, 4); /* the sum wraps */
    assert_false(bfo_hdr_is_valid(BFO_MSG_ACK, &h, 40, 40, 0));
    bfo_hdr_pack_frag(&h.frag, 0, 1, 2, INT64_MAX);
    assert_false(bfo_hdr_is_valid(BFO_MSG_FRAG, &h, 33, 33, 0));
    h.life = (bfo_life_hdr_t){.type = BFO_MSG_LIFE, .answer = BFO_PROCESS_DEAD, .number = 1};
    assert_true(bfo_hdr_is_valid(BFO_MSG_LIFE, &h, 40, 40, 0));
    assert_false(bfo_hdr_is_valid(BFO_MSG_LIFE, &h, 40, 41, 0)); /* LIFE has no payload */
    h.life.answer = BFO_PROCESS_ANSWERS;
    assert_false(bfo_hdr_is_valid(BFO_MSG_LIFE, &h, 40, 40, 0)); /* no such answer */
    h.life = (bfo_life_hdr_t){.type = BFO_MSG_LIFE};
    assert_false(bfo_hdr_is_valid(BFO_MSG_LIFE, &h, 40, 40, 0)); /* the number of no wait */
    bfo_hdr_pack_match(&h.match, BFO_MSG_MATCH, 0, 1, -1, 3, 4); /* no such rank */
    assert_false(bfo_hdr_is_valid(BFO_MSG_MATCH, &h, 16, 16, 0));
    assert_false(bfo_hdr_match_is_valid(&h.match, 16));
}

/* Random bytes never make the check read outside the header; the sanitizers would report it. */
static void random_bytes_are_survived(void **state)
{
    unsigned seed = NULL != getenv("BFO_SEED") ? (unsigned) atoi(getenv("BFO_SEED")) : 20231;

    print_message("BFO_SEED=%u\n", seed);
    for (int round = 0; round < 200000; ++round) {
        const size_t length = (size_t) rand_r(&seed) % 128;
        unsigned char *p = malloc(length + 1); /* the exact size, so that AddressSanitizer sees an overrun */

        for (size_t i = 0; i < length; ++i) {
            p[i] = (unsigned char) (rand_r(&seed) >> 7);
        }
        for (uint8_t type = 0; type < 16; ++type) {
            if (length > 0) {
                p[0] = type;
            }
            (void) bfo_hdr_is_valid(type, p, length, length + (size_t) rand_r(&seed) % 3, 16);
        }
        free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(match_fields_lie_at_their_offsets),
        cmocka_unit_test(ack_fields_lie_at_their_offsets),
        cmocka_unit_test(fin_carries_the_message_without_type_and_flags),
        cmocka_unit_test(restart_part_of_rget_is_aligned),
        cmocka_unit_test(header_too_short_or_of_another_type_is_refused),
        cmocka_unit_test(lengths_that_contradict_are_refused),
        cmocka_unit_test(random_bytes_are_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
