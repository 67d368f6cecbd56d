/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The copy service, for machines that refuse process_vm_readv/writev (seccomp, Yama). One thread in each process sleeps
 * until a peer asks it to copy between registered memory and a buffer in the arena. DESIGN.txt 16.
 */
#include "sr_mr.h"
#include "sr_service.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void futex_wait(_Atomic uint32_t *word, uint32_t value, long timeout_ns)
{
    struct timespec ts = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};

    syscall(SYS_futex, word, FUTEX_WAIT, value, 0 > timeout_ns ? NULL : &ts, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- serving ------------------------------------------------------------------------------------ */

/* Copies only registered memory, because the address comes from a peer. */
static int serve_one(struct sr_service *service, char *data)
{
    char *memory = (char *) (uintptr_t) service->addr;
    size_t length = service->length;

    if (SR_SERVICE_BYTES < length || !sr_mr_covers(service->addr, length, service->write) || !sr_mr_is_mapped(memory, length)) {
        return EFAULT;
    }
    if (service->write) {
        memcpy(memory, data, length);
    } else {
        memcpy(data, memory, length);
    }
    return 0;
}

static void *service_thread(void *arg)
{
    struct sr_service *service = &sr.arena->service;
    char *data = sr_at(atomic_load(&service->data));

    (void) arg;
    for (;;) {
        uint32_t state = atomic_load_explicit(&service->state, memory_order_acquire);
        if (SR_SERVICE_ASKED != state) {
            futex_wait(&service->state, state, -1);
            continue;
        }
        service->result = serve_one(service, data);
        atomic_store_explicit(&service->state, SR_SERVICE_DONE, memory_order_release);
        futex_wake(&service->state);
    }
    return NULL;
}

int sr_service_start(void)
{
    uint64_t data = sr_arena_alloc(SR_SERVICE_BYTES);
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    int rc;

    if (0 == data) {
        return ENOMEM;
    }
    atomic_store(&sr.arena->service.data, data);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    rc = pthread_create(&thread, &attr, service_thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return rc;
}

/* ---- asking ------------------------------------------------------------------------------------- */

/* Waits while the service works. ESRCH if its process dies. */
static int await(struct sr_peer *peer, struct sr_service *service)
{
    while (SR_SERVICE_ASKED == atomic_load_explicit(&service->state, memory_order_acquire)) {
        futex_wait(&service->state, SR_SERVICE_ASKED, 10000000);
        if (!sr_peer_is_alive(peer)) {
            return ESRCH;
        }
    }
    return 0;
}

int sr_service_ask(struct sr_peer *peer, void *local, uint64_t remote, size_t length, bool write)
{
    struct sr_service *service = &((struct sr_arena_head *) peer->base)->service;
    char *data = sr_peer_at(peer, atomic_load(&service->data), SR_SERVICE_BYTES);
    int rc;

    if (peer == sr.self) {
        if (!sr_mr_is_mapped((void *) (uintptr_t) remote, length) || !sr_mr_is_mapped(local, length)) {
            return EFAULT;
        }
        memmove(write ? (void *) (uintptr_t) remote : local, write ? local : (void *) (uintptr_t) remote, length);
        return 0;
    }
    if (NULL == data) {
        return EPERM;
    }
    sr_lock(&service->lock);
    rc = await(peer, service); /* for the request of a process that died meanwhile */
    if (0 == rc) {
        if (write) {
            memcpy(data, local, length);
        }
        service->write = write;
        service->addr = remote;
        service->length = length;
        atomic_store_explicit(&service->state, SR_SERVICE_ASKED, memory_order_release);
        futex_wake(&service->state);
        rc = await(peer, service);
    }
    if (0 == rc) {
        rc = service->result;
    }
    if (0 == rc && !write) {
        memcpy(local, data, length);
    }
    sr_unlock(&service->lock);
    return rc;
}
