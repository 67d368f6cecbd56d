/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the user sees of a loss: all pairs of ranks exchange messages for 1.5 seconds, and, with the name of a file, until that file
 * exists; every byte is checked. Then each rank prints the PML's performance variables as MPI_T returns them. DESIGN.txt section 14.9.
 */
#include "mpi_check.h"

#include <unistd.h>

enum { WINDOW = 12, LONG = 300000 };

static size_t size_of(unsigned round, int i)
{
    static const size_t sizes[] = {0, 8, 100, 3000, 9000, 40000, 100000, LONG};

    return sizes[(round + (unsigned) i) % 8];
}

static void exchange(uint8_t *const *out, uint8_t *const *in, unsigned round)
{
    MPI_Request r[2 * WINDOW];

    for (int i = 0; i < WINDOW; ++i) {
        const int to = (rank + 1 + i % (ranks - 1)) % ranks;
        const int from = (rank + ranks - 1 - i % (ranks - 1)) % ranks;

        MPI(MPI_Irecv(in[i], LONG, MPI_BYTE, from, i, MPI_COMM_WORLD, &r[i]));
        fill(out[i], size_of(round, i), round + (unsigned) i);
        MPI(MPI_Isend(out[i], (int) size_of(round, i), MPI_BYTE, to, i, MPI_COMM_WORLD, &r[WINDOW + i]));
    }
    MPI(MPI_Waitall(2 * WINDOW, r, MPI_STATUSES_IGNORE));
    for (int i = 0; i < WINDOW; ++i) {
        CHECK(is_filled(in[i], size_of(round, i), round + (unsigned) i));
    }
}

/* Open MPI counts from the moment at which a handle is made. */
static MPI_T_pvar_session session;
static struct {
    char name[128];
    MPI_T_pvar_handle handle;
} variables[64];
static int n_variables;

/* Such a variable may return to 0. */
static int is_time(const char *name)
{
    return 0 == strcmp(name, "pml_bfo_error_at") || 0 == strcmp(name, "pml_bfo_resumed_at");
}

static void find_one(int index)
{
    char name[128], text[512];
    int name_size = sizeof(name), text_size = sizeof(text), verbosity, class, bind, readonly, continuous, atomic, count;
    MPI_Datatype type;
    MPI_T_enum names;

    MPI(MPI_T_pvar_get_info(index, name, &name_size, &verbosity, &class, &type, &names, text, &text_size, &bind, &readonly, &continuous, &atomic));
    if (0 != strncmp(name, "pml_bfo_", 8) || 0 == strncmp(name, "pml_bfo_port_", 13) || MPI_T_BIND_NO_OBJECT != bind) {
        return;
    }
    CHECK((is_time(name) ? MPI_T_PVAR_CLASS_GENERIC : MPI_T_PVAR_CLASS_COUNTER) == class);
    CHECK(MPI_UNSIGNED_LONG_LONG == type && 0 != readonly && '\0' != text[0]);
    CHECK(n_variables < 64);
    snprintf(variables[n_variables].name, sizeof(variables[0].name), "%s", name);
    MPI(MPI_T_pvar_handle_alloc(session, index, NULL, &variables[n_variables].handle, &count));
    ++n_variables;
}

static void find_variables(void)
{
    int provided, n;

    MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    MPI(MPI_T_pvar_session_create(&session));
    MPI(MPI_T_pvar_get_num(&n));
    for (int i = 0; i < n; ++i) {
        find_one(i);
    }
    CHECK(0 < n_variables);
}

static void print_variables(void)
{
    for (int i = 0; i < n_variables; ++i) {
        unsigned long long value = 0;

        MPI(MPI_T_pvar_read(session, variables[i].handle, &value));
        printf("pvar %d %s %llu\n", rank, variables[i].name, value);
        MPI(MPI_T_pvar_handle_free(session, &variables[i].handle));
    }
    MPI(MPI_T_pvar_session_free(&session));
    MPI(MPI_T_finalize());
}

int main(int argc, char **argv)
{
    uint8_t *out[WINDOW], *in[WINDOW];
    unsigned round = 0;
    int more = 1;
    double begin;
    const char *file;

    start(&argc, &argv);
    file = 1 < argc ? argv[1] : NULL;
    CHECK(2 <= ranks);
    for (int i = 0; i < WINDOW; ++i) {
        CHECK(NULL != (out[i] = malloc(LONG)));
        in[i] = receive_room(LONG);
    }
    find_variables();
    exchange(out, in, round++);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == rank) {
        printf("ready\n");
        fflush(stdout);
    }
    for (begin = MPI_Wtime(); more;) {
        exchange(out, in, round++);
        more = MPI_Wtime() < begin + 1.5 || (NULL != file && 0 != access(file, F_OK));
        MPI(MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD));
    }
    print_variables();
    for (int i = 0; i < WINDOW; ++i) {
        give_back(in[i], LONG);
    }
    return finish();
}
