/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The parameters of the user. See DESIGN.txt 15.
 */
#ifndef BTL_OPENIB_PARAMS_H
#define BTL_OPENIB_PARAMS_H

#include "types/btl_openib_types.h"

/* Registers the table of parameters. */
int ofo_params_register(mca_base_component_t *component, mca_btl_base_module_t *defaults);
/* After registration: reads receive_queues and checks the values and whether they contradict each other. Prints what is wrong. */
int ofo_params_check(void);
/* Warns if btl_openib_fabrics names a port that is not used here. Call it after the ports are opened. */
void ofo_params_compare_fabrics(void);
/* Do the user's lists allow rdmacm, whichever connection manager is chosen? */
bool ofo_params_allow_rdmacm(void);

#endif /* BTL_OPENIB_PARAMS_H */
