/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Where the files of figures are: the user's private directory, the names, which processes are alive, and the removal of files of dead jobs.
 * Plain C without Open MPI, because the command bfo links it too. DESIGN.txt section 19.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* renameat2 */
#endif
#include "bfo_figures.h"

#include "bfo_file.h"
#include "formats/pml_bfo_life.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FILES = 65536, NEW_SECONDS = 60 };

int bfo_figures_dir(const char *root, uid_t uid, bool make)
{
    char path[PATH_MAX];
    struct stat st;
    int fd;

    if ((int) sizeof(path) <= snprintf(path, sizeof(path), "%s/bfo-%u", root, (unsigned) uid)) {
        return -ENAMETOOLONG;
    }
    if (make && 0 != mkdir(path, 0700) && EEXIST != errno) {
        return -errno;
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (0 > fd) {
        return ELOOP == errno || ENOTDIR == errno ? -EPERM : -errno;
    }
    if (0 != fstat(fd, &st) || st.st_uid != uid || 0 != (st.st_mode & 077)) {
        close(fd);
        return -EPERM;
    }
    return fd;
}

/* Refuses a pipe, which would block the reader, and a second link to a file in another place. */
int bfo_figures_open_file(int dir, const char *name, uid_t uid)
{
    const int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;

    if (0 <= fd && (0 != fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != uid || 1 < st.st_nlink)) {
        close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

static bool is_steer(int fd)
{
    bfo_steer_t head;

    return (ssize_t) sizeof(head) == pread(fd, &head, sizeof(head), 0) && BFO_STEER_MAGIC == head.magic && BFO_STEER_LAYOUT == head.layout
           && sizeof(head) == head.size;
}

static int fill_steer(int fd, uid_t uid)
{
    const bfo_steer_t empty = {.magic = BFO_STEER_MAGIC, .layout = BFO_STEER_LAYOUT, .size = sizeof(empty)};

    if (geteuid() != uid && 0 != fchown(fd, uid, (gid_t) -1)) {
        return errno;
    }
    errno = ENOSPC;
    return (ssize_t) sizeof(empty) == write(fd, &empty, sizeof(empty)) ? 0 : errno;
}

int bfo_figures_open_steer(int dir, uid_t uid)
{
    const int fd = bfo_file_open(dir, BFO_STEER_NAME, fill_steer, uid);

    if (0 <= fd && !is_steer(fd)) {
        close(fd);
        return -EPROTO;
    }
    return fd;
}

/* ---- names ------------------------------------------------------------------------------------------ */

void bfo_figures_make_name(char name[BFO_FIGURES_NAME], uint32_t job, uint32_t rank, uint32_t pid)
{
    snprintf(name, BFO_FIGURES_NAME, "%u.%u.%u.%u", job >> 16, job & 0xffff, rank, pid);
}

bool bfo_figures_parse_name(const char *name, uint32_t *job, uint32_t *rank, uint32_t *pid)
{
    char again[BFO_FIGURES_NAME];
    unsigned family, local;

    if (4 != sscanf(name, "%5u.%5u.%10u.%10u", &family, &local, rank, pid) || 0xffff < family || 0xffff < local) {
        return false;
    }
    *job = family << 16 | local;
    bfo_figures_make_name(again, *job, *rank, *pid);
    return 0 == strcmp(name, again);
}

/* ---- which processes are alive ------------------------------------------------------------------------ */

/* The lock on the file shows a living process, unless the program has closed all its descriptors; then /proc shows it. For a process in a
 * container, where its id is another one, /proc fails but the lock works. */
bool bfo_figures_is_alive(int file, uint32_t pid)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    uint64_t began = 0, started;

    if (0 == fcntl(file, F_GETLK, &lock) && F_UNLCK != lock.l_type) {
        return true;
    }
    started = bfo_life_started(pid);
    return 0 != started && ((ssize_t) sizeof(began) != pread(file, &began, sizeof(began), offsetof(bfo_figures_t, started)) || began == started);
}

/* ---- files of dead jobs --------------------------------------------------------------------------------- */

typedef struct {
    uint32_t job;
    bool alive;
    char name[BFO_FIGURES_NAME];
} left_t;

static int by_job(const void *a, const void *b)
{
    const left_t *x = a, *y = b;

    return x->job != y->job ? (x->job < y->job ? -1 : 1) : (int) y->alive - (int) x->alive; /* the living first */
}

/* Is it a file that never got its name, because its maker died? */
static bool is_unborn(int dir, const char *name)
{
    struct stat st;

    return 0 == strncmp(name, ".new.", 5) && 0 == fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode)
           && time(NULL) - st.st_mtime > NEW_SECONDS;
}

static bool look_at(int dir, uid_t uid, const char *name, left_t *left)
{
    uint32_t rank, pid;
    int file;

    if (!bfo_figures_parse_name(name, &left->job, &rank, &pid)) {
        return false;
    }
    file = bfo_figures_open_file(dir, name, uid);
    if (0 > file) {
        return false;
    }
    left->alive = bfo_figures_is_alive(file, pid);
    close(file);
    bfo_figures_make_name(left->name, left->job, rank, pid);
    return true;
}

/* Collects the files of all jobs except `spare` in *all, and removes those that never got a name. Returns their number. The caller frees *all. */
static size_t look_at_all(int dir, uid_t uid, uint32_t spare, left_t **all, unsigned *removed)
{
    const int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = 0 > copy ? NULL : fdopendir(copy);
    size_t n = 0, room = 0;
    const struct dirent *entry;

    if (NULL == names) {
        if (0 <= copy) {
            close(copy);
        }
        return 0;
    }
    while (n < MOST_FILES && NULL != (entry = readdir(names))) {
        if (n == room) {
            left_t *more = realloc(*all, (room = 2 * room + 64) * sizeof(**all));

            if (NULL == more) {
                break;
            }
            *all = more;
        }
        if (is_unborn(dir, entry->d_name)) {
            *removed += 0 == unlinkat(dir, entry->d_name, 0);
        } else if (look_at(dir, uid, entry->d_name, &(*all)[n]) && spare != (*all)[n].job) {
            ++n;
        }
    }
    closedir(names);
    return n;
}

unsigned bfo_figures_sweep(int dir, uid_t uid, uint32_t spare)
{
    left_t *all = NULL;
    unsigned removed = 0;
    const size_t n = look_at_all(dir, uid, spare, &all, &removed);
    bool alive = false;

    if (0 != n) {
        qsort(all, n, sizeof(*all), by_job);
    }
    for (size_t i = 0; i < n; ++i) {
        if (0 == i || all[i].job != all[i - 1].job) {
            alive = all[i].alive;
        }
        if (!alive) {
            removed += 0 == unlinkat(dir, all[i].name, 0);
        }
    }
    free(all);
    return removed;
}
