/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Some programs (UCX) ask with stat() and access() whether /dev/infiniband/uverbsN is there before they use a
 * device. For the devices of the fabric the answer is yes; everything else goes to the C library. DESIGN.txt 16.
 */
#include "sr_rooms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SR_PUBLIC __attribute__((visibility("default")))
static const char uverbs[] = "/dev/infiniband/uverbs";

/* glibc declares the path as never NULL; callers may err all the same, and get EFAULT from the kernel. */
__attribute__((noinline)) static bool sr_is_path(const char *path)
{
    return NULL != path && '/' == path[0];
}

static bool is_ours(const char *path)
{
    const char *digit = path + sizeof(uverbs) - 1;

    return NULL != getenv(SR_ENV_FABRIC) && 0 == strncmp(path, uverbs, sizeof(uverbs) - 1) && '0' <= *digit
           && '0' + SR_MAX_RAILS > *digit && '\0' == digit[1] && 0 == sr_attach()
           && (unsigned) (*digit - '0') < sr.fabric.shm->rails;
}

SR_PUBLIC int access(const char *path, int mode)
{
    if (sr_is_path(path) && is_ours(path)) {
        return 0 == (mode & X_OK) ? 0 : (errno = EACCES, -1);
    }
    return faccessat(AT_FDCWD, path, mode, 0);
}

SR_PUBLIC int stat(const char *restrict path, struct stat *restrict st)
{
    if (sr_is_path(path) && is_ours(path)) {
        memset(st, 0, sizeof(*st));
        st->st_mode = S_IFCHR | 0600;
        st->st_nlink = 1;
        st->st_uid = geteuid();
        st->st_rdev = makedev(231, 192 + (unsigned) (path[sizeof(uverbs) - 1] - '0'));
        return 0;
    }
    return fstatat(AT_FDCWD, path, st, 0);
}
