/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Makes fault events from the last events that the processes have written. What several processes noticed alike becomes one fault
 * event, with the sets of their ranks and peers. DESIGN.txt section 19.11.
 */
#include "bt_ftb.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NEWS = 4096 }; /* most events of one user in one look, so that a user cannot crowd out the others */

typedef struct {
    const bt_process_t *p;
    const bfo_figures_event_t *e;
} news_t;

/* ---- collecting ------------------------------------------------------------------------------------------- */

#define ORDER(x, y) \
    if ((x) != (y)) \
    return (x) < (y) ? -1 : 1
#define ORDER_TEXT(x, y) \
    if (0 != strcmp(x, y)) \
    return strcmp(x, y)

/* Equal: one event is thrown for both. */
static int by_content(const news_t *x, const news_t *y)
{
    ORDER(x->p->uid, y->p->uid);
    ORDER(x->p->f.job, y->p->f.job);
    ORDER(x->e->what, y->e->what);
    ORDER_TEXT(x->p->f.host, y->p->f.host);
    ORDER_TEXT(x->e->here, y->e->here);
    ORDER_TEXT(x->e->there, y->e->there);
    ORDER_TEXT(x->e->host, y->e->host);
    ORDER_TEXT(x->e->cause, y->e->cause);
    return 0;
}

static int by_content_then_rank(const void *a, const void *b)
{
    const news_t *x = a, *y = b;
    const int order = by_content(x, y);

    if (0 == order) {
        ORDER(x->p->f.rank, y->p->f.rank);
        ORDER(x->e->peer, y->e->peer);
    }
    return order;
}

/* Appends the events that a process has written since the last look. Returns how many of its events are lost. */
static uint64_t add_process(const bt_process_t *p, uint64_t since, news_t *news, size_t *n, size_t most)
{
    const bt_ftb_known_t key = {.kind = BT_FTB_PROCESS, .uid = p->uid, .job = p->f.job, .rank = p->f.rank, .pid = p->f.pid};
    bool is_new;
    bt_ftb_known_t *known = bt_ftb_know(&key, &is_new);
    uint64_t lost = 0;

    if (NULL == known) {
        return 0;
    }
    if (!is_new && p->f.n_events > known->shown && BFO_FIGURES_EVENTS < p->f.n_events - known->shown) {
        lost = p->f.n_events - known->shown - BFO_FIGURES_EVENTS; /* later events took their places */
    }
    for (size_t i = 0; i < BFO_FIGURES_EVENTS; ++i) {
        const bfo_figures_event_t *e = &p->f.event[i];

        if (e->number > known->shown && e->wall >= since && *n < most) {
            news[(*n)++] = (news_t){.p = p, .e = e};
        } else {
            lost += e->number > known->shown && e->wall >= since;
        }
    }
    known->shown = p->f.n_events;
    return lost;
}

/* ---- throwing ------------------------------------------------------------------------------------------------ */

static void add_texts(bt_ftb_event_t *e, const bfo_figures_event_t *written)
{
    char room[64];

    if ('\0' != written->host[0]) {
        bt_ftb_add(e, "peer_node", written->host);
    }
    if ('\0' != written->there[0]) {
        bt_ftb_add(e, "peer_iface", bt_port_of(room, written->there));
    }
    if ('\0' != written->cause[0]) {
        bt_ftb_add(e, "cause", written->cause);
    }
}

/* Throws one event for news that are alike, at most BT_FTB_SET of them. */
static void throw_alike(const char *name, const news_t *news, size_t n, bt_ftb_sink_t sink)
{
    char room[64];
    bt_ftb_event_t e;

    bt_ftb_begin_of_job(&e, name, '\0' == news->e->here[0] ? NULL : bt_port_of(room, news->e->here), news->p);
    bt_ftb_add_set(&e, "ranks");
    for (size_t i = 0; i < n; ++i) {
        (void) bt_ftb_add_rank(&e, news[i].p->f.rank);
    }
    if (0 <= news->e->peer) {
        bt_ftb_add_set(&e, "peers");
        for (size_t i = 0; i < n; ++i) {
            (void) bt_ftb_add_rank(&e, (uint32_t) news[i].e->peer);
        }
    }
    if (BFO_FIGURES_PEER_LOST == news->e->what || BFO_FIGURES_PEER_WAITS == news->e->what) {
        bt_ftb_add(&e, "state", bt_state_name(news->e->after));
    }
    add_texts(&e, news->e);
    sink(&e);
}

/* Throws the ranks that were given up, each once, however many processes gave them up. */
static void throw_given_up(const news_t *news, size_t n, bt_ftb_sink_t sink)
{
    bt_ftb_event_t e;
    size_t told = 0;

    bt_ftb_begin_ranks(&e, "MPI_RANKS_DEAD", news->e->host, news->p);
    for (size_t i = 0; i < n; ++i) {
        const bt_ftb_known_t key = {
            .kind = BT_FTB_RANK, .uid = news->p->uid, .job = news->p->f.job, .rank = (uint32_t) news[i].e->peer, .state = BFO_FIGURES_GIVEN_UP};
        bool is_new;

        (void) bt_ftb_know(&key, &is_new);
        if (is_new && bt_ftb_add_rank(&e, key.rank)) {
            ++told;
        }
    }
    if (0 != told) {
        bt_ftb_add(&e, "state", bt_state_name(BFO_FIGURES_GIVEN_UP));
        sink(&e);
    }
}

/* Throws the ranks that are reached again. */
static void throw_back(const news_t *news, size_t n, bt_ftb_sink_t sink)
{
    bt_ftb_event_t e;

    bt_ftb_begin_ranks(&e, "MPI_RANKS_ALIVE", news->e->host, news->p);
    for (size_t i = 0; i < n; ++i) {
        (void) bt_ftb_add_rank(&e, (uint32_t) news[i].e->peer);
    }
    bt_ftb_add(&e, "state", bt_state_name(BFO_FIGURES_REACHED));
    sink(&e);
}

static void throw_news(const news_t *news, size_t n, bt_ftb_sink_t sink)
{
    switch (news->e->what) {
    case BFO_FIGURES_BEGUN:
        throw_alike("MPI_INIT", news, n, sink);
        break;
    case BFO_FIGURES_PORT_DOWN:
        throw_alike("CHECK_INTERFACE", news, n, sink);
        break;
    case BFO_FIGURES_RAIL_LOST:
        throw_alike("COMM_FAILURE", news, n, sink);
        break;
    case BFO_FIGURES_PEER_LOST:
        throw_alike("COMMUNICATION", news, n, sink);
        throw_alike("UNREACHABLE", news, n, sink);
        throw_given_up(news, n, sink);
        break;
    case BFO_FIGURES_PEER_WAITS:
        throw_alike("UNREACHABLE", news, n, sink);
        break;
    case BFO_FIGURES_PEER_BACK:
        throw_back(news, n, sink);
        break;
    default:
        break; /* the state of the port shows it */
    }
}

static void throw_lost(uid_t uid, uint64_t lost, bt_ftb_sink_t sink)
{
    bt_ftb_event_t e;

    bt_ftb_begin(&e, "OUT_OF_RESOURCES");
    bt_ftb_add(&e, "resource", "events");
    bt_ftb_add_number(&e, "user", uid);
    bt_ftb_add_number(&e, "lost", lost);
    sink(&e);
}

/* Handles the processes of one user, from `at` on. Returns the place after them. */
static size_t throw_of_user(const bt_all_t *all, size_t at, uint64_t since, news_t *news, bt_ftb_sink_t sink)
{
    const uid_t uid = all->process[at]->uid;
    uint64_t lost = 0;
    size_t n = 0;

    for (; at < all->n && uid == all->process[at]->uid; ++at) {
        lost += add_process(all->process[at], since, news, &n, MOST_NEWS);
    }
    qsort(news, n, sizeof(*news), by_content_then_rank);
    for (size_t i = 0, end; i < n; i = end) {
        end = i + 1;
        while (end < n && BT_FTB_SET > end - i && 0 == by_content(&news[i], &news[end])) {
            ++end;
        }
        throw_news(&news[i], end - i, sink);
    }
    if (0 != lost) {
        throw_lost(uid, lost, sink);
    }
    return at;
}

void bt_ftb_throw_written(const bt_all_t *all, uint64_t since, bt_ftb_sink_t sink)
{
    static news_t news[MOST_NEWS];

    for (size_t at = 0; at < all->n;) {
        at = throw_of_user(all, at, since, news, sink);
    }
}
