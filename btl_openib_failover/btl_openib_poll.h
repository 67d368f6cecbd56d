/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Completions of a module. See DESIGN.txt 15.1.
 */
#ifndef BTL_OPENIB_POLL_H
#define BTL_OPENIB_POLL_H

#include "btl_openib_types.h"

/* A message arrived: for DACK and the loss check. Context: progress. */
void ofo_send_count(ofo_qpset_t *qps, const ofo_frag_t *frag);
int ofo_component_progress(void);
/* Handles completions until there are none. Context: progress, inside the poll lock. */
void ofo_poll_out(ofo_module_t *module);
int ofo_module_progress(ofo_module_t *module);
/* Asks all CQs for an event and then looks once more: false if there was something, or if another thread is at it. */
bool ofo_module_arm(ofo_module_t *module);

#endif /* BTL_OPENIB_POLL_H */
