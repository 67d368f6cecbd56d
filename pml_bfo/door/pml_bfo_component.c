/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * MCA entry: Open MPI looks up mca_pml_bfo_component, asks for the priority and gets the module.
 * Open MPI chooses bfo only if the user asks for it (--mca pml bfo). DESIGN.txt section 14.1.
 */
#include "types/pml_bfo.h"

#include "show/pml_bfo_drain_cvar.h"
#include "show/pml_bfo_figures.h"
#include "door/pml_bfo_module.h"
#include "types/pml_bfo_params.h"
#include "show/pml_bfo_pvars.h"

#include "bfo_help.h"

#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/runtime/params.h"
#include "opal/mca/btl/base/base.h"

static int bfo_component_register(void)
{
    int rc;

    if (!bfo_ompi_is_the_one_built_for()) {
        if (bfo_help_is_first_rank()) {
            bfo_help_line("help-pml-bfo.txt", "other-release", BFO_OMPI_BUILT_FOR, bfo_ompi_running());
        }
        return OMPI_ERR_NOT_AVAILABLE;
    }
    bfo_pvars_register();
    rc = bfo_params_register();
    return OMPI_SUCCESS == rc ? bfo_drain_cvar_register() : rc;
}

static int bfo_component_open(void)
{
    return mca_base_framework_open(&ompi_bml_base_framework, 0);
}

static int bfo_component_close(void)
{
    return mca_base_framework_close(&ompi_bml_base_framework);
}

static mca_pml_base_module_t *bfo_component_init(int *priority, bool progress_threads, bool mpi_threads)
{
    if (!bfo_params_are_sound()) {
        return NULL;
    }
    *priority = bfo_params.priority;
    if (OMPI_SUCCESS != mca_bml_base_init(progress_threads, mpi_threads)) {
        return NULL;
    }
    bfo.modules = (uint8_t) bfo_smaller(BFO_MAX_RAILS, opal_list_get_size(&mca_btl_base_modules_initialized));
    if (OMPI_SUCCESS != bfo_module_publish()) {
        return NULL;
    }
    bfo_drain_cvar_know_ports();
    bfo_figures_open();
    return &bfo_module;
}

static int bfo_component_finalize(void)
{
    bfo_module_finalize();
    bfo_figures_close();
    return mca_bml.bml_finalize();
}

/* clang-format off */
mca_pml_base_component_t mca_pml_bfo_component = {
    .pmlm_version = {
        BFO_PML_BASE_VERSION,
        .mca_component_name = "bfo",
        MCA_BASE_MAKE_VERSION(component, BFO_VERSION_MAJOR, BFO_VERSION_MINOR, BFO_VERSION_RELEASE),
        .mca_open_component = bfo_component_open,
        .mca_close_component = bfo_component_close,
        .mca_register_component_params = bfo_component_register,
    },
    .pmlm_data = {
        MCA_BASE_METADATA_PARAM_NONE,
    },
    .pmlm_init = bfo_component_init,
    .pmlm_finalize = bfo_component_finalize,
};
/* clang-format on */
