/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The loss check of a rail: every count that can show a loss, on every queue pair, around the wrap of 16 bits, and
 * the result if counts are unknown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "formats/btl_openib_counts.h"

static ofo_counts_t counts(uint64_t all, uint16_t each, uint16_t eager)
{
    ofo_counts_t c = {.n_ok = all, .n_eager = eager};

    for (unsigned i = 0; i < OFO_MAX_QPS; ++i) {
        c.n_send[i] = each;
    }
    return c;
}

static void counts_equal_or_ahead_of_the_sender_are_no_loss(void **state)
{
    static const uint16_t bases[] = {0, 1, 32767, 32768, 65535};

    for (size_t b = 0; b < sizeof(bases) / sizeof(bases[0]); ++b) {
        for (unsigned more = 0; more < 32768; more += 4681) { /* messages that arrived although the sender got an error */
            ofo_counts_t sent = counts(100, bases[b], bases[b]);
            ofo_counts_t received = counts(100 + more, (uint16_t) (bases[b] + more), (uint16_t) (bases[b] + more));
            assert_false(ofo_counts_show_loss(&sent, &received));
        }
    }
}

static void counts_one_message_short_is_a_loss_on_any_queue_pair(void **state)
{
    for (unsigned base = 0; base < 65536; base += 257) {
        ofo_counts_t received = counts(1000000, (uint16_t) base, (uint16_t) base);
        for (unsigned i = 0; i < OFO_MAX_QPS; ++i) {
            ofo_counts_t sent = received;
            ++sent.n_send[i];
            assert_true(ofo_counts_show_loss(&sent, &received));
            /* another queue pair received more messages than the sender counted: the sum alone shows no loss */
            ofo_counts_t other = received;
            ++other.n_send[(i + 1) % OFO_MAX_QPS];
            assert_true(ofo_counts_show_loss(&sent, &other));
            sent.n_send[i] = (uint16_t) (received.n_send[i] + 32767);
            assert_true(ofo_counts_show_loss(&sent, &received));
        }
        ofo_counts_t sent = received;
        ++sent.n_eager;
        assert_true(ofo_counts_show_loss(&sent, &received));
    }
}

static void counts_of_whole_wraps_are_told_by_the_sum(void **state)
{
    ofo_counts_t sent = counts(65536, 0, 0), received = counts(0, 0, 0);

    assert_true(ofo_counts_show_loss(&sent, &received));
    received.n_ok = 65536;
    assert_false(ofo_counts_show_loss(&sent, &received));
}

static void check_verdicts(void **state)
{
    ofo_counts_t less = counts(5, 5, 0), more = counts(6, 6, 0);

    for (int lossy = 0; lossy < 2; ++lossy) {
        assert_int_equal(ofo_counts_check(&less, true, &more, lossy), OFO_CHECK_GOOD);
        assert_int_equal(ofo_counts_check(&more, true, &less, lossy), OFO_CHECK_LOSS);
    }
    assert_int_equal(ofo_counts_check(&more, false, &less, false), OFO_CHECK_NONE);
    assert_int_equal(ofo_counts_check(&less, false, &more, true), OFO_CHECK_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_equal_or_ahead_of_the_sender_are_no_loss),
        cmocka_unit_test(counts_one_message_short_is_a_loss_on_any_queue_pair),
        cmocka_unit_test(counts_of_whole_wraps_are_told_by_the_sum),
        cmocka_unit_test(check_verdicts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
