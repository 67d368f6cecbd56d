/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Collective operations of the soak, blocking and non-blocking. All parameters are common draws.
 */
#include "soak.h"

#include <stdlib.h>

static uint64_t value_of(const soak_t *s, int rank, size_t i)
{
    return soak_key(s, rank, -1, i) >> 16;
}

static uint64_t sum_of(const soak_t *s, int ranks, size_t i)
{
    uint64_t sum = 0;

    for (int r = 0; r < ranks; ++r) {
        sum += value_of(s, r, i);
    }
    return sum;
}

enum { BLOCKING, IMMEDIATE };

static void from_one_to_all(soak_t *s, int immediate)
{
    int root = (int) soak_draw(s, (uint64_t) s->size);
    size_t length = soak_draw_length(s);
    unsigned char *data = soak_receive_room(length);
    MPI_Request request;

    if (s->rank == root) {
        soak_fill(data, length, soak_key(s, root, -2, 0));
    }
    if (IMMEDIATE == immediate) {
        SOAK_MPI(s, MPI_Ibcast(data, (int) length, MPI_BYTE, root, s->comm, &request));
        SOAK_MPI(s, MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        SOAK_MPI(s, MPI_Bcast(data, (int) length, MPI_BYTE, root, s->comm));
    }
    soak_check(s, data, length, soak_key(s, root, -2, 0), "first wrong byte of a broadcast");
    soak_give_back(s, data, length);
}

/* Sums of 64-bit numbers. The last two scatter them: equal shares, or a share for each rank. */
enum { ALLREDUCE, REDUCE, IREDUCE, SCAN, EXSCAN, REDUCE_SCATTER_BLOCK, REDUCE_SCATTER };

static void sums(soak_t *s, int which)
{
    const bool shared = REDUCE_SCATTER_BLOCK <= which;
    int root = (int) soak_draw(s, (uint64_t) s->size), counts[SOAK_MAX_RANKS], n = 0, all = 0, before = 0, ranks = s->size;
    uint64_t *in, *out;
    MPI_Request request;

    for (int p = 0; p < s->size; ++p) {
        counts[p] = REDUCE_SCATTER == which || 0 == p ? (int) (soak_draw_length(s) / 8 / (shared ? (size_t) s->size : 1)) : counts[0];
        before += p < s->rank ? counts[p] : 0;
        all += shared || 0 == p ? counts[p] : 0;
    }
    n = shared ? counts[s->rank] : counts[0];
    in = soak_room((size_t) all * 8);
    out = soak_receive_room((size_t) all * 8);
    for (int i = 0; i < all; ++i) {
        in[i] = value_of(s, s->rank, (size_t) i);
    }
    switch (which) {
    case ALLREDUCE:
        SOAK_MPI(s, MPI_Allreduce(in, out, n, MPI_UINT64_T, MPI_SUM, s->comm));
        break;
    case REDUCE:
        SOAK_MPI(s, MPI_Reduce(in, out, n, MPI_UINT64_T, MPI_SUM, root, s->comm));
        break;
    case IREDUCE:
        SOAK_MPI(s, MPI_Ireduce(in, out, n, MPI_UINT64_T, MPI_SUM, root, s->comm, &request));
        SOAK_MPI(s, MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    case SCAN:
        SOAK_MPI(s, MPI_Scan(in, out, n, MPI_UINT64_T, MPI_SUM, s->comm));
        ranks = s->rank + 1;
        break;
    case EXSCAN:
        SOAK_MPI(s, MPI_Exscan(in, out, n, MPI_UINT64_T, MPI_SUM, s->comm));
        ranks = s->rank;
        break;
    case REDUCE_SCATTER_BLOCK:
        SOAK_MPI(s, MPI_Reduce_scatter_block(in, out, n, MPI_UINT64_T, MPI_SUM, s->comm));
        break;
    default:
        SOAK_MPI(s, MPI_Reduce_scatter(in, out, counts, MPI_UINT64_T, MPI_SUM, s->comm));
    }
    if (!(REDUCE == which || IREDUCE == which) || root == s->rank) {
        for (int i = 0; 0 < ranks && i < n; ++i) { /* rank 0 of an Exscan gets nothing */
            soak_check_equal(s, out[i], sum_of(s, ranks, (size_t) (shared ? before + i : i)), "element of a sum");
        }
    }
    free(in);
    soak_give_back(s, out, (size_t) n * 8);
}

/* Each pair has its own length, or all pairs have the same. Alltoallw: half of the pairs send bytes, the others numbers of 8 bytes. */
enum { ALLTOALL, IALLTOALL, ALLTOALLV, ALLTOALLW };

static void all_to_all(soak_t *s, int which)
{
    size_t n = (size_t) s->size, common = soak_draw_length(s) / 8;
    size_t length[SOAK_MAX_RANKS][SOAK_MAX_RANKS], out_bytes = 0, in_bytes = 0;
    int counts[SOAK_MAX_RANKS], at[SOAK_MAX_RANKS], rcounts[SOAK_MAX_RANKS], rat[SOAK_MAX_RANKS];
    MPI_Datatype types[SOAK_MAX_RANKS];
    unsigned char *out, *in;
    MPI_Request request;

    for (size_t a = 0; a < n; ++a) {
        for (size_t b = 0; b < n; ++b) {
            length[a][b] = ALLTOALLV > which ? common : soak_draw_length(s) / 4;
            length[a][b] -= ALLTOALLW == which && 1 == (a + b) % 2 ? length[a][b] % 8 : 0;
        }
    }
    for (size_t p = 0; p < n; ++p) {
        size_t unit = ALLTOALLW == which && 1 == (p + (size_t) s->rank) % 2 ? 8 : 1;
        types[p] = 8 == unit ? MPI_UINT64_T : MPI_BYTE;
        counts[p] = (int) (length[s->rank][p] / unit);
        rcounts[p] = (int) (length[p][s->rank] / unit);
        at[p] = (int) out_bytes;
        rat[p] = (int) in_bytes;
        out_bytes += length[s->rank][p];
        in_bytes += length[p][s->rank];
    }
    out = soak_room(out_bytes);
    in = soak_receive_room(in_bytes);
    for (size_t p = 0; p < n; ++p) {
        soak_fill(out + at[p], length[s->rank][p], soak_key(s, s->rank, (int) p, 1));
    }
    switch (which) {
    case ALLTOALL:
        SOAK_MPI(s, MPI_Alltoall(out, (int) common, MPI_BYTE, in, (int) common, MPI_BYTE, s->comm));
        break;
    case IALLTOALL:
        SOAK_MPI(s, MPI_Ialltoall(out, (int) common, MPI_BYTE, in, (int) common, MPI_BYTE, s->comm, &request));
        SOAK_MPI(s, MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    case ALLTOALLV:
        SOAK_MPI(s, MPI_Alltoallv(out, counts, at, MPI_BYTE, in, rcounts, rat, MPI_BYTE, s->comm));
        break;
    default:
        SOAK_MPI(s, MPI_Alltoallw(out, counts, at, types, in, rcounts, rat, types, s->comm));
    }
    for (size_t p = 0; p < n; ++p) {
        soak_check(s, in + rat[p], length[p][s->rank], soak_key(s, (int) p, s->rank, 1), "first wrong byte of an exchange");
    }
    free(out);
    soak_give_back(s, in, in_bytes);
}

/* A block of each rank. All blocks have one length, or each has its own; then they lie in reverse order, with gaps between them. */
enum { GATHER, IGATHER, SCATTER, ALLGATHER, GATHERV, SCATTERV, ALLGATHERV };

static void blocks(soak_t *s, int which)
{
    const bool own = GATHERV <= which, scatter = SCATTER == which || SCATTERV == which;
    int root = (int) soak_draw(s, (uint64_t) s->size), counts[SOAK_MAX_RANKS], at[SOAK_MAX_RANKS], n, bytes = 0;
    unsigned char *one, *all;
    MPI_Request request;

    for (int p = s->size; p-- > 0;) {
        counts[p] = own || s->size - 1 == p ? (int) (soak_draw_length(s) / (size_t) s->size) : counts[p + 1];
        at[p] = own ? bytes : p * counts[p];
        bytes += counts[p] + (own ? 5 : 0);
    }
    n = counts[s->rank];
    one = soak_receive_room((size_t) n);
    all = soak_receive_room((size_t) bytes);
    if (scatter) {
        for (int p = 0; p < s->size; ++p) {
            soak_fill(all + at[p], (size_t) counts[p], soak_key(s, root, p, 2));
        }
    } else {
        soak_fill(one, (size_t) n, soak_key(s, s->rank, -3, 2));
    }
    switch (which) {
    case GATHER:
        SOAK_MPI(s, MPI_Gather(one, n, MPI_BYTE, all, n, MPI_BYTE, root, s->comm));
        break;
    case IGATHER:
        SOAK_MPI(s, MPI_Igather(one, n, MPI_BYTE, all, n, MPI_BYTE, root, s->comm, &request));
        SOAK_MPI(s, MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    case SCATTER:
        SOAK_MPI(s, MPI_Scatter(all, n, MPI_BYTE, one, n, MPI_BYTE, root, s->comm));
        break;
    case ALLGATHER:
        SOAK_MPI(s, MPI_Allgather(one, n, MPI_BYTE, all, n, MPI_BYTE, s->comm));
        break;
    case GATHERV:
        SOAK_MPI(s, MPI_Gatherv(one, n, MPI_BYTE, all, counts, at, MPI_BYTE, root, s->comm));
        break;
    case SCATTERV:
        SOAK_MPI(s, MPI_Scatterv(all, counts, at, MPI_BYTE, one, n, MPI_BYTE, root, s->comm));
        break;
    default:
        SOAK_MPI(s, MPI_Allgatherv(one, n, MPI_BYTE, all, counts, at, MPI_BYTE, s->comm));
    }
    if (scatter) {
        soak_check(s, one, (size_t) n, soak_key(s, root, s->rank, 2), "first wrong byte of a scatter");
    } else if (ALLGATHER == which || ALLGATHERV == which || root == s->rank) {
        for (int p = 0; p < s->size; ++p) {
            soak_check(s, all + at[p], (size_t) counts[p], soak_key(s, p, -3, 2), "first wrong byte of a gather");
            soak_check_blank(s, all, (size_t) (at[p] + counts[p]), (size_t) (at[p] + counts[p] + (own ? 5 : 0)),
                             "first byte written in a gap of a gather");
        }
    }
    soak_give_back(s, one, (size_t) n);
    soak_give_back(s, all, (size_t) bytes);
}

/* Neighbours on a torus. Where a dimension has no more than two ranks, both neighbours are the same rank and get the same bytes, because
 * MPI libraries differ in the order of the blocks of two equal neighbours. */
static uint64_t direction(const int dims[2], int block)
{
    return (uint64_t) (2 < dims[block / 2] ? block : block / 2 * 2);
}

static void neighbours(soak_t *s, int variant)
{
    int dims[2] = {0, 0}, periods[2] = {1, 1}, near[4];
    size_t length = soak_draw_length(s) / 4;
    unsigned char *out = soak_room(4 * length), *in = soak_receive_room(4 * length);
    MPI_Comm torus;

    (void) variant;
    SOAK_MPI(s, MPI_Dims_create(s->size, 2, dims));
    SOAK_MPI(s, MPI_Cart_create(s->comm, 2, dims, periods, 0, &torus));
    for (int d = 0; d < 2; ++d) {
        SOAK_MPI(s, MPI_Cart_shift(torus, d, 1, &near[2 * d], &near[2 * d + 1]));
    }
    for (int b = 0; b < 4; ++b) {
        soak_fill(out + (size_t) b * length, length, soak_key(s, s->rank, near[b], direction(dims, b)));
    }
    SOAK_MPI(s, MPI_Neighbor_alltoall(out, (int) length, MPI_BYTE, in, (int) length, MPI_BYTE, torus));
    for (int b = 0; b < 4; ++b) { /* the block from a neighbour was sent in the opposite direction */
        soak_check(s, in + (size_t) b * length, length, soak_key(s, near[b], s->rank, direction(dims, b ^ 1)), "first wrong byte of a neighbour");
    }
    SOAK_MPI(s, MPI_Comm_free(&torus));
    free(out);
    soak_give_back(s, in, 4 * length);
}

static void barrier(soak_t *s, int variant)
{
    (void) variant;
    SOAK_MPI(s, MPI_Barrier(s->comm));
}

/* Collectives that overlap each other and point-to-point messages. */
static void overlapping(soak_t *s, int variant)
{
    size_t length = soak_draw_length(s), n = 1 + (size_t) soak_draw(s, 2000);
    int root = (int) soak_draw(s, (uint64_t) s->size);
    unsigned char *data = soak_receive_room(length);
    uint64_t *in = soak_room(n * 8), *out = soak_receive_room(n * 8);
    MPI_Request r[3];

    (void) variant;
    if (s->rank == root) {
        soak_fill(data, length, soak_key(s, root, -4, 0));
    }
    for (size_t i = 0; i < n; ++i) {
        in[i] = value_of(s, s->rank, i);
    }
    SOAK_MPI(s, MPI_Ibcast(data, (int) length, MPI_BYTE, root, s->comm, &r[0]));
    SOAK_MPI(s, MPI_Iallreduce(in, out, (int) n, MPI_UINT64_T, MPI_SUM, s->comm, &r[1]));
    SOAK_MPI(s, MPI_Ibarrier(s->comm, &r[2]));
    soak_operate(s, &soak_point_to_point);
    SOAK_MPI(s, MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
    soak_check(s, data, length, soak_key(s, root, -4, 0), "first wrong byte of an overlapped broadcast");
    for (size_t i = 0; i < n; ++i) {
        soak_check_equal(s, out[i], sum_of(s, s->size, i), "element of an overlapped sum");
    }
    soak_give_back(s, data, length);
    free(in);
    soak_give_back(s, out, n * 8);
}

static soak_row_t rows[] = {
    {"Allreduce", sums, ALLREDUCE, 0},
    {"Reduce", sums, REDUCE, 0},
    {"Ireduce", sums, IREDUCE, 0},
    {"Scan", sums, SCAN, 0},
    {"Exscan", sums, EXSCAN, 0},
    {"Reduce_scatter_block", sums, REDUCE_SCATTER_BLOCK, 0},
    {"Reduce_scatter", sums, REDUCE_SCATTER, 0},
    {"Gather", blocks, GATHER, 0},
    {"Igather", blocks, IGATHER, 0},
    {"Gatherv", blocks, GATHERV, 0},
    {"Scatter", blocks, SCATTER, 0},
    {"Scatterv", blocks, SCATTERV, 0},
    {"Allgather", blocks, ALLGATHER, 0},
    {"Allgatherv", blocks, ALLGATHERV, 0},
    {"Alltoall", all_to_all, ALLTOALL, 0},
    {"Ialltoall", all_to_all, IALLTOALL, 0},
    {"Alltoallv", all_to_all, ALLTOALLV, 0},
    {"Alltoallw", all_to_all, ALLTOALLW, 0},
    {"Bcast", from_one_to_all, BLOCKING, 0},
    {"Ibcast", from_one_to_all, IMMEDIATE, 0},
    {"Neighbor_alltoall", neighbours, 0, 0},
    {"Barrier", barrier, 0, 0},
    {"overlapping Ibcast Iallreduce Ibarrier", overlapping, 0, 0},
};
const soak_table_t soak_collective = {rows, sizeof(rows) / sizeof(rows[0])};
