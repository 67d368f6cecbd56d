/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Joins and leaves the fabric, maps peers, and knows which are alive. A process joins when it opens its first device, so
 * launchers that only load the library are no members. A forked child is none either. DESIGN.txt 16.
 */
#include "sr_process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SR_ALIVE_TRUST_NS UINT64_C(10000000)

struct sr_state sr = {.peer_mutex = PTHREAD_MUTEX_INITIALIZER, .mutex = PTHREAD_MUTEX_INITIALIZER, .next_fifo = 1};

void sr_say_once(_Atomic bool *flag, const char *format, ...)
{
    va_list args;

    if (!atomic_exchange(flag, true)) {
        va_start(args, format);
        fputs("softrail: ", stderr);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
        va_end(args);
    }
}

uint64_t sr_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * UINT64_C(1000000000) + (uint64_t) ts.tv_nsec;
}

uint64_t sr_now_coarse(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    return (uint64_t) ts.tv_sec * UINT64_C(1000000000) + (uint64_t) ts.tv_nsec;
}

/* ---- joining and leaving ------------------------------------------------------------------------ */

int sr_attach(void)
{
    static _Atomic bool said;
    const char *path = getenv(SR_ENV_FABRIC);
    int rc = 0;

    pthread_mutex_lock(&sr.mutex);
    if (!sr.attached) {
        rc = NULL == path ? ENOENT : sr_fabric_open(&sr.fabric, path);
        sr.attached = 0 == rc;
    }
    pthread_mutex_unlock(&sr.mutex);
    if (NULL == path) {
        sr_say_once(&said, "no fabric: start the program with 'softrail run -- PROGRAM'");
    } else if (0 != rc) {
        sr_say_once(&said, "cannot use the fabric %s: %s; is its 'softrail run' still there?", path, strerror(rc));
    }
    return rc;
}

static int map_arena(uint32_t word, int flags, char **base, size_t *size)
{
    char path[SR_PATH_MAX];
    struct stat st;
    int fd, rc = 0;

    sr_fabric_arena_path(&sr.fabric, word, path);
    fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (0 > fd) {
        return errno;
    }
    if (0 != (flags & O_CREAT) && 0 != ftruncate(fd, (off_t) SR_ARENA_MAX)) {
        rc = errno;
    } else if (0 != fstat(fd, &st) || st.st_size < (off_t) sizeof(struct sr_arena_head)) {
        rc = EPROTO;
    } else {
        *size = (size_t) st.st_size;
        *base = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        rc = MAP_FAILED == *base ? errno : 0;
    }
    if (0 == rc) {
        madvise(*base, *size, MADV_DONTDUMP);
    }
    close(fd);
    return rc;
}

/* Peers that still hold a pointer get no answer any more, so that they report success only for messages that arrived. */
static void close_queue_pairs(void)
{
    for (unsigned i = 0; i < SR_MAX_QPS; ++i) {
        struct sr_qp_entry *entry = &sr.fabric.shm->qp[i];
        struct sr_qp_shm *qp;
        if (sr.word == atomic_load_explicit(&entry->owner, memory_order_relaxed)
            && NULL != (qp = sr_peer_at(sr.self, atomic_load(&entry->offset), sizeof(*qp)))) {
            atomic_store(&qp->state, 0 /* RESET */);
            atomic_store(&qp->qpn, 0);
        }
    }
}

static void leave(void)
{
    if (!sr.joined || getpid() != sr.pid) {
        return;
    }
    sr.joined = false;
    close_queue_pairs();
    sr_fabric_lock(&sr.fabric);
    sr_fabric_reap(&sr.fabric, sr.slot);
    sr_fabric_unlock(&sr.fabric);
    sr_fabric_release_slot(&sr.fabric, sr.slot);
}

static void forked_child(void)
{
    sr.joined = false;
    sr_arena_reset();
    sr.word = 0;
    pthread_mutex_init(&sr.mutex, NULL);
    pthread_mutex_init(&sr.peer_mutex, NULL);
}

__attribute__((destructor)) static void library_end(void)
{
    leave();
}

static void set_command(struct sr_proc *proc)
{
    int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    ssize_t n = 0 > fd ? 0 : read(fd, proc->command, sizeof(proc->command) - 1);

    proc->command[0 < n ? n - 1 : 0] = '\0';
    if (0 <= fd) {
        close(fd);
    }
}

static int become_member(unsigned slot)
{
    struct sr_fabric_shm *shm = sr.fabric.shm;
    struct sr_proc *proc = &shm->proc[slot];
    uint32_t incarnation;
    char *base;
    size_t size;
    int rc;

    do {
        incarnation = (atomic_fetch_add(&shm->next_incarnation, 1) + 1) & 0xffffff;
    } while (0 == incarnation);
    rc = map_arena(sr_word(slot, incarnation), O_CREAT | O_EXCL, &base, &size);
    if (0 != rc) {
        return rc;
    }
    sr.self = calloc(1, sizeof(*sr.self));
    sr.word = sr_word(slot, incarnation);
    sr.slot = slot;
    sr.pid = getpid();
    sr.proc = proc;
    *sr.self = (struct sr_peer){.word = sr.word, .pid = sr.pid, .base = base, .size = size, .refs = 2};
    sr.peers[slot] = sr.self;
    sr.arena = (struct sr_arena_head *) base;
    proc->pid = (uint32_t) sr.pid;
    set_command(proc);
    atomic_store(&proc->incarnation, incarnation);
    sr.joined = true;
    if (0 == sr_arena_alloc(sizeof(struct sr_arena_head))) {
        return ENOMEM;
    }
    return 0;
}

int sr_join(void)
{
    static bool registered;
    int rc = sr_attach();

    if (0 != rc || sr.joined) {
        return rc;
    }
    pthread_mutex_lock(&sr.mutex);
    if (!sr.joined) {
        sr_fabric_lock(&sr.fabric);
        sr_fabric_reap_dead(&sr.fabric);
        rc = EAGAIN;
        for (unsigned slot = 0; EAGAIN == rc && slot < SR_MAX_PROCS; ++slot) {
            if (0 == sr.fabric.shm->proc[slot].incarnation && 0 == sr_fabric_claim_slot(&sr.fabric, slot)) {
                rc = become_member(slot);
            }
        }
        sr_fabric_unlock(&sr.fabric);
        if (0 == rc && !registered) {
            /* Yama lets only ancestors access a process unless the process allows more. */
            prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
            registered = 0 == pthread_atfork(NULL, NULL, forked_child);
        }
    }
    pthread_mutex_unlock(&sr.mutex);
    if (EAGAIN == rc) {
        fprintf(stderr, "softrail: the fabric has %d processes already; start fewer\n", SR_MAX_PROCS);
    }
    return rc;
}

/* ---- peers -------------------------------------------------------------------------------------- */

static void peer_free(struct sr_peer *peer)
{
    munmap(peer->base, peer->size);
    free(peer);
}

static struct sr_peer *peer_map(uint32_t word)
{
    static _Atomic bool said;
    int rc;
    struct sr_peer *peer;

    if (!sr_fabric_word_is_alive(&sr.fabric, word)) {
        return NULL;
    }
    peer = calloc(1, sizeof(*peer));
    rc = NULL == peer ? ENOMEM : map_arena(word, 0, &peer->base, &peer->size);
    if (0 != rc) {
        sr_say_once(&said, "cannot map the memory of process %u: %s; is 'ulimit -v' below %u GiB per process?",
                    sr.fabric.shm->proc[sr_word_slot(word)].pid, strerror(rc), (unsigned) (SR_ARENA_MAX >> 30));
        free(peer);
        return NULL;
    }
    peer->word = word;
    peer->pid = (pid_t) sr.fabric.shm->proc[sr_word_slot(word)].pid;
    peer->refs = 1;
    atomic_store(&peer->seen_alive, sr_now_coarse());
    return peer;
}

struct sr_peer *sr_peer_get(uint32_t word)
{
    unsigned slot = sr_word_slot(word);
    struct sr_peer *peer, *old = NULL;

    if (SR_MAX_PROCS <= slot) {
        return NULL;
    }
    pthread_mutex_lock(&sr.peer_mutex);
    peer = sr.peers[slot];
    if (NULL == peer || word != peer->word) {
        struct sr_peer *fresh = peer_map(word);
        if (NULL != fresh) {
            old = peer;
            sr.peers[slot] = fresh;
        }
        peer = fresh;
    }
    if (NULL != peer) {
        ++peer->refs;
    }
    if (NULL != old && 0 == --old->refs) {
        peer_free(old);
    }
    pthread_mutex_unlock(&sr.peer_mutex);
    return peer;
}

void sr_peer_put(struct sr_peer *peer)
{
    pthread_mutex_lock(&sr.peer_mutex);
    if (0 == --peer->refs) {
        peer_free(peer);
    }
    pthread_mutex_unlock(&sr.peer_mutex);
}

bool sr_peer_is_alive(struct sr_peer *peer)
{
    uint64_t now;

    if (peer == sr.self) {
        return true;
    }
    if (atomic_load_explicit(&peer->dead, memory_order_relaxed)) {
        return false;
    }
    now = sr_now_coarse();
    if (now - atomic_load_explicit(&peer->seen_alive, memory_order_relaxed) > SR_ALIVE_TRUST_NS) {
        if (!sr_fabric_word_is_alive(&sr.fabric, peer->word)) {
            atomic_store(&peer->dead, true);
            return false;
        }
        atomic_store_explicit(&peer->seen_alive, now, memory_order_relaxed);
    }
    return true;
}

/* ---- locks between processes -------------------------------------------------------------------- */

/* A holder's changes become visible only by its last store. Therefore a lock may be taken from a dead holder. */
static bool take_from_dead(struct sr_lock *lock, uint32_t holder, uint32_t value)
{
    return holder != sr.word && !sr_fabric_word_is_alive(&sr.fabric, holder) && atomic_compare_exchange_strong(&lock->word, &holder, value);
}

void sr_lock_slow(struct sr_lock *lock)
{
    for (unsigned spin = 1;; ++spin) {
        uint32_t holder = atomic_load_explicit(&lock->word, memory_order_relaxed);
        if (0 == holder) {
            if (atomic_compare_exchange_strong(&lock->word, &holder, sr.word)) {
                return;
            }
        } else if (0 == spin % 1024 && take_from_dead(lock, holder, sr.word)) {
            return;
        }
        if (0 == spin % 64) {
            sched_yield();
        }
        __builtin_ia32_pause();
    }
}

void sr_lock_wait(struct sr_lock *lock)
{
    uint32_t first = atomic_load(&lock->word);

    for (unsigned spin = 1; 0 != first && first == atomic_load(&lock->word); ++spin) {
        if (0 == spin % 1024 && take_from_dead(lock, first, 0)) {
            return;
        }
        if (0 == spin % 64) {
            sched_yield();
        }
        __builtin_ia32_pause();
    }
}
