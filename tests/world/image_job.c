/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The application of each process: every process sends to every other one. Both ends know from the seed the length, the bytes and the kind of
 * each message. Messages of one kind from one sender must come in the order in which they were sent, each once, and whole; memory
 * around a message, and a message that has come, must not change until the end.
 */
#include "image_checks.h"
#include "image_day.h"
#include "image_message.h"
#include "image_rounds.h"
#include "image_scale.h"

#include "door/pml_bfo_module.h"

#include "opal/runtime/opal_progress.h"

#include <string.h>

enum { MOST = WORLD_JOB_PROCESSES, MOST_THREADS = 2 };

typedef struct {
    unsigned thread;
    message_t *open, *done;
    unsigned n_sends, n_receives;                    /* open */
    unsigned next_send[MOST], next[KINDS][MOST];     /* numbers of messages to send, and to receive by kind */
    message_t *idle_send[MOST], *idle_receive[MOST]; /* persistent requests that do not run */
    bool has_send[MOST], has_receive[MOST];          /* there is a persistent request */
    unsigned any_posted, any_open;                   /* receives from any source */
    unsigned any_left[MOST];                         /* messages that they have not got yet, by sender */
} job_t;

static unsigned messages, window, threads, rounds, rounds_done, synchronous, computes, cancels, tagless;
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

/* Starts the persistent request for the message `number`; makes the request first. False: memory was short, and the job calls again. */
static bool start(job_t *job, bool is_send, unsigned peer, unsigned number)
{
    message_t **idle = is_send ? &job->idle_send[peer] : &job->idle_receive[peer], *m = *idle;
    bool *has = is_send ? &job->has_send[peer] : &job->has_receive[peer];
    const unsigned me = world_rank();
    const int tag = tag_of(PERSISTENT, job->thread, 0);
    int rc = OMPI_SUCCESS;

    if (NULL == m) {
        m = message_make(is_send, peer, number, PERSISTENT, is_send ? size_of(me, peer, number) : size_of(peer, me, number));
        rc = is_send ? bfo_module.pml_isend_init(m->memory + GUARD, m->size, type_of(m), (int) peer, tag, MCA_PML_BASE_SEND_STANDARD, image_world,
                                                 &m->request)
                     : bfo_module.pml_irecv_init(m->memory + GUARD, m->size, type_of(m), (int) peer, tag, image_world, &m->request);
        if (OMPI_SUCCESS != rc) {
            return opened(job, m, rc);
        }
        *has = true;
    }
    *idle = m;
    m->number = number;
    memory_clear(m);
    if (is_send) {
        memory_fill(m, me, peer);
    }
    rc = bfo_module.pml_start(1, &m->request);
    if (OMPI_ERR_OUT_OF_RESOURCE == rc && world_has_failed()) {
        return false;
    }
    if (OMPI_SUCCESS != rc) {
        saw_error(peer, rc);
        return true;
    }
    *idle = NULL;
    m->is_idle = false;
    return opened(job, m, rc);
}

static bool send_one(job_t *job, unsigned to, kind_t kind)
{
    const unsigned me = world_rank(), number = job->next_send[to];
    message_t *m = message_make(true, to, number, kind, size_of(me, to, number));
    const bool is_synchronous = world_chance(10 * synchronous);
    bool is_open;

    if (ANY == kind) { /* the sender may have gaps where the receiver has none */
        m->is_strided = false;
    }
    memory_fill(m, me, to);
    is_open = opened(job, m,
                     bfo_module.pml_isend(m->memory + GUARD, count_of(m), type_of(m), (int) to, tag_of(kind, job->thread, number),
                                          is_synchronous ? MCA_PML_BASE_SEND_SYNCHRONOUS : MCA_PML_BASE_SEND_STANDARD, comm_of(kind), &m->request));
    if (is_open && job->open == m && world_chance(10 * cancels)) { /* it has no effect */
        (void) ompi_request_cancel(m->request);
    }
    return is_open;
}

static void send_next(job_t *job, unsigned to)
{
    const kind_t kind = kind_of(world_rank(), to, job->next_send[to]);

    if (PERSISTENT == kind && job->has_send[to] && NULL == job->idle_send[to]) {
        return; /* its last message is still sent */
    }
    if (PERSISTENT == kind ? start(job, true, to, job->next_send[to]) : send_one(job, to, kind)) {
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

/* By the sender's rank; on the second communicator with its tag or with any tag. */
static void receive_from(job_t *job, kind_t kind, unsigned from)
{
    const unsigned number = job->next[kind][from];
    message_t *m = message_make(false, from, number, kind, size_of(from, world_rank(), number));
    const bool is_tagless = OTHER == kind && 1 == threads && world_chance(10 * tagless);

    if (opened(job, m,
               bfo_module.pml_irecv(m->memory + GUARD, count_of(m), type_of(m), (int) from,
                                    is_tagless ? MPI_ANY_TAG : tag_of(kind, job->thread, number), comm_of(kind), &m->request))) {
        job->next[kind][from] = next_of(kind, from, number + threads);
    }
}

static void receive_any(job_t *job)
{
    message_t *m = message_make(false, 0, 0, ANY, message_longest());

    m->posted = job->any_posted;
    if (opened(job, m,
               bfo_module.pml_irecv(m->memory + GUARD, m->size, &ompi_mpi_byte.dt, MPI_ANY_SOURCE, tag_of(ANY, job->thread, 0), image_world,
                                    &m->request))) {
        ++job->any_posted;
        ++job->any_open;
    }
}

static void receive_probed(job_t *job, unsigned from)
{
    const unsigned number = job->next[PROBED][from];
    ompi_message_t *found = NULL;
    ompi_status_public_t status;
    message_t *m;
    int is_there = 0;
    int rc = bfo_module.pml_improbe((int) from, tag_of(PROBED, job->thread, 0), image_world, &is_there, &found, &status);

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
    job->next[PROBED][from] = next_of(PROBED, from, number + threads);
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
        if (m->is_send || ANY != m->kind) {
            world_broken("message %u to or from %u was cancelled", m->number, m->peer);
        }
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
        m->is_idle = m->request->req_persistent;
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
        m->is_idle = m->request->req_persistent;
        m->is_done = !m->is_idle;
    }
    if (m->is_idle) {
        *(m->is_send ? &job->idle_send[m->peer] : &job->idle_receive[m->peer]) = m;
    } else {
        (void) ompi_request_free(&m->request);
    }
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
        if (m->is_idle) {
            continue;
        }
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
static void post_receives_from(job_t *job, unsigned from, unsigned open_named, unsigned open_other)
{
    const bool has_room = job->n_receives < window;

    if (job->next[NAMED][from] < messages && (0 == open_named || (has_room && 0 == world_draw(2)))) {
        receive_from(job, NAMED, from);
    }
    if (job->next[OTHER][from] < messages && (0 == open_other || (has_room && 0 == world_draw(2)))) {
        receive_from(job, OTHER, from);
    }
    if (job->next[PROBED][from] < messages) {
        receive_probed(job, from);
    }
    if (job->next[PERSISTENT][from] < messages && (!job->has_receive[from] || NULL != job->idle_receive[from])) {
        const unsigned number = job->next[PERSISTENT][from];

        if (start(job, false, from, number)) {
            job->next[PERSISTENT][from] = next_of(PERSISTENT, from, number + threads);
        }
    }
}

static void post_receives(job_t *job)
{
    unsigned open[KINDS][MOST] = {{0}};

    for (const message_t *m = job->open; NULL != m; m = m->next) {
        open[m->kind][m->peer] += !m->is_send;
    }
    for (unsigned from = 0; from < world_ranks(); ++from) {
        if (world_rank() != from && !is_given_up[from]) {
            post_receives_from(job, from, open[NAMED][from], open[OTHER][from]);
        }
    }
    if (job->any_open < any_expected(job) && (0 == job->any_open || (job->n_receives < window && 0 == world_draw(2)))) {
        receive_any(job);
    }
    cancel_surplus(job);
}

/* Cancels some receive from any source, which is then posted again, and a receive for which no message ever comes. */
static void cancel_some(job_t *job)
{
    const unsigned from = world_draw(world_ranks());
    ompi_request_t *request;
    uint8_t byte = 0x5a;

    for (message_t *m = job->open; NULL != m; m = m->next) {
        if (!m->is_send && ANY == m->kind && 0 == world_draw(4)) {
            (void) ompi_request_cancel(m->request);
            break;
        }
    }
    if (world_rank() == from || is_given_up[from]
        || OMPI_SUCCESS != bfo_module.pml_irecv(&byte, 1, &ompi_mpi_byte.dt, (int) from, 99, image_world, &request)) {
        return;
    }
    (void) ompi_request_cancel(request);
    while (!REQUEST_COMPLETE(request)) {
        opal_progress();
    }
    if (0x5a != byte || (!request->req_status._cancelled && OMPI_SUCCESS == request->req_status.MPI_ERROR)) {
        world_broken("a receive for which no message comes was not cancelled");
    }
    (void) ompi_request_free(&request);
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

/* Is nothing left to send to the process, nor to receive from it? */
static bool is_over_with(const job_t *job, unsigned peer)
{
    if (world_rank() == peer || is_given_up[peer]) {
        return true;
    }
    for (unsigned kind = 0; kind < KINDS; ++kind) {
        if (ANY != kind && job->next[kind][peer] < messages) {
            return false;
        }
    }
    return job->next_send[peer] >= messages;
}

static bool is_over(const job_t *job)
{
    for (unsigned p = 0; p < world_ranks(); ++p) {
        if (!is_over_with(job, p)) {
            return false;
        }
    }
    return NULL == job->open && 0 == any_expected(job);
}

static bool rounds_left(const job_t *job)
{
    return 0 == job->thread && rounds_done < rounds;
}

static void *job_run(void *argument)
{
    job_t *job = argument;

    for (unsigned p = 0; p < world_ranks(); ++p) {
        job->next_send[p] = job->thread;
        for (unsigned kind = 0; kind < KINDS; ++kind) {
            job->next[kind][p] = next_of((kind_t) kind, p, job->thread);
        }
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
        if (world_chance(10 * cancels)) {
            cancel_some(job);
        }
        if (rounds_left(job) && world_chance(15)) {
            image_round(rounds_done++);
        }
        opal_progress();
        collect(job);
    }
    while (rounds_left(job)) {
        image_round(rounds_done++);
    }
    for (unsigned p = 0; p < world_ranks(); ++p) {
        if (NULL != job->idle_send[p]) {
            (void) ompi_request_free(&job->idle_send[p]->request);
        }
        if (NULL != job->idle_receive[p]) {
            (void) ompi_request_free(&job->idle_receive[p]->request);
        }
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

    if (0 != world_plan_of("scale")) {
        image_scale();
        return;
    }
    if (0 != world_plan_of("day")) {
        image_day();
        return;
    }
    messages = world_plan_of("messages");
    window = world_plan_of("window");
    synchronous = world_plan_of("synchronous");
    computes = world_plan_of("computes");
    cancels = world_plan_of("cancels");
    tagless = world_plan_of("tagless");
    rounds = 0 == world_plan_of("kills") ? world_plan_of("rounds") : 0; /* a collective does not outlive a process */
    threads = 1 + (0 != world_plan_of("threads"));
    image_begin(1 < threads);
    message_begin();
    if (0 < world_plan_of("others")) { /* others may use it earlier */
        world_sleep(world_draw(1u << world_draw(24)));
        image_dup();
    }
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
    image_rounds_recheck();
    world_trace("ends");
}

/* Does this process know that no message of `from` comes any more? */
static bool is_lost(unsigned from)
{
    const bfo_peer_t *peer = ompi_comm_peer_lookup(image_world, (int) from)->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];

    return NULL != peer && peer->declared;
}

/* Is there a process left that a receive from any source may wait for? */
static bool somebody_is_left(void)
{
    bool is = false;

    for (unsigned r = 0; r < world_ranks(); ++r) {
        is = is || (world_rank() != r && !is_lost(r));
    }
    return is;
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
            if (ANY == kind_of(from, world_rank(), k) && is_lost(from) && somebody_is_left()) {
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
__attribute__((visibility("default"))) world_image_t world_image = {.main = job_main,
                                                                    .report = job_report,
                                                                    .lists = image_day_lists,
                                                                    .counts = image_scale_counts,
                                                                    .covered = IMAGE_COVERED,
                                                                    .local = &bfo_local_mine,
                                                                    .looks = &image_looks};
