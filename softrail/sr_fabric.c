/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Creates, opens and removes the fabric's directory and shared file, knows which members are alive, and cleans up after
 * dead ones. Of the verbs objects it knows only the counters. DESIGN.txt 16.
 */
#include "sr_fabric.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Bytes of the lock file: one for each slot, and these. */
enum { SR_BYTE_FABRIC = 1000, SR_BYTE_OWNER = 1001 };

static pthread_mutex_t fabric_mutex = PTHREAD_MUTEX_INITIALIZER; /* fcntl locks do not exclude threads */

static int byte_lock(int fd, int command, short type, off_t byte)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int rc;

    do {
        rc = fcntl(fd, command, &lock);
    } while (0 != rc && EINTR == errno);
    return 0 == rc ? 0 : errno;
}

static bool byte_is_held(int fd, off_t byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    return 0 == fcntl(fd, F_GETLK, &lock) && F_UNLCK != lock.l_type;
}

static bool is_private_dir(const char *path)
{
    struct stat st;

    return 0 == lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && 0 == (st.st_mode & 077);
}

int sr_fabric_base(char path[SR_PATH_MAX], bool create)
{
    const char *root = getenv("SOFTRAIL_DIR");

    if (NULL != root && strlen(root) < SR_PATH_MAX / 2) {
        snprintf(path, SR_PATH_MAX, "%s/softrail-%u", root, (unsigned) geteuid());
    } else {
        snprintf(path, SR_PATH_MAX, "/dev/shm/softrail-%u", (unsigned) geteuid());
    }
    if (create && 0 != mkdir(path, 0700) && EEXIST != errno) {
        return errno;
    }
    if (0 != access(path, F_OK)) {
        return errno;
    }
    return is_private_dir(path) ? 0 : EPERM;
}

static int map_shared(const char *path, int flags, size_t size, bool allocate, void **result)
{
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = 0;
    struct stat st;

    if (0 > fd) {
        return errno;
    }
    if (allocate) {
        rc = posix_fallocate(fd, 0, (off_t) size);
    } else if (0 != fstat(fd, &st) || st.st_size < (off_t) size) {
        rc = EPROTO;
    }
    if (0 == rc) {
        *result = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        rc = MAP_FAILED == *result ? errno : 0;
    }
    close(fd);
    return rc;
}

static void init_rails(struct sr_fabric_shm *shm, const struct sr_fabric_options *options)
{
    for (unsigned i = 0; i < options->rails; ++i) {
        shm->rail[i].guid = UINT64_C(0x0250520000000000) | (uint64_t) (i + 1) << 16;
        shm->rail[i].gid_prefix = UINT64_C(0xfe80000000000000) | (0 != (options->flags & SR_FABRIC_DEFAULT_PREFIX) ? 0 : i + 1);
        shm->rail[i].rate = options->rate[i];
        shm->rail[i].latency = options->latency[i];
        shm->rail[i].mtu_blackhole = options->habits.mtu_blackhole;
    }
}

int sr_fabric_create(struct sr_fabric *fabric, const char *name, const struct sr_fabric_options *options)
{
    char base[SR_PATH_MAX], file[SR_PATH_MAX + 16];
    struct sr_fabric_shm *shm;
    int rc = sr_fabric_base(base, true);

    if (0 != rc) {
        fprintf(stderr, "softrail: %s is not a private directory of this user (%s); remove it\n", base, strerror(rc));
        return rc;
    }
    if (strlen(base) + strlen(name) + 2 > SR_PATH_MAX - 40 || NULL != strchr(name, '/') || '.' == name[0]) {
        fprintf(stderr, "softrail: '%s' is not a name for a fabric: it must be short and without '/'\n", name);
        return EINVAL;
    }
    snprintf(fabric->path, sizeof(fabric->path), "%.150s/%.60s", base, name);
    if (0 != mkdir(fabric->path, 0700)) {
        rc = errno;
        fprintf(stderr, "softrail: a fabric named '%s' exists already: choose another --name\n", name);
        return rc;
    }
    snprintf(file, sizeof(file), "%s/fabric", fabric->path);
    rc = map_shared(file, O_RDWR | O_CREAT | O_EXCL, sizeof(*shm), true, (void **) &shm);
    if (0 != rc) {
        fprintf(stderr, "softrail: cannot allocate %zu KiB in %s: %s. Enlarge /dev/shm (containers: --shm-size)\n", sizeof(*shm) / 1024, base,
                strerror(rc));
        sr_fabric_remove(fabric->path);
        return rc;
    }
    shm->layout = SR_LAYOUT;
    shm->rails = options->rails;
    shm->link_layer = options->link_layer;
    shm->copy_max = options->copy_max;
    shm->retry_ns = options->retry_ns;
    shm->flags = options->flags;
    shm->habits = options->habits;
    shm->created = (uint64_t) time(NULL);
    shm->owner_pid = (uint32_t) getpid();
    init_rails(shm, options);
    fabric->shm = shm;
    snprintf(file, sizeof(file), "%s/locks", fabric->path);
    fabric->lock_fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    rc = 0 > fabric->lock_fd ? errno : byte_lock(fabric->lock_fd, F_SETLK, F_WRLCK, SR_BYTE_OWNER);
    if (0 == rc) {
        rc = sr_sysfs_create(fabric->path, shm);
    }
    atomic_thread_fence(memory_order_release);
    shm->magic = SR_MAGIC;
    return rc;
}

int sr_fabric_open(struct sr_fabric *fabric, const char *path)
{
    char file[SR_PATH_MAX + 16];
    struct sr_fabric_shm *shm;
    int rc;

    if (strlen(path) >= SR_PATH_MAX - 40 || 0 != access(path, F_OK)) {
        return ENOENT;
    }
    if (!is_private_dir(path)) {
        return EPERM;
    }
    memmove(fabric->path, path, strlen(path) + 1);
    snprintf(file, sizeof(file), "%s/fabric", path);
    rc = map_shared(file, O_RDWR, sizeof(*shm), false, (void **) &shm);
    if (0 != rc) {
        return rc;
    }
    if (SR_MAGIC != shm->magic || SR_LAYOUT != shm->layout || 0 == shm->rails || SR_MAX_RAILS < shm->rails) {
        munmap(shm, sizeof(*shm));
        return EPROTO;
    }
    snprintf(file, sizeof(file), "%s/locks", path);
    fabric->lock_fd = open(file, O_RDWR | O_CLOEXEC);
    if (0 > fabric->lock_fd) {
        rc = errno;
        munmap(shm, sizeof(*shm));
        return rc;
    }
    fabric->shm = shm;
    return 0;
}

void sr_fabric_close(struct sr_fabric *fabric)
{
    munmap(fabric->shm, sizeof(*fabric->shm));
    close(fabric->lock_fd);
    fabric->shm = NULL;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void) st;
    (void) ftw;
    return FTW_DP == type || FTW_D == type ? rmdir(path) : unlink(path);
}

void sr_fabric_remove(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

bool sr_fabric_is_alive(const struct sr_fabric *fabric)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = SR_BYTE_OWNER + 1};

    return 0 == fcntl(fabric->lock_fd, F_GETLK, &lock) && F_UNLCK != lock.l_type;
}

void sr_fabric_sweep(void)
{
    char base[SR_PATH_MAX], path[2 * SR_PATH_MAX];
    struct sr_fabric fabric;
    struct dirent *entry;
    DIR *dir;

    if (0 != sr_fabric_base(base, false) || NULL == (dir = opendir(base))) {
        return;
    }
    while (NULL != (entry = readdir(dir))) {
        struct stat st;
        if ('.' == entry->d_name[0]) {
            continue;
        }
        snprintf(path, sizeof(path), "%s/%s", base, entry->d_name);
        if (0 == sr_fabric_open(&fabric, path)) {
            bool alive = sr_fabric_is_alive(&fabric);
            sr_fabric_close(&fabric);
            if (!alive) {
                sr_fabric_remove(path);
            }
        } else if (0 == stat(path, &st) && time(NULL) - st.st_mtime > 60) {
            sr_fabric_remove(path); /* its owner died while it made the fabric */
        }
    }
    closedir(dir);
}

void sr_fabric_lock(struct sr_fabric *fabric)
{
    pthread_mutex_lock(&fabric_mutex);
    byte_lock(fabric->lock_fd, F_SETLKW, F_WRLCK, SR_BYTE_FABRIC);
}

void sr_fabric_unlock(struct sr_fabric *fabric)
{
    byte_lock(fabric->lock_fd, F_SETLK, F_UNLCK, SR_BYTE_FABRIC);
    pthread_mutex_unlock(&fabric_mutex);
}

bool sr_fabric_word_is_alive(const struct sr_fabric *fabric, uint32_t word)
{
    unsigned slot = sr_word_slot(word);

    return SR_MAX_PROCS > slot && byte_is_held(fabric->lock_fd, slot)
           && sr_word_incarnation(word) == atomic_load(&fabric->shm->proc[slot].incarnation);
}

int sr_fabric_claim_slot(struct sr_fabric *fabric, unsigned slot)
{
    return byte_lock(fabric->lock_fd, F_SETLK, F_WRLCK, slot);
}

void sr_fabric_release_slot(struct sr_fabric *fabric, unsigned slot)
{
    byte_lock(fabric->lock_fd, F_SETLK, F_UNLCK, slot);
}

void sr_fabric_arena_path(const struct sr_fabric *fabric, uint32_t word, char path[SR_PATH_MAX])
{
    snprintf(path, SR_PATH_MAX, "%.215s/p%03u-%06x.arena", fabric->path, sr_word_slot(word), sr_word_incarnation(word));
}

void sr_fabric_fifo_path(const struct sr_fabric *fabric, uint32_t word, uint32_t number, char path[SR_PATH_MAX])
{
    snprintf(path, SR_PATH_MAX, "%.215s/p%03u-%06x.%u", fabric->path, sr_word_slot(word), sr_word_incarnation(word), number);
}

/* ---- what a member leaves ----------------------------------------------------------------------- */

static void add_counters(struct sr_totals *totals, const struct sr_counters *counters)
{
    totals->tx_messages += counters->tx_messages;
    totals->tx_bytes += counters->tx_bytes;
    totals->rx_messages += counters->rx_messages;
    totals->rx_bytes += counters->rx_bytes;
    totals->errors += counters->errors;
    totals->retries += counters->retries;
    totals->rnr_waits += counters->rnr_waits;
    totals->faults += counters->faults;
    totals->registrations += counters->registrations;
    totals->regions += counters->regions;
}

/* The queue pair of a table entry in a mapped arena, or NULL. */
static const struct sr_qp_shm *qp_in_arena(const char *arena, size_t size, const struct sr_qp_entry *entry)
{
    uint64_t offset = atomic_load(&entry->offset);

    if (0 == entry->qpn || offset > size || size - offset < sizeof(struct sr_qp_shm)) {
        return NULL;
    }
    return (const struct sr_qp_shm *) (arena + offset);
}

static const char *map_arena(const struct sr_fabric *fabric, uint32_t word, size_t *size)
{
    char path[SR_PATH_MAX];
    struct stat st;
    const char *arena = NULL;
    int fd;

    sr_fabric_arena_path(fabric, word, path);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (0 <= fd) {
        if (0 == fstat(fd, &st) && 0 < st.st_size) {
            arena = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
            *size = (size_t) st.st_size;
        }
        close(fd);
    }
    return MAP_FAILED == (const void *) arena ? NULL : arena;
}

/* Add the live queue pairs of one member to totals[rail]. */
static void add_member(const struct sr_fabric *fabric, uint32_t word, struct sr_totals totals[SR_MAX_RAILS])
{
    const struct sr_fabric_shm *shm = fabric->shm;
    size_t size = 0;
    const char *arena = map_arena(fabric, word, &size);

    for (unsigned i = 0; NULL != arena && i < SR_MAX_QPS; ++i) {
        const struct sr_qp_shm *qp;
        if (word != atomic_load(&shm->qp[i].owner) || NULL == (qp = qp_in_arena(arena, size, &shm->qp[i])) || SR_MAX_RAILS <= qp->rail) {
            continue;
        }
        totals[qp->rail].tx_messages += qp->tx_messages;
        totals[qp->rail].tx_bytes += qp->tx_bytes;
        totals[qp->rail].rx_messages += qp->rx_messages;
        totals[qp->rail].rx_bytes += qp->rx_bytes;
        totals[qp->rail].errors += qp->errors;
        totals[qp->rail].retries += qp->retries;
        totals[qp->rail].rnr_waits += qp->rnr_waits;
        totals[qp->rail].qps++;
    }
    if (NULL != arena) {
        munmap((void *) arena, size);
    }
}

static void remove_files(const struct sr_fabric *fabric, uint32_t word)
{
    char prefix[32], path[2 * SR_PATH_MAX];
    struct dirent *entry;
    DIR *dir = opendir(fabric->path);

    snprintf(prefix, sizeof(prefix), "p%03u-%06x.", sr_word_slot(word), sr_word_incarnation(word));
    while (NULL != dir && NULL != (entry = readdir(dir))) {
        if (0 == strncmp(entry->d_name, prefix, strlen(prefix))) {
            snprintf(path, sizeof(path), "%s/%s", fabric->path, entry->d_name);
            unlink(path);
        }
    }
    if (NULL != dir) {
        closedir(dir);
    }
}

void sr_fabric_reap(struct sr_fabric *fabric, unsigned slot)
{
    struct sr_fabric_shm *shm = fabric->shm;
    struct sr_proc *proc = &shm->proc[slot];
    uint32_t word = sr_word(slot, proc->incarnation);
    struct sr_totals totals[SR_MAX_RAILS];

    if (0 == proc->incarnation) {
        return;
    }
    memset(totals, 0, sizeof(totals));
    add_member(fabric, word, totals);
    for (unsigned i = 0; i < SR_MAX_QPS; ++i) {
        if (word == atomic_load(&shm->qp[i].owner)) {
            atomic_store(&shm->qp[i].qpn, 0);
            atomic_store(&shm->qp[i].owner, 0);
        }
    }
    for (unsigned r = 0; r < SR_MAX_RAILS; ++r) {
        struct sr_counters *retired = &shm->rail[r].retired;
        add_counters(&totals[r], &proc->done[r]);
        sr_count(&retired->tx_messages, totals[r].tx_messages);
        sr_count(&retired->tx_bytes, totals[r].tx_bytes);
        sr_count(&retired->rx_messages, totals[r].rx_messages);
        sr_count(&retired->rx_bytes, totals[r].rx_bytes);
        sr_count(&retired->errors, totals[r].errors);
        sr_count(&retired->retries, totals[r].retries);
        sr_count(&retired->rnr_waits, totals[r].rnr_waits);
        sr_count(&retired->faults, totals[r].faults);
        sr_count(&retired->registrations, totals[r].registrations);
    }
    remove_files(fabric, word);
    memset((char *) proc + sizeof(proc->incarnation), 0, sizeof(*proc) - sizeof(proc->incarnation));
    atomic_store(&proc->incarnation, 0);
}

void sr_fabric_reap_dead(struct sr_fabric *fabric)
{
    for (unsigned slot = 0; slot < SR_MAX_PROCS; ++slot) {
        if (0 != fabric->shm->proc[slot].incarnation && 0 == sr_fabric_claim_slot(fabric, slot)) {
            sr_fabric_reap(fabric, slot);
            sr_fabric_release_slot(fabric, slot);
        }
    }
}

void sr_fabric_totals(const struct sr_fabric *fabric, unsigned rail, struct sr_totals *result)
{
    const struct sr_fabric_shm *shm = fabric->shm;
    struct sr_totals totals[SR_MAX_RAILS];

    memset(totals, 0, sizeof(totals));
    add_counters(&totals[rail], &shm->rail[rail].retired);
    for (unsigned slot = 0; slot < SR_MAX_PROCS; ++slot) {
        uint32_t incarnation = atomic_load(&shm->proc[slot].incarnation);
        if (0 != incarnation) {
            add_counters(&totals[rail], &shm->proc[slot].done[rail]);
            add_member(fabric, sr_word(slot, incarnation), totals);
        }
    }
    *result = totals[rail];
}

/* ---- events and control ------------------------------------------------------------------------- */

void sr_fabric_send_event(const struct sr_fabric *fabric, uint32_t word, uint32_t fifo, struct sr_event event)
{
    char path[SR_PATH_MAX];
    int fd;

    if (0 == fifo) {
        return;
    }
    sr_fabric_fifo_path(fabric, word, fifo, path);
    fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (0 <= fd) {
        ssize_t n = write(fd, &event, sizeof(event));
        (void) n; /* a full FIFO holds thousands of events that nobody reads */
        close(fd);
    }
}

void sr_fabric_rail_event(const struct sr_fabric *fabric, unsigned rail, int only, uint32_t type)
{
    struct sr_fabric_shm *shm = fabric->shm;

    for (int slot = 0; slot < SR_MAX_PROCS; ++slot) {
        uint32_t incarnation = atomic_load(&shm->proc[slot].incarnation);
        if (0 == incarnation || (0 <= only && only != slot)) {
            continue;
        }
        for (unsigned i = 0; i < SR_MAX_CONTEXTS; ++i) {
            struct sr_context_entry *entry = &shm->proc[slot].contexts[i];
            uint32_t fifo = atomic_load(&entry->fifo);
            if (0 != fifo && rail == entry->rail) {
                sr_fabric_send_event(fabric, sr_word((unsigned) slot, incarnation), fifo, (struct sr_event){.type = type, .id = 1});
            }
        }
    }
}

void sr_fabric_set_rail(struct sr_fabric *fabric, unsigned rail, int slot, bool down, bool quiet)
{
    struct sr_fabric_shm *shm = fabric->shm;
    bool changed[SR_MAX_PROCS];

    sr_fabric_lock(fabric);
    for (unsigned i = 0; i < SR_MAX_PROCS; ++i) {
        changed[i] = down == sr_rail_is_up(shm, rail, i);
    }
    if (0 > slot) {
        atomic_store(&shm->rail[rail].down, down);
    }
    for (int i = 0; i < SR_MAX_PROCS; ++i) {
        if (i == slot && down) {
            atomic_fetch_or(&shm->proc[i].down_rails, 1u << rail);
        } else if (i == slot || (0 > slot && !down)) {
            atomic_fetch_and(&shm->proc[i].down_rails, ~(1u << rail));
        }
    }
    for (int i = 0; i < SR_MAX_PROCS; ++i) {
        bool is_down = !sr_rail_is_up(shm, rail, (unsigned) i);
        if (changed[i] && down == is_down && !quiet) {
            sr_fabric_rail_event(fabric, rail, i, down ? 10u /* PORT_ERR */ : 9u /* PORT_ACTIVE */);
        }
    }
    sr_fabric_unlock(fabric);
}

void sr_fabric_plug_in(struct sr_fabric *fabric)
{
    struct timespec ts;
    uint64_t now;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    now = (uint64_t) ts.tv_sec * UINT64_C(1000000000) + (uint64_t) ts.tv_nsec;
    for (unsigned rail = 0; rail < fabric->shm->rails; ++rail) {
        uint64_t at = atomic_load(&fabric->shm->rail[rail].up_at);
        if (0 != at && at <= now && atomic_compare_exchange_strong(&fabric->shm->rail[rail].up_at, &at, 0)) {
            sr_fabric_set_rail(fabric, rail, -1, false, false);
        }
    }
}
