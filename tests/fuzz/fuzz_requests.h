/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The input of fuzz_dispatch.c, and the requests that it starts. Included once.
 */
#ifndef FUZZ_REQUESTS_H
#define FUZZ_REQUESTS_H

#include "fuzz_world.h"

#include "door/pml_bfo_recv_api.h"
#include "door/pml_bfo_send_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the input --------------------------------------------------------------------------------------- */

static const uint8_t *at, *end;

static unsigned byte(void)
{
    return at < end ? *at++ : 0;
}
static unsigned word(void)
{
    const unsigned low = byte();

    return low | byte() << 8;
}
static unsigned below(unsigned n)
{
    return n > 0 ? byte() % n : 0;
}

/* ---- requests ---------------------------------------------------------------------------------------- */

enum { MAX_REQUESTS = 24 };
typedef struct {
    ompi_request_t *request; /* NULL: free */
    bool is_send, cancelled;
    int rank, tag, comm;
    size_t capacity;
    char *buffer; /* of exactly the size that MPI was given */
    bfo_id_t id;  /* before the step */
    bool open;    /* before the step */
} mine_t;
static mine_t mine[MAX_REQUESTS];

static bfo_send_t *send_of(const mine_t *m)
{
    return (bfo_send_t *) m->request;
}
static bfo_recv_t *recv_of(const mine_t *m)
{
    return (bfo_recv_t *) m->request;
}
static void die(const char *what, const mine_t *m)
{
    fprintf(stderr, "fuzz_dispatch: %s", what);
    if (NULL != m) {
        const bfo_machine_t *machine = m->is_send ? &send_of(m)->m : &recv_of(m)->m;

        fprintf(stderr, ": %s rank %d tag %d, request %d, state %u epoch %u, %d events", m->is_send ? "send" : "receive", m->rank, m->tag,
                (int) (m - mine), bfo_se_state(machine->se), bfo_se_epoch(machine->se), machine->events);
        for (int rank = 1; rank < WORLD_RANKS; ++rank) {
            const bfo_peer_t *peer = world_proc[rank]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];

            if (NULL != peer) {
                fprintf(stderr, "; peer %d: %s, rails up 0x%x, being fenced 0x%x", rank, peer->declared ? "declared" : "alive", peer->send_mask,
                        peer->fencing);
            }
        }
    }
    fprintf(stderr, "\n");
    abort();
}

static bool is_done(const mine_t *m)
{
    return REQUEST_COMPLETED == m->request->req_complete;
}

static mine_t *unused(void)
{
    for (mine_t *m = mine; m < mine + MAX_REQUESTS; ++m) {
        if (NULL == m->request) {
            return m;
        }
    }
    return NULL;
}

static bool comm_is_used(int comm)
{
    for (const mine_t *m = mine; m < mine + MAX_REQUESTS; ++m) {
        if (NULL != m->request && m->comm == comm) {
            return true;
        }
    }
    return false;
}

static int pick_comm(void)
{
    return world_comm_is_there() ? (int) below(2) : 0;
}

static void op_receive(void)
{
    mine_t *m = unused();
    const unsigned shape = byte();
    size_t count = word() % 3000;
    ompi_datatype_t *type = shape & 1 ? world_strided : &ompi_mpi_byte.dt;
    ptrdiff_t lb, extent;

    if (NULL == m) {
        return;
    }
    count = shape & 1 ? count / 80 : count;
    ompi_datatype_get_extent(type, &lb, &extent);
    *m = (mine_t){.rank = (int) below(4) - 1, .tag = (int) below(5) - 1, .comm = pick_comm(), .capacity = count * type->super.size};
    m->rank = 0 == m->rank ? 1 : m->rank;
    m->buffer = malloc(count > 0 ? count * (size_t) extent : 1);
    if (OMPI_SUCCESS != bfo_irecv(m->buffer, count, type, m->rank, m->tag, world_comm[m->comm], &m->request)) {
        free(m->buffer);
        m->request = NULL;
    } else if (shape & 2) {
        m->request->req_complete_cb = NULL; /* as MPI leaves it at the start of a request */
    }
}

static void op_send(void)
{
    mine_t *m = unused();
    const unsigned shape = byte();
    size_t count = word() % 9000;
    ompi_datatype_t *type = shape & 1 ? world_strided : &ompi_mpi_byte.dt;
    ptrdiff_t lb, extent;

    if (NULL == m) {
        return;
    }
    count = shape & 1 ? count / 80 : count;
    ompi_datatype_get_extent(type, &lb, &extent);
    *m = (mine_t){.is_send = true, .rank = 1 + (int) below(2), .tag = (int) below(4), .comm = pick_comm()};
    m->buffer = calloc(1, count > 0 ? count * (size_t) extent : 1);
    if (OMPI_SUCCESS
            != bfo_isend(m->buffer, count, type, m->rank, m->tag, shape & 2 ? MCA_PML_BASE_SEND_SYNCHRONOUS : MCA_PML_BASE_SEND_STANDARD,
                         world_comm[m->comm], &m->request)
        || &ompi_request_empty == m->request) {
        free(m->buffer);
        m->request = NULL;
    }
}

static void check_done(const mine_t *m)
{
    const ompi_status_public_t *st = &m->request->req_status;
    const bool failed = MPI_SUCCESS != st->MPI_ERROR && MPI_ERR_TRUNCATE != st->MPI_ERROR;

    if (m->is_send || m->cancelled || failed) {
        return;
    }
    if ((m->rank >= 0 && st->MPI_SOURCE != m->rank) || (m->tag >= 0 && st->MPI_TAG != m->tag) || (m->tag < 0 && st->MPI_TAG < 0)) {
        die("a receive completed with a message it did not ask for", m);
    }
    if ((MPI_ERR_TRUNCATE == st->MPI_ERROR) != (st->_ucount > m->capacity)) {
        die("truncation and length contradict each other", m);
    }
}

/* Gives back the requests that are complete. */
static void reap(void)
{
    for (mine_t *m = mine; m < mine + MAX_REQUESTS; ++m) {
        if (NULL != m->request && is_done(m)) {
            check_done(m);
            m->request->req_free(&m->request);
            m->request = NULL;
            free(m->buffer);
        }
    }
}

#endif /* FUZZ_REQUESTS_H */
