/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Is a process of this machine alive? Asks the kernel for its id, and /proc for the process that has this id. DESIGN.txt section 11.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "formats/pml_bfo_life.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The text of a small file, terminated; empty if it cannot be read. */
static void read_text(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = 0 > fd ? 0 : read(fd, text, size - 1);

    text[0 < n ? n : 0] = '\0';
    if (0 <= fd) {
        close(fd);
    }
}

/* ---- one process ------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t started;
    bool is_zombie;
} seen_t;

/* False: /proc does not show it. A process whose main thread has ended before its other threads is not a zombie. */
static bool see(uint32_t pid, seen_t *seen)
{
    char path[32], text[1024], state;
    unsigned long long started;
    const char *rest;
    long threads;

    snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    read_text(path, text, sizeof(text));
    rest = strrchr(text, ')'); /* the command's name, which comes before, may contain any character */
    if (NULL == rest
        || 3 != sscanf(rest + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %*s %llu", &state, &threads, &started)) {
        return false;
    }
    seen->started = started;
    seen->is_zombie = 'X' == state || ('Z' == state && 1 >= threads);
    return true;
}

uint64_t bfo_life_started(uint32_t pid)
{
    seen_t seen;

    return see(pid, &seen) && !seen.is_zombie ? seen.started : 0;
}

/* ---- the machine --------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
    const uint8_t *byte = data;

    for (size_t i = 0; i < size; ++i) {
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* Process ids, and the times in /proc, belong to a name space. */
static uint64_t mix_space(uint64_t hash, const char *path)
{
    struct stat st;
    const uint64_t space = 0 == stat(path, &st) ? st.st_ino : 0; /* a kernel without such name spaces has only one */

    return mix(hash, &space, sizeof(space));
}

/* Does /proc show our own pid name space? In a container it may show another one. */
static bool proc_is_ours(uint32_t pid)
{
    char text[32];
    const ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

    text[0 < n ? n : 0] = '\0';
    return (unsigned long) pid == strtoul(text, NULL, 10);
}

static uint64_t node_of(uint32_t number)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    char boot[64];

    read_text("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
    if ('\0' == boot[0]) {
        return 0;
    }
    hash = mix(hash, boot, strlen(boot));
    hash = mix_space(mix_space(hash, "/proc/self/ns/pid"), "/proc/self/ns/time");
    hash = mix(hash, &number, sizeof(number));
    return 0 != hash ? hash : 1;
}

bfo_life_t bfo_life_own(uint32_t number)
{
    bfo_life_t own = {.pid = (uint32_t) getpid()};

    own.started = bfo_life_started(own.pid);
    own.node = 0 != own.started && proc_is_ours(own.pid) ? node_of(number) : 0;
    return own;
}

/* Asks the kernel for the id first, because /proc may hide processes (hidepid), and a hidden one would seem to be missing. */
bfo_life_answer_t bfo_life_of(const bfo_life_t *own, const bfo_life_t *its)
{
    seen_t seen;

    if (0 == own->node || own->node != its->node || 0 == its->started || 0 >= (int32_t) its->pid) {
        return BFO_PROCESS_UNKNOWN;
    }
    if (0 != kill((pid_t) its->pid, 0) && ESRCH == errno) {
        return BFO_PROCESS_DEAD;
    }
    if (!see(its->pid, &seen)) {
        return BFO_PROCESS_UNKNOWN;
    }
    return seen.is_zombie || seen.started != its->started ? BFO_PROCESS_DEAD : BFO_PROCESS_ALIVE;
}
