/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Shared by the programs of cases in the world of fuzz_world.h; each includes this file once. world.sh runs the programs.
 */
#ifndef WORLD_CASE_H
#define WORLD_CASE_H

#include "fuzz_world.h"

#include "types/pml_bfo_local.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#undef calloc
#undef malloc
#undef posix_memalign
void *calloc(size_t n, size_t size); /* of the C library; its headers were read with these names replaced */
void *malloc(size_t size);
int posix_memalign(void **room, size_t align, size_t size);
#undef opal_convertor_prepare_for_send
#undef opal_convertor_prepare_for_recv

#define must(what, text) must_be((what), __LINE__, (text))
static inline void must_be(bool what, int line, const char *text)
{
    if (!what) {
        fprintf(stderr, "line %d: %s\n", line, text);
        exit(1);
    }
}

/* `no_memory` allocations of the PML fail, after `no_memory_after` that succeed. */
static unsigned no_memory_after, no_memory;

static bool memory_ends(void)
{
    if (0 == no_memory) {
        return false;
    }
    if (no_memory_after > 0) {
        --no_memory_after;
        return false;
    }
    --no_memory;
    return true;
}

void *world_calloc(size_t n, size_t size);
void *world_calloc(size_t n, size_t size)
{
    return memory_ends() ? NULL : calloc(n, size);
}

void *world_malloc(size_t size);
void *world_malloc(size_t size)
{
    return memory_ends() ? NULL : malloc(size);
}

int world_memalign(void **room, size_t align, size_t size);
int world_memalign(void **room, size_t align, size_t size)
{
    return memory_ends() ? ENOMEM : posix_memalign(room, align, size);
}

/* A thread that waits for the lock of a communicator calls it once. */
static void (*while_waiting)(void);

int fuzz_nanosleep(const struct timespec *time, struct timespec *left);
int fuzz_nanosleep(const struct timespec *time, struct timespec *left)
{
    void (*const meanwhile)(void) = while_waiting;

    while_waiting = NULL;
    if (NULL != meanwhile) {
        meanwhile();
    }
    return 0;
}

/* Memory that only the convertor can reach; any other access ends the program with a signal. */
static char *device, *device_inside;
enum { DEVICE_SIZE = 1 << 20 };

static const void *reachable(const void *base, uint32_t *flags)
{
    if (NULL == device || (const char *) base < device || (const char *) base >= device + DEVICE_SIZE) {
        return base;
    }
    *flags |= CONVERTOR_CUDA;
    return device_inside + ((const char *) base - device);
}

int32_t opal_convertor_prepare_for_send(opal_convertor_t *c, const struct opal_datatype_t *type, size_t count, const void *base);
int32_t opal_convertor_prepare_for_recv(opal_convertor_t *c, const struct opal_datatype_t *type, size_t count, const void *base);
int32_t world_prepare_for_send(opal_convertor_t *c, const struct opal_datatype_t *type, size_t count, const void *base);
int32_t world_prepare_for_recv(opal_convertor_t *c, const struct opal_datatype_t *type, size_t count, const void *base);
int32_t world_prepare_for_send(opal_convertor_t *c, const struct opal_datatype_t *type, size_t count, const void *base)
{
    uint32_t flags = 0;
    const void *const at = reachable(base, &flags);
    const int32_t rc = opal_convertor_prepare_for_send(c, type, count, at);

    c->flags |= flags;
    return rc;
}
int32_t world_prepare_for_recv(opal_convertor_t *c, const struct opal_datatype_t *type, size_t count, const void *base)
{
    uint32_t flags = 0;
    const void *const at = reachable(base, &flags);
    const int32_t rc = opal_convertor_prepare_for_recv(c, type, count, at);

    c->flags |= flags;
    return rc;
}

static bfo_peer_t *peer_of_rank(int rank)
{
    return world_proc[rank]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];
}

static bool is_complete(const ompi_request_t *request)
{
    return REQUEST_COMPLETED == request->req_complete;
}

static bool is_well(const ompi_request_t *request)
{
    return is_complete(request) && MPI_SUCCESS == request->req_status.MPI_ERROR;
}

typedef struct {
    const char *name;
    void (*run)(void);
} world_case_t;

/* Without arguments prints the names of the cases; with a name runs that case. */
static int run_cases(const world_case_t *cases, size_t n, int argc, char **argv)
{
    for (size_t i = 0; i < n; ++i) {
        if (argc < 2) {
            puts(cases[i].name);
        } else if (0 == strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}

/* A short message of this rank comes over a BTL, with `text` as its data. */
static const char text[8] = "payload";

static inline void match_comes(int btl, int rank, uint16_t ctx, int tag, uint32_t seq)
{
    struct {
        bfo_match_hdr_t h;
        char data[8];
    } m;

    memcpy(m.data, text, sizeof(text));
    bfo_hdr_pack_match(&m.h, BFO_MSG_MATCH, 0, ctx, rank, tag, seq);
    world_receive(&world_btl[btl], BFO_TAG(BFO_MSG_MATCH), &m, sizeof(m), sizeof(m));
}

#endif /* WORLD_CASE_H */
