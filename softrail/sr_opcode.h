/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The properties of each opcode.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_OPCODE_H
#define SR_OPCODE_H

#include "sr_objects.h"

enum { SR_OP_RECEIVE = 1, SR_OP_IMM = 2, SR_OP_WRITE = 4, SR_OP_READ = 8, SR_OP_ATOMIC = 16, SR_OP_SEND = 32 };
struct sr_opcode {
    const char *name;
    uint8_t types;         /* bit per enum ibv_qp_type */
    uint8_t traits;        /* SR_OP_* */
    uint8_t wc;            /* enum ibv_wc_opcode of the requester's completion */
    unsigned local_access; /* access that the local memory needs */
};
const struct sr_opcode *sr_opcode(unsigned opcode);

#endif /* SR_OPCODE_H */
