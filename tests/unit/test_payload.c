/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The payloads of test programs (tests/payload.h): a single wrong byte is found wherever it is, and so is a write beside a message or to a
 * buffer that was given back.
 */
#include "../payload.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MOST = 75, LENGTH = 33 };

static void payload_part_of_any_place_has_the_bytes_of_the_whole(void **state)
{
    uint8_t whole[2 * MOST], part[MOST + 4];

    (void) state;
    payload_fill(whole, sizeof(whole), 7);
    for (size_t first = 0; first < MOST; ++first) {
        for (size_t length = 0; length < MOST; ++length) {
            uint8_t *at = part + length % 4;

            memset(part, 0, sizeof(part));
            payload_fill_part(at, length, 7, first);
            assert_memory_equal(at, whole + first, length);
            assert_int_equal(0, at[length]);
        }
    }
    for (size_t i = 0; i < sizeof(whole); ++i) {
        assert_int_equal(payload_byte(7, i), whole[i]);
    }
}

static void payload_with_a_wrong_bit_names_its_byte(void **state)
{
    uint8_t bytes[MOST];

    (void) state;
    for (size_t first = 0; first < 5; ++first) {
        for (size_t length = 0; length < MOST; ++length) {
            payload_fill_part(bytes, length, 0, first);
            assert_int_equal(length, payload_first_wrong_part(bytes, length, 0, first));
            for (size_t i = 0; i < length; ++i) {
                bytes[i] ^= (uint8_t) (1 << i % 8);
                assert_int_equal(i, payload_first_wrong_part(bytes, length, 0, first));
                bytes[i] ^= (uint8_t) (1 << i % 8);
            }
        }
    }
}

/* Zeros, the bytes of another seed, and bytes that lie four places further on. */
static void payload_of_another_message_is_wrong_within_eight_bytes(void **state)
{
    uint8_t bytes[8] = {0};

    (void) state;
    for (uint32_t seed = 0; seed < 1000; ++seed) {
        memset(bytes, 0, sizeof(bytes));
        assert_in_range(payload_first_wrong(bytes, 8, seed), 0, 7);
        payload_fill(bytes, 8, seed + 1);
        assert_in_range(payload_first_wrong(bytes, 8, seed), 0, 7);
        payload_fill_part(bytes, 8, seed, 4);
        assert_in_range(payload_first_wrong(bytes, 8, seed), 0, 7);
    }
}

static void room_written_beside_its_message_names_the_byte(void **state)
{
    char text[128];

    (void) state;
    for (ptrdiff_t at = -PAYLOAD_GUARD; at < LENGTH + PAYLOAD_GUARD; ++at) {
        uint8_t *room = payload_room(LENGTH);

        payload_fill(room, 20, 3);
        assert_null(payload_fault(room, 20, "outside its message"));
        room[at] ^= 1;
        if (0 <= at && at < 20) {
            assert_null(payload_fault(room, 20, "outside its message"));
            assert_int_equal(at, payload_first_wrong(room, 20, 3));
        } else {
            snprintf(text, sizeof(text), "byte %td of a buffer of 33 bytes was written outside its message", at);
            assert_string_equal(text, payload_fault(room, 20, "outside its message"));
        }
        payload_room_free(room);
    }
}

/* After `later` more rooms the room is still kept, or has just left. */
static void late_write_shows_when_the_room_leaves_or_at_the_end(void **state)
{
    static const char text[] = "byte 5 of a buffer of 33 bytes was written after its message was complete";

    (void) state;
    for (int later = 0; later <= PAYLOAD_KEPT; ++later) {
        uint8_t *room = payload_room(LENGTH);
        const char *fault = NULL;

        payload_fill(room, LENGTH, 3);
        assert_null(payload_give_back(room, LENGTH));
        payload_fill_part(room + 5, 1, 3, 5); /* the same byte once more */
        for (int i = 0; i < later; ++i) {
            assert_null(fault);
            fault = payload_give_back(payload_room(0), 0);
        }
        if (PAYLOAD_KEPT > later) {
            assert_null(fault);
            fault = payload_recheck();
        }
        assert_non_null(fault);
        assert_string_equal(text, fault);
        assert_null(payload_recheck());
    }
}

static void room_with_a_fault_is_refused(void **state)
{
    uint8_t *room = payload_room(LENGTH);

    (void) state;
    room[LENGTH] ^= 1;
    assert_string_equal("byte 33 of a buffer of 33 bytes was written outside its message", payload_give_back(room, LENGTH));
    assert_null(payload_recheck());
    payload_room_free(room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payload_part_of_any_place_has_the_bytes_of_the_whole),   cmocka_unit_test(payload_with_a_wrong_bit_names_its_byte),
        cmocka_unit_test(payload_of_another_message_is_wrong_within_eight_bytes), cmocka_unit_test(room_written_beside_its_message_names_the_byte),
        cmocka_unit_test(late_write_shows_when_the_room_leaves_or_at_the_end),    cmocka_unit_test(room_with_a_fault_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
