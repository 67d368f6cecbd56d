/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Memory of this process that its peers can see: one sparse file. Its pages are allocated before they are handed out,
 * so that a full /dev/shm gives an error code and not SIGBUS. DESIGN.txt 16.
 */
#include "sr_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SR_PAGE 4096u
#define SR_SMALLS (4 * SR_PAGE)
#define SR_STEP (UINT64_C(256) * 1024) /* the file grows by this much at least */
#define SR_ROUND(x, to) (((x) + (to) -1) / (to) * (to))

struct free_block {
    uint64_t offset;
    size_t size;
    struct free_block *next;
};

static struct {
    pthread_mutex_t mutex;
    uint64_t used;             /* all memory below this offset is handed out or on a list */
    uint64_t allocated;        /* the file has pages below this offset */
    uint64_t small, small_end; /* pages that objects smaller than one share */
    struct free_block *blocks;
    uint64_t *stable[SR_STABLE_KINDS];
    unsigned stable_count[SR_STABLE_KINDS], stable_room[SR_STABLE_KINDS];
} arena = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const size_t stable_size[SR_STABLE_KINDS] = {
    [SR_STABLE_QP] = SR_ROUND(sizeof(struct sr_qp_shm), 64),
    [SR_STABLE_CQ] = SR_ROUND(sizeof(struct sr_cq_shm), 64),
    [SR_STABLE_RQ] = SR_ROUND(sizeof(struct sr_rq_shm), 64),
};

static int grow(uint64_t end)
{
    static _Atomic bool said;
    char path[SR_PATH_MAX];
    uint64_t to = SR_ROUND(end, SR_STEP);
    int fd, rc;

    if (to > SR_ARENA_MAX) {
        return ENOMEM;
    }
    sr_fabric_arena_path(&sr.fabric, sr.word, path);
    fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (0 > fd) {
        return errno;
    }
    rc = posix_fallocate(fd, (off_t) arena.allocated, (off_t) (to - arena.allocated));
    close(fd);
    if (0 == rc) {
        arena.allocated = to;
        return 0;
    }
    sr_say_once(&said, "%s is full (%s): enlarge /dev/shm (containers: --shm-size) or use smaller queues", path, strerror(rc));
    return ENOMEM;
}

static uint64_t take_block(size_t size)
{
    for (struct free_block **at = &arena.blocks; NULL != *at; at = &(*at)->next) {
        if (size == (*at)->size) {
            struct free_block *block = *at;
            uint64_t offset = block->offset;
            *at = block->next;
            free(block);
            return offset;
        }
    }
    return 0;
}

/* Locks: arena.mutex */
static uint64_t alloc_locked(size_t size, size_t align)
{
    uint64_t offset = SR_ROUND(arena.used, align);

    if (offset + size > arena.allocated) {
        int rc = grow(offset + size);
        if (0 != rc) {
            errno = rc;
            return UINT64_MAX;
        }
    }
    arena.used = offset + size;
    return offset;
}

/* Locks: arena.mutex */
static uint64_t alloc_small_locked(size_t size)
{
    uint64_t offset;

    if (arena.small + size > arena.small_end) {
        offset = alloc_locked(SR_SMALLS, SR_PAGE);
        if (UINT64_MAX == offset) {
            return offset;
        }
        arena.small = offset;
        arena.small_end = offset + SR_SMALLS;
    }
    offset = arena.small;
    arena.small += size;
    return offset;
}

static size_t block_size(size_t size)
{
    return SR_PAGE / 2 < size ? SR_ROUND(size, SR_PAGE) : SR_ROUND(size, 64);
}

uint64_t sr_arena_alloc(size_t size)
{
    uint64_t offset;
    bool first;

    size = block_size(size);
    pthread_mutex_lock(&arena.mutex);
    first = 0 == arena.used;
    offset = take_block(size);
    if (0 != offset) {
        memset(sr_at(offset), 0, size);
    } else {
        offset = SR_PAGE > size && !first ? alloc_small_locked(size) : alloc_locked(size, SR_PAGE);
    }
    pthread_mutex_unlock(&arena.mutex);
    if (UINT64_MAX == offset) {
        return 0;
    }
    return first ? SR_PAGE : offset; /* the head is at offset 0, and another value means success */
}

void sr_arena_free(uint64_t offset, size_t size)
{
    struct free_block *block = 0 == offset ? NULL : malloc(sizeof(*block));

    if (NULL != block) {
        pthread_mutex_lock(&arena.mutex);
        *block = (struct free_block){.offset = offset, .size = block_size(size), .next = arena.blocks};
        arena.blocks = block;
        pthread_mutex_unlock(&arena.mutex);
    }
}

uint64_t sr_stable_alloc(enum sr_stable_kind kind)
{
    uint64_t offset;

    pthread_mutex_lock(&arena.mutex);
    if (0 < arena.stable_count[kind]) {
        offset = arena.stable[kind][--arena.stable_count[kind]];
    } else {
        offset = alloc_small_locked(stable_size[kind]);
    }
    pthread_mutex_unlock(&arena.mutex);
    return UINT64_MAX == offset ? 0 : offset;
}

void sr_stable_free(enum sr_stable_kind kind, uint64_t offset)
{
    if (0 == offset) {
        return;
    }
    pthread_mutex_lock(&arena.mutex);
    if (arena.stable_count[kind] == arena.stable_room[kind]) {
        unsigned room = 2 * arena.stable_room[kind] + 16;
        uint64_t *grown = realloc(arena.stable[kind], room * sizeof(*grown));
        if (NULL != grown) {
            arena.stable[kind] = grown;
            arena.stable_room[kind] = room;
        }
    }
    if (arena.stable_count[kind] < arena.stable_room[kind]) {
        arena.stable[kind][arena.stable_count[kind]++] = offset;
    }
    pthread_mutex_unlock(&arena.mutex);
}

void sr_arena_reset(void)
{
    memset(&arena, 0, sizeof(arena)); /* the memory on the lists belongs to the parent's file */
    pthread_mutex_init(&arena.mutex, NULL);
}
