/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A window, as osc/pt2pt makes it of the PML's messages: headers come to receives from any source, whose callbacks are called inside the
 * PML; long data follow by messages of their own; a flush ends with a word of the target, which says that all messages before it have
 * ended; and after a barrier the window is freed, although nobody has waited for its own answers.
 */
#include "image_rounds.h"

#include "door/pml_bfo_module.h"

#include "opal/runtime/opal_progress.h"

#include <string.h>

enum {
    CONTEXT = 4,
    HEADERS = 0x10000,
    DATA = 0x20000,
    WINDOW_NUMBER = 1 << 24,
    OPERATIONS = 8,
    HEADERS_MOST = OPERATIONS + 2,
    RECEIVES = 2,
    SHORT = 256,
    MOST = WORLD_JOB_PROCESSES
};

typedef enum { PUT, GET, FLUSH, FLUSHED } operation_t;

typedef struct {
    uint32_t operation, number; /* number: among the headers from this process */
    uint32_t index, size;       /* of a put or get, or how many puts a flush waits for */
    uint8_t bytes[SHORT];       /* of a short put */
} header_t;

/* A receive from any source. */
typedef struct receive {
    struct receive *next; /* that has ended, in the order of the callbacks */
    ompi_request_t *request;
    header_t header;
} receive_t;

typedef struct {
    ompi_communicator_t *comm;
    unsigned round;
    bool is_freed;
    receive_t receives[RECEIVES];
    receive_t *ended, **ended_last;
    message_t *put_in[MOST][OPERATIONS], *put_out[MOST][OPERATIONS]; /* by process */
    message_t *get_in[MOST][OPERATIONS], *get_out[MOST][OPERATIONS];
    unsigned headers_out[MOST];
    uint32_t headers_in[MOST]; /* a bit for each that came */
    unsigned puts_in[MOST];    /* that are there */
    unsigned gets_open[MOST];  /* that are not there yet */
    unsigned awaited[MOST];    /* puts that a flush of the process waits for, and 1 */
    unsigned flushing, sending;
} window_t;

static window_t *window;

static bool is_put(unsigned from, unsigned to, unsigned index)
{
    return 0 != world_hash(2, from, to, WINDOW_NUMBER + index, 36 + window->round);
}

static unsigned number_of(unsigned index)
{
    return WINDOW_NUMBER + window->round * OPERATIONS + index;
}

/* Between these two processes. */
static unsigned operations(unsigned origin, unsigned target)
{
    return world_hash(OPERATIONS + 1, origin, target, window->round, 37);
}

static message_t *make(unsigned from, unsigned to, unsigned index, bool is_filled)
{
    message_t *m = message_make(false, from, number_of(index), ANY, size_of(from, to, number_of(index)));

    if (is_filled) {
        memory_fill(m, from, to);
    }
    return m;
}

/* ---- requests with a callback ------------------------------------------------------------------------------------- */

static bool goes_again(int rc)
{
    if (OMPI_ERR_OUT_OF_RESOURCE != rc || !world_has_failed()) {
        return false;
    }
    opal_progress();
    return true;
}

static void start(unsigned peer, ompi_request_t *request, ompi_request_complete_fn_t callback, void *data)
{
    int rc;

    do {
        request->req_complete_cb = callback;
        request->req_complete_cb_data = data;
        rc = bfo_module.pml_start(1, &request);
    } while (goes_again(rc));
    round_saw(peer, rc);
}

static void send_with_callback(unsigned to, int tag, const void *bytes, size_t size, ompi_request_complete_fn_t callback, void *data)
{
    ompi_request_t *request;
    int rc;

    do {
        rc = bfo_module.pml_isend_init(bytes, size, &ompi_mpi_byte.dt, (int) to, tag, MCA_PML_BASE_SEND_STANDARD, window->comm, &request);
    } while (goes_again(rc));
    round_saw(to, rc);
    start(to, request, callback, data);
}

static void receive_with_callback(unsigned from, int tag, message_t *m, ompi_request_complete_fn_t callback)
{
    int rc;

    do {
        rc = bfo_module.pml_irecv_init(m->memory + GUARD, m->size, &ompi_mpi_byte.dt, (int) from, tag, window->comm, &m->request);
    } while (goes_again(rc));
    round_saw(from, rc);
    start(from, m->request, callback, window);
}

static int header_is_sent(ompi_request_t *request)
{
    free(request->req_complete_cb_data);
    round_saw(UINT32_MAX, request->req_status.MPI_ERROR);
    (void) ompi_request_free(&request);
    return 1;
}

/* Counts in the window, as osc/pt2pt does. */
static int data_are_sent(ompi_request_t *request)
{
    window_t *w = request->req_complete_cb_data;

    if (w->is_freed) {
        world_broken("a callback counts in a window that was freed");
    }
    round_saw(UINT32_MAX, request->req_status.MPI_ERROR);
    --w->sending;
    (void) ompi_request_free(&request);
    return 1;
}

static int put_is_here(ompi_request_t *request)
{
    window_t *w = request->req_complete_cb_data;

    ++w->puts_in[request->req_status.MPI_SOURCE];
    (void) ompi_request_free(&request);
    return 1;
}

static int get_is_here(ompi_request_t *request)
{
    window_t *w = request->req_complete_cb_data;

    --w->gets_open[request->req_status.MPI_SOURCE];
    (void) ompi_request_free(&request);
    return 1;
}

/* The receive is looked at outside the PML. */
static int header_is_here(ompi_request_t *request)
{
    receive_t *r = request->req_complete_cb_data;

    if (!request->req_status._cancelled) {
        r->next = NULL;
        *window->ended_last = r;
        window->ended_last = &r->next;
    }
    return 0;
}

/* ---- headers -------------------------------------------------------------------------------------------------------- */

static void send_header(unsigned to, operation_t operation, unsigned index, const message_t *m)
{
    header_t *h = malloc(sizeof(*h));
    size_t bytes = 0;

    *h = (header_t){.operation = operation, .number = window->headers_out[to]++, .index = index, .size = NULL == m ? 0 : (uint32_t) m->size};
    if (PUT == operation && SHORT >= m->size) {
        memcpy(h->bytes, m->memory + GUARD, m->size);
        bytes = m->size;
    }
    send_with_callback(to, HEADERS, h, offsetof(header_t, bytes) + bytes, header_is_sent, h);
}

static void send_data(unsigned to, unsigned index, const message_t *m, bool is_get)
{
    ++window->sending;
    send_with_callback(to, DATA + (int) (2 * index) + is_get, m->memory + GUARD, m->size, data_are_sent, window);
}

/* Of two headers the later one may end first, if the earlier one is a rendezvous: therefore a flush says how many puts it waits for. */
static void serve(unsigned from, const header_t *h)
{
    if (HEADERS_MOST <= h->number || 0 != (window->headers_in[from] >> h->number & 1)) {
        world_broken("header %u from %u comes again", h->number, from);
    }
    window->headers_in[from] |= UINT32_C(1) << h->number;
    switch (h->operation) {
    case PUT:
        if (SHORT < h->size) {
            receive_with_callback(from, DATA + (int) (2 * h->index), window->put_in[from][h->index], put_is_here);
            break;
        }
        memcpy(window->put_in[from][h->index]->memory + GUARD, h->bytes, h->size);
        ++window->puts_in[from];
        break;
    case GET:
        send_data(from, h->index, window->get_out[from][h->index], true);
        break;
    case FLUSH:
        window->awaited[from] = 1 + h->index;
        break;
    default:
        if (0 != window->gets_open[from]) {
            world_broken("%u says that a flush is over, and %u of its answers are not here", from, window->gets_open[from]);
        }
        --window->flushing;
        break;
    }
}

/* Called by progress. */
static int look(void)
{
    static bool is_inside;
    int found = 0;

    if (is_inside) {
        return 0;
    }
    is_inside = true;
    for (receive_t *r; NULL != (r = window->ended); ++found) {
        window->ended = r->next;
        window->ended_last = NULL == r->next ? &window->ended : window->ended_last;
        round_saw(UINT32_MAX, r->request->req_status.MPI_ERROR);
        serve((unsigned) r->request->req_status.MPI_SOURCE, &r->header);
        start(UINT32_MAX, r->request, header_is_here, r);
    }
    for (unsigned from = 0; from < world_ranks(); ++from) {
        if (0 != window->awaited[from] && window->awaited[from] == 1 + window->puts_in[from]) {
            window->awaited[from] = 0;
            send_header(from, FLUSHED, 0, NULL);
        }
    }
    is_inside = false;
    return found;
}

/* ---- the life of a window ------------------------------------------------------------------------------------------------- */

static void expose(unsigned origin)
{
    const unsigned me = world_rank();

    for (unsigned i = 0; i < operations(origin, me); ++i) {
        if (is_put(origin, me, i)) {
            window->put_in[origin][i] = make(origin, me, i, false);
        } else {
            window->get_out[origin][i] = make(me, origin, i, true);
        }
    }
}

static void begin(unsigned round)
{
    window = calloc(1, sizeof(*window));
    window->round = round;
    window->ended_last = &window->ended;
    window->comm = image_comm_make(CONTEXT);
    for (unsigned r = 0; r < world_ranks(); ++r) {
        if (world_rank() != r) {
            expose(r);
        }
    }
    for (receive_t *r = window->receives; r < window->receives + RECEIVES; ++r) {
        int rc;

        do {
            rc = bfo_module.pml_irecv_init(&r->header, sizeof(r->header), &ompi_mpi_byte.dt, MPI_ANY_SOURCE, HEADERS, window->comm, &r->request);
        } while (goes_again(rc));
        round_saw(UINT32_MAX, rc);
        start(UINT32_MAX, r->request, header_is_here, r);
    }
    (void) opal_progress_register(look);
}

static void put(unsigned to, unsigned index)
{
    message_t *m = window->put_out[to][index] = make(world_rank(), to, index, true);

    send_header(to, PUT, index, m);
    if (SHORT < m->size) {
        send_data(to, index, m, false);
    }
}

static void get(unsigned from, unsigned index)
{
    message_t *m = window->get_in[from][index] = make(from, world_rank(), index, false);

    ++window->gets_open[from];
    receive_with_callback(from, DATA + (int) (2 * index) + 1, m, get_is_here);
    send_header(from, GET, index, m);
}

static void access_all(void)
{
    const unsigned me = world_rank(), n = world_ranks();

    for (unsigned distance = 1; distance < n; ++distance) {
        const unsigned target = (me + distance) % n;
        unsigned puts = 0;

        for (unsigned i = 0; i < operations(me, target); ++i) {
            if (is_put(me, target, i)) {
                put(target, i);
                ++puts;
            } else {
                get(target, i);
            }
        }
        ++window->flushing;
        send_header(target, FLUSH, puts, NULL);
    }
    while (0 < window->flushing) {
        opal_progress();
    }
}

static void keep(message_t *m, unsigned from, unsigned to)
{
    if (NULL != m) {
        memory_check(m, from, to, "in a window");
        round_keep(m, from, to);
    }
}

static void keep_all(unsigned peer)
{
    const unsigned me = world_rank();

    for (unsigned i = 0; i < OPERATIONS; ++i) {
        keep(window->put_in[peer][i], peer, me);
        keep(window->get_in[peer][i], peer, me);
        if (NULL != window->get_out[peer][i]) { /* nobody may read it any more */
            memset(window->get_out[peer][i]->memory + GUARD, 0xee, window->get_out[peer][i]->size);
        }
        if (NULL != window->put_out[peer][i]) {
            memset(window->put_out[peer][i]->memory + GUARD, 0xee, window->put_out[peer][i]->size);
        }
    }
}

/* As MPI_Win_free: the communicator's end waits for the callbacks that are owed. */
static void end(void)
{
    round_barrier(window->comm);
    (void) opal_progress_unregister(look);
    for (receive_t *r = window->receives; r < window->receives + RECEIVES; ++r) {
        (void) ompi_request_cancel(r->request);
        (void) ompi_request_free(&r->request);
    }
    image_comm_free(window->comm);
    window->is_freed = true;
    for (unsigned r = 0; r < world_ranks(); ++r) {
        keep_all(r);
    }
}

void image_window(unsigned round)
{
    round_barrier(image_world); /* all agree on the context id while no process uses it */
    world_sleep(world_draw(1u << world_draw(20)));
    begin(round);
    access_all();
    end();
}
