/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * One fabric: a private directory with the shared file, the lock file, arenas and event FIFOs. Both the library and
 * the command use it. A process is a live member while it holds the byte of its slot in the lock file. The kernel
 * releases the byte when the process ends, in whatever way. DESIGN.txt 16.
 */
#ifndef SR_FABRIC_H
#define SR_FABRIC_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "sr_shm.h"

#define SR_ENV_FABRIC "SOFTRAIL_FABRIC"
#define SR_ENV_NO_SRQ "SOFTRAIL_NO_SRQ"     /* for one process: its devices have no shared receive queues */
#define SR_ENV_LAST_WQE "SOFTRAIL_LAST_WQE" /* for one process: its devices raise QP_LAST_WQE_REACHED so many times, then never */
#define SR_PATH_MAX 256

struct sr_fabric {
    char path[SR_PATH_MAX];
    struct sr_fabric_shm *shm;
    int lock_fd;
};

struct sr_fabric_options {
    unsigned rails;
    unsigned link_layer;
    unsigned copy_max;
    unsigned flags;
    uint64_t retry_ns;
    struct sr_habits habits;
    uint64_t rate[SR_MAX_RAILS];
    uint64_t latency[SR_MAX_RAILS];
};

/* The directory of all fabrics of this user ("/dev/shm/softrail-UID"). create: make it. Returns 0 or errno; EPERM if
 * another user's directory is in its place. */
int sr_fabric_base(char path[SR_PATH_MAX], bool create);

/* Make a fabric of that name. Returns 0, or errno after a message on stderr. The caller is its owner. */
int sr_fabric_create(struct sr_fabric *fabric, const char *name, const struct sr_fabric_options *options);

/* Map an existing fabric. Returns 0 or errno: ENOENT, EPERM (another user's), EPROTO (other layout). */
int sr_fabric_open(struct sr_fabric *fabric, const char *path);
void sr_fabric_close(struct sr_fabric *fabric);

/* Remove directory and content. */
void sr_fabric_remove(const char *path);

/* True if the owner or a member still holds its byte. */
bool sr_fabric_is_alive(const struct sr_fabric *fabric);

/* Remove this user's fabrics that have no live owner or member any more. */
void sr_fabric_sweep(void);

/* Fabric lock: control, join, leave, reap. Released by the kernel if the holder dies. */
void sr_fabric_lock(struct sr_fabric *fabric);
void sr_fabric_unlock(struct sr_fabric *fabric);

/* Lock word of (slot, incarnation), and back. */
static inline uint32_t sr_word(unsigned slot, uint32_t incarnation)
{
    return incarnation << 8 | (slot + 1);
}
static inline unsigned sr_word_slot(uint32_t word)
{
    return (word & 0xff) - 1;
}
static inline uint32_t sr_word_incarnation(uint32_t word)
{
    return word >> 8;
}

/* Is the process of this lock word a live member? Costs one system call. Not for the caller's own word. */
bool sr_fabric_word_is_alive(const struct sr_fabric *fabric, uint32_t word);

/* Take the byte of a slot without waiting. Returns 0 or errno. */
int sr_fabric_claim_slot(struct sr_fabric *fabric, unsigned slot);
void sr_fabric_release_slot(struct sr_fabric *fabric, unsigned slot);

/* Clean up after a dead (or leaving) member: add its counters to the rails, free its queue pairs, remove its files.
 * Locks: the fabric lock is held. */
void sr_fabric_reap(struct sr_fabric *fabric, unsigned slot);
/* Reap all dead members. Locks: the fabric lock is held. */
void sr_fabric_reap_dead(struct sr_fabric *fabric);

/* Names of a member's files. */
void sr_fabric_arena_path(const struct sr_fabric *fabric, uint32_t word, char path[SR_PATH_MAX]);
void sr_fabric_fifo_path(const struct sr_fabric *fabric, uint32_t word, uint32_t number, char path[SR_PATH_MAX]);

/* Send an event to a FIFO of a member. Nothing happens if the FIFO has no reader. */
void sr_fabric_send_event(const struct sr_fabric *fabric, uint32_t word, uint32_t fifo, struct sr_event event);

/* Send an event to every open context of a rail, of one member or of all (slot -1). */
void sr_fabric_rail_event(const struct sr_fabric *fabric, unsigned rail, int slot, uint32_t type);

/* Pull or plug the cable of a rail, for one member or for all (slot -1). Sends PORT_ERR or PORT_ACTIVE, unless `quiet`. */
void sr_fabric_set_rail(struct sr_fabric *fabric, unsigned rail, int slot, bool down, bool quiet);

/* A plan may pull a cable for a time. Plugs it in again if the time has come. */
void sr_fabric_plug_in(struct sr_fabric *fabric);

/* Can (rail, slot) send and receive? */
static inline bool sr_rail_is_up(const struct sr_fabric_shm *shm, unsigned rail, unsigned slot)
{
    return 0
           == (atomic_load_explicit(&shm->rail[rail].down, memory_order_relaxed)
               | (atomic_load_explicit(&shm->proc[slot].down_rails, memory_order_relaxed) >> rail & 1u)
               | atomic_load_explicit(&shm->rail[rail].gone, memory_order_relaxed));
}

/* Does a message from or to (rail, slot) get through? */
static inline bool sr_rail_carries(const struct sr_fabric_shm *shm, unsigned rail, unsigned slot)
{
    return sr_rail_is_up(shm, rail, slot) && 0 == atomic_load_explicit(&shm->rail[rail].silent, memory_order_relaxed);
}

/* Make the sysfs tree that programs look at before they use verbs. Returns 0 or errno. */
int sr_sysfs_create(const char *fabric_path, const struct sr_fabric_shm *shm);

/* Sums over live and finished members, per rail. */
struct sr_totals {
    uint64_t tx_messages, tx_bytes, rx_messages, rx_bytes, errors, retries, rnr_waits, faults, registrations, regions, qps;
};
void sr_fabric_totals(const struct sr_fabric *fabric, unsigned rail, struct sr_totals *totals);

static inline void sr_count(_Atomic uint64_t *counter, uint64_t n)
{
    /* there is one writer at a time; readers only need a value that is not torn */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

#endif /* SR_FABRIC_H */
