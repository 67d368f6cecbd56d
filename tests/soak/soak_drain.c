/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Each rank takes its ports out of service and gives them back between operations, through the control variable pml_bfo_drain. The draws
 * are its own, so ranks drain different ports at different times. The last rail to a peer goes on, as DESIGN.txt section 10.5 promises.
 */
#include "soak.h"

#include <stdio.h>

enum { MOST_PORTS = 16, EVERY = 6 /* operations, on average, between two changes */ };

static MPI_T_cvar_handle drain;
static int bits[MOST_PORTS], ports, out;

static void find_ports(const soak_t *s, MPI_T_enum names)
{
    int n, size = 0;

    SOAK_MPI(s, MPI_T_enum_get_info(names, &n, NULL, &size));
    for (int i = 0; i < n && i < MOST_PORTS; ++i) {
        char name[128];
        int length = sizeof(name);

        SOAK_MPI(s, MPI_T_enum_get_item(names, i, &bits[i], name, &length));
        ports = i + 1;
    }
}

void soak_drain_begin(const soak_t *s)
{
    int provided, index, count, verbosity, bind, scope, name_size = 0, text_size = 0;
    MPI_Datatype type;
    MPI_T_enum names;

    SOAK_MPI(s, MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    SOAK_MPI(s, MPI_T_cvar_get_index("pml_bfo_drain", &index));
    SOAK_MPI(s, MPI_T_cvar_get_info(index, NULL, &name_size, &verbosity, &type, &names, NULL, &text_size, &bind, &scope));
    SOAK_MPI(s, MPI_T_cvar_handle_alloc(index, NULL, &drain, &count));
    find_ports(s, names);
    soak_check_equal(s, 2 <= ports, true, "a rank with two ports or more");
}

static void set(const soak_t *s, int value)
{
    out = value;
    SOAK_MPI(s, MPI_T_cvar_write(drain, &out));
}

bool soak_drain_step(const soak_t *s)
{
    const uint64_t random = soak_key(s, s->rank, s->rank, UINT64_C(0xd4a1));
    const bool changes = 0 == random % EVERY;

    if (changes) {
        set(s, out ^ bits[random / EVERY % (uint64_t) ports]);
    }
    return changes;
}

void soak_drain_end(const soak_t *s)
{
    set(s, 0);
    SOAK_MPI(s, MPI_T_cvar_handle_free(&drain));
    SOAK_MPI(s, MPI_T_finalize());
}
