/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * First contact: rank 0 sends to all other ranks at once; with "all", all ranks then send to all others. Failed sends are
 * counted; the exit code is 0 only if none failed.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int me, n, failed = 0, all = 0, count = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    const int everybody = 1 < argc && 0 == strcmp(argv[1], "all");
    MPI_Request *requests = calloc(2 * (size_t) n, sizeof(*requests));
    MPI_Status *statuses = calloc(2 * (size_t) n, sizeof(*statuses));
    int *in = calloc((size_t) n, sizeof(*in));
    const double begin = MPI_Wtime();

    for (int i = 0; i < n; ++i) {
        if (i != me && (0 == me || everybody)) {
            MPI_Issend(&me, 1, MPI_INT, i, 1, MPI_COMM_WORLD, &requests[count++]);
        }
        if (i != me && (0 == i || everybody)) {
            MPI_Irecv(&in[i], 1, MPI_INT, i, 1, MPI_COMM_WORLD, &requests[count++]);
        }
    }
    int rc = MPI_Waitall(count, requests, statuses);
    for (int i = 0; i < count; ++i) {
        failed += MPI_ERR_IN_STATUS == rc && MPI_SUCCESS != statuses[i].MPI_ERROR;
    }
    failed += MPI_SUCCESS != rc && 0 == failed;
    for (int i = 0; i < n; ++i) {
        failed += i != me && everybody && in[i] != i;
    }
    if (0 < failed) {
        printf("rank %d: %d of %d requests failed\n", me, failed, count);
        MPI_Abort(MPI_COMM_WORLD, 1); /* MPI_Finalize would wait for the declared peers */
    }
    rc = MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (0 == me) {
        printf("first contact: %s, %d failed, %d ranks, %.2f s\n", MPI_SUCCESS == rc ? "all right" : "WRONG", all, n, MPI_Wtime() - begin);
    }
    MPI_Finalize();
    return MPI_SUCCESS == rc && 0 == all ? 0 : 1;
}
