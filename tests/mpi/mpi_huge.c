/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * One message of more than 2 GiB, or of as many MiB as named, from rank 0 to rank 1, every word checked; and the
 * status that MPI_Get_elements_x makes of it. Needs twice that memory.
 */
#include "mpi_check.h"

enum { UNIT = 1 << 20 };

/* A word tells its place. */
static uint64_t word(size_t i)
{
    return (uint64_t) i * UINT64_C(0x9e3779b97f4a7c15) + 12345;
}

int main(int argc, char **argv)
{
    const int mebibytes = 1 < argc ? atoi(argv[1]) : 2049;
    const size_t n = (size_t) mebibytes * UNIT, words = n / sizeof(uint64_t);
    MPI_Count elements;
    MPI_Datatype unit;
    MPI_Request r;
    MPI_Status st;
    uint64_t *buf;
    int count;

    start(&argc, &argv);
    CHECK(2 == ranks && mebibytes > 0);
    buf = malloc(n);
    CHECK(NULL != buf);
    MPI(MPI_Type_contiguous(UNIT, MPI_BYTE, &unit));
    MPI(MPI_Type_commit(&unit));
    if (0 == rank) {
        for (size_t i = 0; i < words; ++i) {
            buf[i] = word(i);
        }
        MPI(MPI_Ssend(buf, mebibytes, unit, 1, 3, MPI_COMM_WORLD));
    } else {
        size_t wrong = 0;

        MPI(MPI_Irecv(buf, mebibytes, unit, 0, 3, MPI_COMM_WORLD, &r));
        MPI(MPI_Wait(&r, &st));
        MPI(MPI_Get_count(&st, unit, &count));
        CHECK(mebibytes == count);
        MPI(MPI_Get_elements_x(&st, unit, &elements));
        CHECK((MPI_Count) n == elements);
        for (size_t i = 0; i < words; ++i) {
            wrong += word(i) != buf[i];
        }
        checks += words;
        CHECK(0 == wrong);
    }
    MPI(MPI_Type_free(&unit));
    free(buf);
    return finish();
}
