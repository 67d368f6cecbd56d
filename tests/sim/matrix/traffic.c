/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The traffic of a cell of the fault matrix: a few messages between all pairs of ranks, sent in the manner that the
 * options ask for. Every byte and every length is a function of (seed, sender, receiver, thread, sequence). Therefore the receiver
 * can check length, order and content, and that no byte after or between the data has changed. A tag names the phase of its message,
 * so that a fault can begin with a phase: the first round, the rounds between, the last round, and the codas. A coda is a few messages
 * from the first rank to the last one after all rounds. DESIGN.txt section 13.
 */
#include "../../payload.h"

#include <argp.h>
#include <inttypes.h>
#include <mpi.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_WINDOW = 64, MAX_THREADS = 4, BLOCK = 48, GAP = 16, MAX_CODAS = 2 };
enum { PHASE_FIRST, PHASE_MIDDLE, PHASE_LAST, PHASE_CODA }; /* of a round; the second coda is PHASE_CODA + 1 */
enum { OPT_CONTACT = 256 };
enum { MODE_STANDARD, MODE_SYNC, MODE_BUFFERED, MODE_READY, MODE_PERSISTENT, MODE_BLOCKING };

static struct {
    uint64_t seed;
    size_t low, high; /* message lengths, bytes */
    size_t coda_low, coda_high;
    int rounds, window, mode, threads, pause_ms, recheck_ms, codas, coda_window;
    const char *linger;
    bool strided, late, oneway, contact;
} opt = {.seed = 1, .low = 1, .high = 4096, .rounds = 4, .window = 4, .threads = 1, .coda_window = 1};

static const char *const mode_names[] = {"standard", "sync", "buffered", "ready", "persistent", "blocking"};
static int rank, size;
static MPI_Datatype block; /* BLOCK bytes of data, GAP bytes of nothing */
static uint64_t checked, wrong;

static const struct argp_option options[] = {
    {"seed", 'r', "N", 0, "seed of lengths and payloads", 0},
    {"bytes", 'b', "LOW-HIGH", 0, "lengths of the messages", 0},
    {"rounds", 'n', "N", 0, "rounds of messages", 0},
    {"window", 'w', "N", 0, "messages to each peer in one round, 1 to 64", 0},
    {"mode", 'm', "MODE", 0, "standard, sync, buffered, ready, persistent or blocking", 0},
    {"threads", 't', "N", 0, "threads of each rank that send and receive, 1 to 4", 0},
    {"strided", 's', NULL, 0, "blocks of 48 bytes with gaps of 16", 0},
    {"late", 'l', NULL, 0, "receives are posted after the sends", 0},
    {"oneway", 'o', NULL, 0, "only lower ranks send to higher ones", 0},
    {"pause", 'p', "MS", 0, "every rank sleeps MS between two rounds", 0},
    {"recheck", 'c', "MS", 0, "check MS after the last round that no receive buffer has changed since its message was verified", 0},
    {"codas", 'd', "N", 0, "codas, 0 to 2", 0},
    {"coda-window", 'W', "N", 0, "messages of a coda, 1 to 64", 0},
    {"coda-bytes", 'B', "LOW-HIGH", 0, "lengths of the messages of a coda, within those of --bytes", 0},
    {"contact", OPT_CONTACT, NULL, 0, "only neighbours send to each other in the rounds, so the first and the last rank meet in the coda", 0},
    {"linger", 'i', "FILE", 0, "every rank stays in MPI after its last message until FILE exists, and sends nothing", 0},
    {0},
};

static void parse_lengths(const char *arg, size_t *low, size_t *high, struct argp_state *state)
{
    if (2 != sscanf(arg, "%zu-%zu", low, high) || *low > *high || *high > 1u << 28) {
        argp_error(state, "the option takes LOW-HIGH, not '%s'", arg);
    }
}

static void parse_mode(const char *arg, struct argp_state *state)
{
    for (opt.mode = 0; opt.mode <= MODE_BLOCKING; ++opt.mode) {
        if (0 == strcmp(arg, mode_names[opt.mode])) {
            return;
        }
    }
    argp_error(state, "no mode '%s'", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    int n = NULL == arg ? 0 : atoi(arg), window = n < 1 ? 1 : n > MAX_WINDOW ? MAX_WINDOW : n;

    switch (key) {
    case 'r':
        opt.seed = strtoull(arg, NULL, 0);
        return 0;
    case 'b':
        parse_lengths(arg, &opt.low, &opt.high, state);
        return 0;
    case 'B':
        parse_lengths(arg, &opt.coda_low, &opt.coda_high, state);
        return 0;
    case 'd':
        opt.codas = n < 0 ? 0 : n > MAX_CODAS ? MAX_CODAS : n;
        return 0;
    case 'W':
        opt.coda_window = window;
        return 0;
    case OPT_CONTACT:
        opt.contact = true;
        return 0;
    case 'm':
        parse_mode(arg, state);
        return 0;
    case 'n':
        opt.rounds = n;
        return 0;
    case 'w':
        opt.window = window;
        return 0;
    case 't':
        opt.threads = n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
        return 0;
    case 's':
        opt.strided = true;
        return 0;
    case 'l':
        opt.late = true;
        return 0;
    case 'o':
        opt.oneway = true;
        return 0;
    case 'p':
        opt.pause_ms = n;
        return 0;
    case 'c':
        opt.recheck_ms = n;
        return 0;
    case 'i':
        opt.linger = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- payload -------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t key_of(int sender, int receiver, int thread, uint64_t sequence)
{
    return mix(mix(opt.seed ^ ((uint64_t) (unsigned) sender << 40 | (uint64_t) (unsigned) receiver << 20 | (unsigned) thread)) + sequence);
}

static size_t length_of(int phase, uint64_t key)
{
    const size_t low = phase < PHASE_CODA ? opt.low : opt.coda_low, high = phase < PHASE_CODA ? opt.high : opt.coda_high;
    size_t length = low + (size_t) (mix(key ^ 0x517a) % (high - low + 1));

    return opt.strided ? (length + BLOCK - 1) / BLOCK * BLOCK : length;
}

/* Bytes of the data that lie one after another: a block, or all of the message. */
static size_t piece(size_t length)
{
    return opt.strided ? BLOCK : length;
}

/* Where byte `i` of the data lies. */
static size_t place(size_t i)
{
    return opt.strided ? i / BLOCK * (BLOCK + GAP) + i % BLOCK : i;
}

/* Bytes of a buffer for the longest message. */
static size_t room(void)
{
    return place(opt.strided ? (opt.high + BLOCK - 1) / BLOCK * BLOCK : opt.high);
}

/* ---- one thread's messages -------------------------------------------------------------------------- */

typedef struct {
    int peer;
    unsigned char *send[MAX_WINDOW], *recv[2][MAX_WINDOW]; /* rounds receive into the two sets in turn */
    uint64_t sent, received;                               /* sequence of the next message */
} lane_t;

typedef struct {
    int thread, round, phase;
    int window; /* messages to each peer in a round */
    lane_t *lanes;
    MPI_Request *requests;
    MPI_Status *statuses;
    int count; /* number of requests */
    uint64_t checked, wrong;
} worker_t;

static bool sends_to(int phase, int from, int to)
{
    if (PHASE_CODA <= phase) {
        return 0 == from && size - 1 == to && from != to;
    }
    return from != to && (!opt.oneway || from < to) && (!opt.contact || 1 == abs(from - to));
}

static int tag_of(const worker_t *w)
{
    return w->thread + MAX_THREADS * w->phase;
}

static void shape(size_t length, int *count, MPI_Datatype *type)
{
    *count = (int) (opt.strided ? length / BLOCK : length);
    *type = opt.strided ? block : MPI_BYTE;
}

__attribute__((format(printf, 3, 4))) static void complain(worker_t *w, const lane_t *lane, const char *format, ...)
{
    char text[160];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (10 > w->wrong++) {
        fprintf(stderr, "WRONG rank %d thread %d: message %" PRIu64 " of rank %d: %s\n", rank, w->thread, lane->received, lane->peer, text);
    }
}

/* ---- buffers after their message --------------------------------------------------------------------- */

/* A buffer whose message was verified belongs to the program again: no write may reach it until the round after the next. */
static void give_back(worker_t *w)
{
    for (int n = 0; n < size * w->window; ++n) {
        unsigned char *buffer = w->lanes[n / w->window].recv[w->round % 2][n % w->window];

        if (NULL != buffer) {
            payload_blank(buffer);
        }
    }
}

static void look_at_given_back(worker_t *w, int set)
{
    for (int n = 0; n < size * w->window; ++n) {
        lane_t *lane = &w->lanes[n / w->window];
        const unsigned char *buffer = lane->recv[set][n % w->window];
        const char *fault = NULL == buffer ? NULL : payload_fault(buffer, 0, "after its message was complete");

        if (NULL != fault) {
            complain(w, lane, "%s", fault);
        }
    }
}

/* Checks the buffers once more after the last round. Returns the number of wrong buffers. */
static uint64_t late_writes(worker_t *w)
{
    const uint64_t before = w->wrong;

    look_at_given_back(w, 0);
    look_at_given_back(w, 1);
    return w->wrong - before;
}

/* ---- a round ------------------------------------------------------------------------------------------ */

static void post_receives(worker_t *w)
{
    MPI_Datatype type;
    int count;

    shape((opt.high + BLOCK - 1) / BLOCK * BLOCK, &count, &type);
    for (int p = 0; p < size; ++p) {
        for (int i = 0; sends_to(w->phase, p, rank) && i < w->window; ++i) {
            MPI_Irecv(w->lanes[p].recv[w->round % 2][i], opt.strided ? count : (int) opt.high, type, p, tag_of(w), MPI_COMM_WORLD,
                      &w->requests[w->count++]);
        }
    }
}

static void post_send(worker_t *w, lane_t *lane, int i)
{
    uint64_t key = key_of(rank, lane->peer, w->thread, lane->sent++);
    size_t length = length_of(w->phase, key);
    MPI_Request *request = &w->requests[w->count];
    MPI_Datatype type;
    int count;

    for (size_t at = 0; at < length; at += piece(length)) {
        payload_fill_part(lane->send[i] + place(at), piece(length), (uint32_t) key, at);
    }
    shape(length, &count, &type);
    switch (opt.mode) {
    case MODE_SYNC:
        MPI_Issend(lane->send[i], count, type, lane->peer, tag_of(w), MPI_COMM_WORLD, request);
        break;
    case MODE_BUFFERED:
        MPI_Ibsend(lane->send[i], count, type, lane->peer, tag_of(w), MPI_COMM_WORLD, request);
        break;
    case MODE_READY:
        MPI_Irsend(lane->send[i], count, type, lane->peer, tag_of(w), MPI_COMM_WORLD, request);
        break;
    case MODE_PERSISTENT:
        MPI_Send_init(lane->send[i], count, type, lane->peer, tag_of(w), MPI_COMM_WORLD, request);
        MPI_Start(request);
        break;
    case MODE_BLOCKING:
        MPI_Send(lane->send[i], count, type, lane->peer, tag_of(w), MPI_COMM_WORLD);
        return;
    default:
        MPI_Isend(lane->send[i], count, type, lane->peer, tag_of(w), MPI_COMM_WORLD, request);
    }
    ++w->count;
}

static void post_sends(worker_t *w)
{
    for (int i = 0; i < w->window; ++i) {
        for (int p = 0; p < size; ++p) {
            if (sends_to(w->phase, rank, p)) {
                post_send(w, &w->lanes[p], i);
            }
        }
    }
}

/* Verifies the bytes of a message, the gaps between them, and the bytes around them. */
static void verify_bytes(worker_t *w, const lane_t *lane, const unsigned char *buffer, size_t length, uint64_t key)
{
    const char *fault = payload_fault(buffer, place(length), "outside its message");
    const size_t n = piece(length);

    if (NULL != fault) {
        complain(w, lane, "%s", fault);
    }
    for (size_t at = 0; at < length; at += n) {
        const size_t wrong_at = payload_first_wrong_part(buffer + place(at), n, (uint32_t) key, at);
        const ptrdiff_t gap = (ptrdiff_t) (place(at) + n), next = (ptrdiff_t) place(at + n);

        if (wrong_at < n) {
            complain(w, lane, "byte %zu of %zu is wrong", at + wrong_at, length);
            return;
        }
        if (next != payload_first_written(buffer, gap, next)) {
            complain(w, lane, "the gap after byte %zu of %zu was written", at + n, length);
            return;
        }
    }
}

/* Verifies one message; messages are verified in the order of their receives, which is the order of their sends. */
static void verify(worker_t *w, lane_t *lane, int i, const MPI_Status *status)
{
    uint64_t key = key_of(lane->peer, rank, w->thread, lane->received);
    const unsigned char *buffer = lane->recv[w->round % 2][i];
    const size_t length = length_of(w->phase, key);
    int count = -1;

    MPI_Get_count(status, MPI_BYTE, &count);
    if (MPI_SUCCESS != status->MPI_ERROR) {
        complain(w, lane, "MPI_ERROR is %d", status->MPI_ERROR);
    } else if ((size_t) count != length) {
        complain(w, lane, "its length is %d, not %zu", count, length);
    } else {
        verify_bytes(w, lane, buffer, length, key);
    }
    ++lane->received;
    ++w->checked;
}

static void run_round(worker_t *w)
{
    w->count = 0;
    look_at_given_back(w, w->round % 2);
    if (opt.late) {
        post_sends(w);
        post_receives(w);
    } else {
        post_receives(w);
        if (MODE_READY == opt.mode) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
        post_sends(w);
    }
    for (int i = 0; i < w->count; ++i) {
        w->statuses[i].MPI_ERROR = MPI_SUCCESS;
    }
    if (MPI_SUCCESS != MPI_Waitall(w->count, w->requests, w->statuses)) {
        fprintf(stderr, "WRONG rank %d thread %d: MPI_Waitall of round %" PRIu64 " ended with an error\n", rank, w->thread,
                w->lanes[0 == rank ? size - 1 : 0].received / (uint64_t) w->window);
        fflush(stderr);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    for (int p = 0, n = opt.late ? w->count : 0; p < size; ++p) {
        if (opt.late && 0 == p) { /* the receives follow all sends in the list */
            for (int q = 0; q < size; ++q) {
                n -= sends_to(w->phase, q, rank) ? w->window : 0;
            }
        }
        for (int i = 0; sends_to(w->phase, p, rank) && i < w->window; ++i) {
            verify(w, &w->lanes[p], i, &w->statuses[n++]);
        }
    }
    for (int i = 0; i < w->count; ++i) {
        if (MPI_REQUEST_NULL != w->requests[i]) { /* persistent */
            MPI_Request_free(&w->requests[i]);
        }
    }
    give_back(w);
}

static void pause_ms(int ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    if (0 < ms) {
        nanosleep(&pause, NULL);
    }
}

static void prepare(worker_t *w)
{
    size_t most = 2 * (size_t) size * MAX_WINDOW;

    w->lanes = calloc((size_t) size, sizeof(*w->lanes));
    w->requests = calloc(most, sizeof(*w->requests));
    w->statuses = calloc(most, sizeof(*w->statuses));
    for (int p = 0; p < size; ++p) {
        w->lanes[p].peer = p;
        w->lanes[p].sent = w->lanes[p].received = (uint64_t) w->phase << 32; /* a coda repeats no payload */
        for (int i = 0; i < w->window; ++i) {
            w->lanes[p].send[i] = sends_to(w->phase, rank, p) ? malloc(room() + 1) : NULL;
            for (int set = 0; set < 2; ++set) {
                if (sends_to(w->phase, p, rank)) {
                    w->lanes[p].recv[set][i] = payload_room(room());
                }
            }
        }
    }
}

static void *run(void *arg)
{
    worker_t *w = arg;

    w->window = opt.window;
    prepare(w);
    for (w->round = 0; w->round < opt.rounds; ++w->round) {
        w->phase = 0 == w->round ? PHASE_FIRST : w->round + 1 < opt.rounds ? PHASE_MIDDLE : PHASE_LAST;
        run_round(w);
        if (w->round + 1 < opt.rounds) {
            pause_ms(opt.pause_ms);
        }
    }
    pause_ms(opt.recheck_ms);
    (void) late_writes(w);
    return NULL;
}

/* Runs a coda. Before the coda all earlier messages have been received. With --contact no barrier may connect the first rank with the last,
 * so an empty message of the coda's tag to the neighbour announces the coda. */
static void run_coda(worker_t *w, int number)
{
    w->thread = 0;
    w->phase = PHASE_CODA + number;
    w->window = opt.coda_window;
    prepare(w);
    if (!opt.contact) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (0 == rank) {
        MPI_Send(NULL, 0, MPI_BYTE, 1, tag_of(w), MPI_COMM_WORLD);
    } else if (1 == rank) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, tag_of(w), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    run_round(w);
}

/* A queue pair may break after all messages have arrived. The program that waits for that creates the file. Ends after 200 s without the file. */
static void linger(void)
{
    const struct timespec pause = {.tv_nsec = 1000000L};
    int flag;

    for (int i = 0; NULL != opt.linger && 0 != access(opt.linger, F_OK) && i < 200000; ++i) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        nanosleep(&pause, NULL);
    }
}

/* Reports a message that is left over, that is, a second copy. */
static bool is_left(void)
{
    MPI_Status status;
    int flag = 0;

    for (int i = 0; 0 == flag && i < 20; ++i) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    }
    if (0 != flag) {
        fprintf(stderr, "WRONG rank %d: a message of rank %d is left over\n", rank, status.MPI_SOURCE);
    }
    return 0 != flag;
}

/* Runs the rounds in all threads, then the codas. */
static void run_all(worker_t *workers)
{
    pthread_t threads[MAX_THREADS];

    for (int t = 0; t < opt.threads; ++t) {
        workers[t].thread = t;
        if (0 < t) {
            pthread_create(&threads[t], NULL, run, &workers[t]);
        }
    }
    run(&workers[0]);
    for (int t = 0; t < opt.threads; ++t) {
        if (0 < t) {
            pthread_join(threads[t], NULL);
        }
    }
    for (int i = 0; i < opt.codas; ++i) {
        run_coda(&workers[opt.threads + i], i);
    }
}

int main(int argc, char **argv)
{
    static const struct argp argp = {.options = options, .parser = parse, .doc = "The traffic of a cell of the fault matrix."};
    worker_t workers[MAX_THREADS + MAX_CODAS] = {{0}};
    uint64_t mine[2] = {0}, all[2];
    void *buffer = NULL;
    int provided, bytes;
    MPI_Datatype plain;

    argp_parse(&argp, argc, argv, 0, NULL, &opt);
    if (0 == opt.coda_high) {
        opt.coda_low = opt.low;
        opt.coda_high = opt.high;
    }
    MPI_Init_thread(NULL, NULL, 1 < opt.threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (1 < opt.threads && MPI_THREAD_MULTIPLE != provided) {
        fprintf(stderr, "this Open MPI has no MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Type_contiguous(BLOCK, MPI_BYTE, &plain);
    MPI_Type_create_resized(plain, 0, BLOCK + GAP, &block);
    MPI_Type_commit(&block);
    if (MODE_BUFFERED == opt.mode) {
        bytes = (int) ((opt.high + BLOCK + MPI_BSEND_OVERHEAD)
                       * (size_t) ((opt.rounds * opt.threads * opt.window + opt.codas * opt.coda_window) * size));
        buffer = malloc((size_t) bytes);
        MPI_Buffer_attach(buffer, bytes);
    }
    run_all(workers);
    for (int t = 0; t < opt.threads + opt.codas; ++t) {
        checked += workers[t].checked;
        wrong += workers[t].wrong;
    }
    if (NULL != buffer) {
        MPI_Buffer_detach(&buffer, &bytes);
    }
    mine[0] = checked;
    mine[1] = wrong;
    MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("%s %" PRIu64 " messages, %" PRIu64 " wrong\n", 0 == all[1] && 0 < all[0] ? "VERIFIED" : "FAILED", all[0], all[1]);
        fflush(stdout);
    }
    linger();
    for (int t = 0; t < opt.threads + opt.codas; ++t) {
        all[1] += late_writes(&workers[t]);
    }
    all[1] += is_left();
    MPI_Finalize();
    return 0 == all[1] ? 0 : 1;
}
