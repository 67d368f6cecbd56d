/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A collective component that has the name of Mellanox's hcoll and does nothing. The tests show with it that the PML warns of the
 * real hcoll, which is not freely available. With HCOLL_CANNOT_RUN in the environment it says that it cannot run here.
 */
#include "ompi_config.h"

#include "ompi/constants.h"
#include "ompi/mca/coll/coll.h"

#include <stdlib.h>

static int init_query(bool progress_threads, bool mpi_threads)
{
    return NULL == getenv("HCOLL_CANNOT_RUN") ? OMPI_SUCCESS : OMPI_ERR_NOT_SUPPORTED;
}

static mca_coll_base_module_t *comm_query(struct ompi_communicator_t *comm, int *priority)
{
    return NULL;
}

#if defined(MCA_COLL_BASE_VERSION_3_0_0)
#define COLL_BASE_VERSION MCA_COLL_BASE_VERSION_3_0_0
#elif defined(MCA_COLL_BASE_VERSION_2_4_0)
#define COLL_BASE_VERSION MCA_COLL_BASE_VERSION_2_4_0
#else
#define COLL_BASE_VERSION MCA_COLL_BASE_VERSION_2_0_0
#endif

extern mca_coll_base_component_t mca_coll_hcoll_component;
/* clang-format off */
__attribute__((visibility("default"))) mca_coll_base_component_t mca_coll_hcoll_component = {
    .collm_version = {
        COLL_BASE_VERSION,
        .mca_component_name = "hcoll",
        MCA_BASE_MAKE_VERSION(component, 0, 0, 0),
    },
    .collm_data = {
        MCA_BASE_METADATA_PARAM_NONE,
    },
    .collm_init_query = init_query,
    .collm_comm_query = comm_query,
};
/* clang-format on */
