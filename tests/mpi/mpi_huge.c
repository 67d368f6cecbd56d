/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rank 0 sends one message of more than 2 GiB, or of the number of MiB in the argument, to rank 1, which checks every word and what
 * MPI_Get_elements_x (since MPI 4.0 MPI_Get_elements_c) makes of the status. Then a message of a derived type that is one MiB longer than its receive: all that fits is
 * right, and nothing of the rest is written. Needs twice that memory.
 */
#include "mpi_check.h"

#if 4 <= MPI_VERSION
#define GET_ELEMENTS MPI_Get_elements_c
#else
#define GET_ELEMENTS MPI_Get_elements_x
#endif

enum { UNIT = 1 << 20 };

/* A word shows its place in the message. */
static uint64_t word(size_t i)
{
    return (uint64_t) i * UINT64_C(0x9e3779b97f4a7c15) + 12345;
}

/* Sends the same MiB again and again, in two parts with a hole between them: the sender needs no memory for more than that. */
static void test_derived(int mebibytes, uint64_t *buf, MPI_Datatype mebibyte)
{
    enum { HALF = UNIT / 2, HOLE = 64 };
    const MPI_Aint places[2] = {0, HALF + HOLE};
    const int lengths[2] = {HALF, HALF}, room = mebibytes - 1;
    const size_t words = UNIT / sizeof(uint64_t);
    MPI_Datatype parts, unit;
    size_t wrong = 0;
    char *one = (char *) buf;

    MPI(MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &parts));
    MPI(MPI_Type_create_resized(parts, 0, 0, &unit));
    MPI(MPI_Type_commit(&unit));
    if (0 == rank) {
        for (size_t i = 0; i < words; ++i) {
            buf[i] = word(i);
        }
        memmove(one + HALF + HOLE, one + HALF, HALF);
        MPI(MPI_Send(buf, mebibytes, unit, 1, 4, MPI_COMM_WORLD));
    } else {
        int rc, class;

        memset(one + (size_t) room * UNIT, 0xee, UNIT);
        MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
        rc = MPI_Recv(buf, room, mebibyte, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
        MPI(MPI_Error_class(rc, &class));
        CHECK(MPI_ERR_TRUNCATE == class);
        for (size_t i = 0; i < (size_t) room * words; ++i) {
            wrong += word(i % words) != buf[i];
        }
        checks += (size_t) room * words;
        CHECK(0 == wrong && is_only(one + (size_t) room * UNIT, UNIT, 0xee));
    }
    MPI(MPI_Type_free(&unit));
    MPI(MPI_Type_free(&parts));
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
    CHECK(2 == ranks && mebibytes > 1);
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
        MPI(GET_ELEMENTS(&st, unit, &elements));
        CHECK((MPI_Count) n == elements);
        for (size_t i = 0; i < words; ++i) {
            wrong += word(i) != buf[i];
        }
        checks += words;
        CHECK(0 == wrong);
    }
    test_derived(mebibytes, buf, unit);
    MPI(MPI_Type_free(&unit));
    free(buf);
    return finish();
}
