/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo_stream: a verified stream of mixed message sizes between pairs of ranks, for the demo and for trying bfo on a
 * cluster. Every byte and every size is a function of (seed, sender, receiver, sequence); therefore the receiver checks
 * length, order and content of every message. Rank 0 prints progress lines: what all ranks have received, and the longest
 * pause of any rank between two windows of messages; `bfo check` reads them as JSON. SIGUSR1 to mpirun ends the stream early. See DESIGN.txt 19.10.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bfo_config.h"

enum { WINDOW = 16, TAG = 77 };

typedef struct {
    double seconds;   /* duration */
    uint64_t seed;    /* of sizes and payloads */
    size_t max_bytes; /* largest message */
    bool json;        /* progress lines are JSON objects */
} options_t;

typedef struct {
    int rank, size, peer;
    unsigned char *send_buffer[WINDOW], *recv_buffer[WINDOW];
    uint64_t sequence; /* of the first message of the next window, each way */
    uint64_t messages; /* received and verified */
    uint64_t bytes;    /* received and verified */
    uint64_t errors;
    double last_window, longest_pause; /* when the last window ended, and the longest time between two windows since sum_up(); s */
} stream_t;

static volatile sig_atomic_t is_over;

const char *argp_program_version = "bfo_stream " BFO_VERSION;

static const struct argp_option argp_options[] = {
    {"seconds", 's', "S", 0, "run for S seconds (default 10), or until SIGUSR1", 0},
    {"seed", 'r', "N", 0, "seed of sizes and payloads (default 1)", 0},
    {"max", 'm', "BYTES", 0, "largest message in bytes, 8 to 1073741824 (default 4194304)", 0},
    {"json", 'j', NULL, 0, "five progress lines a second, each a JSON object", 0},
    {0},
};

static uint64_t number(struct argp_state *state, const char *name, const char *text, uint64_t low, uint64_t high)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 0);
    if (0 != errno || end == text || '\0' != *end || '-' == text[0] || value < low || value > high) {
        argp_error(state, "--%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'", name, low, high, text);
    }
    return value;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *options = state->input;
    switch (key) {
    case 's':
        options->seconds = (double) number(state, "seconds", arg, 1, 31536000);
        return 0;
    case 'r':
        options->seed = number(state, "seed", arg, 0, UINT64_MAX);
        return 0;
    case 'm':
        options->max_bytes = number(state, "max", arg, 8, 1u << 30);
        return 0;
    case 'j':
        options->json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s'", arg);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {.options = argp_options,
                                 .parser = parse_option,
                                 .doc = "A verified stream of mixed message sizes between pairs of MPI ranks, on different nodes "
                                        "where that can be. Ends with status 1 if any byte was wrong."};

/* Bijective mixing of 64 bits (the finaliser of splitmix64). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t key_of(uint64_t seed, int sender, int receiver, uint64_t sequence)
{
    return mix(mix(seed ^ ((uint64_t) (unsigned) sender << 32 | (unsigned) receiver)) + sequence);
}

/* Sizes are spread evenly over the powers of two up to the maximum; one message in 32 is empty. */
static size_t size_of(uint64_t key, size_t max_bytes)
{
    unsigned bits = 63 - (unsigned) __builtin_clzll(max_bytes);
    uint64_t draw = mix(key ^ UINT64_C(0x517a));
    if (0 == draw % 32) {
        return 0;
    }
    size_t top = (size_t) 2 << ((draw >> 8) % bits);
    size_t size = 1 + (size_t) ((draw >> 16) % top);
    return size < max_bytes ? size : max_bytes;
}

static void fill(unsigned char *buffer, size_t size, uint64_t key)
{
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        uint64_t word = key + i * UINT64_C(0x9e3779b97f4a7c15);
        memcpy(buffer + i, &word, 8);
    }
    uint64_t last = mix(key ^ size);
    memcpy(buffer + i, &last, size - i);
}

/* Returns the offset of the first wrong byte, or `size`. */
static size_t first_wrong(const unsigned char *buffer, size_t size, uint64_t key)
{
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        uint64_t word = key + i * UINT64_C(0x9e3779b97f4a7c15);
        if (0 != memcmp(buffer + i, &word, 8)) {
            break;
        }
    }
    uint64_t last = mix(key ^ size);
    for (; i < size; ++i) {
        uint64_t word = i - i % 8 + 8 <= size ? key + (i - i % 8) * UINT64_C(0x9e3779b97f4a7c15) : last;
        if (buffer[i] != ((unsigned char *) &word)[i % 8]) {
            return i;
        }
    }
    return size;
}

static void verify(stream_t *stream, const options_t *options, int slot, const MPI_Status *status)
{
    uint64_t sequence = stream->sequence + (uint64_t) slot;
    uint64_t key = key_of(options->seed, stream->peer, stream->rank, sequence);
    size_t size = size_of(key, options->max_bytes);
    int count = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    if ((size_t) count != size) {
        fprintf(stderr, "rank %d: message %" PRIu64 " of rank %d has %d bytes, not %zu\n", stream->rank, sequence, stream->peer, count, size);
        stream->errors++;
        return;
    }
    size_t wrong = first_wrong(stream->recv_buffer[slot], size, key);
    if (wrong != size) {
        fprintf(stderr, "rank %d: message %" PRIu64 " of rank %d is wrong at byte %zu of %zu\n", stream->rank, sequence, stream->peer, wrong, size);
        stream->errors++;
        return;
    }
    stream->messages++;
    stream->bytes += size;
}

/* Exchanges one window each way: every other message has its receive posted before it arrives, the rest after. */
static void exchange_window(stream_t *stream, const options_t *options)
{
    MPI_Request requests[2 * WINDOW];
    MPI_Status statuses[2 * WINDOW];
    bool late = 0 != (stream->sequence / WINDOW) % 2;

    for (int pass = 0; pass < 2; ++pass) {
        bool receive = late == (1 == pass);
        for (int i = 0; i < WINDOW; ++i) {
            if (receive) {
                MPI_Irecv(stream->recv_buffer[i], (int) options->max_bytes, MPI_BYTE, stream->peer, TAG, MPI_COMM_WORLD, &requests[i]);
                continue;
            }
            uint64_t key = key_of(options->seed, stream->rank, stream->peer, stream->sequence + (uint64_t) i);
            size_t size = size_of(key, options->max_bytes);
            fill(stream->send_buffer[i], size, key);
            MPI_Isend(stream->send_buffer[i], (int) size, MPI_BYTE, stream->peer, TAG, MPI_COMM_WORLD, &requests[WINDOW + i]);
        }
    }
    MPI_Waitall(2 * WINDOW, requests, statuses);
    for (int i = 0; i < WINDOW; ++i) {
        verify(stream, options, i, &statuses[i]);
    }
    stream->sequence += WINDOW;
    double now = MPI_Wtime();
    if (now - stream->last_window > stream->longest_pause) {
        stream->longest_pause = now - stream->last_window;
    }
    stream->last_window = now;
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

    return x < y ? -1 : x > y;
}

/* Orders the ranks by node, and pairs the first half with the second half. Therefore a pair shares a node only if more than half of the
 * ranks are on it. If the number of ranks is odd, the last rank has no peer, and exchanges with itself. */
static int peer_of(int rank, int size)
{
    uint64_t *keys = malloc((size_t) size * sizeof(*keys)), key;
    int node = rank, half = size / 2, place = 0, peer;
    MPI_Comm here;

    if (NULL == keys) {
        fprintf(stderr, "rank %d: no memory for %d ranks\n", rank, size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here);
    MPI_Bcast(&node, 1, MPI_INT, 0, here); /* a node is named after its lowest rank */
    MPI_Comm_free(&here);
    key = (uint64_t) (unsigned) node << 32 | (unsigned) rank;
    MPI_Allgather(&key, 1, MPI_UINT64_T, keys, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    qsort(keys, (size_t) size, sizeof(*keys), by_key);
    while (keys[place] != key) {
        ++place;
    }
    peer = place < half ? place + half : place < 2 * half ? place - half : place;
    peer = (int) (keys[peer] & UINT32_MAX);
    free(keys);
    return peer;
}

static void end_stream(int signal)
{
    is_over = 1;
}

/* Sums over all ranks: messages, bytes, errors. Returns the longest pause of a rank since the last call, in seconds. */
static double sum_up(stream_t *stream, uint64_t total[3])
{
    uint64_t mine[3] = {stream->messages, stream->bytes, stream->errors};
    double pause = 0;

    MPI_Allreduce(mine, total, 3, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&stream->longest_pause, &pause, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    stream->longest_pause = 0;
    return pause;
}

/* Prints a line of rank 0, for progress or at the end. `longest`: longest pause since its last line; `since`: time since that line. */
static void tell(const options_t *options, const uint64_t total[3], uint64_t told_bytes, double elapsed, double since, double longest, bool is_end)
{
    const double mib = (double) total[1] / 1048576.0;

    if (options->json) {
        printf("{\"seconds\": %.6f, \"messages\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"wrong\": %" PRIu64
               ", \"longest_pause_s\": %.6f, \"end\": %s}\n",
               elapsed, total[0], total[1], total[2], longest, is_end ? "true" : "false");
    } else if (is_end) {
        printf("%" PRIu64 " messages, %.1f MiB in %.1f s (%.1f MiB/s), %" PRIu64 " wrong\n", total[0], mib, elapsed, mib / elapsed, total[2]);
    } else {
        printf("%4.0f s  %10" PRIu64 " messages verified, %8.1f MiB/s, longest pause %4.0f ms, %" PRIu64 " wrong\n", elapsed, total[0],
               (double) (total[1] - told_bytes) / since / 1048576.0, 1e3 * longest, total[2]);
    }
    fflush(stdout);
}

static void run(stream_t *stream, const options_t *options, uint64_t total[3])
{
    double start = MPI_Wtime(), now = start, told = start, longest = 0;
    uint64_t told_bytes = 0;
    int more = 1;

    stream->last_window = start;
    while (more) {
        for (int i = 0; i < 4 && stream->peer != stream->rank; ++i) {
            exchange_window(stream, options);
        }
        double pause = sum_up(stream, total);
        now = MPI_Wtime();
        longest = pause > longest ? pause : longest;
        more = !is_over && now - start < options->seconds && 0 == total[2];
        if (0 == stream->rank && now - told >= (options->json ? 0.2 : 1.0)) {
            tell(options, total, told_bytes, now - start, now - told, longest, false);
            told = now;
            told_bytes = total[1];
            longest = 0;
        }
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (0 == stream->rank) {
        now = MPI_Wtime();
        tell(options, total, told_bytes, now - start, now - told, longest, true);
    }
}

int main(int argc, char **argv)
{
    options_t options = {.seconds = 10, .seed = 1, .max_bytes = 4u << 20};
    stream_t stream = {0};
    uint64_t total[3] = {0};

    argp_parse(&argp, argc, argv, 0, NULL, &options);
    signal(SIGUSR1, end_stream);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &stream.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &stream.size);
    if (stream.size < 2) {
        fprintf(stderr, "bfo_stream needs at least two ranks: mpirun -np 2 bfo_stream\n");
        MPI_Finalize();
        return 2;
    }
    for (int i = 0; i < WINDOW; ++i) {
        stream.send_buffer[i] = malloc(options.max_bytes);
        stream.recv_buffer[i] = malloc(options.max_bytes);
        if (NULL == stream.send_buffer[i] || NULL == stream.recv_buffer[i]) {
            fprintf(stderr, "rank %d: no memory for %d buffers of %zu bytes: take a smaller --max\n", stream.rank, 2 * WINDOW, options.max_bytes);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    stream.peer = peer_of(stream.rank, stream.size);
    run(&stream, &options, total);
    MPI_Finalize();
    for (int i = 0; i < WINDOW; ++i) {
        free(stream.send_buffer[i]);
        free(stream.recv_buffer[i]);
    }
    return 0 == total[2] ? 0 : 1;
}
