/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * pml_bfo_drain. Input: names of ports at start, and masks through MPI_T later. Output: a mask. For Open MPI the variable is an integer
 * with an enumerator of bfo that gives each port a bit and a name. It is not a string, because MPI_T would free a string while progress
 * reads it. DESIGN.txt section 10.5.
 */
#include "types/pml_bfo.h"

#include "bfo_help.h"
#include "show/pml_bfo_drain_cvar.h"

#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/btl/base/base.h"

#include <stdlib.h>
#include <string.h>

static int mask; /* MPI_T writes it from any thread */

/* A name is written before n_names counts it, and stays. Any thread reads; one thread writes, at start. */
static char names[BFO_DRAIN_NAMES][64];
static uint32_t n_names;

static uint32_t count(void)
{
    return __atomic_load_n(&n_names, __ATOMIC_ACQUIRE);
}

uint32_t bfo_drain_cvar_ports(void)
{
    return (uint32_t) __atomic_load_n(&mask, __ATOMIC_RELAXED) & ((1u << count()) - 1);
}

const char *bfo_drain_cvar_port(uint32_t bit)
{
    return names[bit];
}

/* The bit of a port, assigned now if it has none; -1: the name is not valid, or no bit is left. */
static int bit_of(const char *name, size_t length)
{
    const uint32_t n = count();

    for (uint32_t i = 0; i < n; ++i) {
        if (length == strlen(names[i]) && 0 == memcmp(name, names[i], length)) {
            return (int) i;
        }
    }
    if (0 == length || sizeof(names[0]) <= length || BFO_DRAIN_NAMES == n) {
        return -1;
    }
    memcpy(names[n], name, length);
    names[n][length] = '\0';
    __atomic_store_n(&n_names, n + 1, __ATOMIC_RELEASE);
    return (int) n;
}

/* ---- the enumerator ---------------------------------------------------------------------------------------- */

static int get_count(mca_base_var_enum_t *self, int *n)
{
    *n = (int) count();
    return OPAL_SUCCESS;
}

static int get_value(mca_base_var_enum_t *self, int index, int *value, const char **text)
{
    if (0 > index || (uint32_t) index >= count()) {
        return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
    }
    if (NULL != value) {
        *value = 1 << index;
    }
    if (NULL != text) {
        *text = names[index];
    }
    return OPAL_SUCCESS;
}

/* Called at start: parses names separated by commas. */
static int value_from_text(mca_base_var_enum_t *self, const char *text, int *value)
{
    int all = 0;

    while (NULL != text && '\0' != *text) {
        const size_t length = strcspn(text, ",");
        const int bit = 0 == length ? 0 : bit_of(text, length);

        if (0 > bit) {
            return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
        }
        all |= 0 == length ? 0 : 1 << bit;
        text += length + (',' == text[length]);
    }
    *value = all;
    return OPAL_SUCCESS;
}

/* Refuses a mask with bits that no port has, also when MPI_T writes it. */
static int text_from_value(mca_base_var_enum_t *self, const int value, char **text)
{
    char room[BFO_DRAIN_NAMES * sizeof(names[0])] = "";

    if (0 != (value & ~(int) ((1u << count()) - 1))) {
        return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
    }
    for (uint32_t i = 0; i < BFO_DRAIN_NAMES; ++i) {
        if (value >> i & 1) {
            strcat(strcat(room, '\0' == room[0] ? "" : ","), names[i]);
        }
    }
    if (NULL != text && NULL == (*text = strdup(room))) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return OPAL_SUCCESS;
}

static int describe(BFO_OMPI_ENUM_DUMP_ARGS)
{
    *text = strdup("names of ports, comma-separated");
    return NULL == *text ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

int bfo_drain_cvar_register(void)
{
    mca_base_var_enum_t *ports = OBJ_NEW(mca_base_var_enum_t);
    int rc;

    if (NULL == ports) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    ports->enum_name = strdup("pml_bfo_ports");
    ports->get_count = get_count;
    ports->get_value = get_value;
    ports->value_from_string = value_from_text;
    ports->string_from_value = text_from_value;
    ports->dump = describe;
    rc = mca_base_component_var_register(
        &mca_pml_bfo_component.pmlm_version, "drain",
        "Ports that stand out of this job, as those of 'bfo drain' do: names as in 'bfo status', comma-separated. By MPI_T a "
        "program writes a mask of bits, which the variable's enumeration gives to the ports",
        MCA_BASE_VAR_TYPE_INT, ports, 0, PML_BFO ? MCA_BASE_VAR_FLAG_SETTABLE : 0, OPAL_INFO_LVL_4,
        PML_BFO ? MCA_BASE_VAR_SCOPE_LOCAL : MCA_BASE_VAR_SCOPE_READONLY, &mask);
    OBJ_RELEASE(ports); /* the variable holds it */
    return 0 > rc ? rc : OPAL_SUCCESS;
}

/* ---- ports ---------------------------------------------------------------------------------------------------- */

static bool is_own(const char *name)
{
    mca_btl_base_selected_module_t *module;

    OPAL_LIST_FOREACH(module, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
    {
        if (0 == strcmp(name, bfo_btl_port_name(module->btl_module))) {
            return true;
        }
    }
    return false;
}

void bfo_drain_cvar_know_ports(void)
{
    const uint32_t n = count();
    mca_btl_base_selected_module_t *module;
    char key[sizeof(names[0]) + 16];

    for (uint32_t i = 0; i < n; ++i) {
        if (!is_own(names[i])) {
            snprintf(key, sizeof(key), "drain-no-port %.63s", names[i]);
            bfo_help_say_once(key, "help-pml-bfo.txt", "drain-no-port", names[i]); /* because names may differ only in digits */
        }
    }
    OPAL_LIST_FOREACH(module, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
    {
        const char *name = bfo_btl_port_name(module->btl_module);

        if (BFO_BTL_EXT_OK == bfo_btl_ext_check(module->btl_module)) {
            (void) bit_of(name, strlen(name)); /* without a bit the port cannot be named, and nothing else is lost */
        }
    }
}
