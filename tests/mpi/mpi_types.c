/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Datatypes: contiguous, strided, indexed, struct and resized types on either side, in every size class, compared with a
 * reference that is packed by hand; truncation within an element; MPI_BOTTOM; a type of size zero; types whose data begin before or
 * after the address given.
 */
#include "mpi_check.h"

enum { MOST = 200000 };

/* A type, and the byte offsets of its data in packed order, which MPI_Pack of a buffer of indices shows. */
typedef struct {
    const char *name;
    MPI_Datatype type;
    size_t size, extent;
} shape_t;

static shape_t shapes[8];
static int n_shapes;

static void shape_add(const char *name, MPI_Datatype type)
{
    MPI_Aint lb, extent;
    int size;

    MPI(MPI_Type_commit(&type));
    MPI(MPI_Type_size(type, &size));
    MPI(MPI_Type_get_extent(type, &lb, &extent));
    CHECK(0 == lb);
    shapes[n_shapes++] = (shape_t){name, type, (size_t) size, (size_t) extent};
}

static void make_shapes(void)
{
    MPI_Datatype t, u;
    const int lengths[3] = {3, 1, 4}, places[3] = {0, 5, 9};
    const MPI_Aint offsets[3] = {0, 12, 24};
    const MPI_Datatype parts[3] = {MPI_BYTE, MPI_INT, MPI_DOUBLE};

    MPI(MPI_Type_contiguous(24, MPI_BYTE, &t));
    shape_add("contiguous", t);
    MPI(MPI_Type_vector(4, 3, 5, MPI_SHORT, &t));
    MPI(MPI_Type_create_resized(t, 0, 40, &u));
    shape_add("vector", u);
    MPI(MPI_Type_free(&t));
    MPI(MPI_Type_indexed(3, lengths, places, MPI_INT, &t));
    MPI(MPI_Type_create_resized(t, 0, 56, &u));
    shape_add("indexed", u);
    MPI(MPI_Type_free(&t));
    MPI(MPI_Type_create_struct(3, (int[]){3, 1, 2}, offsets, parts, &t));
    MPI(MPI_Type_create_resized(t, 0, 48, &u));
    shape_add("struct", u);
    MPI(MPI_Type_free(&t));
    MPI(MPI_Type_create_resized(MPI_BYTE, 0, 3, &u));
    shape_add("spaced", u);
    MPI(MPI_Type_vector(50, 40, 90, MPI_BYTE, &t));
    MPI(MPI_Type_create_resized(t, 0, 4500, &u));
    shape_add("wide", u);
    MPI(MPI_Type_free(&t));
}

/* count elements of the shape whose packed bytes are the pattern of seed; the holes are 0xee. */
static uint8_t *shaped(const shape_t *s, int count, uint32_t seed, bool filled)
{
    uint8_t *packed = malloc(s->size * (size_t) count + 1), *buf = malloc(s->extent * (size_t) count + 64);
    int position = 0;

    memset(buf, 0xee, s->extent * (size_t) count + 64);
    if (filled) {
        fill(packed, s->size * (size_t) count, seed);
        MPI(MPI_Unpack(packed, (int) (s->size * (size_t) count), &position, buf, count, s->type, MPI_COMM_SELF));
    }
    free(packed);
    return buf;
}

static bool is_shaped(const shape_t *s, const uint8_t *buf, int count, uint32_t seed)
{
    uint8_t *wanted = shaped(s, count, seed, true);
    const bool same = 0 == memcmp(wanted, buf, s->extent * (size_t) count + 64); /* holes and guard too */

    free(wanted);
    return same;
}

static void test_pair(const shape_t *a, const shape_t *b, size_t bytes, int peer, uint32_t seed)
{
    /* bytes is a multiple of both sizes */
    const int ca = (int) (bytes / a->size), cb = (int) (bytes / b->size);
    uint8_t *out = shaped(a, ca, seed, true), *in = shaped(b, cb, 0, false);
    MPI_Request r;
    MPI_Status st;
    int count;

    MPI(MPI_Irecv(in, cb, b->type, peer, 1, MPI_COMM_WORLD, &r));
    if (seed % 2) {
        MPI(MPI_Barrier(MPI_COMM_WORLD)); /* receives are posted before the sends; otherwise in any order */
    }
    MPI(MPI_Send(out, ca, a->type, peer, 1, MPI_COMM_WORLD));
    MPI(MPI_Wait(&r, &st));
    MPI(MPI_Get_count(&st, b->type, &count));
    CHECK(count == cb);
    CHECK(is_shaped(b, in, cb, seed));
    free(out);
    free(in);
}

static size_t common(size_t a, size_t b)
{
    size_t m = a;

    while (0 != m % b) {
        m += a;
    }
    return m;
}

static void test_truncated(const shape_t *s, int peer)
{
    const int count = (int) (MOST / s->size), room = count / 3;
    uint8_t *out = shaped(s, count, 5, true), *in = shaped(s, room, 0, false);
    MPI_Request r;
    int rc, class;

    MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI(MPI_Isend(out, count, s->type, peer, 9, MPI_COMM_WORLD, &r));
    rc = MPI_Recv(in, room, s->type, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI(MPI_Error_class(rc, &class));
    CHECK(MPI_ERR_TRUNCATE == class);
    MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(is_shaped(s, in, room, 5));
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    free(out);
    free(in);
}

static void test_bottom(int peer)
{
    static double a[4] = {1, 2, 3, 4}, b[4];
    MPI_Datatype t, u;
    MPI_Aint where[2];
    int lengths[2] = {2, 1};

    MPI(MPI_Get_address(&a[0], &where[0]));
    MPI(MPI_Get_address(&a[3], &where[1]));
    MPI(MPI_Type_create_hindexed(2, lengths, where, MPI_DOUBLE, &t));
    MPI(MPI_Type_commit(&t));
    MPI(MPI_Get_address(&b[1], &where[0]));
    MPI(MPI_Get_address(&b[0], &where[1]));
    MPI(MPI_Type_create_hindexed(2, lengths, where, MPI_DOUBLE, &u));
    MPI(MPI_Type_commit(&u));
    MPI(MPI_Sendrecv(MPI_BOTTOM, 1, t, peer, 3, MPI_BOTTOM, 1, u, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(1 == b[1] && 2 == b[2] && 4 == b[0]);
    MPI(MPI_Type_free(&t));
    MPI(MPI_Type_free(&u));
    MPI(MPI_Type_contiguous(0, MPI_INT, &t));
    MPI(MPI_Type_commit(&t));
    MPI(MPI_Sendrecv(a, 5, t, peer, 3, b, 0, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MPI(MPI_Type_free(&t));
}

/* n bytes at `displacement` from the address that MPI gets. */
static MPI_Datatype displaced(int n, MPI_Aint displacement)
{
    MPI_Datatype t;

    MPI(MPI_Type_create_hindexed(1, &n, &displacement, MPI_BYTE, &t));
    MPI(MPI_Type_commit(&t));
    return t;
}

/* A block is contiguous memory wherever it begins: after the address, before it, or at an absolute address. */
static void test_displaced(int peer)
{
    static const int sizes[] = {8, 3000, MOST};
    static uint8_t out[MOST], in[MOST + 2];

    for (int s = 0; s < 3; ++s) {
        const int n = sizes[s];
        MPI_Aint to;

        MPI(MPI_Get_address(in + 1, &to));
        for (int way = 0; way < 3; ++way) {
            const MPI_Aint skip = 0 == way ? 1000 : -1000;
            MPI_Datatype t = displaced(n, skip), u = 2 == way ? displaced(n, to) : displaced(n, -skip);

            fill(out, (size_t) n, (uint32_t) (s + way));
            memset(in, 0xee, sizeof(in));
            MPI(MPI_Sendrecv((char *) out - skip, 1, t, peer, 4, 2 == way ? MPI_BOTTOM : (void *) ((char *) in + 1 + skip), 1, u, peer, 4,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(is_filled(in + 1, (size_t) n, (uint32_t) (s + way)) && 0xee == in[0] && 0xee == in[n + 1]);
            MPI(MPI_Type_free(&t));
            MPI(MPI_Type_free(&u));
        }
    }
}

int main(int argc, char **argv)
{
    static const size_t about[] = {1, 100, 3000, 5000, 40000, 70000, MOST};
    uint32_t seed = 1;

    start(&argc, &argv);
    CHECK(0 == ranks % 2);
    make_shapes();
    for (int a = 0; a < n_shapes; ++a) {
        for (int b = 0; b < n_shapes; ++b) {
            const size_t unit = common(shapes[a].size, shapes[b].size);

            for (unsigned i = 0; i < sizeof(about) / sizeof(about[0]); ++i, ++seed) {
                test_pair(&shapes[a], &shapes[b], unit * ((about[i] + unit - 1) / unit), rank ^ 1, seed);
            }
        }
        test_truncated(&shapes[a], rank ^ 1);
    }
    test_bottom(rank ^ 1);
    test_displaced(rank ^ 1);
    for (int i = 0; i < n_shapes; ++i) {
        MPI(MPI_Type_free(&shapes[i].type));
    }
    return finish();
}
