/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The memory of a process: what its image and Open MPI's library have from the C library while one of its threads runs. What the
 * host itself has, such as the objects of the fabric, does not count. This file takes the place of the C library's functions, and calls them.
 */
#include "host.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

static bool is_counting;
static int64_t bytes[WORLD_MAX_PROCESSES];

void memory_count_begin(void)
{
    is_counting = true;
}

int64_t memory_of(unsigned rank)
{
    return bytes[rank];
}

void world_memory_begin(void)
{
    bytes[world_me->rank] = 0;
}

void memory_counts(const void *memory, bool is_taken)
{
    if (is_counting && NULL != world_me && NULL != memory) {
        const int64_t size = (int64_t) (malloc_usable_size((void *) (uintptr_t) memory) + sizeof(size_t));

        bytes[world_me->rank] += is_taken ? size : -size;
    }
}

void *world_room(size_t size)
{
    return malloc(size);
}

void world_room_ends(void *room)
{
    free(room);
}

#ifndef __SANITIZE_ADDRESS__

extern const char __executable_start[], etext[];
extern void *__libc_malloc(size_t size), *__libc_calloc(size_t count, size_t size), *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t align, size_t size), __libc_free(void *memory);

static bool is_host(const void *caller)
{
    return __executable_start <= (const char *) caller && etext > (const char *) caller;
}

static void *taken(void *memory, const void *caller)
{
    if (is_counting && !is_host(caller)) {
        memory_counts(memory, true);
    }
    return memory;
}

static void given_back(void *memory, const void *caller)
{
    if (is_counting && !is_host(caller)) {
        memory_counts(memory, false);
    }
}

void *malloc(size_t size)
{
    return taken(__libc_malloc(size), __builtin_return_address(0));
}

void *calloc(size_t count, size_t size)
{
    return taken(__libc_calloc(count, size), __builtin_return_address(0));
}

void *realloc(void *old, size_t size)
{
    given_back(old, __builtin_return_address(0));
    return taken(__libc_realloc(old, size), __builtin_return_address(0));
}

int posix_memalign(void **memory, size_t align, size_t size)
{
    *memory = taken(__libc_memalign(align, size), __builtin_return_address(0));
    return NULL == *memory ? ENOMEM : 0;
}

void free(void *memory)
{
    given_back(memory, __builtin_return_address(0));
    __libc_free(memory);
}

#endif
