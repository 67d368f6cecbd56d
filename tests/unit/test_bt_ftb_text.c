/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Lines of fault events: which lines are read and written, which are refused, and with which reason. Then tens of thousands of damaged
 * lines (BFO_FTB_INPUTS, BFO_FTB_SEED): a line that is read must be the same after it is written and read again. DESIGN.txt section 19.11.
 */
#include "bt_ftb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bt_ftb_event_t e, again;
static char line[BT_FTB_LINE], second[BT_FTB_LINE];

static void line_is_written_in_one_way(void **state)
{
    static const struct {
        const char *in, *out;
    } good[] = {
        {"ftb.mpi.x info A", NULL},
        {"ftb.mpi.x info A   ", "ftb.mpi.x info A"},
        {"ftb.monitor.bfo error IFACE_DEAD iface: mlx5_0:1, node: n1.cluster", NULL},
        {"a fatal B c:d,e:{f ,g,  \"h i\" } , j : k", "a fatal B c: d, e: {f, g, \"h i\"}, j: k"},
        {"a warning B c: \"\", d: \"bare\", e: \"q\\\"b\\\\\", f: \"a, {b: c}\"",
         "a warning B c: \"\", d: bare, e: \"q\\\"b\\\\\", f: \"a, {b: c}\""},
        {"a info B ranks: {0, 1, 2}, jobs: {54321.1}", NULL},
    };

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); ++i) {
        assert_true(bt_ftb_read(&e, good[i].in));
        bt_ftb_write(&e, line);
        assert_string_equal(NULL == good[i].out ? good[i].in : good[i].out, line);
    }
}

static void line_that_is_wrong_is_refused_with_a_reason(void **state)
{
    static const struct {
        const char *in, *why;
    } bad[] = {
        {"", "a space of events"},
        {"A info B", "a space of events"},
        {"a", "a severity is"},
        {"a loud B", "a severity is"},
        {"a info", "the name of an event"},
        {"a info b", "the name of an event"},
        {"a info B-C", "the name of an event"},
        {"a info B c", "after a key comes :"},
        {"a info B c:", "a word of"},
        {"a info B c: d,", "a key of"},
        {"a info B ,", "a key of"},
        {"a info B C: d", "a key of"},
        {"a info B c: d e", "between two pairs comes ,"},
        {"a info B c: d, c: e", "each key stands once"},
        {"a info B c: {}", "a word of"},
        {"a info B c: {d", "a set goes on"},
        {"a info B c: {d,}", "a word of"},
        {"a info B c: {d e}", "a set goes on"},
        {"a info B c: {{d}}", "a word of"},
        {"a info B c: d}", "between two pairs"},
        {"a info B c: \"d", "quotes end"},
        {"a info B c: \"d\\", "after \\ in quotes"},
        {"a info B c: \"d\\n\"", "after \\ in quotes"},
        {"a info B c: $(reboot)", "a word of"},
        {"a info B c: `d`", "a word of"},
        {"a info B c: d\tx", "printable ASCII"},
        {"a info B c: \"\033[2J\"", "printable ASCII"},
        {"a info B c: \"\xc3\xa4\"", "printable ASCII"},
        {"a info B c: \"d\ne\"", "printable ASCII"},
        {"a info B kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk: d", "a key of"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        const bool is_read = bt_ftb_read(&e, bad[i].in);

        if (is_read || NULL == strstr(e.why, bad[i].why)) {
            fail_msg("'%s': %s", bad[i].in, is_read ? "it was read" : e.why);
        }
    }
}

static void limits_are_kept(void **state)
{
    char text[3 * BT_FTB_LINE] = "a info B c: {w0", word[32];
    size_t n;

    for (int i = 1; i < BT_FTB_SET; ++i) {
        snprintf(word, sizeof(word), ", w%d", i);
        strcat(text, word);
    }
    strcat(text, "}");
    assert_true(bt_ftb_read(&e, text));
    assert_non_null(bt_ftb_words(&e, "c", &n));
    assert_int_equal(BT_FTB_SET, n);
    strcpy(text + strlen(text) - 1, ", x}");
    assert_false(bt_ftb_read(&e, text));

    strcpy(text, "a info B");
    for (int i = 0; i <= BT_FTB_PAIRS; ++i) {
        snprintf(word, sizeof(word), "%sk%d: v", 0 == i ? " " : ", ", i);
        strcat(text, word);
        assert_int_equal(i < BT_FTB_PAIRS, bt_ftb_read(&e, text));
    }
    snprintf(text, sizeof(text), "a info B c: %0*d", BT_FTB_TEXT + 10, 0);
    assert_false(bt_ftb_read(&e, text));
    snprintf(text, sizeof(text), "a info B c: \"%0*d\"", 2 * BT_FTB_TEXT, 0);
    assert_false(bt_ftb_read(&e, text));
    snprintf(text, sizeof(text), "a info B%064d c: d", 0);
    assert_false(bt_ftb_read(&e, text));
}

/* A pair that does not fit is left out as a whole. */
static void building_stays_inside(void **state)
{
    char word[BT_FTB_TEXT / 3];
    json_t *json;

    memset(word, 'w', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    bt_ftb_begin(&e, "X");
    for (int i = 0; i < 4; ++i) {
        char key[8];

        snprintf(key, sizeof(key), "k%d", i);
        bt_ftb_add(&e, key, word);
    }
    assert_true(e.is_full);
    for (size_t p = 0; p < e.n_pairs; ++p) {
        assert_int_equal(1, e.pair[p].n);
    }
    bt_ftb_begin(&e, "X");
    bt_ftb_add_set(&e, "s");
    for (int i = 0; i < BT_FTB_SET; ++i) {
        assert_true(bt_ftb_add_to_set(&e, (snprintf(word, sizeof(word), "%d", i), word)));
    }
    assert_true(bt_ftb_add_to_set(&e, "7")); /* the set holds it already */
    assert_false(bt_ftb_add_to_set(&e, "one more"));
    json = bt_ftb_json(&e, "now");
    assert_int_equal(BT_FTB_SET, json_array_size(json_object_get(json_object_get(json, "payload"), "s")));
    json_decref(json);
}

static uint64_t seed;

static uint64_t next_random(void) /* xorshift64* */
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return seed * UINT64_C(2685821657736338717);
}

static void append(char *text, size_t size, const char *part)
{
    if (strlen(text) + strlen(part) + 1 < size) {
        strcat(text, part);
    }
}

/* Makes a good line, or pieces of lines in any order; then changes some characters. */
static void make_input(char *text, size_t size)
{
    static const char *const parts[] = {"ftb.mpi.bfo ",
                                        "error ",
                                        "MPI_IFACE_DEAD ",
                                        "iface: ",
                                        "mlx5_0:1",
                                        ", ",
                                        "{",
                                        "}",
                                        "\"",
                                        "\\\"",
                                        "\\",
                                        "a, b",
                                        ":",
                                        "node: ",
                                        "n1",
                                        " ",
                                        "ranks: {0, 1, 2}",
                                        "cause: \"the port is down\"",
                                        "k",
                                        "0"};
    static const char *const values[] = {"n1",       "mlx5_0:1",         "\"a \\\"b\\\"\"",       "\"\"", "{0}",
                                         "{0,1 ,2}", "{ \"}\", \"{\" }", "{a, b, c, d, e, f, g}", "*"};
    const bool is_good = 0 != next_random() % 3;
    const size_t n = next_random() % (is_good ? 18 : 0 == next_random() % 8 ? 1500 : 24);
    char key[24];

    snprintf(text, size, is_good || 0 == next_random() % 2 ? "a info B " : "");
    for (size_t i = 0; i < n; ++i) {
        snprintf(key, sizeof(key), "%sk%d: ", 0 == i ? "" : 0 == next_random() % 2 ? ", " : ",", (int) i);
        append(text, size, is_good ? key : parts[next_random() % (sizeof(parts) / sizeof(parts[0]))]);
        append(text, size, is_good ? values[next_random() % (sizeof(values) / sizeof(values[0]))] : "");
    }
    for (size_t i = next_random() % 4; 0 < i && '\0' != text[0]; --i) {
        text[next_random() % strlen(text)] = (char) (1 + next_random() % 255);
    }
}

static void damaged_lines_break_nothing(void **state)
{
    const char *inputs = getenv("BFO_FTB_INPUTS"), *begin = getenv("BFO_FTB_SEED");
    const unsigned long most = NULL == inputs ? 50000 : strtoul(inputs, NULL, 10);
    unsigned long n_read = 0;

    seed = (NULL == begin ? 1 : strtoull(begin, NULL, 10)) | 1;
    for (unsigned long i = 0; i < most; ++i) {
        char *text = malloc(BT_FTB_REQUEST), *exact; /* exact: a copy of the exact size, so that a sanitizer sees an access after its end */

        make_input(text, BT_FTB_REQUEST);
        exact = strdup(text);
        free(text);
        if (bt_ftb_read(&e, exact)) {
            ++n_read;
            bt_ftb_write(&e, line);
            assert_true(strlen(line) < BT_FTB_LINE - 1);
            if (!bt_ftb_read(&again, line)) {
                fail_msg("input %lu: '%s' was written, and is refused: %s", i, line, again.why);
            }
            bt_ftb_write(&again, second);
            assert_string_equal(line, second);
            json_decref(bt_ftb_json(&e, "now"));
        } else {
            assert_int_not_equal('\0', e.why[0]);
        }
        free(exact);
    }
    print_message("%lu inputs, %lu of them read\n", most, n_read);
    assert_true(most < 1000 || (n_read > most / 10 && n_read < most)); /* else nothing was tested */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_is_written_in_one_way),
        cmocka_unit_test(line_that_is_wrong_is_refused_with_a_reason),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(building_stays_inside),
        cmocka_unit_test(damaged_lines_break_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
