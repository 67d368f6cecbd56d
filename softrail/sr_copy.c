/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Moves bytes between this process and a peer: process_vm_readv/writev. A peer is only touched after its
 * membership was confirmed, so a process id that was given to somebody else is never written to. DESIGN.txt 16.
 */
#include "sr_rooms.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static size_t total(const struct iovec *iov, unsigned count)
{
    size_t sum = 0;

    for (unsigned i = 0; i < count; ++i) {
        sum += iov[i].iov_len;
    }
    return sum;
}

/* Drop the first n bytes. */
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

/* The last aligned piece of at most 8 bytes becomes an element of its own: programs that poll on the last byte
 * must not see it before the rest. Room for one more element is there. */
static unsigned split_tail(struct iovec *iov, unsigned count)
{
    struct iovec *last = &iov[count - 1];
    uintptr_t end = (uintptr_t) last->iov_base + last->iov_len;
    size_t tail = 0 == end % 8 ? 8 : end % 8;

    if (0 == (sr.fabric.shm->flags & SR_FABRIC_SPLIT_TAIL) || last->iov_len <= tail) {
        return count;
    }
    last->iov_len -= tail;
    iov[count] = (struct iovec) { .iov_base = (void *) (end - tail), .iov_len = tail };
    return count + 1;
}

static int transfer(struct sr_peer *peer, struct iovec *local, unsigned locals, struct iovec *remote, unsigned remotes,
                    bool write)
{
    while (0 < locals && 0 < remotes) {
        ssize_t n = write ? process_vm_writev(peer->pid, local, locals, remote, remotes, 0)
                          : process_vm_readv(peer->pid, local, locals, remote, remotes, 0);
        if (0 >= n) {
            return 0 == n ? EFAULT : errno;
        }
        advance(&local, &locals, (size_t) n);
        advance(&remote, &remotes, (size_t) n);
    }
    return 0;
}

static int copy(struct sr_peer *peer, const struct iovec *local, unsigned locals, const struct iovec *remote,
                unsigned remotes, bool write)
{
    struct iovec mine[SR_MAX_SGE + 1], theirs[SR_MAX_SGE + 1];

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
    return transfer(peer, mine, locals, theirs, remotes, write);
}

int sr_copy_to(struct sr_peer *peer, const struct iovec *local, unsigned locals, const struct iovec *remote,
               unsigned remotes)
{
    return copy(peer, local, locals, remote, remotes, true);
}

int sr_copy_from(struct sr_peer *peer, const struct iovec *local, unsigned locals, const struct iovec *remote,
                 unsigned remotes)
{
    return copy(peer, local, locals, remote, remotes, false);
}

bool sr_copy_is_local_fault(const struct iovec *local, unsigned locals, bool writing)
{
    char byte;

    (void) writing;
    for (unsigned i = 0; i < locals; ++i) {
        char *at = local[i].iov_base;
        for (size_t done = 0; done < local[i].iov_len; done += 4096) {
            struct iovec from = { .iov_base = at + done, .iov_len = 1 }, to = { .iov_base = &byte, .iov_len = 1 };
            if (1 != process_vm_readv(getpid(), &to, 1, &from, 1, 0) && EFAULT == errno) {
                return true;
            }
        }
    }
    return false;
}
