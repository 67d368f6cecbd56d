/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * mpi_computes DIR [both]: two ranks exchange a message; then rank 1 computes outside MPI until DIR/computed exists, while rank 0 waits in MPI
 * for its result. With "both", rank 0 computes too before it waits. After that both exchange verified messages until DIR/end exists. A process
 * that computes obeys requests later.
 */
#include "mpi_check.h"

#include <unistd.h>

static bool exists(const char *dir, const char *name)
{
    char file[512];

    snprintf(file, sizeof(file), "%s/%s", dir, name);
    return 0 == access(file, F_OK);
}

static void exchange(unsigned message)
{
    static uint8_t out[5000], in[5000];

    fill(out, sizeof(out), message);
    MPI(MPI_Sendrecv(out, sizeof(out), MPI_BYTE, neighbour(), 1, in, sizeof(in), MPI_BYTE, neighbour(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, sizeof(in), message));
}

static unsigned long compute(const char *dir)
{
    unsigned long sum = 0;

    printf("computes\n");
    fflush(stdout);
    while (!exists(dir, "computed")) {
        for (unsigned i = 0; i < 100000; ++i) {
            sum += payload_byte(i, sum);
        }
    }
    return sum;
}

int main(int argc, char **argv)
{
    unsigned long sum = 0;
    int is_over = 0;

    start(&argc, &argv);
    CHECK((2 == argc || (3 == argc && 0 == strcmp("both", argv[2]))) && 2 == ranks);
    exchange(0);
    if (1 == rank || 3 == argc) {
        sum = compute(argv[1]);
    }
    if (1 == rank) {
        MPI(MPI_Send(&sum, 1, MPI_UNSIGNED_LONG, 0, 2, MPI_COMM_WORLD));
    } else {
        MPI(MPI_Recv(&sum, 1, MPI_UNSIGNED_LONG, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(0 != sum);
    }
    for (unsigned message = 1; !is_over; ++message) {
        exchange(message);
        is_over = exists(argv[1], "end");
        MPI(MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD));
    }
    return finish();
}
