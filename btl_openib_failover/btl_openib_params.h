/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The parameters that the user gives. See DESIGN.txt 15.
 */
#ifndef BTL_OPENIB_PARAMS_H
#define BTL_OPENIB_PARAMS_H

#include "btl_openib_types.h"

/* Registers the table of parameters. */
int ofo_params_register(mca_base_component_t *component, mca_btl_base_module_t *defaults);
/* After registration: reads receive_queues and checks what contradicts; says what is wrong. */
int ofo_params_check(void);
/* Says which port of btl_openib_fabrics is not used here. After the ports are opened. */
void ofo_params_compare_fabrics(void);
/* Does the user leave rdmacm as a connection manager, whichever is chosen? */
bool ofo_params_allow_rdmacm(void);

#endif /* BTL_OPENIB_PARAMS_H */
