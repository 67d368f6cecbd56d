/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The parameter pml_bfo_drain: names become bits, at start and when the ports are known, and a mask becomes names. This program stands in for
 * Open MPI's registration. DESIGN.txt section 10.5.
 */
#include "types/pml_bfo.h"

#include "show/pml_bfo_drain_cvar.h"

#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/btl/base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

bfo_t bfo;
mca_pml_base_component_t mca_pml_bfo_component;

/* ---- stand-ins ---------------------------------------------------------------------------------- */

static mca_base_var_enum_t *ports;
static int *variable;
static int refused;

int mca_base_component_var_register(const mca_base_component_t *component, const char *name, const char *help, mca_base_var_type_t type,
                                    mca_base_var_enum_t *enumerator, int bind, mca_base_var_flag_t flags, mca_base_var_info_lvl_t level,
                                    mca_base_var_scope_t scope, void *storage)
{
    if (0 != refused) {
        return refused;
    }
    assert_string_equal(name, "drain");
    OBJ_RETAIN(enumerator);
    ports = enumerator;
    variable = storage;
    return 0;
}

/* `no_memory` copies of a text fail. */
static unsigned no_memory;

char *strdup(const char *text)
{
    char *copy = 0 == no_memory ? malloc(strlen(text) + 1) : NULL;

    no_memory -= 0 == no_memory ? 0 : 1;
    return NULL == copy ? NULL : strcpy(copy, text);
}

/* ---- tests --------------------------------------------------------------------------------------- */

static int parse(const char *text)
{
    int value = -1;

    assert_int_equal(ports->value_from_string(ports, text, &value), OPAL_SUCCESS);
    return value;
}

static bool is_refused(const char *text)
{
    int value = 77;

    return OPAL_ERR_VALUE_OUT_OF_BOUNDS == ports->value_from_string(ports, text, &value) && 77 == value;
}

/* Open MPI 5.0 asks for one of several forms. */
static int describe(char **text)
{
#if !BFO_OMPI_IS_4
    return ports->dump(ports, text, 0);
#else
    return ports->dump(ports, text);
#endif
}

static void registers_and_reports_a_refusal(void **state)
{
    refused = OPAL_ERR_OUT_OF_RESOURCE;
    assert_int_equal(bfo_drain_cvar_register(), OPAL_ERR_OUT_OF_RESOURCE);
    refused = 0;
    assert_int_equal(bfo_drain_cvar_register(), OPAL_SUCCESS);
    assert_non_null(ports);
}

static void each_name_has_one_bit(void **state)
{
    assert_int_equal(parse(NULL), 0);
    assert_int_equal(parse(""), 0);
    assert_int_equal(parse("sr0:1"), 1);
    assert_int_equal(parse("sr1:1,sr0:1"), 3);
    assert_int_equal(parse(",,sr1:1,"), 2);
    assert_int_equal(parse("sr1:10"), 4); /* a longer name with the same beginning */
    assert_int_equal(parse("sr1:2"), 8);  /* the same length, another name */
    assert_string_equal(bfo_drain_cvar_port(3), "sr1:2");
}

static void name_that_is_too_long_is_refused(void **state)
{
    char name[65];

    memset(name, 'x', sizeof(name));
    name[64] = '\0';
    assert_true(is_refused(name));
    name[63] = '\0';
    assert_int_equal(parse(name), 16);
    assert_string_equal(bfo_drain_cvar_port(4), name);
}

static void enumerator_lists_the_names(void **state)
{
    const char *text = NULL;
    int n, value = 0;

    assert_int_equal(ports->get_count(ports, &n), OPAL_SUCCESS);
    assert_int_equal(n, 5);
    assert_int_equal(ports->get_value(ports, 2, &value, &text), OPAL_SUCCESS);
    assert_int_equal(value, 4);
    assert_string_equal(text, "sr1:10");
    assert_int_equal(ports->get_value(ports, 2, NULL, NULL), OPAL_SUCCESS);
    assert_int_equal(ports->get_value(ports, -1, &value, &text), OPAL_ERR_VALUE_OUT_OF_BOUNDS);
    assert_int_equal(ports->get_value(ports, 5, &value, &text), OPAL_ERR_VALUE_OUT_OF_BOUNDS);
}

static void mask_becomes_names(void **state)
{
    char *text = NULL;

    assert_int_equal(ports->string_from_value(ports, 0, &text), OPAL_SUCCESS);
    assert_string_equal(text, "");
    free(text);
    assert_int_equal(ports->string_from_value(ports, 2 | 8, &text), OPAL_SUCCESS);
    assert_string_equal(text, "sr1:1,sr1:2");
    free(text);
    assert_int_equal(ports->string_from_value(ports, 1, NULL), OPAL_SUCCESS); /* only asks whether the value is good */
    assert_int_equal(ports->string_from_value(ports, 32, &text), OPAL_ERR_VALUE_OUT_OF_BOUNDS);
    assert_int_equal(ports->string_from_value(ports, -1, NULL), OPAL_ERR_VALUE_OUT_OF_BOUNDS);
}

/* ompi_info and MPI_T show the description to the user. */
static void enumerator_describes_itself(void **state)
{
    char *text = NULL;

    assert_int_equal(describe(&text), OPAL_SUCCESS);
    assert_non_null(text);
    assert_non_null(strstr(text, "comma-separated"));
    free(text);
}

static void no_memory_for_a_text_is_reported(void **state)
{
    char *text = NULL;

    no_memory = 1;
    assert_int_equal(describe(&text), OPAL_ERR_OUT_OF_RESOURCE);
    no_memory = 1;
    assert_int_equal(ports->string_from_value(ports, 1, &text), OPAL_ERR_OUT_OF_RESOURCE);
    assert_int_equal(no_memory, 0);
    assert_int_equal(ports->string_from_value(ports, 1, &text), OPAL_SUCCESS);
    assert_string_equal(text, "sr0:1");
    free(text);
}

static void written_bits_without_a_port_do_not_count(void **state)
{
    *variable = 1 | 64;
    assert_int_equal(bfo_drain_cvar_ports(), 1);
}

/* Two ports: the first has the extension of bfo. A name of the parameter that is none of them is reported. */
static void own_ports_get_bits(void **state)
{
    static const char *const known[] = {"sr0:1", "sr9:1", "eth0"};
    static struct {
        mca_btl_base_module_t super;
        bfo_btl_ext_t ext;
    } module[3];
    static mca_btl_base_component_3_0_0_t openib = {.btl_version = {.mca_component_name = "openib"}},
                                          tcp = {.btl_version = {.mca_component_name = "tcp"}};
    mca_btl_base_selected_module_t item[3];
    int n;

    OBJ_CONSTRUCT(&mca_btl_base_modules_initialized, opal_list_t);
    for (int i = 0; i < 3; ++i) {
        module[i].super.btl_component = 2 > i ? &openib : &tcp;
        module[i].ext.port = known[i];
        module[i].ext.magic = BFO_BTL_EXT_MAGIC;
        module[i].ext.version = BFO_BTL_EXT_VERSION;
        module[i].ext.size = sizeof(bfo_btl_ext_t);
        OBJ_CONSTRUCT(&item[i], mca_btl_base_selected_module_t);
        item[i].btl_module = &module[i].super;
        opal_list_append(&mca_btl_base_modules_initialized, &item[i].super);
    }
    bfo_drain_cvar_know_ports();
    assert_int_equal(ports->get_count(ports, &n), OPAL_SUCCESS);
    assert_int_equal(n, 6);
    assert_string_equal(bfo_drain_cvar_port(5), "sr9:1");
    bfo_drain_cvar_know_ports();
    assert_int_equal(ports->get_count(ports, &n), OPAL_SUCCESS);
    assert_int_equal(n, 6);
}

static void names_without_a_bit_are_refused(void **state)
{
    char name[16];

    for (int i = 6; i < BFO_DRAIN_NAMES; ++i) {
        snprintf(name, sizeof(name), "port%d", i);
        assert_int_equal(parse(name), 1 << i);
    }
    assert_true(is_refused("one-more"));
    assert_int_equal(parse("port23,sr0:1"), 1 << 23 | 1);
    assert_int_equal(bfo_drain_cvar_ports(), 1 | 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* in this order, because a name keeps its bit */
        cmocka_unit_test(registers_and_reports_a_refusal),
        cmocka_unit_test(each_name_has_one_bit),
        cmocka_unit_test(name_that_is_too_long_is_refused),
        cmocka_unit_test(enumerator_lists_the_names),
        cmocka_unit_test(mask_becomes_names),
        cmocka_unit_test(enumerator_describes_itself),
        cmocka_unit_test(no_memory_for_a_text_is_reported),
        cmocka_unit_test(written_bits_without_a_port_do_not_count),
        cmocka_unit_test(own_ports_get_bits),
        cmocka_unit_test(names_without_a_bit_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
