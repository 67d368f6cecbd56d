/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Memory regions: a table in the arena that every peer can read. A key is index << 8 | generation. A peer looks the key
 * up under the lock of the queue pair that it delivers to. Therefore deregistration first removes the key and then waits
 * for those locks. DESIGN.txt 16.
 */
#include "sr_device.h"
#include "sr_injector.h"
#include "sr_mr.h"
#include "sr_qp_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define SR_ACCESS_KNOWN \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_HUGETLB \
     | IBV_ACCESS_ZERO_BASED | (int) IBV_ACCESS_OPTIONAL_RANGE)

static struct {
    pthread_mutex_t mutex;
    uint32_t fresh; /* indices never used */
    uint32_t *free_list;
    uint32_t free_count, free_room;
    uint64_t bytes;
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct sr_mr_entry *entry_of(const struct sr_peer *peer, uint32_t index)
{
    struct sr_arena_head *head = (struct sr_arena_head *) peer->base;
    uint64_t chunk;
    struct sr_mr_entry *entries;

    if (index >= SR_MR_CHUNK * SR_MR_CHUNKS) {
        return NULL;
    }
    chunk = atomic_load_explicit(&head->mr_chunk[index / SR_MR_CHUNK], memory_order_acquire);
    entries = sr_peer_at(peer, chunk, SR_MR_CHUNK * sizeof(*entries));
    return NULL == entries ? NULL : &entries[index % SR_MR_CHUNK];
}

bool sr_mr_resolve(struct sr_peer *peer, uint32_t pd, uint32_t key, uint64_t addr, uint64_t length, unsigned access, uint64_t *where)
{
    struct sr_mr_entry *entry = entry_of(peer, key >> 8);

    if (NULL == entry || 0 == key || key != atomic_load(&entry->key) || pd != entry->pd || access != (entry->access & access) || addr < entry->iova
        || length > entry->length || addr - entry->iova > entry->length - length) {
        return false;
    }
    *where = entry->addr + (addr - entry->iova);
    return true;
}

/* Returns a free index, or UINT32_MAX. Locks: table.mutex held. */
static uint32_t take_index(void)
{
    uint32_t index;

    if (0 < table.free_count) {
        return table.free_list[--table.free_count];
    }
    index = table.fresh;
    if (SR_MR_CHUNK * SR_MR_CHUNKS <= index) {
        return UINT32_MAX;
    }
    if (0 == index % SR_MR_CHUNK && 0 == sr.arena->mr_chunk[index / SR_MR_CHUNK]) {
        uint64_t chunk = sr_arena_alloc(SR_MR_CHUNK * sizeof(struct sr_mr_entry));
        if (0 == chunk) {
            return UINT32_MAX;
        }
        atomic_store_explicit(&sr.arena->mr_chunk[index / SR_MR_CHUNK], chunk, memory_order_release);
    }
    table.fresh++;
    return index;
}

static void give_index(uint32_t index)
{
    if (table.free_count == table.free_room) {
        uint32_t room = 2 * table.free_room + 64;
        uint32_t *grown = realloc(table.free_list, room * sizeof(*grown));
        if (NULL == grown) {
            return; /* only the index is lost */
        }
        table.free_list = grown;
        table.free_room = room;
    }
    table.free_list[table.free_count++] = index;
}

static int check_request(struct ibv_pd *pd, void *addr, size_t length, unsigned access)
{
    struct rlimit limit;

    if (sr_unlikely(sr_faults_planned()) && sr_faults_refuse(sr_context(pd->context)->rail, SR_CALL_REG_MR)) {
        return ENOMEM;
    }
    if (0 != (access & ~(unsigned) SR_ACCESS_KNOWN)) {
        return EOPNOTSUPP;
    }
    if (0 != (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && 0 == (access & IBV_ACCESS_LOCAL_WRITE)) {
        return EINVAL;
    }
    if ((uintptr_t) addr + length < (uintptr_t) addr) {
        return EINVAL;
    }
    if (0 != (sr.fabric.shm->flags & SR_FABRIC_MEMLOCK) && 0 == getrlimit(RLIMIT_MEMLOCK, &limit) && table.bytes + length > limit.rlim_cur) {
        return ENOMEM;
    }
    /* memory that is not mapped cannot be registered */
    return sr_mr_is_mapped(addr, length) ? sr_device_check(pd->context) : EFAULT;
}

/* Makes the pages resident, as registered memory is with a real HCA, so that the sizes of processes can be compared. A
 * kernel that does not know the advice leaves the pages as they are. */
static void make_resident(void *addr, size_t length)
{
#ifdef MADV_POPULATE_WRITE
    uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE), begin = (uintptr_t) addr & ~(page - 1);

    if (0 < length && 0 != (sr.fabric.shm->flags & SR_FABRIC_RESIDENT)) {
        (void) madvise((void *) begin, (uintptr_t) addr + length - begin, MADV_POPULATE_WRITE);
    }
#else
    (void) addr;
    (void) length;
#endif
}

bool sr_mr_covers(uint64_t addr, uint64_t length, bool write)
{
    for (uint32_t i = 0; i < __atomic_load_n(&table.fresh, __ATOMIC_ACQUIRE); ++i) {
        const struct sr_mr_entry *entry = entry_of(sr.self, i);
        if (0 != atomic_load(&entry->key) && addr >= entry->addr && length <= entry->length && addr - entry->addr <= entry->length - length
            && (!write || 0 != (entry->access & IBV_ACCESS_LOCAL_WRITE))) {
            return true;
        }
    }
    return false;
}

struct ibv_mr *sr_mr_reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    struct sr_mr *mr = calloc(1, sizeof(*mr));
    struct sr_mr_entry *entry;
    int rc = NULL == mr ? ENOMEM : check_request(pd, addr, length, access);

    if (0 != rc) {
        free(mr);
        errno = rc;
        return NULL;
    }
    make_resident(addr, length);
    pthread_mutex_lock(&table.mutex);
    mr->index = take_index();
    if (UINT32_MAX == mr->index) {
        pthread_mutex_unlock(&table.mutex);
        free(mr);
        errno = ENOMEM;
        return NULL;
    }
    table.bytes += length;
    entry = entry_of(sr.self, mr->index);
    entry->generation = entry->generation % 255 + 1;
    entry->pd = sr_pd(pd)->id;
    entry->access = access;
    entry->addr = (uintptr_t) addr;
    entry->length = length;
    entry->iova = 0 != (access & IBV_ACCESS_ZERO_BASED) ? 0 : iova;
    mr->ibv = (struct ibv_mr){
        .context = pd->context, .pd = pd, .addr = addr, .length = length, .handle = mr->index, .lkey = mr->index << 8 | entry->generation};
    mr->ibv.rkey = mr->ibv.lkey;
    atomic_store(&entry->key, mr->ibv.lkey);
    pthread_mutex_unlock(&table.mutex);
    atomic_fetch_add(&sr_pd(pd)->uses, 1);
    atomic_fetch_add(&sr.proc->done[sr_context(pd->context)->rail].registrations, 1);
    atomic_fetch_add(&sr.proc->done[sr_context(pd->context)->rail].regions, 1);
    return &mr->ibv;
}

int sr_mr_dereg(struct ibv_mr *ibv)
{
    struct sr_mr *mr = sr_mr(ibv);
    struct sr_mr_entry *entry;

    if (!sr.joined) {
        return EINVAL; /* a forked child: the region is its parent's */
    }
    entry = entry_of(sr.self, mr->index);
    atomic_store(&entry->key, 0);
    sr_qp_wait_transfers();
    pthread_mutex_lock(&table.mutex);
    table.bytes -= ibv->length;
    give_index(mr->index);
    pthread_mutex_unlock(&table.mutex);
    atomic_fetch_sub(&sr_pd(ibv->pd)->uses, 1);
    atomic_fetch_sub(&sr.proc->done[sr_context(ibv->context)->rail].regions, 1);
    free(mr);
    return 0;
}

void sr_mr_reset(void)
{
    pthread_mutex_init(&table.mutex, NULL);
    table.fresh = table.free_count = 0;
    table.bytes = 0;
}

/* msync fails with ENOMEM for pages that are not mapped, and needs no permission on the pages. */
bool sr_mr_is_mapped(const void *addr, size_t length)
{
    uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE), begin = (uintptr_t) addr & ~(page - 1);

    return 0 == length || 0 == msync((void *) begin, (uintptr_t) addr + length - begin, MS_ASYNC) || ENOMEM != errno;
}
