/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Files that several processes of a user share, in a directory that only this user can read and write. Plain C without Open MPI, because the
 * PML, the BTL and the command bfo use it. _GNU_SOURCE must be defined. DESIGN.txt section 19.
 */
#ifndef BFO_FILE_H
#define BFO_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* Takes the room of a file before it is mapped, so that a full file system is an error here, not a signal at the first write. The limit of file
 * sizes is looked at first, because the kernel would send SIGXFSZ. Returns 0 or an error number. */
static inline int bfo_file_room(int fd, size_t size)
{
    struct rlimit most;

    if (0 == getrlimit(RLIMIT_FSIZE, &most) && RLIM_INFINITY != most.rlim_cur && size > most.rlim_cur) {
        return EFBIG;
    }
    return posix_fallocate(fd, 0, (off_t) size);
}

/* Makes the file complete under another name, so that nobody finds half a file. If two processes make it at once, the first one's file stays.
 * A name that begins with ".new." is removed by later jobs if its maker dies. Returns 0 or an error number. */
static inline int bfo_file_make(int dir, const char *name, int (*fill)(int fd, uid_t uid), uid_t uid)
{
    char new[64];
    int fd, rc;

    snprintf(new, sizeof(new), ".new.%u%s", (unsigned) getpid(), name);
    (void) unlinkat(dir, new, 0); /* left by a dead process with this id */
    fd = openat(dir, new, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (0 > fd) {
        return errno;
    }
    rc = fill(fd, uid);
    close(fd);
    if (0 == rc && 0 != renameat2(dir, new, dir, name, RENAME_NOREPLACE)) {
        rc = EEXIST == errno ? 0 : errno;
    }
    (void) unlinkat(dir, new, 0);
    return rc;
}

/* Opens the file for reading and writing, after making it by `fill` if it does not exist; `fill` returns 0 or an error number. Returns the
 * file's descriptor, which the caller closes, or the negative error number: -EPERM if there is no regular file of that user with exactly one
 * link. */
static inline int bfo_file_open(int dir, const char *name, int (*fill)(int fd, uid_t uid), uid_t uid)
{
    struct stat st;
    int fd, rc = 0;

    if (0 != fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && ENOENT == errno) {
        rc = bfo_file_make(dir, name, fill, uid);
    }
    fd = 0 == rc ? openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    if (0 > fd) {
        return 0 != rc ? -rc : ELOOP == errno ? -EPERM : -errno;
    }
    if (0 != fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != uid || 1 < st.st_nlink) {
        close(fd);
        return -EPERM;
    }
    return fd;
}

#endif /* BFO_FILE_H */
