/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Reports of failures to the user. Input: lost rails, ports and peers, steps of the machines and the counters. Output:
 * one line per lost rail or peer and node, and lines of one format by pml_bfo_verbose. It decides nothing.
 * DESIGN.txt section 14.9.
 */
#include "types/pml_bfo.h"

#include "bfo_help.h"
#include "types/pml_bfo_extension.h"
#include "tables/pml_bfo_failover_fire.h"
#include "tables/pml_bfo_failover_fsm.h"
#include "show/pml_bfo_figures.h"
#include "types/pml_bfo_local.h"
#include "show/pml_bfo_tell.h"

#include "opal/util/output.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- names ------------------------------------------------------------------------------------------- */

const char *bfo_tell_port(mca_btl_base_module_t *btl)
{
    return bfo_btl_port_name(btl);
}

static const char *host_of(const bfo_peer_t *peer, char room[BFO_OMPI_HOST_ROOM])
{
    const char *host = bfo_ompi_host_of(&peer->proc->super, room);

    return NULL == host ? "unknown host" : host;
}

static unsigned rank_of(const bfo_peer_t *peer)
{
    return peer->proc->super.proc_name.vpid;
}

static unsigned my_rank(void)
{
    return OPAL_PROC_MY_NAME.vpid;
}

/* Text such as "1: sr0:1", or "none". `rails` is a mask of the peer's rails. */
static const char *rails_text(const bfo_peer_t *peer, uint8_t rails, char *room, size_t size)
{
    size_t at = (size_t) snprintf(room, size, "%d:", __builtin_popcount(rails));

    for (uint8_t r = 0; r < peer->n_rails && at < size; ++r) {
        if (rails >> r & 1) {
            at += (size_t) snprintf(room + at, size - at, " %s", bfo_tell_port(peer->rails[r].btl));
        }
    }
    return 0 == rails ? "none" : room;
}

/* Skips the port's name with which the BTL's cause begins, because the text has it already. */
static const char *without_port(const char *cause, const char *port)
{
    const size_t n = strlen(port);

    return 0 == strncmp(cause, port, n) && 0 == strncmp(cause + n, ": ", 2) ? cause + n + 2 : cause;
}

/* ---- rails ------------------------------------------------------------------------------------------- */

/* In nearly all jobs every process has the same view; a process with another view warns (no-failover, fewer rails). */
static void say_protected(const bfo_peer_t *peer)
{
    static bool said; /* Lock: bfo.lock */
    char room[256], line[512], host[BFO_OMPI_HOST_ROOM];

    if (said || !bfo_params.say_protected || 0 != my_rank() || !peer->failover || 2 > __builtin_popcount(peer->send_mask)) {
        return;
    }
    said = true;
    snprintf(line, sizeof(line), "bfo %s: failover is in force; rank 0 on %s reaches rank %u on %s over rails %s\n", BFO_VERSION,
             OPAL_PROC_MY_HOSTNAME, rank_of(peer), host_of(peer, host), rails_text(peer, peer->send_mask, room, sizeof(room)));
    bfo_help_write(line);
}

void bfo_tell_connected(const bfo_peer_t *peer)
{
    char room[256];

    say_protected(peer);

    if (BFO_TELL_RAILS <= bfo_param(verbose)) {
        opal_output(0, "bfo: %u->%u rails %s%s", my_rank(), rank_of(peer), rails_text(peer, peer->send_mask, room, sizeof(room)),
                    peer->failover ? "" : ", no failover");
    }
}

void bfo_tell_slow(const bfo_peer_t *peer)
{
    const uint8_t slow = peer->stripe.slow;
    char room[256];

    if (BFO_TELL_RAILS <= bfo_param(verbose)) {
        opal_output(0, "bfo: %u->%u slow rails %s", my_rank(), rank_of(peer), 0 == slow ? "none" : rails_text(peer, slow, room, sizeof(room)));
    }
}

void bfo_tell_rail_lost(bfo_peer_t *peer, uint8_t r, const char *cause, bool told)
{
    bfo_rail_t *rail = &peer->rails[r];
    char room[256];

    bfo_figures_rail_lost(peer, r, without_port(cause, bfo_tell_port(rail->btl)), told);
    if (BFO_TELL_RAILS <= bfo_param(verbose)) {
        opal_output(0, "bfo: %u->%u rail %u generation %u (%s) lost: %s; left %s", my_rank(), rank_of(peer), rail->name, rail->gen,
                    bfo_tell_port(rail->btl), without_port(cause, bfo_tell_port(rail->btl)), rails_text(peer, peer->send_mask, room, sizeof(room)));
    }
    if (!told) {
        snprintf(rail->cause, sizeof(rail->cause), "%s", without_port(cause, bfo_tell_port(rail->btl)));
        (void) __atomic_fetch_or(&peer->untold, (uint8_t) (1u << r), __ATOMIC_SEQ_CST);
    }
}

/* The last loss of a port that was reported. */
typedef struct {
    const mca_btl_base_module_t *btl;
    uint32_t told; /* number of this loss */
} port_t;

static port_t *port_of(const mca_btl_base_module_t *btl)
{
    static port_t ports[64];
    unsigned i = 0;

    while (i < 63 && NULL != ports[i].btl && btl != ports[i].btl) {
        ++i;
    }
    ports[i].btl = btl;
    return &ports[i];
}

/* ---- warnings: a line each ------------------------------------------------------------------------------ */

static bool explains; /* rank 0 is on this node, therefore this node explains warnings; written at set-up */

void bfo_tell_processes(ompi_proc_t **procs, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        const opal_proc_t *proc = &procs[i]->super;

        explains = explains
                   || (OPAL_PROC_MY_NAME.jobid == proc->proc_name.jobid && 0 == proc->proc_name.vpid && OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags));
    }
}

/* Warnings held back by this process that could not be recorded in the node's file; atomic. */
static unsigned held_back;

/* Opens the file that has a byte for each warning that a process of this node held back; locked until it is closed. -1: no file. */
static int open_held_back(int flags)
{
    char path[PATH_MAX];
    int fd = bfo_help_node_file("held-back", path, sizeof(path)) ? open(path, flags | O_CLOEXEC, 0600) : -1;

    if (fd >= 0 && 0 != flock(fd, LOCK_EX)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void hold_back(void)
{
    const int fd = open_held_back(O_WRONLY | O_CREAT | O_APPEND);

    if (fd < 0 || 1 != write(fd, "+", 1)) {
        (void) __atomic_add_fetch(&held_back, 1, __ATOMIC_RELAXED);
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* Reports how many warnings this node has held back since the last such report. */
static void tell_held_back(void)
{
    unsigned n = __atomic_exchange_n(&held_back, 0, __ATOMIC_RELAXED);
    const int fd = open_held_back(O_RDWR);
    struct stat file;

    if (fd >= 0) {
        n += 0 == fstat(fd, &file) && 0 == ftruncate(fd, 0) ? (unsigned) file.st_size : 0;
        close(fd);
    }
    if (0 != n) {
        bfo_help_line("help-pml-bfo.txt", "held-back", OPAL_PROC_MY_HOSTNAME, n);
    }
}

/* Is this event new on this node, and may the node warn of one more of its kind in this minute? */
static bool may_warn(const char *kind, const char *event)
{
    const long long minute = (long long) time(NULL) / 60;
    const unsigned most = bfo_param(warnings_per_minute);
    char mark[320];

    snprintf(mark, sizeof(mark), "event %s", event);
    if (!bfo_help_is_first_on_node(bfo_help_mark(mark, true))) {
        return false;
    }
    for (unsigned i = 0; i < most; ++i) {
        snprintf(mark, sizeof(mark), "%s warning %u of minute %lld", kind, i, minute);
        if (bfo_help_is_first_on_node(bfo_help_mark(mark, true))) {
            tell_held_back();
            return true;
        }
    }
    hold_back();
    return false;
}

/* The rails of the mask whose local port is up now, because the event of a port that went down may not have arrived yet. */
static uint8_t working(const bfo_peer_t *peer, uint8_t rails)
{
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        const bfo_rail_t *rail = &peer->rails[r];

        if ((rails >> r & 1) && NULL != rail->ext && !bfo_ext_port_is_up(rail)) {
            rails &= (uint8_t) ~(1u << r);
        }
    }
    return rails;
}

/* `left`: mask of the rails to `peer` that are in use; without a peer it is not known which are left. */
static void say_rail_lost(const char *key, unsigned rail, const char *here, const char *to, const char *cause, const bfo_peer_t *peer, uint8_t left)
{
    char when[BFO_HELP_WHEN], rails[256];

    if (!may_warn("rail", key)) {
        return;
    }
    bfo_help_line("help-pml-bfo.txt", "rail-lost", bfo_help_when(when), OPAL_PROC_MY_HOSTNAME, rail, here, to, cause,
                  NULL == peer ? "not known yet" : rails_text(peer, working(peer, left), rails, sizeof(rails)));
    if (explains) {
        bfo_help_say("help-pml-bfo.txt", "rail-lost-meaning");
    }
}

/* Names both ports of a rail; without `peer` only the module's local one. For a BTL without port names it is the name of the BTL. */
static void name_ports(mca_btl_base_module_t *btl, const bfo_peer_t *peer, bfo_btl_ports_t *ports)
{
    snprintf(ports->here, sizeof(ports->here), "%s", bfo_tell_port(btl));
    ports->there[0] = '\0';
    ports->downs = 1;
    ports->is_up = false;
    (void) bfo_ext_name_ports(btl, peer, ports);
}

/* Each loss has a number, the same in all processes of the node: how often the port went down. If only the device reports the port
 * as down, the event has not arrived yet and will count one more. A later loss is reported only if it takes a rail. */
static void say_port_lost(mca_btl_base_module_t *btl, const char *cause, bool to_all, bool is_early)
{
    const char *name = bfo_tell_port(btl);
    port_t *port = port_of(btl);
    const bfo_peer_t *some = NULL;
    uint8_t rail = 0, left = 0;
    bool takes = is_early || 0 == port->told;
    bfo_btl_ports_t ports;
    char key[256];

    BFO_FOREACH_PEER(peer)
    {
        for (uint8_t r = 0; peer->ready && r < peer->n_rails; ++r) {
            if (btl == peer->rails[r].btl) {
                takes |= ((peer->up_mask | __atomic_fetch_and(&peer->untold, (uint8_t) ~(1u << r), __ATOMIC_SEQ_CST)) >> r) & 1;
                rail = peer->rails[r].name;
                if (NULL == some || 0 != (peer->send_mask & ~(1u << r))) {
                    some = peer;
                    left = (uint8_t) (peer->send_mask & ~(1u << r));
                }
            }
        }
    }
    name_ports(btl, NULL, &ports);
    ports.downs += is_early && ports.is_up;
    if (takes && ports.downs > port->told) {
        port->told = ports.downs;
        snprintf(key, sizeof(key), "port %s loss %u", name, ports.downs);
        say_rail_lost(key, rail, ports.here, to_all ? "all peers" : "all peers that another rail reaches", without_port(cause, name), some, left);
    }
}

void bfo_tell_port_lost(mca_btl_base_module_t *btl, const char *cause, bool to_all)
{
    bfo_figures_port_down(btl, without_port(cause, bfo_tell_port(btl)));
    say_port_lost(btl, cause, to_all, false);
}

/* One line per port, host at the other end and generation, however many processes notice. */
static void tell_rail(const bfo_peer_t *peer, uint8_t r)
{
    const bfo_rail_t *rail = &peer->rails[r];
    const char *port = bfo_tell_port(rail->btl);
    bfo_btl_ports_t ports;
    char key[256], to[320], host[BFO_OMPI_HOST_ROOM];

    if (NULL != rail->ext && !bfo_ext_port_is_up(rail)) {
        say_port_lost(rail->btl, "the port is down", false, true); /* its event may be on its way */
        return;
    }
    snprintf(key, sizeof(key), "rail %s to %s generation %u", port, host_of(peer, host), rail->gen);
    name_ports(rail->btl, peer, &ports);
    snprintf(to, sizeof(to), "%s%s%s, noticed by rank %u talking to rank %u", ports.there, '\0' == ports.there[0] ? "" : " on ", host_of(peer, host),
             my_rank(), rank_of(peer));
    say_rail_lost(key, rail->name, ports.here, to, rail->cause, peer, peer->send_mask);
}

static void tell_rails_of(bfo_peer_t *peer)
{
    const uint8_t untold = __atomic_exchange_n(&peer->untold, 0, __ATOMIC_SEQ_CST);

    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        if (untold >> r & 1) {
            tell_rail(peer, r);
        }
    }
}

void bfo_tell_rails(bfo_peer_t *only)
{
    if (NULL != only) {
        tell_rails_of(only);
        return;
    }
    BFO_FOREACH_PEER(peer)
    {
        tell_rails_of(peer);
    }
}

void bfo_tell_rail_trusted(const bfo_peer_t *peer, uint8_t r, const char *why)
{
    const bfo_rail_t *rail = &peer->rails[r];

    if (BFO_TELL_RAILS <= bfo_param(verbose)) {
        opal_output(0, "bfo: %u->%u rail %u generation %u (%s) carries short messages again: %s", my_rank(), rank_of(peer), rail->name, rail->gen,
                    bfo_tell_port(rail->btl), why);
    }
}

/* One line per port and generation, however many processes and peers use the port again. */
void bfo_tell_rail_back(bfo_peer_t *peer, uint8_t r)
{
    const bfo_rail_t *rail = &peer->rails[r];
    char key[256], when[BFO_HELP_WHEN], to[320], rails[256], host[BFO_OMPI_HOST_ROOM];
    bfo_btl_ports_t ports;

    bfo_figures_rail_back(peer, r);
    rails_text(peer, peer->send_mask, rails, sizeof(rails));
    if (BFO_TELL_RAILS <= bfo_param(verbose)) {
        opal_output(0, "bfo: %u->%u rail %u generation %u (%s) is back; in use %s", my_rank(), rank_of(peer), rail->name, rail->gen,
                    bfo_tell_port(rail->btl), rails);
    }
    name_ports(rail->btl, peer, &ports);
    snprintf(key, sizeof(key), "port %s back after loss %u, generation %u", bfo_tell_port(rail->btl), ports.downs, rail->gen);
    if (may_warn("return", key)) {
        snprintf(to, sizeof(to), "%s%s%s", ports.there, '\0' == ports.there[0] ? "" : " on ", host_of(peer, host));
        bfo_help_line("help-pml-bfo.txt", "rail-back", bfo_help_when(when), OPAL_PROC_MY_HOSTNAME, rail->name, ports.here, to, rails);
    }
}

/* One line per wait for all processes of the other host. No line for a wait that only lasts until a returning rail is proved, which is short. */
void bfo_tell_peer_waits(bfo_peer_t *peer)
{
    char key[256], when[BFO_HELP_WHEN], limit[48] = "without end", host[BFO_OMPI_HOST_ROOM];
    const int timeout = bfo_param(last_rail_timeout);
    unsigned generations = 0;

    if (0 < timeout) {
        snprintf(limit, sizeof(limit), "%d s", timeout);
    } else if (0 == timeout) {
        snprintf(limit, sizeof(limit), "for the rail that is coming back");
    }
    if (BFO_TELL_RAILS <= bfo_param(verbose)) {
        opal_output(0, "bfo: %u->%u no rail is left: this process waits for a rail, %s", my_rank(), rank_of(peer), limit);
    }
    bfo_figures_waits(peer, true);
    bfo_tell_rails(peer);
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        generations += peer->rails[r].gen;
    }
    snprintf(key, sizeof(key), "wait for %s after generations %u", host_of(peer, host), generations);
    if (0 != timeout && may_warn("wait", key)) {
        bfo_help_line("help-pml-bfo.txt", "peer-waits", bfo_help_when(when), OPAL_PROC_MY_HOSTNAME, my_rank(), rank_of(peer), host_of(peer, host),
                      limit);
    }
}

void bfo_tell_foreign_put(const bfo_peer_t *peer)
{
    if (BFO_TELL_RAILS <= bfo_param(verbose)) {
        opal_output(0, "bfo: %u<-%u asks for data over a rail that this process does not use: messages to it are copied from now on", my_rank(),
                    rank_of(peer));
    }
}

void bfo_tell_peer_lost(bfo_peer_t *peer, const char *cause)
{
    const char *name = OPAL_NAME_PRINT(peer->proc->super.proc_name);
    char key[256], when[BFO_HELP_WHEN], host[BFO_OMPI_HOST_ROOM];

    bfo_figures_peer_lost(peer, cause);
    if (BFO_OMPI_ULFM_IS_ON) { /* its rails were lost because the process failed */
        __atomic_store_n(&peer->untold, 0, __ATOMIC_RELAXED);
    } else {
        bfo_tell_rails(peer);
    }
    snprintf(key, sizeof(key), "peer %s", name);
    if (!may_warn("peer", key)) {
        return;
    }
    bfo_help_line("help-pml-bfo.txt", BFO_OMPI_ULFM_IS_ON ? "process-failed" : "peer-lost", bfo_help_when(when), OPAL_PROC_MY_HOSTNAME, my_rank(),
                  rank_of(peer), host_of(peer, host), name, cause);
    if (explains && !BFO_OMPI_ULFM_IS_ON) {
        bfo_help_say("help-pml-bfo.txt", "peer-lost-meaning");
    }
}

void bfo_tell_flush_waits(const bfo_peer_t *peer, int seconds)
{
    char whom[128] = "not known", host[BFO_OMPI_HOST_ROOM];

    if (NULL != peer) {
        snprintf(whom, sizeof(whom), "rank %u on %s", rank_of(peer), host_of(peer, host));
    }
    bfo_help_say("help-pml-bfo.txt", "flush-waits", OPAL_PROC_MY_HOSTNAME, my_rank(), whom, seconds);
}

/* ---- steps and messages -------------------------------------------------------------------------------- */

void bfo_tell_send_step(void *request, const char *row, uint32_t from, uint32_t to, unsigned event)
{
    const bfo_send_t *req = request;

    if (BFO_TELL_STEPS <= bfo_param(verbose)) {
        opal_output(0, "bfo: %u->%u send req 0x%x.%x seq %u epoch %u: %s -> %s on %s (%s), %zu of %zu bytes, %d events", my_rank(),
                    rank_of(req->lane->peer), req->name.gen, req->name.slot, req->match_seq, bfo_se_epoch(to),
                    bfo_send_state_name(bfo_se_state(from)), bfo_send_state_name(bfo_se_state(to)), bfo_send_event_name(event), row, req->bytes,
                    req->req_send.req_bytes_packed, req->m.events);
    }
}

void bfo_tell_recv_step(void *request, const char *row, uint32_t from, uint32_t to, unsigned event)
{
    const bfo_recv_t *req = request;

    if (BFO_TELL_STEPS <= bfo_param(verbose) && NULL == req) {
        opal_output(0, "bfo: %u recv without a request: %s -> %s on %s (%s)", my_rank(), bfo_recv_state_name(bfo_se_state(from)),
                    bfo_recv_state_name(bfo_se_state(to)), bfo_recv_event_name(event), row);
    } else if (BFO_TELL_STEPS <= bfo_param(verbose)) {
        opal_output(0, "bfo: %u<-%u recv req 0x%x.%x seq %u epoch %u: %s -> %s on %s (%s), %zu of %zu bytes, %d events", my_rank(),
                    NULL == req->lane ? 0 : rank_of(req->lane->peer), req->name.gen, req->name.slot, req->match_seq, bfo_se_epoch(to),
                    bfo_recv_state_name(bfo_se_state(from)), bfo_recv_state_name(bfo_se_state(to)), bfo_recv_event_name(event), row, req->bytes,
                    req->length, req->m.events);
    }
}

#if PML_BFO
void bfo_tell_resent(const bfo_peer_t *peer, const char *what)
{
    bfo_figures_resent(peer);
    if (BFO_TELL_MESSAGES <= bfo_param(verbose)) {
        opal_output(0, "bfo: %u->%u %s sent again", my_rank(), rank_of(peer), what);
    }
}
#endif

void bfo_stat_drop(bfo_stat_t why)
{
    bfo_stat_add(why, 1);
    bfo_stat_add(BFO_STAT_DROPPED, 1);
    if (BFO_TELL_MESSAGES <= bfo_param(verbose)) {
        opal_output(0, "bfo: %u message dropped: %s", my_rank(), bfo_stat_name(why));
    }
}

/* ---- the end -------------------------------------------------------------------------------------------- */

void bfo_tell_counters(void)
{
    char text[1024] = "";
    size_t at = 0;

    tell_held_back();
    if (!bfo_param(counters)) {
        return;
    }
    for (int i = 0; i < BFO_STAT_ERROR_AT && at < sizeof(text); ++i) {
        if (0 != bfo_local_stat((bfo_stat_t) i)) {
            at += (size_t) snprintf(text + at, sizeof(text) - at, "%s %s %llu", 0 == at ? "" : ",", bfo_stat_name(i),
                                    (unsigned long long) bfo_local_stat((bfo_stat_t) i));
        }
    }
    opal_output(0, "bfo: rank %u counters:%s", my_rank(), 0 == at ? " all 0" : text);
}
