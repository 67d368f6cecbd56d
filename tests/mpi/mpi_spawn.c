/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Peers that come late. The parents call MPI_Comm_spawn twice, and exchange messages with the children. The two broods share no communicator:
 * they connect by the name of a port that the parents pass on, and exchange messages. The two halves of the parents, which know each other,
 * do the same. All disconnect; the last message is sent right before that. With the name of a file, all this begins when the file exists;
 * with a second argument the parents have exchanged messages over all rails before.
 */
#include "mpi_check.h"

#include <unistd.h>

/* Fault plans of the scripts recognise the last message by these bytes. */
static const uint8_t last[8] = {0xde, 0xad, 0xbe, 0xef, 0x1a, 0x57, 0x1a, 0x57};

static void exchange(MPI_Comm comm, int peer, int n, uint32_t seed)
{
    uint8_t *out = malloc((size_t) n + 1), *in = receive_room((size_t) n);

    fill(out, (size_t) n, seed);
    MPI(MPI_Sendrecv(out, n, MPI_BYTE, peer, 1, in, n, MPI_BYTE, peer, 1, comm, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, (size_t) n, seed));
    free(out);
    give_back(in, (size_t) n);
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

/* The first brood opens a port and accepts, the second brood connects: no process of one brood knew a process of the other. */
static void meet_other_brood(MPI_Comm parent, int brood)
{
    char name[MPI_MAX_PORT_NAME] = "";
    MPI_Comm other, merged;
    int one = 1, sum = 0;

    MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    if (0 == brood) {
        if (0 == rank) {
            MPI(MPI_Open_port(MPI_INFO_NULL, name));
            MPI(MPI_Send(name, sizeof(name), MPI_CHAR, 0, 3, parent));
        }
        MPI(MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
    } else {
        if (0 == rank) {
            MPI(MPI_Recv(name, sizeof(name), MPI_CHAR, 0, 3, parent, MPI_STATUS_IGNORE));
        }
        MPI(MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other));
    }
    all_sizes(other);
    for (int round = 0; round < ranks; ++round) { /* every rank with every rank */
        exchange(other, (round + ranks - rank) % ranks, 70000, (uint32_t) round);
    }
    MPI(MPI_Intercomm_merge(other, brood, &merged));
    MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged));
    CHECK(2 * ranks == sum);
    MPI(MPI_Comm_free(&merged));
    MPI(MPI_Comm_disconnect(&other));
    if (0 == brood && 0 == rank) {
        MPI(MPI_Close_port(name));
        printf("the broods have met\n");
        fflush(stdout);
    }
}

static int child(MPI_Comm parent, int brood)
{
    MPI_Comm merged;
    int sum = 0, one = 1;

    all_sizes(parent);
    MPI(MPI_Intercomm_merge(parent, 1, &merged));
    MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged));
    CHECK(2 * ranks == sum);
    MPI(MPI_Comm_free(&merged));
    meet_other_brood(parent, brood);
    MPI(MPI_Comm_rank(parent, &rank));
    MPI(MPI_Send(NULL, 0, MPI_BYTE, rank, 8, parent));
    MPI(MPI_Send(last, sizeof(last), MPI_BYTE, rank, 9, parent));
    MPI(MPI_Comm_disconnect(&parent));
    recheck();
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

static MPI_Comm spawn(char *program, int number)
{
    char text[2] = {(char) ('0' + number), '\0'}, *arguments[] = {(char *) "brood", text, NULL};
    MPI_Comm brood, merged;
    int sum, one = 1;

    MPI(MPI_Comm_spawn(program, arguments, ranks, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &brood, MPI_ERRCODES_IGNORE));
    all_sizes(brood);
    MPI(MPI_Intercomm_merge(brood, 0, &merged));
    MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged));
    CHECK(2 * ranks == sum);
    MPI(MPI_Comm_free(&merged));
    return brood;
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME];
    MPI_Comm parent, brood[2];
    uint8_t got[sizeof(last)];

    start(&argc, &argv);
    MPI(MPI_Comm_get_parent(&parent));
    if (MPI_COMM_NULL == parent && 3 == argc) {
        exchange(MPI_COMM_WORLD, ranks - 1 - rank, 3000000, 7);
        MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (0 == rank) {
        printf("ready\n");
        fflush(stdout);
    }
    if (MPI_COMM_NULL != parent) {
        CHECK(3 == argc);
        return child(parent, atoi(argv[2]));
    }
    while (1 < argc && 0 != access(argv[1], F_OK)) {
        int found;

        MPI(MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE));
        usleep(1000);
    }
    for (int b = 0; b < 2; ++b) {
        brood[b] = spawn(argv[0], b);
    }
    if (0 == rank) {
        MPI(MPI_Recv(name, sizeof(name), MPI_CHAR, 0, 3, brood[0], MPI_STATUS_IGNORE));
        MPI(MPI_Send(name, sizeof(name), MPI_CHAR, 0, 3, brood[1]));
    }
    for (int b = 0; b < 2; ++b) {
        MPI(MPI_Recv(NULL, 0, MPI_BYTE, rank, 8, brood[b], MPI_STATUS_IGNORE));
        usleep(20000); /* the child is about to end, and this rank is outside MPI */
        MPI(MPI_Recv(got, sizeof(got), MPI_BYTE, rank, 9, brood[b], MPI_STATUS_IGNORE));
        CHECK(0 == memcmp(got, last, sizeof(got)));
        MPI(MPI_Comm_disconnect(&brood[b]));
    }
    if (0 == ranks % 2) {
        test_port();
    }
    return finish();
}
