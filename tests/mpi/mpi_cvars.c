/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * mpi_cvars DIR PORT: two ranks exchange verified messages and meanwhile steer themselves through control variables of MPI_T. A step ends
 * when DIR has a file with the step's number; before that the script looks at the rails. DESIGN.txt section 10.5.
 */
#include "mpi_check.h"

#include <pthread.h>
#include <unistd.h>

enum { LONG = 200000, STEPS = 5 };

static uint8_t out[LONG], in[LONG];
static unsigned message;

static void exchange(void)
{
    const size_t size = 0 == message % 3 ? 64 : LONG;

    fill(out, size, message);
    MPI(MPI_Sendrecv(out, (int) size, MPI_BYTE, neighbour(), 1, in, LONG, MPI_BYTE, neighbour(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, size, message));
    ++message;
}

/* Exchanges messages until the script makes the file of this step. */
static void step(const char *dir, int number)
{
    char file[512];
    int is_over = 0;

    snprintf(file, sizeof(file), "%s/%d", dir, number);
    printf("rank %d step %d\n", rank, number);
    fflush(stdout);
    while (!is_over) {
        for (int i = 0; i < 20; ++i) {
            exchange();
        }
        is_over = 0 == access(file, F_OK);
        MPI(MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD));
    }
}

/* ---- control variables ----------------------------------------------------------------------------------- */

static MPI_T_cvar_handle find(const char *name, MPI_Datatype expected, MPI_T_enum *names)
{
    MPI_T_cvar_handle handle = NULL;
    int index, count, verbosity, bind, scope, name_size = 0, text_size = 0;
    MPI_Datatype type;

    MPI(MPI_T_cvar_get_index(name, &index));
    MPI(MPI_T_cvar_get_info(index, NULL, &name_size, &verbosity, &type, names, NULL, &text_size, &bind, &scope));
    CHECK(expected == type && MPI_T_SCOPE_LOCAL == scope && MPI_T_BIND_NO_OBJECT == bind);
    MPI(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    CHECK(1 == count);
    return handle;
}

static int value_of(MPI_T_cvar_handle handle)
{
    int value = -77;

    MPI(MPI_T_cvar_read(handle, &value));
    return value;
}

static void set(MPI_T_cvar_handle handle, int value)
{
    MPI(MPI_T_cvar_write(handle, &value));
    CHECK(value == value_of(handle));
}

/* The bit that the enumeration gives to a port; each port has a bit of its own. */
static int bit_of(MPI_T_enum names, const char *port)
{
    int n, size = 0, bit = 0, all = 0;

    MPI(MPI_T_enum_get_info(names, &n, NULL, &size));
    CHECK(2 <= n);
    for (int i = 0; i < n; ++i) {
        char name[128];
        int value, length = sizeof(name);

        MPI(MPI_T_enum_get_item(names, i, &value, name, &length));
        CHECK(0 == (all & value));
        all |= value;
        bit = 0 == strcmp(port, name) ? value : bit;
    }
    CHECK(0 != bit);
    return bit;
}

/* The PML takes back a value that the parameter may not have: the job continues with the value before. */
static void is_taken_back(MPI_T_cvar_handle handle, int wrong)
{
    const int before = value_of(handle);
    int waits = 1; /* the same on both ranks, because both must exchange equally often */

    set(handle, wrong);
    while (waits) {
        exchange();
        waits = before != value_of(handle);
        MPI(MPI_Allreduce(MPI_IN_PLACE, &waits, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    }
}

/* ---- another thread writes while this one sends ---------------------------------------------------------- */

static struct {
    MPI_T_cvar_handle drain, verbose;
    int bit, is_over;
} writer;

static void *write_on(void *unused)
{
    for (unsigned i = 0; !__atomic_load_n(&writer.is_over, __ATOMIC_ACQUIRE); ++i) {
        const int drain = 0 == i % 2 ? writer.bit : 0, verbose = 0 == i % 3 ? 0 : -1;

        MPI(MPI_T_cvar_write(writer.drain, &drain));
        MPI(MPI_T_cvar_write(writer.verbose, &verbose));
        usleep(100);
    }
    return NULL;
}

static void write_while_sending(const char *dir)
{
    pthread_t thread;

    CHECK(0 == pthread_create(&thread, NULL, write_on, NULL));
    step(dir, STEPS);
    __atomic_store_n(&writer.is_over, 1, __ATOMIC_RELEASE);
    CHECK(0 == pthread_join(thread, NULL));
    set(writer.drain, 0);
    set(writer.verbose, 0);
}

int main(int argc, char **argv)
{
    MPI_T_cvar_handle burst, counters;
    MPI_T_enum names = MPI_T_ENUM_NULL, none;
    int provided, wrong = 1 << 30;

    CHECK(3 == argc);
    MPI(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    CHECK(MPI_THREAD_MULTIPLE == provided);
    start(&argc, &argv);
    CHECK(2 == ranks);
    writer.drain = find("pml_bfo_drain", MPI_INT, &names);
    writer.verbose = find("pml_bfo_verbose", MPI_INT, &none);
    counters = find("pml_bfo_counters", MPI_C_BOOL, &none);
    burst = find("pml_bfo_resend_burst", MPI_UNSIGNED, &none);
    writer.bit = bit_of(names, argv[2]);
    step(argv[1], 1);
    set(writer.drain, writer.bit);
    step(argv[1], 2);
    if (1 == rank) { /* rank 0 still holds its rail out */
        set(writer.drain, 0);
    }
    step(argv[1], 3);
    set(writer.drain, 0);
    CHECK(MPI_SUCCESS != MPI_T_cvar_write(writer.drain, &wrong)); /* no port has this bit */
    CHECK(0 == value_of(writer.drain));
    set(writer.verbose, 1);
    MPI(MPI_T_cvar_write(counters, &(bool){true}));
    is_taken_back(burst, 0);
    step(argv[1], 4);
    write_while_sending(argv[1]);
    MPI(MPI_T_finalize());
    return finish();
}
