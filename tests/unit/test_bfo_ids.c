/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Identifier tables, and the counters of communicators that are kept. DESIGN.txt sections 5 and 8.
 */
#include "bfo_config.h"

#include "formats/pml_bfo_ids.h"
#include "formats/pml_bfo_seqmap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static bfo_ids_t ids = BFO_IDS_INITIALIZER;

static void name_is_found_until_it_is_retired(void **state)
{
    bfo_name_t a, b;
    bfo_id_t id;

    assert_int_equal(0, bfo_ids_add(&ids, &a));
    assert_int_equal(0, bfo_ids_add(&ids, &b));
    id = bfo_name_id(&a);
    assert_int_not_equal(0, id);
    assert_ptr_equal(&a, bfo_ids_find(&ids, id));
    assert_ptr_equal(&b, bfo_ids_find(&ids, bfo_name_id(&b)));
    bfo_name_retire(&a);
    assert_null(bfo_ids_find(&ids, id));
    assert_ptr_equal(&a, bfo_ids_find(&ids, bfo_name_id(&a)));
    bfo_ids_free(&ids);
}

static void forged_names_find_nothing(void **state)
{
    bfo_name_t a;

    assert_int_equal(0, bfo_ids_add(&ids, &a));
    assert_null(bfo_ids_find(&ids, 0));
    assert_null(bfo_ids_find(&ids, 1));                     /* slot out of range, generation 0 */
    assert_null(bfo_ids_find(&ids, UINT64_C(0x100000001))); /* slot out of range */
    assert_null(bfo_ids_find(&ids, UINT64_MAX));
    assert_null(bfo_ids_find(&ids, UINT64_C(0x200000000))); /* generation not reached yet */
    bfo_ids_free(&ids);
}

static void generation_skips_zero_when_it_wraps(void **state)
{
    bfo_name_t a;

    assert_int_equal(0, bfo_ids_add(&ids, &a));
    a.gen = UINT32_MAX;
    bfo_name_retire(&a);
    assert_int_equal(1, a.gen);
    bfo_ids_free(&ids);
}

static void table_grows_over_chunks_and_keeps_slots(void **state)
{
    const uint32_t n = 5 * BFO_IDS_CHUNK + 3;
    bfo_name_t *names = calloc(n, sizeof(*names));

    for (uint32_t i = 0; i < n; ++i) {
        assert_int_equal(0, bfo_ids_add(&ids, &names[i]));
        assert_int_equal(i, names[i].slot);
    }
    for (uint32_t i = 0; i < n; ++i) {
        assert_ptr_equal(&names[i], bfo_ids_find(&ids, bfo_name_id(&names[i])));
    }
    bfo_ids_free(&ids);
    free(names);
}

static void counters_are_kept_per_context(void **state)
{
    bfo_seqmap_t m = {0};

    assert_null(bfo_seqmap_find(&m, 0));
    for (uint32_t ctx = 0; ctx < 5000; ++ctx) {
        assert_int_equal(0, bfo_seqmap_store(&m, ctx, ctx * 3, ctx * 5));
    }
    assert_int_equal(0, bfo_seqmap_store(&m, 17, 1, 2)); /* again: overwrites */
    assert_int_equal(5000, m.used);
    for (uint32_t ctx = 0; ctx < 5000; ++ctx) {
        const bfo_seqs_t *s = bfo_seqmap_find(&m, ctx);

        assert_non_null(s);
        assert_int_equal(17 == ctx ? 1 : ctx * 3, s->next_send);
        assert_int_equal(17 == ctx ? 2 : ctx * 5, s->next_recv);
    }
    assert_null(bfo_seqmap_find(&m, 5000));
    bfo_seqmap_free(&m);
}

static void numbers_are_skipped_and_not_taken(void **state)
{
    const uint32_t last = UINT32_MAX; /* the numbers wrap */
    bfo_seqmap_t m = {0};

    assert_false(bfo_seqs_is_used(NULL, 0));
    assert_false(bfo_seqs_is_taken(NULL, 0));
    assert_int_equal(0, bfo_seqmap_skip(&m, 3, 1)); /* makes the entry */
    assert_true(bfo_seqs_is_used(bfo_seqmap_find(&m, 3), 0));
    assert_false(bfo_seqs_is_taken(bfo_seqmap_find(&m, 3), 0));
    assert_int_equal(0, bfo_seqmap_store(&m, 3, 9, last));
    assert_int_equal(0, bfo_seqmap_skip(&m, 3, 2));
    assert_int_equal(9, bfo_seqmap_find(&m, 3)->next_send);
    assert_true(bfo_seqs_is_taken(bfo_seqmap_find(&m, 3), last - 1));
    assert_false(bfo_seqs_is_taken(bfo_seqmap_find(&m, 3), last));
    assert_true(bfo_seqs_is_used(bfo_seqmap_find(&m, 3), last));
    assert_true(bfo_seqs_is_used(bfo_seqmap_find(&m, 3), 1));
    assert_false(bfo_seqs_is_used(bfo_seqmap_find(&m, 3), 2));
    bfo_seqmap_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_is_found_until_it_is_retired),   cmocka_unit_test(forged_names_find_nothing),
        cmocka_unit_test(generation_skips_zero_when_it_wraps), cmocka_unit_test(table_grows_over_chunks_and_keeps_slots),
        cmocka_unit_test(counters_are_kept_per_context),       cmocka_unit_test(numbers_are_skipped_and_not_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
