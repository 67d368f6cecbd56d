/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Copies bytes between this process and a peer by process_vm_readv/writev. If the kernel refuses these, the peer's copy
 * service (sr_service.c) does it. A peer's memory is used only after its membership was confirmed, so that nothing is
 * written into an unrelated process that got the same process id. DESIGN.txt 16.
 */
#include "sr_copy.h"
#include "sr_mr.h"
#include "sr_service.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t total(const struct iovec *iov, unsigned count)
{
    size_t sum = 0;

    for (unsigned i = 0; i < count; ++i) {
        sum += iov[i].iov_len;
    }
    return sum;
}

/* Drops the first n bytes. */
static void advance(struct iovec **iov, unsigned *count, size_t n)
{
    while (0 < *count && n >= (*iov)->iov_len) {
        n -= (*iov)->iov_len;
        ++*iov;
        --*count;
    }
    if (0 < n && 0 < *count) {
        (*iov)->iov_base = (char *) (*iov)->iov_base + n;
        (*iov)->iov_len -= n;
    }
}

/* Makes the last aligned piece of at most 8 bytes an element of its own, because programs that poll the last byte
 * must not see it before the rest. `iov` has room for one more element. */
static unsigned split_tail(struct iovec *iov, unsigned count)
{
    struct iovec *last = &iov[count - 1];
    uintptr_t end = (uintptr_t) last->iov_base + last->iov_len;
    size_t tail = 0 == end % 8 ? 8 : end % 8;

    if (0 == (sr.fabric.shm->flags & SR_FABRIC_SPLIT_TAIL) || last->iov_len <= tail) {
        return count;
    }
    last->iov_len -= tail;
    iov[count] = (struct iovec){.iov_base = (void *) (end - tail), .iov_len = tail};
    return count + 1;
}

/* Copies as much as one call can. Returns the number of bytes, or -1 (errno). */
static ssize_t step(struct sr_peer *peer, const struct iovec *local, unsigned locals, const struct iovec *remote, unsigned remotes, bool write)
{
    size_t n;
    int rc;

    if (0 == (sr.fabric.shm->flags & SR_FABRIC_NO_CMA)) {
        return write ? process_vm_writev(peer->pid, local, locals, remote, remotes, 0)
                     : process_vm_readv(peer->pid, local, locals, remote, remotes, 0);
    }
    n = local->iov_len < remote->iov_len ? local->iov_len : remote->iov_len;
    if (SR_SERVICE_BYTES < n) {
        n = SR_SERVICE_BYTES;
    }
    rc = sr_service_ask(peer, local->iov_base, (uintptr_t) remote->iov_base, n, write);
    errno = rc;
    return 0 == rc ? (ssize_t) n : -1;
}

static int copy(struct sr_peer *peer, const struct iovec *local, unsigned locals, const struct iovec *remote, unsigned remotes, bool write)
{
    struct iovec mine[SR_MAX_SGE + 1], theirs[SR_MAX_SGE + 1], *from = mine, *to = theirs;

    if (0 == locals || 0 == remotes || 0 == total(local, locals)) {
        return 0;
    }
    if (!sr_peer_is_alive(peer)) {
        return ESRCH;
    }
    memcpy(mine, local, locals * sizeof(*mine));
    memcpy(theirs, remote, remotes * sizeof(*theirs));
    if (write) {
        remotes = split_tail(theirs, remotes);
    }
    while (0 < locals && 0 < remotes) {
        ssize_t n = 0 == from->iov_len || 0 == to->iov_len ? 0 : step(peer, from, locals, to, remotes, write);
        if (0 > n) {
            return errno;
        }
        if (0 == n && 0 != from->iov_len && 0 != to->iov_len) {
            return EFAULT;
        }
        advance(&from, &locals, (size_t) n);
        advance(&to, &remotes, (size_t) n);
    }
    return 0;
}

static int explain(int rc)
{
    static _Atomic bool said;

    if (EPERM == rc || ENOSYS == rc) {
        sr_say_once(&said, "the kernel refuses to copy between processes (%s); start with SOFTRAIL_NO_CMA=1", strerror(rc));
        return ESRCH;
    }
    return rc;
}

int sr_copy_to(struct sr_peer *peer, const struct iovec *local, unsigned locals, const struct iovec *remote, unsigned remotes)
{
    return explain(copy(peer, local, locals, remote, remotes, true));
}

int sr_copy_from(struct sr_peer *peer, const struct iovec *local, unsigned locals, const struct iovec *remote, unsigned remotes)
{
    return explain(copy(peer, local, locals, remote, remotes, false));
}

bool sr_copy_is_local_fault(const struct iovec *local, unsigned locals)
{
    for (unsigned i = 0; i < locals; ++i) {
        if (!sr_mr_is_mapped(local[i].iov_base, local[i].iov_len)) {
            return true;
        }
    }
    return false;
}
