/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The memory of the PML: rank 0 prints lines "KIND 1 BYTES". Requests: the element sizes of the free lists. A
 * communicator: heap used per MPI_Comm_dup, with Open MPI's own part. A rank of a communicator: heap used at the first
 * contact with this rank in the communicator. A peer: heap used at the very first contact with a process.
 */
#include <mpi.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "ompi_config.h"
#include "ompi/mca/pml/base/pml_base_recvreq.h"
#include "ompi/mca/pml/base/pml_base_sendreq.h"
#include "opal/class/opal_free_list.h"

enum { COMMS = 256 };

static size_t heap(void)
{
    const struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

static void touch(MPI_Comm comm, int rank, int peer)
{
    char c = 0;

    if (0 == rank) {
        MPI_Send(&c, 1, MPI_CHAR, peer, 1, comm);
        MPI_Recv(&c, 1, MPI_CHAR, peer, 1, comm, MPI_STATUS_IGNORE);
    } else if (peer == rank) {
        MPI_Recv(&c, 1, MPI_CHAR, 0, 1, comm, MPI_STATUS_IGNORE);
        MPI_Send(&c, 1, MPI_CHAR, 0, 1, comm);
    }
}

int main(int argc, char **argv)
{
    static MPI_Comm comm[COMMS];
    size_t before, peers, comms, ranks;
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    touch(MPI_COMM_WORLD, rank, 1); /* lets Open MPI make its single allocations */
    before = heap();
    for (int peer = 2; peer < size; ++peer) {
        touch(MPI_COMM_WORLD, rank, peer);
    }
    peers = heap() - before;
    MPI_Barrier(MPI_COMM_WORLD);
    before = heap();
    for (int i = 0; i < COMMS; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
    }
    comms = heap() - before;
    before = heap();
    for (int i = 0; i < COMMS; ++i) {
        for (int peer = 1; peer < size; ++peer) {
            touch(comm[i], rank, peer);
        }
    }
    ranks = heap() - before;
    if (0 == rank) {
        printf("send-request 1 %zu\n", mca_pml_base_send_requests.fl_frag_size);
        printf("recv-request 1 %zu\n", mca_pml_base_recv_requests.fl_frag_size);
        printf("communicator 1 %zu\n", comms / COMMS);
        printf("comm-rank 1 %zu\n", ranks / COMMS / (size_t) (size - 1));
        if (size > 2) {
            printf("peer 1 %zu\n", peers / (size_t) (size - 2));
        }
    }
    for (int i = 0; i < COMMS; ++i) {
        MPI_Comm_free(&comm[i]);
    }
    MPI_Finalize();
    return 0;
}
