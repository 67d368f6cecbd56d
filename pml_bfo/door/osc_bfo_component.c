/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A one-sided component that makes no window. When a window is made, Open MPI asks it like all other components. Under the PML bfo
 * Open MPI chooses it where only osc/pt2pt could use the PML and osc/pt2pt does not run. It prints why, and the way out; the call
 * then fails as it would without this component. DESIGN.txt section 14.6.
 */
#include "bfo_config.h"

#include "types/pml_bfo_types.h"

#include "bfo_help.h"

#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/runtime/mpiruntime.h"
#include "ompi/win/win.h"

/* osc/pt2pt has priority 10; osc/rdma, osc/ucx and osc/sm, which do run, have higher ones. */
enum { PRIORITY_BEFORE_PT2PT = 11, PRIORITY_LAST = 1 };

__attribute__((visibility("default"))) extern ompi_osc_base_component_t mca_osc_bfo_component;

static int register_params(void)
{
    return bfo_ompi_is_the_one_built_for() ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE; /* the PML reports it */
}

static int init(bool progress_threads, bool mpi_threads)
{
    return OMPI_SUCCESS;
}

static int finalize(void)
{
    return OMPI_SUCCESS;
}

static int query(struct ompi_win_t *win, void **base, size_t size, bfo_ompi_displacement_t disp_unit, struct ompi_communicator_t *comm,
                 struct opal_info_t *info, int flavor)
{
    if (0 != strcmp("bfo", mca_pml_base_selected_component.pmlm_version.mca_component_name) || MPI_WIN_FLAVOR_SHARED == flavor) {
        return -1;
    }
    return ompi_mpi_thread_multiple ? PRIORITY_BEFORE_PT2PT : PRIORITY_LAST;
}

static int refuse(struct ompi_win_t *win, void **base, size_t size, bfo_ompi_displacement_t disp_unit, struct ompi_communicator_t *comm,
                  struct opal_info_t *info, int flavor, int *model)
{
    bfo_help_say("help-pml-bfo.txt", BFO_OMPI_HAS_OSC_PT2PT ? "no-windows" : "no-windows-here", OPAL_PROC_MY_HOSTNAME,
                 ompi_mpi_thread_multiple ? "osc/pt2pt does not support MPI_THREAD_MULTIPLE" : "the parameter osc leaves osc/pt2pt out");
    return OMPI_ERR_NOT_SUPPORTED;
}

/* clang-format off */
ompi_osc_base_component_t mca_osc_bfo_component = {
    .osc_version = {
        BFO_OSC_BASE_VERSION,
        .mca_component_name = "bfo",
        MCA_BASE_MAKE_VERSION(component, BFO_VERSION_MAJOR, BFO_VERSION_MINOR, BFO_VERSION_RELEASE),
        .mca_register_component_params = register_params,
    },
    .osc_data = {
        MCA_BASE_METADATA_PARAM_NONE,
    },
    .osc_init = init,
    .osc_query = query,
    .osc_select = refuse,
    .osc_finalize = finalize,
};
/* clang-format on */
