/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Requests to this process while it runs. Input: memory that another process writes, and the ports that the program names. Output:
 * the ports that stand out, and wishes for parameters. Nothing in that memory is trusted: a length out of range counts as an empty list, a
 * name need not be terminated, and a wish must be newer than the last list and not newer than this one. DESIGN.txt section 19.6.
 */
#include "types/pml_bfo.h"

#include "bfo_parameters.h"
#include "show/pml_bfo_figures.h"
#include "show/pml_bfo_figures_file.h"
#include "show/pml_bfo_steer.h"

#include <string.h>

typedef struct {
    uint32_t n;
    char name[BFO_STEER_MOST][sizeof(((bfo_steer_t *) 0)->out[0])];
    bool is_forced[BFO_STEER_MOST]; /* the port stands out even where it has the last rail to a process */
} ports_t;

static const bfo_steer_t *steer; /* the mapped list; NULL: none */
static bfo_steer_t list;         /* the copy read last. One thread at a time uses it and all below except `out` */
static uint32_t named;           /* ports that the program names: the mask read last */
static uint64_t obeyed;          /* number of the last list whose wishes were passed on */
static ports_t out;              /* ports of both. Lock: bfo.lock; the thread that reads the lists takes it only to write */

bool bfo_steer_open(void)
{
    if (NULL == steer) {
        steer = bfo_figures_steer(&obeyed);
    }
    return NULL != steer;
}

void bfo_steer_close(void)
{
    steer = NULL;
    named = 0;
    memset(&list, 0, sizeof(list));
    memset(&out, 0, sizeof(out));
}

static uint64_t number_now(void)
{
    return NULL == steer ? 0 : __atomic_load_n(&steer->sequence, __ATOMIC_ACQUIRE);
}

bool bfo_steer_is_news(void)
{
    return number_now() != list.sequence || bfo_drain_cvar_ports() != named;
}

uint32_t bfo_steer_ports(void)
{
    return out.n;
}

const char *bfo_steer_port(uint32_t i)
{
    return out.name[i];
}

/* Index of a port in a list; `n`: it is not there. */
static uint32_t place_in(const ports_t *in, const char *port)
{
    uint32_t i = 0;

    while (i < in->n && 0 != strncmp(port, in->name[i], sizeof(in->name[i]))) {
        ++i;
    }
    return i;
}

bool bfo_steer_is_forced(uint32_t i)
{
    return out.is_forced[i];
}

uint32_t bfo_steer_place(const char *port)
{
    return place_in(&out, port);
}

static void add(ports_t *to, const char *port, bool by_force)
{
    const uint32_t i = place_in(to, port);

    BFO_ASSERT(to->n < BFO_STEER_MOST);
    if (to->n == i) {
        strncpy(to->name[to->n++], port, sizeof(to->name[0]));
    }
    to->is_forced[i] = to->is_forced[i] || by_force;
}

/* Copies the mapped list. False: another process is writing it, or there is none. */
static bool read_list(void)
{
    const uint64_t number = number_now();
    bfo_steer_t new;

    if (NULL == steer || 0 != (number & 1)) {
        return false;
    }
    memcpy(&new, steer, sizeof(new));
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (number != __atomic_load_n(&steer->sequence, __ATOMIC_RELAXED)) {
        return false;
    }
    new.n_out = new.n_out <= BFO_STEER_PORTS ? new.n_out : 0;
    new.n_wishes = new.n_wishes <= BFO_STEER_WISHES ? new.n_wishes : 0;
    new.sequence = number;
    list = new;
    return true;
}

bool bfo_steer_read(void (*gone)(const char *port))
{
    const uint32_t before = named;
    ports_t new = {0};

    named = bfo_drain_cvar_ports();
    if (!(number_now() != list.sequence && read_list()) && before == named) {
        return false;
    }
    for (uint32_t i = 0; i < list.n_out; ++i) {
        add(&new, list.out[i], list.forced >> i & 1);
    }
    for (uint32_t i = 0; i < BFO_DRAIN_NAMES; ++i) {
        if (named >> i & 1) {
            add(&new, bfo_drain_cvar_port(i), false);
        }
    }
    for (uint32_t i = 0; i < out.n; ++i) {
        if (new.n == place_in(&new, out.name[i])) {
            gone(out.name[i]);
        }
    }
    BFO_LOCK(&bfo.lock);
    out = new;
    BFO_UNLOCK(&bfo.lock);
    return true;
}

void bfo_steer_obey(void (*wish)(uint32_t parameter, int64_t value))
{
    if (NULL == steer || list.sequence == obeyed) {
        return;
    }
    for (uint32_t i = 0; i < list.n_wishes; ++i) {
        const bfo_steer_wish_t *w = &list.wish[i];

        if (OPAL_PROC_MY_NAME.jobid == w->job && w->parameter < BFO_PARAMETERS_LIVE && obeyed < w->number && w->number <= list.sequence) {
            wish(w->parameter, w->value);
        }
    }
    obeyed = list.sequence;
    bfo_figures_obeyed(obeyed);
}
