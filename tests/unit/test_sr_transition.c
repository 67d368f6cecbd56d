/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The table of legal state changes of a queue pair: every (type, from, to), with the least attributes, with one of these
 * attributes missing, and with one too many.
 */
#include "sr_opcode.h"
#include "sr_transition.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

#define A(name) IBV_QP_##name

/* The attributes that the specification requires, written a second time and in another way. */
static int required(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
    if (IBV_QPS_RESET == from && IBV_QPS_INIT == to) {
        return A(PKEY_INDEX) | A(PORT) | (IBV_QPT_UD == type ? A(QKEY) : A(ACCESS_FLAGS));
    }
    if (IBV_QPS_INIT == from && IBV_QPS_RTR == to && IBV_QPT_UD != type) {
        return A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN) | (IBV_QPT_RC == type ? A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER) : 0);
    }
    if (IBV_QPS_RTR == from && IBV_QPS_RTS == to) {
        return A(SQ_PSN) | (IBV_QPT_RC == type ? A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_QP_RD_ATOMIC) : 0);
    }
    return 0;
}

static bool legal(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
    if (IBV_QPS_RESET == to || IBV_QPS_ERR == to) {
        return true;
    }
    return (IBV_QPS_RESET == from && IBV_QPS_INIT == to) || (IBV_QPS_INIT == from && IBV_QPS_INIT == to)
           || (IBV_QPS_INIT == from && IBV_QPS_RTR == to) || (IBV_QPS_RTR == from && IBV_QPS_RTS == to)
           || (IBV_QPS_RTS == from && (IBV_QPS_RTS == to || IBV_QPS_SQD == to)) || (IBV_QPS_SQD == from && (IBV_QPS_RTS == to || IBV_QPS_SQD == to))
           || (IBV_QPS_SQE == from && IBV_QPS_RTS == to && IBV_QPT_RC != type);
}

static void every_cell_says_what_the_specification_says(void **state)
{
    for (unsigned t = 0; t < 3; ++t) {
        for (int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; ++from) {
            for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; ++to) {
                int mask = required(types[t], from, to);
                int expected = legal(types[t], from, to) ? 0 : EINVAL;
                if (expected != sr_transition_check(types[t], from, to, A(STATE) | mask)) {
                    fail_msg("type %d, %d to %d", types[t], from, to);
                }
                assert_int_equal(EINVAL, sr_transition_check(types[t], from, to, A(STATE) | mask | A(RATE_LIMIT)));
            }
        }
    }
}

static void every_required_attribute_is_missed(void **state)
{
    for (unsigned t = 0; t < 3; ++t) {
        for (int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; ++from) {
            for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; ++to) {
                int mask = required(types[t], from, to);
                for (int bit = 1; bit <= mask; bit <<= 1) {
                    if (0 != (mask & bit)) {
                        assert_int_equal(EINVAL, sr_transition_check(types[t], from, to, A(STATE) | (mask & ~bit)));
                    }
                }
            }
        }
    }
}

static void opcodes_know_their_transports(void **state)
{
    assert_null(sr_opcode(IBV_WR_TSO));
    assert_null(sr_opcode(1000));
    for (unsigned opcode = 0; opcode < 20; ++opcode) {
        const struct sr_opcode *op = sr_opcode(opcode);
        bool reads = IBV_WR_RDMA_READ == opcode || IBV_WR_ATOMIC_CMP_AND_SWP == opcode || IBV_WR_ATOMIC_FETCH_AND_ADD == opcode;
        bool sends = IBV_WR_SEND == opcode || IBV_WR_SEND_WITH_IMM == opcode;
        if (NULL == op) {
            continue;
        }
        assert_true(op->types >> IBV_QPT_RC & 1);
        assert_int_equal(!reads, op->types >> IBV_QPT_UC & 1);
        assert_int_equal(sends, op->types >> IBV_QPT_UD & 1);
        assert_int_equal(reads ? IBV_ACCESS_LOCAL_WRITE : 0, op->local_access);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_says_what_the_specification_says),
        cmocka_unit_test(every_required_attribute_is_missed),
        cmocka_unit_test(opcodes_know_their_transports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
