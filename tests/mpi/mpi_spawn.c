/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Peers that come late: MPI_Comm_spawn twice, traffic between parents and children and between the two broods,
 * connect and accept over a port, disconnect; the last message goes out right before that. With the name of a file, all
 * this begins when the file exists.
 */
#include "mpi_check.h"

#include <unistd.h>

/* Test scripts find the last message by these bytes. */
static const uint8_t last[8] = {0xde, 0xad, 0xbe, 0xef, 0x1a, 0x57, 0x1a, 0x57};

static void exchange(MPI_Comm comm, int peer, int n, uint32_t seed)
{
    uint8_t *out = malloc((size_t) n + 1), *in = malloc((size_t) n + 1);

    fill(out, (size_t) n, seed);
    MPI(MPI_Sendrecv(out, n, MPI_BYTE, peer, 1, in, n, MPI_BYTE, peer, 1, comm, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, (size_t) n, seed));
    free(out);
    free(in);
}

static void all_sizes(MPI_Comm inter)
{
    int remote, me;

    MPI(MPI_Comm_remote_size(inter, &remote));
    MPI(MPI_Comm_rank(inter, &me));
    for (int n = 1; n < 3000000; n *= 13) {
        exchange(inter, me, n, (uint32_t) n);
    }
    CHECK(me < remote);
}

static int child(MPI_Comm parent)
{
    MPI_Comm merged;
    int sum = 0, one = 1;

    all_sizes(parent);
    MPI(MPI_Intercomm_merge(parent, 1, &merged));
    MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged));
    CHECK(sum > 2);
    MPI(MPI_Comm_free(&merged));
    MPI(MPI_Comm_rank(parent, &rank));
    MPI(MPI_Send(last, sizeof(last), MPI_BYTE, rank, 9, parent));
    MPI(MPI_Comm_disconnect(&parent));
    MPI_Finalize();
    return 0;
}

static void test_port(void)
{
    char name[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, other;
    const int color = rank % 2;

    MPI(MPI_Comm_split(MPI_COMM_WORLD, color, rank, &half));
    if (0 == rank) {
        MPI(MPI_Open_port(MPI_INFO_NULL, name));
    }
    MPI(MPI_Bcast(name, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    if (0 == color) {
        MPI(MPI_Comm_accept(name, MPI_INFO_NULL, 0, half, &other));
    } else {
        MPI(MPI_Comm_connect(name, MPI_INFO_NULL, 0, half, &other));
    }
    all_sizes(other);
    MPI(MPI_Comm_disconnect(&other));
    if (0 == rank) {
        MPI(MPI_Close_port(name));
    }
    MPI(MPI_Comm_free(&half));
}

int main(int argc, char **argv)
{
    MPI_Comm parent, brood, merged;
    uint8_t got[sizeof(last)];
    int sum, one = 1;

    start(&argc, &argv);
    if (0 == rank) {
        printf("ready\n");
        fflush(stdout);
    }
    MPI(MPI_Comm_get_parent(&parent));
    if (MPI_COMM_NULL != parent) {
        return child(parent);
    }
    while (2 == argc && 0 != access(argv[1], F_OK)) {
        int found;

        MPI(MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE));
        usleep(1000);
    }
    for (int round = 0; round < 2; ++round) {
        MPI(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, ranks, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &brood,
                           MPI_ERRCODES_IGNORE));
        all_sizes(brood);
        MPI(MPI_Intercomm_merge(brood, 0, &merged));
        MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged));
        CHECK(2 * ranks == sum);
        MPI(MPI_Comm_free(&merged));
        usleep(20000); /* the child is on its way out */
        MPI(MPI_Recv(got, sizeof(got), MPI_BYTE, rank, 9, brood, MPI_STATUS_IGNORE));
        CHECK(0 == memcmp(got, last, sizeof(got)));
        MPI(MPI_Comm_disconnect(&brood));
    }
    if (0 == ranks % 2) {
        test_port();
    }
    return finish();
}
