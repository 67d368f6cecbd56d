/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The file of figures that this process keeps for the command bfo. Input: events of rails, ports and peers, from pml_bfo_tell.c. Output:
 * a file that a tool can read at any time. The file is mapped, so writing costs no system call. DESIGN.txt section 19.
 */
#include "types/pml_bfo.h"

#include "bfo_figures.h"
#include "types/pml_bfo_extension.h"
#include "show/pml_bfo_figures.h"
#include "show/pml_bfo_figures_file.h"
#include "types/pml_bfo_local.h"
#include "show/pml_bfo_notify.h"
#include "types/pml_bfo_params.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const bfo_figures_t no_figures;                             /* before the beginning, and after the end */
static bfo_figures_t *figures;                                     /* NULL: none. Written at set-up and at the end */
static const mca_btl_base_module_t *counting[BFO_FIGURES_MODULES]; /* the modules whose counters are in the figures. Lock: `lock` */
static bool was_up[BFO_FIGURES_PORTS];                             /* a rail of the port was in use at some time. Lock: `lock` */
static uint64_t n_before;                                          /* number of events before the current change. Lock: `lock` */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;           /* protects the file. A leaf: no other lock is taken under it */

void bfo_figures_open(void)
{
    if (NULL == figures) {
        memset(counting, 0, sizeof(counting));
        memset(was_up, 0, sizeof(was_up));
        figures = bfo_figures_file_open();
    }
}

/* Modules of BTLs may count until the process ends, therefore memory in which they count stays. */
void bfo_figures_close(void)
{
    pthread_mutex_lock(&lock);
    if (NULL != figures) {
        bfo_figures_file_close(0 == figures->n_modules);
        figures = NULL;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- events ------------------------------------------------------------------------------------------ */

static void event_write(uint32_t what, uint32_t before, uint32_t after, const char *cause)
{
    bfo_figures_event_t *event = &figures->event[figures->n_events % BFO_FIGURES_EVENTS];

    *event = (bfo_figures_event_t){.number = ++figures->n_events,
                                   .wall = bfo_clock_ns(CLOCK_REALTIME),
                                   .mono = bfo_clock_ns(CLOCK_MONOTONIC),
                                   .what = what,
                                   .before = before,
                                   .after = after,
                                   .peer = -1};
    snprintf(event->cause, sizeof(event->cause), "%s", cause);
}

static bfo_figures_event_t *last_event(void)
{
    return &figures->event[(figures->n_events - 1) % BFO_FIGURES_EVENTS];
}

/* ---- writing ------------------------------------------------------------------------------------------- */

/* Begins a change and takes `lock`; the caller ends it with change_ends(). False: there are no figures, and no change. */
static bool change_begins(void)
{
    if (NULL == __atomic_load_n(&figures, __ATOMIC_RELAXED)) {
        return false;
    }
    pthread_mutex_lock(&lock);
    if (NULL == figures) {
        pthread_mutex_unlock(&lock);
        return false;
    }
    __atomic_store_n(&figures->sequence, figures->sequence + 1, __ATOMIC_RELAXED);
    BFO_ASSERT(1 == (figures->sequence & 1));
    __atomic_thread_fence(__ATOMIC_RELEASE);
    figures->changed_wall = bfo_clock_ns(CLOCK_REALTIME);
    n_before = figures->n_events;
    return true;
}

enum { EVENTS_OF_A_CHANGE = 2 }; /* at most two: a port is taken out, and is drained at once */

/* Ends a change and releases `lock`, then passes the events of the change on without the lock. */
static void change_ends(void)
{
    bfo_figures_event_t news[EVENTS_OF_A_CHANGE];
    uint64_t n = 0;

    __atomic_store_n(&figures->sequence, figures->sequence + 1, __ATOMIC_RELEASE);
    BFO_ASSERT(0 == (figures->sequence & 1));
    if (bfo_params.pmix_events) {
        BFO_ASSERT(figures->n_events - n_before <= EVENTS_OF_A_CHANGE);
        for (; n_before + n < figures->n_events && n < EVENTS_OF_A_CHANGE; ++n) {
            news[n] = figures->event[(n_before + n) % BFO_FIGURES_EVENTS];
        }
    }
    pthread_mutex_unlock(&lock);
    for (uint64_t i = 0; i < n; ++i) {
        bfo_notify_add(&news[i]);
    }
}

/* Names both ports of a rail; without `peer` only the local one. */
static void name_ports(mca_btl_base_module_t *btl, const bfo_peer_t *peer, bfo_btl_ports_t *ports)
{
    snprintf(ports->here, sizeof(ports->here), "%s", bfo_btl_port_name(btl));
    ports->there[0] = '\0';
    ports->downs = 0;
    (void) bfo_ext_name_ports(btl, peer, ports);
}

/* *since is when the state that the last event ends had begun: stores how long it lasted, and sets *since to the time of the event. */
static void lasted_since(uint64_t *since)
{
    const uint64_t now = last_event()->mono, ms = 0 == *since || now < *since ? 0 : (now - *since) / 1000000;

    last_event()->lasted_ms = ms < UINT32_MAX ? (uint32_t) ms : UINT32_MAX;
    *since = now;
}

/* The entry of a port; NULL: this process does not use the port. */
static bfo_figures_port_t *find_port(const char *port_name)
{
    for (uint32_t i = 0; i < figures->n_ports; ++i) {
        if (0 == strncmp(figures->port[i].name, port_name, sizeof(figures->port[i].name) - 1)) {
            return &figures->port[i];
        }
    }
    return NULL;
}

/* The entry of a port, made now if it has none; NULL: no room for more ports. */
static bfo_figures_port_t *port_of(const char *port_name)
{
    bfo_figures_port_t *port = find_port(port_name);

    if (NULL != port) {
        return port;
    }
    if (BFO_FIGURES_PORTS == figures->n_ports) {
        return NULL;
    }
    port = &figures->port[figures->n_ports++];
    *port = (bfo_figures_port_t){.state = BFO_FIGURES_UP, .since_wall = bfo_clock_ns(CLOCK_REALTIME), .since_mono = bfo_clock_ns(CLOCK_MONOTONIC)};
    snprintf(port->name, sizeof(port->name), "%s", port_name);
    return port;
}

static bfo_figures_port_t *port_of_btl(const mca_btl_base_module_t *btl, const bfo_btl_ports_t *ports)
{
    bfo_figures_port_t *port = port_of(bfo_btl_port_name((mca_btl_base_module_t *) btl));

    if (NULL != port) {
        port->rate = btl->btl_bandwidth;
        snprintf(port->here, sizeof(port->here), "%s", ports->here);
    }
    return port;
}

static void enter_state(bfo_figures_port_t *port, uint32_t state)
{
    const uint64_t now = bfo_clock_ns(CLOCK_MONOTONIC);

    if (state != port->state) {
        port->down_ns += BFO_FIGURES_LOST == port->state ? now - port->since_mono : 0;
        port->state = state;
        port->since_wall = bfo_clock_ns(CLOCK_REALTIME);
        port->since_mono = now;
    }
}

/* From now on the module keeps its counters in the figures. */
static void move_traffic(mca_btl_base_module_t *btl, const bfo_figures_port_t *port)
{
    bfo_btl_ext_t *ext = bfo_btl_ext(btl);
    const uint32_t n = figures->n_modules;

    if (BFO_FIGURES_MODULES == n || BFO_BTL_EXT_OK != bfo_btl_ext_check(btl) || NULL == ext->traffic) {
        return;
    }
    for (uint32_t i = 0; i < n; ++i) {
        if (btl == counting[i]) {
            return;
        }
    }
    counting[n] = btl;
    figures->module_port[n] = (uint32_t) (port - figures->port);
    figures->traffic[n] = *ext->traffic;
    __atomic_store_n(&ext->traffic, &figures->traffic[n], __ATOMIC_RELEASE);
    figures->n_modules = n + 1;
}

static uint32_t state_when_down(const bfo_figures_port_t *port)
{
    return was_up[port - figures->port] ? BFO_FIGURES_LOST : BFO_FIGURES_NEVER_UP;
}

/* A port without rails keeps its state, because nothing is known of it since it lost its last rail. */
static void set_state(bfo_figures_port_t *port)
{
    if (port->is_out) {
        enter_state(port, 0 == port->rails_draining + port->rails_kept ? BFO_FIGURES_DRAINED : BFO_FIGURES_DRAINING);
    } else if (0 != port->rails) {
        enter_state(port, 0 == port->rails_lost ? BFO_FIGURES_UP : port->rails == port->rails_lost ? state_when_down(port) : BFO_FIGURES_PART);
    }
}

/* Adapts the sums to the masks of the peer, so that they do not drift whatever the order of events. */
static void recount(bfo_peer_t *peer)
{
    const uint8_t lost = (uint8_t) (~peer->up_mask & ((1u << peer->n_rails) - 1));
    const bool on_last = 1 == __builtin_popcount(peer->up_mask) && 1 < peer->n_rails;

    if (peer->declared) {
        return; /* it no longer counts, or bfo_figures_peer_lost() follows */
    }
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        bfo_figures_port_t *port = port_of(bfo_btl_port_name(peer->rails[r].btl));

        if (NULL != port) {
            was_up[port - figures->port] |= peer->up_mask >> r & 1;
            port->rails_lost += (uint32_t) (lost >> r & 1) - (peer->figures_lost >> r & 1);
            BFO_ASSERT(port->rails_lost <= port->rails);
            set_state(port);
        }
    }
    figures->peers_on_last_rail += (uint32_t) on_last - peer->figures_last;
    BFO_ASSERT(figures->peers_on_last_rail <= figures->peers);
    peer->figures_lost = lost;
    peer->figures_last = on_last;
}

static void name_host(const bfo_peer_t *peer)
{
    char room[BFO_OMPI_HOST_ROOM];
    const char *host = bfo_ompi_host_of(&peer->proc->super, room);

    last_event()->peer = (int32_t) peer->proc->super.proc_name.vpid;
    snprintf(last_event()->host, sizeof(last_event()->host), "%.*s", (int) sizeof(last_event()->host) - 1, NULL == host ? "" : host);
}

static void add_rail_event(bfo_peer_t *peer, uint8_t r, const bfo_btl_ports_t *ports, bool is_loss, const char *cause)
{
    event_write(is_loss ? BFO_FIGURES_RAIL_LOST : BFO_FIGURES_RAIL_BACK, is_loss ? BFO_FIGURES_UP : BFO_FIGURES_LOST,
                is_loss ? BFO_FIGURES_LOST : BFO_FIGURES_UP, cause);
    last_event()->generation = peer->rails[r].gen;
    lasted_since(&peer->rails[r].figures_since);
    snprintf(last_event()->here, sizeof(last_event()->here), "%s", ports->here);
    snprintf(last_event()->there, sizeof(last_event()->there), "%s", ports->there);
    name_host(peer);
}

/* ---- what happens ---------------------------------------------------------------------------------------- */

void bfo_figures_connected(bfo_peer_t *peer, const char *missing, bool memory)
{
    bfo_btl_ports_t ports[BFO_MAX_RAILS];

    for (uint8_t r = 0; NULL != figures && r < peer->n_rails; ++r) {
        name_ports(peer->rails[r].btl, peer, &ports[r]);
    }
    if (!change_begins()) {
        return;
    }
    figures->ranks = (uint32_t) ompi_comm_size(MPI_COMM_WORLD);
    ++figures->peers;
    if (NULL != missing) {
        figures->verdict = BFO_FIGURES_NOT_IN_FORCE;
        snprintf(figures->reason, sizeof(figures->reason), "%s", missing);
    } else if (!memory && BFO_FIGURES_NOT_KNOWN == figures->verdict) {
        figures->verdict = BFO_FIGURES_IN_FORCE;
    }
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        bfo_figures_port_t *port = port_of_btl(peer->rails[r].btl, &ports[r]);

        if (NULL != port) {
            ++port->rails;
            peer->rails[r].figures_since = bfo_clock_ns(CLOCK_MONOTONIC);
            move_traffic(peer->rails[r].btl, port);
        }
    }
    recount(peer);
    change_ends();
}

void bfo_figures_rail_lost(bfo_peer_t *peer, uint8_t r, const char *cause, bool told)
{
    bfo_btl_ports_t ports;
    bfo_figures_port_t *port;

    name_ports(peer->rails[r].btl, peer, &ports);
    if (!change_begins()) {
        return;
    }
    port = port_of_btl(peer->rails[r].btl, &ports);
    if (NULL != port) {
        ++port->losses;
        port->lost_wall = bfo_clock_ns(CLOCK_REALTIME);
        snprintf(port->cause, sizeof(port->cause), "%s", cause);
    }
    peer->figures_rail = r;
    recount(peer);
    if (told) {
        peer->rails[r].figures_since = bfo_clock_ns(CLOCK_MONOTONIC);
    } else {
        add_rail_event(peer, r, &ports, true, cause);
    }
    change_ends();
}

void bfo_figures_rail_back(bfo_peer_t *peer, uint8_t r)
{
    bfo_btl_ports_t ports;
    bfo_figures_port_t *port;

    name_ports(peer->rails[r].btl, peer, &ports);
    if (!change_begins()) {
        return;
    }
    port = port_of_btl(peer->rails[r].btl, &ports);
    if (NULL != port) {
        ++port->returns;
    }
    recount(peer);
    add_rail_event(peer, r, &ports, false, "");
    change_ends();
}

void bfo_figures_port_down(mca_btl_base_module_t *btl, const char *cause)
{
    bfo_btl_ports_t ports;
    bfo_figures_port_t *port;
    uint64_t since = 0;

    name_ports(btl, NULL, &ports);
    if (!change_begins()) {
        return;
    }
    port = port_of_btl(btl, &ports);
    if (NULL != port) {
        ++port->downs;
        since = BFO_FIGURES_UP == port->state ? port->since_mono : 0;
        snprintf(port->cause, sizeof(port->cause), "%s", cause);
        if (0 == port->rails) {
            enter_state(port, was_up[port - figures->port] ? BFO_FIGURES_LOST : BFO_FIGURES_UNUSED);
        }
    }
    event_write(BFO_FIGURES_PORT_DOWN, BFO_FIGURES_UP, BFO_FIGURES_LOST, cause);
    last_event()->generation = ports.downs;
    lasted_since(&since);
    snprintf(last_event()->here, sizeof(last_event()->here), "%s", ports.here);
    change_ends();
}

/* A process that is given up does not count against a port, therefore its rails no longer count. */
void bfo_figures_peer_lost(bfo_peer_t *peer, const char *cause)
{
    if (!change_begins()) {
        return;
    }
    ++figures->peers_given_up;
    figures->peers_on_last_rail -= peer->figures_last;
    for (uint8_t r = 0; peer->ready && r < peer->n_rails; ++r) {
        bfo_figures_port_t *port = port_of(bfo_btl_port_name(peer->rails[r].btl));

        if (NULL != port && 0 != port->rails) {
            --port->rails;
            port->rails_lost -= peer->figures_lost >> r & 1;
            set_state(port);
        }
    }
    peer->figures_lost = 0;
    peer->figures_last = false;
    event_write(BFO_FIGURES_PEER_LOST, BFO_FIGURES_REACHED, BFO_FIGURES_GIVEN_UP, cause);
    name_host(peer);
    change_ends();
}

static void add_port_event(const bfo_figures_port_t *port, uint32_t what, uint32_t before, uint64_t since)
{
    event_write(what, before, port->state, "");
    lasted_since(&since);
    snprintf(last_event()->here, sizeof(last_event()->here), "%s", port->here);
}

void bfo_figures_out(const char *port_name, const bfo_drained_t *rails)
{
    const bfo_drained_t none = {0}, *n = NULL == rails ? &none : rails;
    bfo_figures_port_t *port = NULL == figures ? NULL : find_port(port_name);
    uint32_t before, was_out;
    uint64_t since;

    if (NULL == port
        || (port->is_out == (NULL != rails) && port->rails_kept == n->kept && port->rails_draining == n->draining
            && port->rails_drained == n->drained)
        || !change_begins()) {
        return; /* this process does not use the port, or nothing changed. Only one thread at a time writes these */
    }
    before = port->state;
    since = port->since_mono;
    was_out = port->is_out;
    port->is_out = NULL != rails;
    port->rails_kept = n->kept;
    port->rails_draining = n->draining;
    port->rails_drained = n->drained;
    if (NULL == rails) {
        enter_state(port, BFO_FIGURES_UP); /* the best guess for a port without rails */
    }
    set_state(port);
    if (was_out != port->is_out) {
        add_port_event(port, NULL == rails ? BFO_FIGURES_PORT_RELEASED : BFO_FIGURES_PORT_OUT, before, since);
    }
    if (BFO_FIGURES_DRAINED == port->state && BFO_FIGURES_DRAINED != before) {
        add_port_event(port, BFO_FIGURES_PORT_DRAINED, BFO_FIGURES_DRAINING, BFO_FIGURES_DRAINING == before ? since : 0);
    }
    change_ends();
}

void bfo_figures_parameter(uint32_t parameter, int64_t value, const char *what)
{
    BFO_ASSERT(parameter < BFO_FIGURES_PARAMETERS);
    if (change_begins()) {
        figures->parameter[parameter] = value;
        event_write(BFO_FIGURES_PARAMETER, BFO_FIGURES_NONE, BFO_FIGURES_NONE, what);
        change_ends();
    }
}

void bfo_figures_obeyed(uint64_t number)
{
    if (change_begins()) {
        figures->steer_number = number;
        change_ends();
    }
}

void bfo_figures_waits(bfo_peer_t *peer, bool waits)
{
    bool is_news;

    if (!change_begins()) {
        return;
    }
    is_news = waits != peer->figures_waits;
    figures->peers_waited_for += (uint32_t) waits - peer->figures_waits;
    peer->figures_waits = waits;
    if (is_news && (waits || !peer->declared)) { /* otherwise PEER_LOST is the event */
        event_write(waits ? BFO_FIGURES_PEER_WAITS : BFO_FIGURES_PEER_BACK, waits ? BFO_FIGURES_REACHED : BFO_FIGURES_WAITED_FOR,
                    waits ? BFO_FIGURES_WAITED_FOR : BFO_FIGURES_REACHED, waits && 0 != peer->up_mask ? "its last rail is drained by force" : "");
        name_host(peer);
        peer->figures_waits_since = waits ? 0 : peer->figures_waits_since; /* nobody recorded since when it was reached */
        lasted_since(&peer->figures_waits_since);
    }
    change_ends();
}

void bfo_figures_resent(const bfo_peer_t *peer)
{
    bfo_figures_port_t *port;

    if (!change_begins()) {
        return;
    }
    ++figures->resent;
    port = port_of(bfo_btl_port_name(peer->rails[peer->figures_rail].btl));
    if (NULL != port) {
        ++port->resent;
    }
    change_ends();
}

/* ---- what keeps lost rails out ----------------------------------------------------------------------------- */

typedef struct {
    uint32_t penalty, held, asking;
} fall_t;

/* Asks the BTL without `lock`, which is a leaf. */
static void ask_for_falls(fall_t *fall)
{
    BFO_FOREACH_PEER(peer)
    {
        for (uint8_t r = 0; __atomic_load_n(&peer->ready, __ATOMIC_ACQUIRE) && !peer->declared && r < peer->n_rails; ++r) {
            const bfo_rail_t *rail = &peer->rails[r];
            bool is_held;
            bfo_rail_info_t info;
            const uint32_t penalty = bfo_ext_penalty(peer, rail, &is_held);
            const bool is_asking = bfo_ext_rail_state(peer, rail, &info) && info.is_asking;
            const bfo_figures_port_t *port = 0 == penalty && !is_asking ? NULL : find_port(bfo_btl_port_name(rail->btl));

            if (NULL != port) {
                fall_t *its = &fall[port - figures->port];

                its->penalty = penalty > its->penalty ? penalty : its->penalty;
                its->held += is_held;
                its->asking += is_asking;
            }
        }
    }
}

void bfo_figures_refresh(void)
{
    fall_t fall[BFO_FIGURES_PORTS] = {{0}};
    bool has_fallen = false, is_news = false;

    for (uint32_t i = 0; NULL != figures && i < figures->n_ports; ++i) {
        has_fallen = has_fallen || 0 != figures->port[i].losses;
    }
    if (!has_fallen) {
        return;
    }
    ask_for_falls(fall);
    for (uint32_t i = 0; i < figures->n_ports; ++i) {
        is_news = is_news || fall[i].penalty != figures->port[i].penalty || fall[i].held != figures->port[i].rails_held
                  || fall[i].asking != figures->port[i].rails_asking;
    }
    if (is_news && change_begins()) {
        for (uint32_t i = 0; i < figures->n_ports; ++i) {
            figures->port[i].penalty = fall[i].penalty;
            figures->port[i].rails_held = fall[i].held;
            figures->port[i].rails_asking = fall[i].asking;
        }
        change_ends();
    }
}

const bfo_figures_t *bfo_figures_now(void)
{
    return NULL == figures ? &no_figures : figures;
}
