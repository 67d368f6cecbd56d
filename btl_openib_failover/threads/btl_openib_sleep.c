/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Blocking progress (btl_openib_blocking_progress). A process that found nothing in many passes asks all completion queues
 * for an event, polls once more and sleeps. It wakes when an event or a letter of service comes, or after the time that the
 * user gave. Other components of Open MPI that must be polled wait no longer than that. Context: progress. See DESIGN.txt 15.1.
 */
#include "threads/btl_openib_sleep.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    SLEEP_AFTER = 500, /* passes in a row that found nothing: some 50 us */
    SLEEP_TIMED = 250, /* time is measured from this pass on, so that short waits need no clock */
    SLEEP_AGAIN = 50,  /* idle passes between two sleeps */
    TIGHT_MS = 10      /* if the passes took longer, the process does more than wait */
};

int ofo_sleep_create(void)
{
    OFO.wake_fd = -1;
    OFO.asleep = 0;
    OFO.idle_passes = 0;
    OFO.idle_since = 0;
    if (0 < OFO.params.blocking_progress) {
        OFO.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    }
    return 0 == OFO.params.blocking_progress || 0 <= OFO.wake_fd ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

void ofo_sleep_destroy(void)
{
    if (0 <= OFO.wake_fd) {
        close(OFO.wake_fd);
        OFO.wake_fd = -1;
    }
}

int ofo_sleep_open(ofo_module_t *module)
{
    if (0 == OFO.params.blocking_progress) {
        return OPAL_SUCCESS;
    }
    module->channel = ibv_create_comp_channel(module->device->context);
    if (NULL == module->channel || 0 != fcntl(module->channel->fd, F_SETFL, fcntl(module->channel->fd, F_GETFL) | O_NONBLOCK)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return OPAL_SUCCESS;
}

void ofo_sleep_close(ofo_module_t *module)
{
    if (NULL != module->channel) {
        ibv_destroy_comp_channel(module->channel);
        module->channel = NULL;
    }
}

static bool has_mail(void)
{
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        if (0 != OFO_LOAD(OFO.module[i]->inbox.count)) {
            return true;
        }
    }
    return false;
}

/* There are at most as many events as CQs that were asked. Each is acknowledged at once. */
static void read_events(ofo_module_t *module)
{
    struct ibv_cq *cq;
    void *context;

    while (0 == ibv_get_cq_event(module->channel, &cq, &context)) {
        ibv_ack_cq_events(cq, 1);
        __atomic_store_n(&module->idle_polls, 0, __ATOMIC_RELAXED);
    }
}

static void sleep_until_woken(void)
{
    struct pollfd fds[OFO_MAX_MODULES + 1];
    unsigned count = OFO.module_count;
    uint64_t counter;

    for (unsigned i = 0; i < count; ++i) {
        fds[i] = (struct pollfd){.fd = OFO.module[i]->channel->fd, .events = POLLIN};
    }
    fds[count] = (struct pollfd){.fd = OFO.wake_fd, .events = POLLIN};
    (void) __atomic_add_fetch(&OFO.asleep, 1, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!has_mail()) {
        (void) __atomic_add_fetch(&OFO.module[0]->count.sleeps, 1, __ATOMIC_RELAXED);
        if (0 < poll(fds, count + 1, (int) OFO.params.blocking_progress) && 0 != fds[count].revents) {
            ssize_t rc = read(OFO.wake_fd, &counter, sizeof(counter));
            (void) rc;
        }
    }
    (void) __atomic_sub_fetch(&OFO.asleep, 1, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < count; ++i) {
        read_events(OFO.module[i]);
    }
}

/* Sets the number of idle passes so far, and starts the time. */
static void restart(unsigned passes)
{
    __atomic_store_n(&OFO.idle_since, ofo_now_ms(), __ATOMIC_RELAXED);
    __atomic_store_n(&OFO.idle_passes, passes, __ATOMIC_RELAXED);
}

static bool arm_all(bool (*arm)(ofo_module_t *module))
{
    bool silent = !OFO_LOAD(OFO.closing) && 0 < OFO.module_count;

    for (unsigned i = 0; silent && i < OFO.module_count; ++i) {
        silent = arm(OFO.module[i]);
    }
    return silent;
}

/* A process that computes or sleeps between two passes (with MPI_Test, or Open MPI itself at its start and end) is not put to sleep. */
void ofo_sleep_if_idle(bool found, bool (*arm)(ofo_module_t *module))
{
    unsigned passes;

    if (found) {
        __atomic_store_n(&OFO.idle_passes, 0, __ATOMIC_RELAXED);
        return;
    }
    passes = __atomic_add_fetch(&OFO.idle_passes, 1, __ATOMIC_RELAXED);
    if (SLEEP_AFTER > passes) {
        if (SLEEP_TIMED == passes) {
            restart(passes);
        }
        return;
    }
    if (TIGHT_MS >= ofo_now_ms() - __atomic_load_n(&OFO.idle_since, __ATOMIC_RELAXED) && arm_all(arm)) {
        sleep_until_woken();
        restart(SLEEP_AFTER - SLEEP_AGAIN);
    } else {
        restart(0);
    }
}
