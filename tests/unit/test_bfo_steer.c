/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Changes that a process is asked for while it runs, by a list that nobody has checked and by variables of MPI_T. The process takes up each
 * value that is in its range, once; nothing else changes anything. This program stands in for Open MPI's registration and for the file of
 * figures. DESIGN.txt section 19.6.
 */
#include "bfo_config.h"

#include "types/pml_bfo.h"

#include "show/pml_bfo_figures.h"
#include "show/pml_bfo_figures_file.h"
#include "types/pml_bfo_params.h"
#include "show/pml_bfo_settings.h"
#include "show/pml_bfo_steer.h"

#include "opal/mca/base/mca_base_var.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

bfo_t bfo;
bool bfo_threads;
mca_pml_base_component_t mca_pml_bfo_component;

enum { JOB = 0x12340001, SEEN_WITH = 100 };

/* ---- stand-ins ------------------------------------------------------------------------------------- */

static bfo_steer_t file; /* as the command bfo writes it */

const bfo_steer_t *bfo_figures_steer(uint64_t *number)
{
    *number = SEEN_WITH;
    return &file;
}

static unsigned told; /* how often a value was reported */
static uint64_t obeyed;
static char last_words[200];

void bfo_figures_parameter(uint32_t parameter, int64_t value, const char *what)
{
    ++told;
    assert_int_equal(value, bfo_params_value(parameter));
    snprintf(last_words, sizeof(last_words), "%s", what);
}

void bfo_figures_obeyed(uint64_t number)
{
    obeyed = number;
}

/* Messages of level 1. */
void opal_output(int stream, const char *format, ...) {}

static uint32_t mask; /* of the ports that the program takes out of service */

uint32_t bfo_drain_cvar_ports(void)
{
    return mask;
}

const char *bfo_drain_cvar_port(uint32_t bit)
{
    static char name[8];

    snprintf(name, sizeof(name), "p%u:1", bit);
    return name;
}

/* The variables, and where MPI_T writes each. */
static struct {
    const char *name;
    void *at;
    mca_base_var_scope_t scope;
} variables[64];

int mca_base_component_var_register(const mca_base_component_t *component, const char *name, const char *text, mca_base_var_type_t type,
                                    mca_base_var_enum_t *enumerator, int bind, mca_base_var_flag_t flags, mca_base_var_info_lvl_t level,
                                    mca_base_var_scope_t scope, void *at)
{
    int i = 0;

    while (NULL != variables[i].name && 0 != strcmp(name, variables[i].name)) {
        ++i;
    }
    variables[i].name = name;
    variables[i].at = at;
    variables[i].scope = scope;
    return i;
}

static void *variable(const char *name)
{
    for (int i = 0; NULL != variables[i].name; ++i) {
        if (0 == strcmp(name, variables[i].name)) {
            return variables[i].at;
        }
    }
    fail();
    return NULL;
}

static unsigned n_gone;

static void gone(const char *port)
{
    ++n_gone;
}

/* A new list with this number has been written; the process looks at it. */
static bool look(uint64_t number)
{
    bool is_read;

    file.sequence = number;
    is_read = bfo_steer_is_news() && bfo_steer_read(gone);
    bfo_steer_obey(bfo_settings_wish);
    bfo_settings_take();
    return is_read;
}

static void wish(uint32_t at, uint32_t job, uint32_t parameter, int64_t value, uint64_t number)
{
    file.wish[at] = (bfo_steer_wish_t){.job = job, .parameter = parameter, .value = value, .number = number};
    file.n_wishes = at + 1;
}

static int begin(void **state)
{
    memset(&file, 0, sizeof(file));
    file.sequence = SEEN_WITH;
    mask = told = n_gone = 0;
    obeyed = 0;
    OPAL_PROC_MY_NAME.jobid = JOB;
    bfo_params.verbose = 0;
    bfo_params.counters = false;
    bfo_params.warnings_per_minute = 8;
    bfo_params.resend_burst = 64;
    bfo_params.last_rail_timeout = 0;
    bfo_params.rejoin = true;
    assert_int_equal(bfo_params_register(), OPAL_SUCCESS);
    assert_true(bfo_params_are_sound());
    assert_true(bfo_steer_open());
    return 0;
}

static int end(void **state)
{
    bfo_steer_close();
    return 0;
}

/* ---- ranges ------------------------------------------------------------------------------------------ */

static void ranges_are_what_their_words_say(void **state)
{
    for (uint32_t i = 0; i < BFO_PARAMETERS; ++i) {
        const bfo_range_t *range = bfo_range_of(i);
        long long least, most;

        if (2 == sscanf(range->values, "%lld to %lld", &least, &most)) {
            assert_int_equal(least, range->least);
            assert_int_equal(most, range->most);
            assert_false(range->or_zero);
        } else {
            assert_true(range->or_zero && NULL != strstr(range->values, "at least"));
            assert_int_equal(strtoll(strstr(range->values, "at least") + 8, NULL, 10), range->least);
            assert_true(bfo_range_has(i, 0));
        }
        assert_true(bfo_range_has(i, range->least) && bfo_range_has(i, range->most));
        assert_false(bfo_range_has(i, range->least - 1) || bfo_range_has(i, range->most + 1));
        assert_false(bfo_range_has(i, INT64_MIN) || bfo_range_has(i, INT64_MAX));
        assert_int_equal(bfo_range_find(range->name), i);
        assert_non_null(variable(range->name)); /* it is registered under this name */
    }
    assert_int_equal(bfo_range_find("pml_bfo_verbose"), BFO_PARAMETER_VERBOSE);
    assert_int_equal(bfo_range_find("pml_bfo_pml_bfo_verbose"), BFO_PARAMETERS);
    assert_int_equal(bfo_range_find(""), BFO_PARAMETERS);
    assert_false(bfo_range_has(BFO_PARAMETERS, 0) || bfo_range_has(UINT32_MAX, 0));
}

static void only_parameters_that_may_change_can_be_written(void **state)
{
    for (int i = 0; NULL != variables[i].name; ++i) {
        assert_int_equal(MCA_BASE_VAR_SCOPE_LOCAL == variables[i].scope, bfo_range_find(variables[i].name) < BFO_PARAMETERS_LIVE);
        assert_true((MCA_BASE_VAR_SCOPE_LOCAL == variables[i].scope)
                    == ((char *) variables[i].at < (char *) &bfo_params || (char *) (&bfo_params + 1) <= (char *) variables[i].at));
    }
}

/* ---- the list ------------------------------------------------------------------------------------------ */

static void wish_is_obeyed_once(void **state)
{
    wish(0, JOB, BFO_PARAMETER_RESEND_BURST, 5, 102);
    assert_true(look(102));
    assert_int_equal(bfo_params.resend_burst, 5);
    assert_int_equal(*(unsigned *) variable("resend_burst"), 5); /* MPI_T reads it */
    assert_string_equal(last_words, "pml_bfo_resend_burst = 5 (bfo set)");
    assert_int_equal(told, 1);
    assert_int_equal(obeyed, 102);
    *(unsigned *) variable("resend_burst") = 9; /* the program asks for another value afterwards */
    file.n_out = 1;
    assert_true(look(104));
    assert_int_equal(bfo_params.resend_burst, 9);
    assert_string_equal(last_words, "pml_bfo_resend_burst = 9 (MPI_T)");
    assert_int_equal(obeyed, 104);
    wish(0, JOB, BFO_PARAMETER_RESEND_BURST, 5, 106); /* the user asks again */
    assert_true(look(106));
    assert_int_equal(bfo_params.resend_burst, 5);
    assert_int_equal(told, 3);
}

static void wish_that_is_not_meant_is_not_obeyed(void **state)
{
    wish(0, JOB + 1, BFO_PARAMETER_RESEND_BURST, 5, 102);   /* another job */
    wish(1, JOB, BFO_PARAMETER_RESEND_BURST, 6, SEEN_WITH); /* older than the process */
    wish(2, JOB, BFO_PARAMETER_RESEND_BURST, 7, 104);       /* newer than the list */
    wish(3, JOB, BFO_PARAMETERS_LIVE, 8, 102);              /* a parameter that may not change */
    wish(4, JOB, BFO_PARAMETERS, 8, 102);                   /* unknown */
    wish(5, JOB, UINT32_MAX, 8, 102);
    assert_true(look(102));
    assert_int_equal(told, 0);
    assert_int_equal(bfo_params.resend_burst, 64);
    assert_int_equal(bfo_params.max_rails, 8);
    assert_int_equal(obeyed, 102);
}

/* pml_bfo_status_dir is empty: there is no list. The program may still ask for values by MPI_T. */
static void process_without_a_list_obeys_its_program(void **state)
{
    bfo_steer_close();
    obeyed = 77;
    wish(0, JOB, BFO_PARAMETER_RESEND_BURST, 5, 102);
    *(unsigned *) variable("resend_burst") = 9;
    assert_false(look(102));
    assert_int_equal(bfo_params.resend_burst, 9);
    assert_int_equal(told, 1);
    assert_int_equal(obeyed, 77); /* no list is reported as obeyed */
}

static void wrong_value_is_refused_and_told(void **state)
{
    static const int64_t wrong[] = {0, -1, 1000001, INT64_MIN, INT64_MAX, (INT64_C(1) << 32) + 1};

    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        wish(0, JOB, BFO_PARAMETER_RESEND_BURST, wrong[i], 102 + 2 * i);
        assert_true(look(102 + 2 * i));
        assert_int_equal(bfo_params.resend_burst, 64);
        assert_int_equal(told, i + 1);
        assert_non_null(strstr(last_words, "(bfo set; refused: it must be 1 to 1000000)"));
    }
    bfo_params.rejoin = false;
    wish(0, JOB, BFO_PARAMETER_LAST_RAIL_TIMEOUT, 5, 202);
    assert_true(look(202));
    assert_int_equal(bfo_params.last_rail_timeout, 0);
    assert_non_null(strstr(last_words, "refused: it must be 0 unless pml_bfo_rejoin is 1"));
}

static void length_out_of_range_is_an_empty_list(void **state)
{
    for (uint32_t i = 0; i < BFO_STEER_WISHES; ++i) {
        wish(i, JOB, BFO_PARAMETER_RESEND_BURST, 5, 102);
    }
    file.n_wishes = BFO_STEER_WISHES + 1;
    file.n_out = BFO_STEER_PORTS + 1;
    assert_true(look(102));
    assert_int_equal(told, 0);
    assert_int_equal(bfo_steer_ports(), 0);
    file.n_wishes = file.n_out = UINT32_MAX;
    assert_true(look(104));
    assert_int_equal(told, 0);
    assert_int_equal(bfo_steer_ports(), 0);
    for (uint32_t i = 0; i < BFO_STEER_WISHES; ++i) {
        wish(i, JOB, BFO_PARAMETER_RESEND_BURST, 5, 106);
    }
    file.n_out = 0;
    assert_true(look(106));
    assert_int_equal(told, BFO_STEER_WISHES); /* as many as the list has room for */
}

static void list_that_is_being_written_is_left(void **state)
{
    wish(0, JOB, BFO_PARAMETER_RESEND_BURST, 5, 102);
    assert_false(look(101));
    assert_int_equal(told, 0);
    mask = 1; /* a change by the program does not wait for the list */
    assert_true(look(101));
    assert_int_equal(bfo_steer_place("p0:1"), 0);
    assert_true(look(102));
    assert_int_equal(told, 1);
}

static void nothing_gets_through_a_list_of_any_bytes(void **state)
{
    uint64_t seed = 88172645463325252u, number = SEEN_WITH;

    for (unsigned n = 0; n < 20000; ++n) {
        for (size_t i = 0; i < sizeof(file) / 8; ++i) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            ((uint64_t *) &file)[i] = seed;
        }
        number += 2;
        file.n_out %= BFO_STEER_PORTS + 2;
        file.n_wishes %= BFO_STEER_WISHES + 2;
        for (unsigned i = 0; i < BFO_STEER_WISHES && 0 != n % 4; ++i) { /* three of four lists are nearly valid */
            file.wish[i].job = JOB;
            file.wish[i].parameter %= BFO_PARAMETERS_LIVE + 1;
            file.wish[i].number = number - file.wish[i].number % 3;
            file.wish[i].value >>= file.wish[i].value & 63;
        }
        mask = (uint32_t) seed & ((1u << BFO_DRAIN_NAMES) - 1);
        (void) look(number);
        assert_in_range(bfo_steer_ports(), 0, BFO_STEER_MOST);
        for (uint32_t i = 0; i < BFO_PARAMETERS; ++i) {
            assert_true(bfo_range_has(i, bfo_params_value(i)));
        }
    }
    assert_int_not_equal(told, 0);
}

/* ---- ports ---------------------------------------------------------------------------------------------- */

static void ports_of_user_and_program_stand_out_together(void **state)
{
    strcpy(file.out[0], "p1:1");
    memset(file.out[1], 'x', sizeof(file.out[1])); /* no NUL at its end */
    file.n_out = 2;
    mask = 1u << 1 | 1u << 3;
    assert_true(look(102));
    assert_int_equal(bfo_steer_ports(), 3);
    assert_in_range(bfo_steer_place("p1:1"), 0, 2);
    assert_in_range(bfo_steer_place("p3:1"), 0, 2);
    assert_int_equal(bfo_steer_place("p2:1"), 3);
    mask = 0;
    assert_true(bfo_steer_is_news());
    assert_true(look(102));
    assert_int_equal(n_gone, 1); /* the user keeps port 1 out */
    assert_int_equal(bfo_steer_ports(), 2);
    assert_false(bfo_steer_is_news());
    file.n_out = 0;
    assert_true(look(104));
    assert_int_equal(n_gone, 3);
    assert_int_equal(bfo_steer_ports(), 0);
}

static void port_that_the_user_forces_is_forced(void **state)
{
    strcpy(file.out[0], "p1:1");
    strcpy(file.out[1], "p2:1");
    file.n_out = 2;
    file.forced = 1u << 1 | 1u << 5; /* the second bit has no port */
    mask = 1u << 2 | 1u << 3;
    assert_true(look(102));
    assert_int_equal(bfo_steer_ports(), 3);
    assert_false(bfo_steer_is_forced(bfo_steer_place("p1:1")));
    assert_true(bfo_steer_is_forced(bfo_steer_place("p2:1")));
    assert_false(bfo_steer_is_forced(bfo_steer_place("p3:1")));
    file.n_out = 1;
    assert_true(look(104));
    assert_false(bfo_steer_is_forced(bfo_steer_place("p2:1"))); /* only the program keeps it out now */
}

/* ---- the program ------------------------------------------------------------------------------------------ */

static void wrong_value_of_the_program_is_taken_back(void **state)
{
    assert_false(bfo_settings_are_news());
    *(unsigned *) variable("warnings_per_minute") = 1001;
    *(uint8_t *) variable("counters") = 2;
    *(int *) variable("verbose") = 3;
    assert_true(bfo_settings_are_news());
    bfo_settings_take();
    assert_false(bfo_settings_are_news());
    assert_int_equal(*(unsigned *) variable("warnings_per_minute"), 8);
    assert_int_equal(*(uint8_t *) variable("counters"), 0);
    assert_int_equal(bfo_params.warnings_per_minute, 8);
    assert_int_equal(bfo_params_value(BFO_PARAMETER_COUNTERS), 0);
    assert_int_equal(bfo_params.verbose, 3);
    assert_int_equal(told, 3);
}

static void value_of_before_the_start_is_checked_at_start(void **state)
{
    *(unsigned *) variable("resend_burst") = 0;
    assert_int_equal(bfo_params.resend_burst, 64);
    assert_false(bfo_params_are_sound());
    *(unsigned *) variable("resend_burst") = 3;
    assert_true(bfo_params_are_sound());
    assert_int_equal(bfo_params.resend_burst, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ranges_are_what_their_words_say, begin, end),
        cmocka_unit_test_setup_teardown(only_parameters_that_may_change_can_be_written, begin, end),
        cmocka_unit_test_setup_teardown(wish_is_obeyed_once, begin, end),
        cmocka_unit_test_setup_teardown(wish_that_is_not_meant_is_not_obeyed, begin, end),
        cmocka_unit_test_setup_teardown(process_without_a_list_obeys_its_program, begin, end),
        cmocka_unit_test_setup_teardown(wrong_value_is_refused_and_told, begin, end),
        cmocka_unit_test_setup_teardown(length_out_of_range_is_an_empty_list, begin, end),
        cmocka_unit_test_setup_teardown(list_that_is_being_written_is_left, begin, end),
        cmocka_unit_test_setup_teardown(nothing_gets_through_a_list_of_any_bytes, begin, end),
        cmocka_unit_test_setup_teardown(ports_of_user_and_program_stand_out_together, begin, end),
        cmocka_unit_test_setup_teardown(port_that_the_user_forces_is_forced, begin, end),
        cmocka_unit_test_setup_teardown(wrong_value_of_the_program_is_taken_back, begin, end),
        cmocka_unit_test_setup_teardown(value_of_before_the_start_is_checked_at_start, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
