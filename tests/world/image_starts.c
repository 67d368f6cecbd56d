/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Where numbers begin that wrap or end only in long jobs: sequence numbers, generations of identifiers and of rails, epochs, numbers of reports
 * (RAILS), of waits (LIFE), of questions of a probation and of rounds of an inquiry. The linker puts these functions before those of the PML and the
 * BTL (world.sh). All processes of a job begin with the same numbers.
 */
#include "image_checks.h"
#include "image_ompi.h"

#include "formats/btl_openib_inquiry.h"
#include "formats/pml_bfo_ids.h"
#include "formats/pml_bfo_seqmap.h"
#include "rail/btl_openib_probation.h"
#include "rails/pml_bfo_post.h"
#include "rails/pml_bfo_rails.h"
#include "tables/btl_openib_rail_fsm.h"

enum { NAMES = 4 };

/* A value of the plan; days and large jobs begin with the usual numbers. */
static uint32_t start_of(const char *name)
{
    return 0 != world_plan_of("day") || 0 != world_plan_of("scale") ? 0 : world_plan_of(name);
}

/* ---- sequence numbers of a lane ------------------------------------------------------------------------------- */

const bfo_seqs_t *__real_bfo_seqmap_find(const bfo_seqmap_t *map, uint32_t ctx);

/* Who looks for the counters of a context id for the first time finds these. */
const bfo_seqs_t *__wrap_bfo_seqmap_find(const bfo_seqmap_t *map, uint32_t ctx);
const bfo_seqs_t *__wrap_bfo_seqmap_find(const bfo_seqmap_t *map, uint32_t ctx)
{
    const uint32_t first = 0 - start_of("sequence");

    if (0 != first && NULL == __real_bfo_seqmap_find(map, ctx)) {
        must_be(0 == bfo_seqmap_store((bfo_seqmap_t *) map, ctx, first, first), "keep counters");
    }
    return __real_bfo_seqmap_find(map, ctx);
}

/* ---- generations of identifiers ----------------------------------------------------------------------------------- */

int __real_bfo_ids_add(bfo_ids_t *table, bfo_name_t *name);

int __wrap_bfo_ids_add(bfo_ids_t *table, bfo_name_t *name);
int __wrap_bfo_ids_add(bfo_ids_t *table, bfo_name_t *name)
{
    const int rc = __real_bfo_ids_add(table, name);

    if (0 == rc && 0 != start_of("names")) {
        name->gen = UINT32_MAX - name->slot % NAMES;
    }
    return rc;
}

/* ---- generations of a rail -------------------------------------------------------------------------------------------- */

ofo_fsm_event_t __real_ofo_fsm_classify(const ofo_fsm_t *fsm, const ofo_ctl_t *message, const ofo_fsm_facts_t *facts);
bool __real_ofo_fsm_step(ofo_fsm_t *fsm, ofo_fsm_event_t event, const ofo_ctl_t *message);

/* The first generation, which differs from all others, is 0; the rail comes back with a high one. */
static void skip_generations(ofo_fsm_t *fsm)
{
    const uint32_t second = start_of("generation");

    if (0 != second && OFO_ST_DOWN == fsm->state && 0 == fsm->gen) {
        fsm->gen = (uint16_t) (second - 1);
    }
}

ofo_fsm_event_t __wrap_ofo_fsm_classify(const ofo_fsm_t *fsm, const ofo_ctl_t *message, const ofo_fsm_facts_t *facts);
ofo_fsm_event_t __wrap_ofo_fsm_classify(const ofo_fsm_t *fsm, const ofo_ctl_t *message, const ofo_fsm_facts_t *facts)
{
    if (OFO_CTL_REQ == message->type && 0 != message->gen && OFO_GEN_NONE == fsm->check_gen) {
        skip_generations((ofo_fsm_t *) fsm);
    }
    return __real_ofo_fsm_classify(fsm, message, facts);
}

bool __wrap_ofo_fsm_step(ofo_fsm_t *fsm, ofo_fsm_event_t event, const ofo_ctl_t *message);
bool __wrap_ofo_fsm_step(ofo_fsm_t *fsm, ofo_fsm_event_t event, const ofo_ctl_t *message)
{
    bool has_row;

    if (OFO_EV_RESTORED == event) {
        skip_generations(fsm);
    }
    has_row = __real_ofo_fsm_step(fsm, event, message);
    image_check_rail(fsm);
    return has_row;
}

/* ---- reports and waits -------------------------------------------------------------------------------------------------------- */

extern uint32_t n_asked; /* of pml_bfo_witness.c; world.sh makes it known here */
bfo_peer_t *__real_bfo_peer_get(ompi_proc_t *proc);
int __real_bfo_ctl_send(bfo_peer_t *peer, bfo_path_t path, const void *header, size_t length, mca_btl_base_completion_fn_t done, void *context);

/* A process that neither has reported to its peer nor has heard a report expects these numbers from now on. */
static void start_reports(bfo_peer_t *peer, uint32_t first)
{
    if (0 == peer->rails_number && 0 == peer->rails_heard) {
        peer->rails_number = peer->rails_heard = first;
    }
}

bfo_peer_t *__wrap_bfo_peer_get(ompi_proc_t *proc);
bfo_peer_t *__wrap_bfo_peer_get(ompi_proc_t *proc)
{
    static bool has_begun;
    static uint32_t seen;
    bfo_peer_t *peer = __real_bfo_peer_get(proc);
    const uint32_t first = 0 - start_of("numbers");

    if (!has_begun) {
        has_begun = true;
        n_asked = seen = 0 != first ? UINT32_MAX : 0;
    }
    if (n_asked != seen) {
        world_trace("wait number %u", n_asked);
        seen = n_asked;
    }
    if (NULL != peer) {
        start_reports(peer, first);
    }
    return peer;
}

int __wrap_bfo_ctl_send(bfo_peer_t *peer, bfo_path_t path, const void *header, size_t length, mca_btl_base_completion_fn_t done, void *context);
int __wrap_bfo_ctl_send(bfo_peer_t *peer, bfo_path_t path, const void *header, size_t length, mca_btl_base_completion_fn_t done, void *context)
{
    bfo_hdr_t *h = (bfo_hdr_t *) header;

    if (BFO_MSG_RAILS == h->common.type) {
        if (1 == peer->rails_number && 0 == peer->rails_heard) { /* bfo_peer_get() was called where the linker does not see it */
            peer->rails_number = 0;
            start_reports(peer, 0 - start_of("numbers"));
            h->rails.number = ++peer->rails_number;
        }
        world_trace("RAILS number %u, heard %u", h->rails.number, peer->rails_heard);
    }
    image_check_control(peer, h);
    return __real_bfo_ctl_send(peer, path, header, length, done, context);
}

/* ---- probation and inquiry ------------------------------------------------------------------------------------------------------ */

void __real_ofo_probation_follow(ofo_endpoint_t *ep);
void __real_ofo_probation_answer(ofo_endpoint_t *ep, const ofo_ctl_t *answer);
void __real_ofo_inquiry_begin(ofo_inquiry_t *in, uint64_t now, unsigned short_ms, unsigned round_ms);
void __real_ofo_inquiry_follow(ofo_inquiry_t *in, uint64_t now, unsigned pause_ms);
void __real_ofo_inquiry_answer(ofo_inquiry_t *in, uint64_t now, uint16_t number, bool over_itself);

void __wrap_ofo_probation_follow(ofo_endpoint_t *ep);
void __wrap_ofo_probation_follow(ofo_endpoint_t *ep)
{
    if (0 == ep->probation.number) {
        ep->probation.number = (uint16_t) (0 - start_of("numbers"));
    }
    __real_ofo_probation_follow(ep);
}

void __wrap_ofo_probation_answer(ofo_endpoint_t *ep, const ofo_ctl_t *answer);
void __wrap_ofo_probation_answer(ofo_endpoint_t *ep, const ofo_ctl_t *answer)
{
    world_trace("answer %u to question %u of a probation", answer->number, ep->probation.number);
    __real_ofo_probation_answer(ep, answer);
}

static void start_rounds(ofo_inquiry_t *in)
{
    if (0 == in->number) {
        in->first = in->number = (uint16_t) (0 - start_of("numbers"));
    }
}

void __wrap_ofo_inquiry_begin(ofo_inquiry_t *in, uint64_t now, unsigned short_ms, unsigned round_ms);
void __wrap_ofo_inquiry_begin(ofo_inquiry_t *in, uint64_t now, unsigned short_ms, unsigned round_ms)
{
    start_rounds(in);
    __real_ofo_inquiry_begin(in, now, short_ms, round_ms);
}

void __wrap_ofo_inquiry_follow(ofo_inquiry_t *in, uint64_t now, unsigned pause_ms);
void __wrap_ofo_inquiry_follow(ofo_inquiry_t *in, uint64_t now, unsigned pause_ms)
{
    start_rounds(in);
    __real_ofo_inquiry_follow(in, now, pause_ms);
}

void __wrap_ofo_inquiry_answer(ofo_inquiry_t *in, uint64_t now, uint16_t number, bool over_itself);
void __wrap_ofo_inquiry_answer(ofo_inquiry_t *in, uint64_t now, uint16_t number, bool over_itself)
{
    const uint16_t first = in->first, last = in->number;
    const bool has_run = 0 != in->until, has_counted = in->witness_answered;

    __real_ofo_inquiry_answer(in, now, number, over_itself);
    world_trace("answer %u to an inquiry whose rounds are %u to %u%s", number, first, last,
                has_run && (0 == in->until || has_counted != in->witness_answered) ? ", which counts" : "");
}

/* ---- epochs ---------------------------------------------------------------------------------------------------------------- */

/* They begin with 0 and do not wrap: a restart after the last one declares the peer. image_epochs.h makes this the last one. */
uint32_t image_epoch_last(void)
{
    const uint32_t last = start_of("epochs");

    return 0 != last ? last : UINT16_MAX;
}
