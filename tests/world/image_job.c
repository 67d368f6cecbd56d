/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The application of each process: every process sends to every other one. Both ends know from the seed the length, the bytes and the kind of
 * each message. Messages of one kind from one sender must come in the order in which they were sent, each once, and whole; memory
 * around a message, and a message that has come, must not change until the end.
 */
#include "image_message.h"

#include "pml_bfo_module.h"

#include "opal/runtime/opal_progress.h"

#include <string.h>

enum { MOST = 16, MOST_THREADS = 2 };

typedef struct {
    unsigned thread;
    message_t *open, *done;
    unsigned n_sends, n_receives; /* open */
    unsigned next_send[MOST], next_named[MOST], next_probed[MOST];
    unsigned any_posted, any_open; /* receives from any source */
    unsigned any_left[MOST];       /* messages that they have not got yet, by sender */
} job_t;

static unsigned messages, window, threads, synchronous, computes;
static job_t jobs[MOST_THREADS];
static bool is_given_up[MOST]; /* a call about the process ended with an error, and nothing is asked of it any more */

/* ---- sends and receives --------------------------------------------------------------------------------------------- */

/* A call that names the process ended with an error; a process that is no rank was not known. */
static void saw_error(unsigned peer, int error)
{
    world_saw_error(peer, error);
    if (peer < MOST) {
        is_given_up[peer] = true;
    }
}

/* The call returned rc. False: memory was short, and the job calls again. */
static bool opened(job_t *job, message_t *m, int rc)
{
    if (OMPI_ERR_OUT_OF_RESOURCE == rc && world_has_failed()) {
        message_free(m);
        return false;
    }
    if (OMPI_SUCCESS != rc) {
        saw_error(m->peer, rc);
        message_free(m);
        return true;
    }
    m->next = job->open;
    job->open = m;
    m->is_send ? ++job->n_sends : ++job->n_receives;
    return true;
}

static void send_next(job_t *job, unsigned to)
{
    const unsigned me = world_rank(), number = job->next_send[to];
    const kind_t kind = kind_of(me, to, number);
    message_t *m = message_make(true, to, number, kind, size_of(me, to, number));
    const bool is_synchronous = world_chance(10 * synchronous);

    if (ANY == kind) { /* the sender may have gaps where the receiver has none */
        m->is_strided = false;
    }
    memory_fill(m, me, to);
    if (opened(job, m,
               bfo_module.pml_isend(m->memory + GUARD, count_of(m), type_of(m), (int) to, tag_of(kind, job->thread),
                                    is_synchronous ? MCA_PML_BASE_SEND_SYNCHRONOUS : MCA_PML_BASE_SEND_STANDARD, image_world, &m->request))) {
        job->next_send[to] += threads;
    }
}

/* The next number of this kind from `from`, beginning with `number`. */
static unsigned next_of(kind_t kind, unsigned from, unsigned number)
{
    while (number < messages && kind != kind_of(from, world_rank(), number)) {
        number += threads;
    }
    return number;
}

static void receive_named(job_t *job, unsigned from)
{
    const unsigned number = job->next_named[from];
    message_t *m = message_make(false, from, number, NAMED, size_of(from, world_rank(), number));

    if (opened(job, m,
               bfo_module.pml_irecv(m->memory + GUARD, count_of(m), type_of(m), (int) from, tag_of(NAMED, job->thread), image_world, &m->request))) {
        job->next_named[from] = next_of(NAMED, from, number + threads);
    }
}

static void receive_any(job_t *job)
{
    message_t *m = message_make(false, 0, 0, ANY, message_longest());

    m->posted = job->any_posted;
    if (opened(job, m,
               bfo_module.pml_irecv(m->memory + GUARD, m->size, &ompi_mpi_byte.dt, MPI_ANY_SOURCE, tag_of(ANY, job->thread), image_world,
                                    &m->request))) {
        ++job->any_posted;
        ++job->any_open;
    }
}

static void receive_probed(job_t *job, unsigned from)
{
    const unsigned number = job->next_probed[from];
    ompi_message_t *found = NULL;
    ompi_status_public_t status;
    message_t *m;
    int is_there = 0;
    int rc = bfo_module.pml_improbe((int) from, tag_of(PROBED, job->thread), image_world, &is_there, &found, &status);

    if (OMPI_SUCCESS != rc && (OMPI_ERR_OUT_OF_RESOURCE != rc || !world_has_failed())) {
        saw_error(from, rc);
    }
    if (OMPI_SUCCESS != rc || !is_there) {
        return;
    }
    m = message_make(false, from, number, PROBED, size_of(from, world_rank(), number));
    if (status._ucount != m->size) {
        world_broken("a probe finds %zu bytes of message %u from %u, which has %zu", status._ucount, number, from, m->size);
    }
    job->next_probed[from] = next_of(PROBED, from, number + threads);
    while (OMPI_ERR_OUT_OF_RESOURCE == (rc = bfo_module.pml_imrecv(m->memory + GUARD, count_of(m), type_of(m), &found, &m->request))
           && world_has_failed()) {
        opal_progress();
    }
    (void) opened(job, m, rc);
}

/* ---- ends ---------------------------------------------------------------------------------------------------------------- */

/* A receive from any source: its bytes say which message it is. */
static void learn(message_t *m)
{
    uint32_t header[HEADER / 4];

    m->peer = (unsigned) m->request->req_status.MPI_SOURCE;
    memcpy(header, m->memory + GUARD, HEADER);
    if (0xb0f0b0f0u != header[0] || m->peer != header[1] || header[3] >= messages) {
        world_broken("a message from any source has a bad header: %x from %u number %u, source %u", header[0], header[1], header[3], m->peer);
    }
    m->number = header[3];
    if (m->request->req_status._ucount != size_of(m->peer, world_rank(), m->number)) {
        world_broken("message %u from %u has %zu bytes", m->number, m->peer, m->request->req_status._ucount);
    }
}

static void ended(job_t *job, message_t *m)
{
    const int error = m->request->req_status.MPI_ERROR;

    if (m->request->req_status._cancelled) {
        --job->any_open;
    } else if (OMPI_SUCCESS != error) {
        if (ANY == m->kind && !m->is_send) {
            m->peer = (unsigned) m->request->req_status.MPI_SOURCE;
            --job->any_open;
        }
        saw_error(m->peer, error);
    } else if (m->is_send) {
        memory_check(m, world_rank(), m->peer, "when its send has ended");
        memset(m->memory + GUARD, 0xee, m->length); /* nobody may read it any more */
    } else {
        if (ANY == m->kind) {
            const size_t room = m->size;

            learn(m);
            --job->any_open;
            --job->any_left[m->peer];
            for (size_t i = m->request->req_status._ucount; i < room; ++i) { /* a receive may be longer than its message */
                if (guard_at(GUARD + i) != m->memory[GUARD + i]) {
                    world_broken("message %u from %u: the room after it was written", m->number, m->peer);
                }
            }
            m->size = m->length = m->request->req_status._ucount;
        }
        memory_check(m, m->peer, world_rank(), "when its receive has ended");
        m->is_done = true;
    }
    (void) ompi_request_free(&m->request);
    m->is_send ? --job->n_sends : --job->n_receives;
}

static void collect(job_t *job)
{
    for (message_t **at = &job->open; NULL != *at;) {
        message_t *m = *at;

        if (!REQUEST_COMPLETE(m->request)) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        ended(job, m);
        if (!m->is_done) {
            message_free(m);
            continue;
        }
        m->next = job->done;
        job->done = m;
    }
}

/* ---- the loop --------------------------------------------------------------------------------------------------------------- */

/* Messages that receives from any source still get: all but those of processes whose death the runtime has reported. */
static unsigned any_expected(const job_t *job)
{
    unsigned n = 0;

    for (unsigned p = 0; p < world_ranks(); ++p) {
        n += is_given_up[p] || world_is_reported(p) ? 0 : job->any_left[p];
    }
    return n;
}

/* Receives from any source that no living process sends to. */
static void cancel_surplus(job_t *job)
{
    const unsigned expected = any_expected(job);

    for (message_t *m = job->open; job->any_open > expected && NULL != m; m = m->next) {
        if (!m->is_send && ANY == m->kind && !REQUEST_COMPLETE(m->request)) {
            (void) ompi_request_cancel(m->request);
        }
    }
}

/* Each sender's next message always finds a receive, so that windows cannot block each other. */
static void post_receives(job_t *job)
{
    unsigned open_named[MOST] = {0};

    for (const message_t *m = job->open; NULL != m; m = m->next) {
        open_named[m->peer] += !m->is_send && NAMED == m->kind;
    }
    for (unsigned from = 0; from < world_ranks(); ++from) {
        if (world_rank() == from || is_given_up[from]) {
            continue;
        }
        if (job->next_named[from] < messages && (0 == open_named[from] || (job->n_receives < window && 0 == world_draw(2)))) {
            receive_named(job, from);
        }
        if (job->next_probed[from] < messages) {
            receive_probed(job, from);
        }
    }
    if (job->any_open < any_expected(job) && (0 == job->any_open || (job->n_receives < window && 0 == world_draw(2)))) {
        receive_any(job);
    }
    cancel_surplus(job);
}

static void post_sends(job_t *job)
{
    const unsigned to = world_draw(world_ranks());

    if (job->n_sends < window && world_rank() != to && !is_given_up[to] && job->next_send[to] < messages) {
        send_next(job, to);
    }
}

static void compute(void)
{
    const uint64_t most = (uint64_t) 20000 << world_draw(12);

    world_sleep(most / 2 + world_draw((unsigned) most));
}

/* Receives from any source were checked as they ended; their order is that in which they were posted. */
static void check_order(const job_t *job)
{
    for (unsigned posted = 0; posted < job->any_posted; ++posted) {
        static unsigned last[MOST_THREADS][MOST];

        for (const message_t *m = job->done; NULL != m; m = m->next) {
            if (!m->is_send && ANY == m->kind && posted == m->posted) {
                if (last[job->thread][m->peer] > m->number) {
                    world_broken("message %u from %u to any source overtakes message %u", m->number, m->peer, last[job->thread][m->peer] - 1);
                }
                last[job->thread][m->peer] = m->number + 1;
            }
        }
    }
}

/* Is nothing left to send or to receive? */
static bool is_over(const job_t *job)
{
    for (unsigned p = 0; p < world_ranks(); ++p) {
        if (world_rank() != p && !is_given_up[p]
            && (job->next_send[p] < messages || job->next_named[p] < messages || job->next_probed[p] < messages)) {
            return false;
        }
    }
    return NULL == job->open && 0 == any_expected(job);
}

static void *job_run(void *argument)
{
    job_t *job = argument;

    for (unsigned p = 0; p < world_ranks(); ++p) {
        job->next_send[p] = job->thread;
        job->next_named[p] = next_of(NAMED, p, job->thread);
        job->next_probed[p] = next_of(PROBED, p, job->thread);
    }
    for (unsigned k = job->thread; k < messages; k += threads) {
        for (unsigned from = 0; from < world_ranks(); ++from) {
            job->any_left[from] += world_rank() != from && ANY == kind_of(from, world_rank(), k);
        }
    }
    while (!is_over(job)) {
        if (world_chance(10 * computes)) {
            compute();
        }
        post_receives(job);
        post_sends(job);
        opal_progress();
        collect(job);
    }
    return NULL;
}

static void recheck(const job_t *job)
{
    for (const message_t *m = job->done; NULL != m; m = m->next) {
        if (!m->is_send && m->is_done) {
            memory_check(m, m->peer, world_rank(), "at the end of the job");
        }
    }
}

static void job_main(void)
{
    pthread_t other;

    messages = world_plan_of("messages");
    window = world_plan_of("window");
    synchronous = world_plan_of("synchronous");
    computes = world_plan_of("computes");
    threads = 1 + (0 != world_plan_of("threads"));
    image_begin(1 < threads);
    message_begin();
    jobs[1].thread = 1;
    if (1 < threads) {
        (void) world_thread_create(&other, NULL, job_run, &jobs[1]);
    }
    (void) job_run(&jobs[0]);
    if (1 < threads) {
        (void) world_thread_join(other, NULL);
    }
    world_trace("all messages are here");
    image_end();
    for (unsigned t = 0; t < threads; ++t) {
        check_order(&jobs[t]);
        recheck(&jobs[t]);
    }
    world_trace("ends");
}

/* Does this process know that no message of `from` comes any more? */
static bool is_lost(unsigned from)
{
    const bfo_peer_t *peer = ompi_comm_peer_lookup(image_world, (int) from)->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];

    return NULL != peer && peer->declared;
}

/* A receive from any source stays posted when a process is given up and another one is left (DESIGN.txt 11); then a job may wait for ever. */
static void report_missing(const job_t *job, unsigned from)
{
    for (unsigned k = job->thread; k < messages; k += threads) {
        const message_t *m = job->done;

        while (NULL != m && (m->is_send || m->peer != from || m->number != k)) {
            m = m->next;
        }
        if (NULL == m) {
            world_trace("message %u of kind %d from %u has not come", k, kind_of(from, world_rank(), k), from);
            if (ANY == kind_of(from, world_rank(), k) && is_lost(from) && 2 < world_ranks()) {
                world_saw_error(from, OMPI_ERR_UNREACH);
            }
            return;
        }
    }
}

static void job_report(void)
{
    for (unsigned t = 0; t < threads; ++t) {
        for (unsigned from = 0; from < world_ranks(); ++from) {
            if (world_rank() != from) {
                report_missing(&jobs[t], from);
            }
        }
        world_trace("thread %u has %u sends and %u receives open", t, jobs[t].n_sends, jobs[t].n_receives);
        for (const message_t *m = jobs[t].open; NULL != m; m = m->next) {
            world_trace("%s %u, message %u of %zu bytes, kind %d", m->is_send ? "send to" : "receive from", m->peer, m->number, m->size, m->kind);
        }
    }
}

extern void *bfo_local_mine;
__attribute__((visibility("default"))) world_image_t world_image = {.main = job_main, .report = job_report, .local = &bfo_local_mine};
