/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The messages of collectives, with their tags and with their dependencies: a process sends on what it has received. And the ends of
 * communicators: MPI_Comm_free with messages that nobody received, MPI_Comm_disconnect, and the meeting of MPI_Comm_spawn.
 */
#include "image_rounds.h"

#include "door/pml_bfo_module.h"

#include "ompi/mca/coll/base/coll_tags.h"
#include "opal/runtime/opal_progress.h"

#include <string.h>

enum { ALL = 255, FIRST_NUMBER = 1 << 20, STEPS = 64, SEGMENTS = 4, MOST = WORLD_JOB_PROCESSES, LIFE_CONTEXT = 3, LIFE_TAG = 700 };

static message_t *kept;

void round_keep(message_t *m, unsigned from, unsigned to)
{
    m->peer = from;
    m->posted = to;
    m->next = kept;
    kept = m;
}

void image_rounds_recheck(void)
{
    for (const message_t *m = kept; NULL != m; m = m->next) {
        memory_check(m, m->peer, m->posted, "at the end of the job");
    }
}

/* ---- calls ---------------------------------------------------------------------------------------------------- */

void round_saw(unsigned peer, int rc)
{
    if (OMPI_SUCCESS == rc) {
        return;
    }
    world_saw_error(peer, rc);
    for (;;) { /* MPI_ERRORS_ARE_FATAL: the job ends */
        world_sleep(1000000000);
    }
}

static bool goes_again(int rc)
{
    if (OMPI_ERR_OUT_OF_RESOURCE != rc || !world_has_failed()) {
        return false;
    }
    opal_progress();
    return true;
}

void round_isend(ompi_communicator_t *comm, unsigned to, int tag, const void *bytes, size_t size, ompi_request_t **request)
{
    int rc;

    do {
        rc = bfo_module.pml_isend(bytes, size, &ompi_mpi_byte.dt, (int) to, tag, MCA_PML_BASE_SEND_STANDARD, comm, request);
    } while (goes_again(rc));
    round_saw(to, rc);
}

void round_irecv(ompi_communicator_t *comm, unsigned from, int tag, void *bytes, size_t size, ompi_request_t **request)
{
    int rc;

    do {
        rc = bfo_module.pml_irecv(bytes, size, &ompi_mpi_byte.dt, (int) from, tag, comm, request);
    } while (goes_again(rc));
    round_saw(from, rc);
}

void round_wait(unsigned peer, ompi_request_t *request)
{
    int rc;

    while (!REQUEST_COMPLETE(request)) {
        opal_progress();
    }
    rc = request->req_status.MPI_ERROR;
    (void) ompi_request_free(&request);
    round_saw(peer, rc);
}

/* As MPI_Send and MPI_Recv. */
static void send_to(unsigned to, int tag, const message_t *m)
{
    int rc;

    do {
        rc = bfo_module.pml_send(m->memory + GUARD, m->size, &ompi_mpi_byte.dt, (int) to, tag, MCA_PML_BASE_SEND_STANDARD, image_world);
    } while (goes_again(rc));
    round_saw(to, rc);
}

static void recv_from(unsigned from, int tag, message_t *m)
{
    ompi_status_public_t status;
    int rc;

    do {
        rc = bfo_module.pml_recv(m->memory + GUARD, m->size, &ompi_mpi_byte.dt, (int) from, tag, image_world, &status);
    } while (goes_again(rc));
    round_saw(from, rc);
    if (status._ucount != m->size) {
        world_broken("a message of a collective from %u has %zu bytes, not %zu", from, status._ucount, m->size);
    }
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

static unsigned number_of(unsigned round, unsigned step)
{
    return FIRST_NUMBER + round * STEPS + step;
}

/* The memory of a message; it has no gaps. */
static message_t *make(unsigned from, unsigned to, unsigned number)
{
    return message_make(false, from, number, ANY, size_of(from, to, number));
}

static message_t *make_filled(unsigned from, unsigned to, unsigned number)
{
    message_t *m = make(from, to, number);

    memory_fill(m, from, to);
    return m;
}

static void isend(message_t *m, unsigned to, int tag)
{
    round_isend(image_world, to, tag, m->memory + GUARD, m->size, &m->request);
}

static void irecv(message_t *m, unsigned from, int tag)
{
    round_irecv(image_world, from, tag, m->memory + GUARD, m->size, &m->request);
}

static void came(message_t *m, unsigned from, unsigned to)
{
    memory_check(m, from, to, "in a collective");
    round_keep(m, from, to);
}

/* The process `distance` ranks further on. */
static unsigned at(unsigned rank, unsigned distance)
{
    return (rank + distance) % world_ranks();
}

/* ---- collectives --------------------------------------------------------------------------------------------------- */

void round_barrier(ompi_communicator_t *comm)
{
    const unsigned me = world_rank(), n = world_ranks();

    for (unsigned distance = 1; distance < n; distance *= 2) {
        ompi_request_t *in, *out;

        round_irecv(comm, at(me, n - distance), MCA_COLL_BASE_TAG_BARRIER, NULL, 0, &in);
        round_isend(comm, at(me, distance), MCA_COLL_BASE_TAG_BARRIER, NULL, 0, &out);
        round_wait(at(me, n - distance), in);
        round_wait(at(me, distance), out);
    }
}

/* Sends the segment to the processes below this one in the tree. */
static void send_down(const message_t *m, unsigned root, unsigned below)
{
    const unsigned n = world_ranks(), relative = at(world_rank(), n - root);

    for (unsigned mask = below; 0 < mask; mask /= 2) {
        if (relative + mask < n) {
            send_to(at(relative + mask, root), MCA_COLL_BASE_TAG_BCAST, m);
        }
    }
}

/* A binomial tree, in segments: each is sent on while later ones may still come. */
static void bcast(unsigned round)
{
    const unsigned n = world_ranks(), root = world_hash(n, round, 0, 0, 30), relative = at(world_rank(), n - root);
    const unsigned segments = 1 + world_hash(SEGMENTS, round, 0, 0, 31);
    message_t *segment[SEGMENTS];
    unsigned mask = 1;

    while (mask < n && 0 == (relative & mask)) {
        mask *= 2;
    }
    for (unsigned s = 0; s < segments; ++s) {
        segment[s] = make(root, ALL, number_of(round, s));
        if (0 == relative) {
            memory_fill(segment[s], root, ALL);
        } else {
            irecv(segment[s], at(relative - mask, root), MCA_COLL_BASE_TAG_BCAST);
        }
    }
    for (unsigned s = 0; s < segments; ++s) {
        if (0 != relative) {
            round_wait(at(relative - mask, root), segment[s]->request);
        }
        send_down(segment[s], root, mask / 2);
        came(segment[s], root, ALL);
    }
}

/* In a ring: each process sends on what it got in the step before. */
static void allgather(unsigned round)
{
    const unsigned me = world_rank(), n = world_ranks(), left = at(me, n - 1), right = at(me, 1);
    message_t *block = make_filled(me, ALL, number_of(round, 0));

    for (unsigned step = 1; step < n; ++step) {
        const unsigned from = at(me, n - step);
        message_t *next = make(from, ALL, number_of(round, 0));

        irecv(next, left, MCA_COLL_BASE_TAG_ALLGATHER);
        isend(block, right, MCA_COLL_BASE_TAG_ALLGATHER);
        round_wait(left, next->request);
        round_wait(right, block->request);
        came(block, at(me, n - step + 1), ALL);
        block = next;
    }
    came(block, right, ALL);
}

/* All at once, or in pairs one after the other. */
static void alltoall(unsigned round)
{
    const unsigned me = world_rank(), n = world_ranks(), number = number_of(round, 0);
    const bool in_pairs = 0 == world_hash(2, round, 0, 0, 32);
    message_t *in[MOST], *out[MOST];

    for (unsigned distance = 1; distance < n; ++distance) {
        const unsigned from = at(me, n - distance), to = at(me, distance);

        in[distance] = make(from, me, number);
        out[distance] = make_filled(me, to, number);
        irecv(in[distance], from, MCA_COLL_BASE_TAG_ALLTOALL);
        isend(out[distance], to, MCA_COLL_BASE_TAG_ALLTOALL);
        if (in_pairs) {
            round_wait(from, in[distance]->request);
            round_wait(to, out[distance]->request);
        }
    }
    for (unsigned distance = 1; distance < n; ++distance) {
        if (!in_pairs) {
            round_wait(at(me, n - distance), in[distance]->request);
            round_wait(at(me, distance), out[distance]->request);
        }
        came(in[distance], at(me, n - distance), me);
        came(out[distance], me, at(me, distance));
    }
}

/* All send to one process, which takes them in another order. */
static void gather(unsigned round)
{
    const unsigned me = world_rank(), n = world_ranks(), root = world_hash(n, round, 0, 0, 33), number = number_of(round, 0);
    const unsigned first = 1 + world_hash(n - 1, round, 0, 0, 34);

    if (root != me) {
        message_t *m = make_filled(me, root, number);

        send_to(root, MCA_COLL_BASE_TAG_GATHER, m);
        came(m, me, root);
        return;
    }
    for (unsigned i = 0; i < n - 1; ++i) {
        const unsigned from = at(root, 1 + (first + i) % (n - 1));
        message_t *m = make(from, root, number);

        recv_from(from, MCA_COLL_BASE_TAG_GATHER, m);
        came(m, from, root);
    }
}

/* ---- a sum: up a tree, and down again ---------------------------------------------------------------------------------- */

static void add(message_t *sum, const message_t *m)
{
    for (size_t i = 0; i + 4 <= m->size; i += 4) {
        uint32_t a, b;

        memcpy(&a, sum->memory + GUARD + i, 4);
        memcpy(&b, m->memory + GUARD + i, 4);
        a += b;
        memcpy(sum->memory + GUARD + i, &a, 4);
    }
}

static message_t *make_part(unsigned round, unsigned from)
{
    const unsigned number = number_of(round, 0);
    message_t *m = message_make(false, from, number, ANY, size_of(0, ALL, number) & ~(size_t) 3);

    memory_fill(m, from, ALL);
    return m;
}

static void check_sum(unsigned round, message_t *sum)
{
    message_t *want = make_part(round, 0);

    for (unsigned from = 1; from < world_ranks(); ++from) {
        message_t *part = make_part(round, from);

        add(want, part);
        message_free(part);
    }
    if (0 != memcmp(want->memory, sum->memory, sum->length + 2 * GUARD)) {
        world_broken("the sum of round %u, %zu bytes, is wrong", round, sum->size);
    }
    message_free(want);
}

static void allreduce(unsigned round)
{
    const unsigned me = world_rank(), n = world_ranks();
    message_t *sum = make_part(round, me);
    unsigned mask = 1;

    for (; mask < n && 0 == (me & mask); mask *= 2) {
        if (me + mask < n) {
            message_t *part = make_part(round, me);

            recv_from(me + mask, MCA_COLL_BASE_TAG_REDUCE, part);
            add(sum, part);
            message_free(part);
        }
    }
    if (0 != me) {
        send_to(me - mask, MCA_COLL_BASE_TAG_REDUCE, sum);
        recv_from(me - mask, MCA_COLL_BASE_TAG_BCAST, sum);
    }
    send_down(sum, 0, mask / 2);
    check_sum(round, sum);
    message_free(sum);
}

/* ---- ends of communicators -------------------------------------------------------------------------------------------------- */

/* A communicator with the same context id, again and again: each process makes it at another time, two messages of each life are never
 * received, and one is. */
static void life(unsigned round)
{
    const unsigned me = world_rank(), n = world_ranks(), left = at(me, n - 1), right = at(me, 1);
    ompi_request_t *lost[2], *in, *out;
    uint32_t last[2] = {round, me}, got[2] = {0}, nothing = 0;
    ompi_communicator_t *comm;

    round_barrier(image_world); /* all agree on the context id while no process uses it */
    world_sleep(world_draw(1u << world_draw(20)));
    comm = image_comm_make(LIFE_CONTEXT);
    round_irecv(comm, left, LIFE_TAG + (int) round, got, sizeof(got), &in);
    round_isend(comm, right, LIFE_TAG + (int) round, last, sizeof(last), &out);
    for (unsigned i = 0; i < 2; ++i) {
        round_isend(comm, right, LIFE_TAG - 1, &nothing, sizeof(nothing), &lost[i]);
    }
    round_wait(left, in);
    round_wait(right, out);
    for (unsigned i = 0; i < 2; ++i) {
        round_wait(right, lost[i]);
    }
    if (round != got[0] || left != got[1]) {
        world_broken("round %u: a message of round %u from %u, not from %u", round, got[0], got[1], left);
    }
    image_comm_free(comm);
}

/* The message to the next process may have to be sent again while its sender waits for all others in the runtime. */
static void meet(unsigned round, int (*all_meet)(void))
{
    const unsigned me = world_rank(), left = at(me, world_ranks() - 1), right = at(me, 1), number = number_of(round, 0);
    message_t *out = make_filled(me, right, number), *in = make(left, me, number);

    if (0 == me) {
        send_to(right, LIFE_TAG, out);
        recv_from(left, LIFE_TAG, in);
    } else {
        recv_from(left, LIFE_TAG, in);
        send_to(right, LIFE_TAG, out);
    }
    must_be(OPAL_SUCCESS == all_meet(), "meet the others");
    came(in, left, me);
    came(out, me, right);
}

static void disconnect(unsigned round)
{
    meet(round, image_fence);
}

static void spawn(unsigned round)
{
    meet(round, image_connect);
}

static void barrier(unsigned round)
{
    round_barrier(image_world);
}

void image_round(unsigned round)
{
    static void (*const kinds[])(unsigned) = {barrier, bcast, allgather, alltoall, gather, allreduce, life, disconnect, spawn, image_window};
    static const char *const names[] = {"barrier", "bcast", "allgather", "alltoall", "gather", "allreduce", "life", "disconnect", "spawn", "window"};
    unsigned kind = world_hash(sizeof(kinds) / sizeof(kinds[0]), round, 0, 0, 35);

    if (image_window == kinds[kind] && 0 != world_plan_of("threads")) { /* osc/pt2pt refuses MPI_THREAD_MULTIPLE */
        kind = 0;
    }
    world_trace("round %u: %s", round, names[kind]);
    kinds[kind](round);
}
