/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Where numbers begin that wrap or end only in long jobs: sequence numbers, generations of identifiers and of rails, epochs. The linker puts these
 * functions before those of the PML and the BTL (world.sh). All processes of a job begin with the same numbers.
 */
#include "image_ompi.h"

#include "formats/pml_bfo_ids.h"
#include "formats/pml_bfo_seqmap.h"
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
    if (OFO_EV_RESTORED == event) {
        skip_generations(fsm);
    }
    return __real_ofo_fsm_step(fsm, event, message);
}

/* ---- epochs ---------------------------------------------------------------------------------------------------------------- */

/* They begin with 0 and do not wrap: a restart after the last one declares the peer. image_epochs.h makes this the last one. */
uint32_t image_epoch_last(void)
{
    const uint32_t last = start_of("epochs");

    return 0 != last ? last : UINT16_MAX;
}
