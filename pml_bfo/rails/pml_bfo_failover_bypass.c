/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Communication of this job that bypasses the PML and that the PML therefore does not protect: collectives of hcoll, windows of osc/ucx
 * or osc/rdma. Reported once, at the first contact over rails that can fail. DESIGN.txt section 14.6.
 */
#include "types/pml_bfo.h"

#include "bfo_help.h"
#include "rails/pml_bfo_failover_bypass.h"
#include "types/pml_bfo_params.h"

#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/osc/base/base.h"
#include "opal/mca/base/mca_base_component_repository.h"

#if PML_BFO
/* When processes are added, the list no longer has components that cannot run here or were excluded. */
static bool is_available(const mca_base_framework_t *framework, const char *name)
{
    mca_base_component_list_item_t *item;

    if (0 == framework->framework_refcnt) {
        return false;
    }
    OPAL_LIST_FOREACH(item, &framework->framework_components, mca_base_component_list_item_t)
    {
        if (0 == strcmp(name, item->cli_component->mca_component_name)) {
            return true;
        }
    }
    return false;
}

/* Would osc/rdma use a BTL of these rails? Where osc/pt2pt exists, only a BTL with atomic operations. */
static bool suits_osc_rdma(const bfo_peer_t *peer)
{
    if (!BFO_OMPI_HAS_OSC_PT2PT) {
        return true;
    }
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        if (peer->rails[r].btl->btl_flags & (MCA_BTL_FLAGS_ATOMIC_OPS | MCA_BTL_FLAGS_ATOMIC_FOPS)) {
            return true;
        }
    }
    return false;
}

static void add(char *list, size_t size, const char *name)
{
    const size_t length = strlen(list);

    snprintf(list + length, size - length, "%s%s", 0 == length ? "" : ", ", name);
}

void bfo_failover_announce_bypass(const bfo_peer_t *peer)
{
    static bool looked;
    char list[128] = "";

    if (looked || !bfo_params.warn_no_failover || !peer->failover) {
        return;
    }
    looked = true;
    if (is_available(&ompi_coll_base_framework, "hcoll")) {
        add(list, sizeof(list), "coll/hcoll");
    }
    if (is_available(&ompi_osc_base_framework, "rdma") && suits_osc_rdma(peer)) {
        add(list, sizeof(list), "osc/rdma");
    }
    if (is_available(&ompi_osc_base_framework, "ucx")) {
        add(list, sizeof(list), "osc/ucx");
    }
    if ('\0' != list[0]) {
        bfo_help_say("help-pml-bfo.txt", "bypass", OPAL_PROC_MY_HOSTNAME, list);
    }
}
#else
void bfo_failover_announce_bypass(const bfo_peer_t *peer) {}
#endif
