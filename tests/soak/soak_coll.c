/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Collective operations of the soak, blocking and not.
 */
#include "soak.h"

#include <stdlib.h>
#include <string.h>

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

static void from_one_to_all(soak_t *s, bool immediate)
{
    int root = (int) soak_draw(s, (uint64_t) s->size);
    size_t length = soak_draw_length(s);
    unsigned char *data = soak_room(length);
    MPI_Request request;

    if (s->rank == root) {
        soak_fill(data, length, soak_key(s, root, -2, 0));
    }
    if (immediate) {
        SOAK_MPI(s, MPI_Ibcast(data, (int) length, MPI_BYTE, root, s->comm, &request));
        SOAK_MPI(s, MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        SOAK_MPI(s, MPI_Bcast(data, (int) length, MPI_BYTE, root, s->comm));
    }
    soak_check(s, data, length, soak_key(s, root, -2, 0), "first wrong byte of a broadcast");
    free(data);
}

/* Allreduce, Reduce, Scan, Reduce_scatter_block of 64-bit sums. */
static void sums(soak_t *s, uint64_t which)
{
    size_t n = 1 + soak_draw_length(s) / 8 / (3 == which ? (size_t) s->size : 1), all = 3 == which ? n * (size_t) s->size : n;
    int root = (int) soak_draw(s, (uint64_t) s->size);
    uint64_t *in = soak_room(all * 8), *out = soak_room(all * 8);

    for (size_t i = 0; i < all; ++i) {
        in[i] = value_of(s, s->rank, i);
    }
    switch (which) {
    case 0:
        SOAK_MPI(s, MPI_Allreduce(in, out, (int) n, MPI_UINT64_T, MPI_SUM, s->comm));
        break;
    case 1:
        SOAK_MPI(s, MPI_Reduce(in, out, (int) n, MPI_UINT64_T, MPI_SUM, root, s->comm));
        break;
    case 2:
        SOAK_MPI(s, MPI_Scan(in, out, (int) n, MPI_UINT64_T, MPI_SUM, s->comm));
        break;
    default:
        SOAK_MPI(s, MPI_Reduce_scatter_block(in, out, (int) n, MPI_UINT64_T, MPI_SUM, s->comm));
    }
    for (size_t i = 0; (1 != which || root == s->rank) && i < n; ++i) {
        soak_check_equal(s, out[i], 3 == which ? sum_of(s, s->size, n * (size_t) s->rank + i)
                                               : sum_of(s, 2 == which ? s->rank + 1 : s->size, i), "element of a sum");
    }
    free(in);
    free(out);
}

/* Alltoallv with a length per pair; equal lengths make it Alltoall. */
static void all_to_all(soak_t *s, bool equal)
{
    size_t n = (size_t) s->size, common = soak_draw_length(s) / 8;
    int *counts = calloc(4 * n, sizeof(int)), *at = counts + n, *rcounts = at + n, *rat = rcounts + n;
    size_t length[SOAK_MAX_RANKS][SOAK_MAX_RANKS], out_bytes = 0, in_bytes = 0;
    unsigned char *out, *in;

    for (size_t a = 0; a < n; ++a) {
        for (size_t b = 0; b < n; ++b) {
            length[a][b] = equal ? common : soak_draw_length(s) / 4;
        }
    }
    for (size_t p = 0; p < n; ++p) {
        counts[p] = (int) length[s->rank][p];
        rcounts[p] = (int) length[p][s->rank];
        at[p] = (int) out_bytes;
        rat[p] = (int) in_bytes;
        out_bytes += length[s->rank][p];
        in_bytes += length[p][s->rank];
    }
    out = soak_room(out_bytes);
    in = soak_room(in_bytes);
    for (size_t p = 0; p < n; ++p) {
        soak_fill(out + at[p], length[s->rank][p], soak_key(s, s->rank, (int) p, 1));
    }
    if (equal) {
        SOAK_MPI(s, MPI_Alltoall(out, (int) common, MPI_BYTE, in, (int) common, MPI_BYTE, s->comm));
    } else {
        SOAK_MPI(s, MPI_Alltoallv(out, counts, at, MPI_BYTE, in, rcounts, rat, MPI_BYTE, s->comm));
    }
    for (size_t p = 0; p < n; ++p) {
        soak_check(s, in + rat[p], length[p][s->rank], soak_key(s, (int) p, s->rank, 1), "first wrong byte of an exchange");
    }
    free(out);
    free(in);
    free(counts);
}

/* Gather, Scatter, Allgather: a block of each rank. */
static void blocks(soak_t *s, uint64_t which)
{
    size_t length = soak_draw_length(s) / (size_t) s->size;
    int root = (int) soak_draw(s, (uint64_t) s->size), n = (int) length;
    unsigned char *one = soak_room(length), *all = soak_room(length * (size_t) s->size);

    if (1 == which) {
        for (int p = 0; p < s->size; ++p) {
            soak_fill(all + (size_t) p * length, length, soak_key(s, root, p, 2));
        }
        SOAK_MPI(s, MPI_Scatter(all, n, MPI_BYTE, one, n, MPI_BYTE, root, s->comm));
        soak_check(s, one, length, soak_key(s, root, s->rank, 2), "first wrong byte of a scatter");
    } else {
        soak_fill(one, length, soak_key(s, s->rank, -3, 2));
        if (0 == which) {
            SOAK_MPI(s, MPI_Gather(one, n, MPI_BYTE, all, n, MPI_BYTE, root, s->comm));
        } else {
            SOAK_MPI(s, MPI_Allgather(one, n, MPI_BYTE, all, n, MPI_BYTE, s->comm));
        }
        for (int p = 0; (0 != which || root == s->rank) && p < s->size; ++p) {
            soak_check(s, all + (size_t) p * length, length, soak_key(s, p, -3, 2), "first wrong byte of a gather");
        }
    }
    free(one);
    free(all);
}

/* Collectives that overlap each other and point-to-point messages. */
static void overlapping(soak_t *s)
{
    size_t length = soak_draw_length(s), n = 1 + (size_t) soak_draw(s, 2000);
    int root = (int) soak_draw(s, (uint64_t) s->size);
    unsigned char *data = soak_room(length);
    uint64_t *in = soak_room(n * 8), *out = soak_room(n * 8);
    MPI_Request r[3];

    if (s->rank == root) {
        soak_fill(data, length, soak_key(s, root, -4, 0));
    }
    for (size_t i = 0; i < n; ++i) {
        in[i] = value_of(s, s->rank, i);
    }
    SOAK_MPI(s, MPI_Ibcast(data, (int) length, MPI_BYTE, root, s->comm, &r[0]));
    SOAK_MPI(s, MPI_Iallreduce(in, out, (int) n, MPI_UINT64_T, MPI_SUM, s->comm, &r[1]));
    SOAK_MPI(s, MPI_Ibarrier(s->comm, &r[2]));
    soak_point_to_point(s);
    SOAK_MPI(s, MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
    soak_check(s, data, length, soak_key(s, root, -4, 0), "first wrong byte of an overlapped broadcast");
    for (size_t i = 0; i < n; ++i) {
        soak_check_equal(s, out[i], sum_of(s, s->size, i), "element of an overlapped sum");
    }
    free(data);
    free(in);
    free(out);
}

void soak_collective(soak_t *s)
{
    uint64_t which = soak_draw(s, 13);

    if (which < 4) {
        sums(s, which);
    } else if (which < 7) {
        blocks(s, which - 4);
    } else if (which < 9) {
        all_to_all(s, 7 == which);
    } else if (which < 11) {
        from_one_to_all(s, 9 == which);
    } else if (11 == which) {
        overlapping(s);
    } else {
        SOAK_MPI(s, MPI_Barrier(s->comm));
    }
}
