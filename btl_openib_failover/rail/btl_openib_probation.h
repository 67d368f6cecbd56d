/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The probation of a rail that came back: questions over the rail itself, until enough of them in a row were answered. Context: service of
 * the rail's module. See DESIGN.txt 10.2, "Return".
 */
#ifndef BTL_OPENIB_PROBATION_H
#define BTL_OPENIB_PROBATION_H

#include "types/btl_openib_types.h"

/* The rail's state has changed. A rail that is UP with a later generation than its first one is on probation, if the PML asks for that. */
void ofo_probation_follow(ofo_endpoint_t *ep);
/* Sends the next question if it is due. */
void ofo_probation_timer(ofo_endpoint_t *ep, uint64_t now);
/* ANSWER to such a question came over this rail. */
void ofo_probation_answer(ofo_endpoint_t *ep, const ofo_ctl_t *answer);

#endif /* BTL_OPENIB_PROBATION_H */
