/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * One rail with its actions, for the programs that test them: queue pairs, the wire, letters, the rest of the BTL and the clock are played
 * here. Included once by each program.
 */
#ifndef RAIL_PLAYED_H
#define RAIL_PLAYED_H

#include "bfo_config.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"
#include "types/btl_openib_ctl.h"
#include "device/btl_openib_device.h"
#include "rail/btl_openib_last_wqe.h"
#include "types/btl_openib_log.h"
#include "rail/btl_openib_lost.h"
#include "types/btl_openib_mail.h"
#include "rail/btl_openib_partner.h"
#include "rail/btl_openib_probation.h"
#include "rail/btl_openib_probe.h"
#include "qp/btl_openib_qpset.h"
#include "rail/btl_openib_rail.h"
#include "rail/btl_openib_rail_actions.h"
#include "tables/btl_openib_rail_fsm.h"
#include "rail/btl_openib_spared.h"
#include "qp/btl_openib_stash.h"
#include "types/btl_openib_timers.h"
#include "rail/btl_openib_turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RAILS = 2, HASH = 77, CONNECT_S = 2, T_LOSS = 300000, TYPES = OFO_CTL_ANSWER + 1, LETTERS = OFO_MAIL_PORT_UP + 1 };

ofo_component_t mca_btl_openib_component;

static ofo_device_t device;
static ofo_module_t module[RAILS];
static ofo_peer_t peer;
static ofo_endpoint_t ep[RAILS];
static ofo_endpoint_t *const rail = &ep[0];
static struct ibv_qp qp;
static ofo_cpc_t cpc;
static uint64_t now;

/* ---- what the rooms call ------------------------------------------------------------------------ */

static unsigned sent[TYPES], letters[LETTERS]; /* counted by type and kind */
static ofo_ctl_t last[TYPES];                  /* the last message of each type */
static ofo_ctl_t last_letter;                  /* the last message for another rail to send */
static uint16_t letter_gen[LETTERS];
static unsigned buried, declared, doubted, probes, forgotten, renewed, wants, asks, refusals, late;
static bool no_set, no_join, is_spared, is_last, is_gone, is_silent, no_fit, is_full, is_dead;
static ofo_counts_t carried[2]; /* what the set that ends has sent and received */

uint64_t ofo_now_ms(void)
{
    return now;
}
void ofo_ctl_send(ofo_endpoint_t *of, ofo_ctl_t *ctl)
{
    ++sent[ctl->type];
    last[ctl->type] = *ctl;
}
bool ofo_ctl_has_room(ofo_module_t *of)
{
    return !is_full;
}
void ofo_partner_send(ofo_endpoint_t *of, ofo_ctl_t *ctl)
{
    ofo_ctl_send(of, ctl);
}
void ofo_tell_service(ofo_endpoint_t *of, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps)
{
    assert_ptr_equal(of, &ep[1]);
    ++letters[kind];
    if (NULL != ctl) {
        last_letter = *ctl;
    }
}
void ofo_tell_progress(ofo_module_t *to, ofo_mail_kind_t kind, ofo_endpoint_t *of, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps)
{
    ++letters[kind];
    letter_gen[kind] = gen;
    if (OFO_MAIL_DRAIN == kind) {
        free(qps);
    }
}
ofo_qpset_t *ofo_qpset_create(ofo_endpoint_t *of, uint16_t gen)
{
    ofo_qpset_t *set = no_set ? NULL : calloc(1, sizeof(*set) + sizeof(set->qp[0]));

    if (NULL != set) {
        set->ep = of;
        set->gen = gen;
        set->nqp = 1;
        set->qp[0].qp = &qp;
    }
    return set;
}
void ofo_qpset_bury(ofo_qpset_t *qps)
{
    ++buried;
    free(qps);
}
void ofo_qpset_counts(const ofo_qpset_t *qps, ofo_counts_t *out, ofo_counts_t *in)
{
    *out = carried[0];
    *in = carried[1];
}
int ofo_qpset_prove(ofo_qpset_t *qps)
{
    return 0;
}
void ofo_qpset_error(ofo_qpset_t *qps) {}
bool ofo_qpset_is_shared(const ofo_qpset_t *qps)
{
    return false;
}
bool ofo_device_lived_after(ofo_module_t *of, uint64_t since)
{
    assert_int_equal(since, now);
    return !is_dead;
}
bool ofo_poll_and_keep(ofo_module_t *of)
{
    return true;
}
bool ofo_port_is_gone(const ofo_module_t *of)
{
    return is_gone;
}
bool ofo_rail_is_last(const ofo_endpoint_t *of)
{
    return is_last;
}
bool ofo_rail_is_spared(const ofo_endpoint_t *of)
{
    return is_spared;
}
bool ofo_peer_declare(ofo_peer_t *of, const char *why, bool tell_pml)
{
    ++declared;
    OFO_STORE(of->declared, true);
    return true;
}
void ofo_peer_doubt_pair(const ofo_endpoint_t *of)
{
    ++doubted;
}
bool ofo_partner_fits(const ofo_endpoint_t *of, const ofo_ctl_t *ctl)
{
    return !no_fit;
}
bool ofo_probe_timer(ofo_endpoint_t *of, uint64_t at)
{
    return is_silent;
}
void ofo_probe_begin(ofo_endpoint_t *of, uint16_t gen)
{
    ++probes;
}
void ofo_probe_message(ofo_endpoint_t *of, const ofo_ctl_t *ctl)
{
    ++probes;
}
void ofo_probation_answer(ofo_endpoint_t *of, const ofo_ctl_t *ctl)
{
    ++wants;
}
void ofo_turn_ask(ofo_endpoint_t *of, const ofo_ctl_t *req)
{
    ++asks;
}
void ofo_turn_want(ofo_endpoint_t *of)
{
    ++wants;
}
void ofo_ud_forget(ofo_endpoint_t *of)
{
    ++forgotten;
}
void ofo_flow_label_renew(ofo_endpoint_t *of)
{
    ++renewed;
}
void ofo_async_last_wqe_late(ofo_endpoint_t *of, uint64_t at)
{
    ++late;
}
uint8_t ofo_mtu_own(const ofo_module_t *of)
{
    return IBV_MTU_1024;
}
uint8_t ofo_reads_answered(const ofo_module_t *of)
{
    return 4;
}
void ofo_async_await_last_wqe(ofo_endpoint_t *of) {}
void ofo_log(unsigned level, const char *format, ...) {}
void ofo_partner_learn(ofo_endpoint_t *of, const ofo_ctl_t *ctl) {}
void ofo_probation_follow(ofo_endpoint_t *of) {}
void ofo_probation_timer(ofo_endpoint_t *of, uint64_t at) {}
void ofo_timers_add(ofo_endpoint_t *of) {}

/* ---- set-up ------------------------------------------------------------------------------------- */

static void rail_restored(mca_btl_base_module_t *btl, opal_proc_t *proc, uint8_t name, uint16_t gen) {}
static void failed_frag(mca_btl_base_module_t *btl, ofo_endpoint_t *of, mca_btl_base_tag_t tag, const void *data, size_t length, int status) {}

static int join(ofo_qpset_t *qps, const ofo_ctl_t *remote)
{
    return no_join ? -1 : 0;
}

static inline void refuse(ofo_endpoint_t *of, uint16_t gen)
{
    ++refusals;
}

static int begin(void **state)
{
    memset(module, 0, sizeof(module));
    memset(ep, 0, sizeof(ep));
    memset(sent, 0, sizeof(sent));
    memset(letters, 0, sizeof(letters));
    memset(carried, 0, sizeof(carried));
    peer = (ofo_peer_t){.rail_count = RAILS, .rail_hash = HASH, .own_is_higher = true};
    cpc = (ofo_cpc_t){.type = OFO_CPC_UD, .join = join};
    OFO.cpc = &cpc;
    OFO.module_count = RAILS;
    OFO.closing = false;
    OFO.params.connect_timeout = CONNECT_S;
    OFO.params.rejoin_after = 1000;
    OFO.params.rejoin_half_life = 0;
    OFO.params.ctl_rate = 1000000;
    for (unsigned r = 0; r < RAILS; ++r) {
        module[r].device = &device;
        module[r].transport = &ofo_transport_infiniband;
        module[r].port_up = true;
        module[r].port_index = r;
        module[r].ext.rail_restored = rail_restored;
        module[r].ext.failed_frag = failed_frag;
        ep[r].module = &module[r];
        ep[r].peer = &peer;
        ep[r].rail = (uint8_t) r;
        peer.rail[r] = &ep[r];
        ofo_rail_init(&ep[r]);
    }
    buried = declared = doubted = probes = forgotten = renewed = wants = asks = refusals = late = 0;
    no_set = no_join = is_spared = is_last = is_gone = is_silent = no_fit = is_full = is_dead = false;
    now = 100000;
    return 0;
}

static int end(void **state)
{
    free(rail->building);
    return 0;
}

/* ---- steps -------------------------------------------------------------------------------------- */

static ofo_ctl_t message_of(ofo_ctl_type_t type, uint16_t gen)
{
    return (ofo_ctl_t){.type = (uint8_t) type, .gen = gen, .nqp = 1, .rail_hash = HASH};
}

static inline void comes(ofo_ctl_type_t type, uint16_t gen)
{
    const ofo_ctl_t ctl = message_of(type, gen);

    ofo_rail_message(rail, &ctl);
}

static inline void request_comes(uint16_t gen)
{
    const ofo_ctl_t req = message_of(OFO_CTL_REQ, gen);

    ofo_rail_message(rail, &req);
    if (0 < asks) {
        --asks;
        ofo_rail_asked(rail, &req);
    }
}

static inline void is_in(ofo_fsm_state_t state, uint16_t gen)
{
    assert_string_equal(ofo_fsm_state_name(rail->fsm.state), ofo_fsm_state_name(state));
    assert_int_equal(rail->fsm.gen, gen);
}

static inline void connects(void)
{
    ofo_rail_event(rail, OFO_EV_POST, NULL);
    comes(OFO_CTL_REP, rail->fsm.gen);
    ofo_rail_event(rail, OFO_EV_PROVED, NULL);
    is_in(OFO_ST_UP, rail->fsm.gen);
    free(rail->building); /* progress has it */
    rail->building = NULL;
}

/* The fence of the set that progress had is done, or was given up. */
static inline void fence_ends(bool is_lossy)
{
    ofo_qpset_t *set = ofo_qpset_create(rail, rail->fsm.gen);

    set->ended_at = now;
    set->drain.own = is_lossy ? OFO_DRAIN_LOSSY : OFO_DRAIN_FENCED;
    ofo_rail_fence_done(rail, rail->fsm.gen, set);
}

static inline void dack_comes(uint16_t gen, bool is_known, uint64_t n_ok)
{
    ofo_ctl_t dack = message_of(OFO_CTL_DACK, gen);

    dack.flags = is_known ? OFO_DACK_VALID : 0;
    dack.counts.n_ok = n_ok;
    ofo_rail_message(rail, &dack);
}

static inline void goes_down(void)
{
    comes(OFO_CTL_DOWN, rail->fsm.gen);
    fence_ends(false);
    dack_comes(rail->fsm.gen, true, 0);
    is_in(OFO_ST_DOWN, rail->fsm.gen);
}

static inline void time_passes(unsigned ms)
{
    now += ms;
    ofo_rail_timers(rail, now);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

#endif /* RAIL_PLAYED_H */
