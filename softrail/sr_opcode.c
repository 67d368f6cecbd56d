/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The send opcodes as data: which transports carry them, and what they need on both sides. DESIGN.txt 16.
 */
#include "sr_opcode.h"

#define RC (1u << IBV_QPT_RC)
#define UC (1u << IBV_QPT_UC)
#define UD (1u << IBV_QPT_UD)

static const struct sr_opcode opcodes[] = {
    [IBV_WR_RDMA_WRITE] = {"write", RC | UC, SR_OP_WRITE, IBV_WC_RDMA_WRITE, 0},
    [IBV_WR_RDMA_WRITE_WITH_IMM] = {"write_imm", RC | UC, SR_OP_WRITE | SR_OP_RECEIVE | SR_OP_IMM, IBV_WC_RDMA_WRITE, 0},
    [IBV_WR_SEND] = {"send", RC | UC | UD, SR_OP_SEND | SR_OP_RECEIVE, IBV_WC_SEND, 0},
    [IBV_WR_SEND_WITH_IMM] = {"send_imm", RC | UC | UD, SR_OP_SEND | SR_OP_RECEIVE | SR_OP_IMM, IBV_WC_SEND, 0},
    [IBV_WR_RDMA_READ] = {"read", RC, SR_OP_READ, IBV_WC_RDMA_READ, IBV_ACCESS_LOCAL_WRITE},
    [IBV_WR_ATOMIC_CMP_AND_SWP] = {"cmp_swap", RC, SR_OP_ATOMIC, IBV_WC_COMP_SWAP, IBV_ACCESS_LOCAL_WRITE},
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = {"fetch_add", RC, SR_OP_ATOMIC, IBV_WC_FETCH_ADD, IBV_ACCESS_LOCAL_WRITE},
};

const struct sr_opcode *sr_opcode(unsigned opcode)
{
    return opcode < sizeof(opcodes) / sizeof(opcodes[0]) && NULL != opcodes[opcode].name ? &opcodes[opcode] : NULL;
}
