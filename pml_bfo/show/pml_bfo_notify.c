/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Events of rails, ports and peers for other processes of the node. Input: copies of the events of the figures, from any thread and under
 * any lock. Output: events of PMIx, sent from Open MPI's event loop, where no lock of ours is held and no thread of PMIx runs.
 * DESIGN.txt section 19.13.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "types/pml_bfo.h"

#include "bfo_help.h"
#include "types/pml_bfo_local.h"
#include "show/pml_bfo_notify.h"
#include "types/pml_bfo_params.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { ROOM = 4 * BFO_NOTIFY_MOST, CHECK_MS = 100 };
static const uint64_t minute = UINT64_C(60000000000); /* ns */

static bfo_figures_event_t queue[ROOM];
static uint32_t n_in, n_out;                             /* events that came, and that were sent; both only grow */
static uint32_t n_in_minute;                             /* events queued in the minute that began at `since` */
static uint32_t n_held;                                  /* events held back */
static uint64_t since;                                   /* ns of CLOCK_MONOTONIC, 0: never */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all above. A leaf: no other lock is taken under it */

/* ---- which events are sent ------------------------------------------------------------------------------ */

/* BEGUN is not sent because nobody listens yet, PARAMETER because it is no fault. */
static bool is_told(const bfo_figures_event_t *event)
{
    return BFO_FIGURES_BEGUN != event->what && BFO_FIGURES_PARAMETER != event->what;
}

void bfo_notify_add(const bfo_figures_event_t *event)
{
    if (!is_told(event)) {
        return;
    }
    pthread_mutex_lock(&lock);
    if (0 == since || event->mono >= since + minute) {
        since = event->mono;
        n_in_minute = 0;
    }
    if (n_in_minute < BFO_NOTIFY_MOST && n_in - n_out < ROOM) {
        queue[n_in++ % ROOM] = *event;
        ++n_in_minute;
    } else {
        ++n_held;
    }
    pthread_mutex_unlock(&lock);
}

bool bfo_notify_next(bfo_figures_event_t *event)
{
    bool is_there;

    pthread_mutex_lock(&lock);
    is_there = n_in != n_out;
    if (is_there) {
        *event = queue[n_out++ % ROOM];
    }
    pthread_mutex_unlock(&lock);
    return is_there;
}

uint32_t bfo_notify_held_back(uint64_t now)
{
    uint32_t n = 0;

    pthread_mutex_lock(&lock);
    if (now >= since + minute) {
        n = n_held;
        n_held = 0;
    }
    pthread_mutex_unlock(&lock);
    return n;
}

#if BFO_OMPI_HAS_PMIX_EVENTS
/* ---- sending ------------------------------------------------------------------------------------------------ */

static opal_event_t timer; /* in Open MPI's event loop, which progress runs from time to time */
static bool is_open;       /* the timer rings; atomic */
static int refusal;        /* the last error of PMIx when it did not send an event; written by its thread, atomic */

/* Context: a thread of PMIx, or the caller of bfo_ompi_notify(). */
static void is_sent(int status, void *note)
{
    bfo_ompi_note_free(note);
    if (OPAL_SUCCESS != status && OPAL_OPERATION_SUCCEEDED != status) {
        __atomic_store_n(&refusal, status, __ATOMIC_RELAXED);
    }
}

/* Adds the name of a port without its GUID or GID. */
static void add_port(opal_list_t *note, const char *key, const char *port)
{
    char name[sizeof(((bfo_figures_event_t *) 0)->here)];

    if ('\0' != port[0]) {
        snprintf(name, sizeof(name), "%.*s", (int) strcspn(port, " "), port);
        bfo_ompi_note_text(note, key, name);
    }
}

static void tell(const bfo_figures_event_t *event)
{
    opal_list_t *note = OBJ_NEW(opal_list_t);

    bfo_ompi_note_text(note, "bfo.event", bfo_figures_what_name(event->what));
    bfo_ompi_note_u64(note, "bfo.time", event->wall);
    add_port(note, "bfo.port", event->here);
    add_port(note, "bfo.peer.port", event->there);
    if (0 <= event->peer) {
        bfo_ompi_note_u32(note, "bfo.peer", (uint32_t) event->peer);
    }
    if ('\0' != event->host[0]) {
        bfo_ompi_note_text(note, "bfo.peer.host", event->host);
    }
    bfo_ompi_note_text(note, "bfo.before", bfo_figures_state_name(event->before));
    bfo_ompi_note_text(note, "bfo.after", bfo_figures_state_name(event->after));
    if ('\0' != event->cause[0]) {
        bfo_ompi_note_text(note, "bfo.cause", event->cause);
    }
    if (0 != event->lasted_ms) {
        bfo_ompi_note_u32(note, "bfo.lasted", event->lasted_ms);
    }
    bfo_ompi_notify(BFO_NOTIFY_CODE, note, is_sent);
}

static void tell_held_back(uint32_t n)
{
    opal_list_t *note = OBJ_NEW(opal_list_t);

    bfo_ompi_note_text(note, "bfo.event", "held-back");
    bfo_ompi_note_u64(note, "bfo.time", bfo_clock_ns(CLOCK_REALTIME));
    bfo_ompi_note_u32(note, "bfo.count", n);
    bfo_ompi_notify(BFO_NOTIFY_CODE, note, is_sent);
}

static void say_refusal(const char *why)
{
    bfo_help_say("help-pml-bfo.txt", "no-pmix-events", OPAL_PROC_MY_HOSTNAME, why);
}

static void timer_rings(int fd, short flags, void *arg)
{
    const struct timeval period = {.tv_usec = CHECK_MS * 1000};
    const uint32_t held = bfo_notify_held_back(bfo_clock_ns(CLOCK_MONOTONIC));
    const int why = __atomic_exchange_n(&refusal, OPAL_SUCCESS, __ATOMIC_RELAXED);
    bfo_figures_event_t event;

    while (bfo_notify_next(&event)) {
        tell(&event);
    }
    if (0 != held) {
        tell_held_back(held);
    }
    if (OPAL_SUCCESS != why) {
        say_refusal(opal_strerror(why));
    }
    if (__atomic_load_n(&is_open, __ATOMIC_RELAXED)) {
        opal_event_evtimer_add(&timer, &period);
    }
}

/* Keeps this component in memory, because PMIx may call is_sent() after Open MPI has closed it. */
static bool stay_loaded(void)
{
    Dl_info own;

    return 0 != dladdr(&queue, &own) && NULL != dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

void bfo_notify_open(void)
{
    if (!bfo_params.pmix_events || is_open) {
        return;
    }
    if (!bfo_ompi_can_notify() || NULL == opal_sync_event_base || !stay_loaded()) {
        say_refusal("this launcher, or this build of Open MPI, offers no events");
        return;
    }
    is_open = true;
    opal_event_evtimer_set(opal_sync_event_base, &timer, timer_rings, NULL);
    timer_rings(-1, 0, NULL);
}

void bfo_notify_close(void)
{
    if (is_open) {
        __atomic_store_n(&is_open, false, __ATOMIC_RELAXED);
        opal_event_evtimer_del(&timer);
    }
}
#else
void bfo_notify_open(void) {}
void bfo_notify_close(void) {}
#endif /* BFO_OMPI_HAS_PMIX_EVENTS */
