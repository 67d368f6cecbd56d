/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The legal state changes of a queue pair as data: which attributes each requires and which it allows, for each transport
 * (InfiniBand specification, "QP state transition properties"). Any state may go to RESET or ERR. DESIGN.txt 16.
 */
#include "sr_transition.h"

#include <errno.h>

struct row {
    uint8_t type, from, to;
    int required, optional;
};

/* clang-format off */
#define ROW(t, f, s, r, o) { IBV_QPT_##t, IBV_QPS_##f, IBV_QPS_##s, (r), (o) }
/* clang-format on */
#define A(name) IBV_QP_##name
#define MIGRATION (A(ALT_PATH) | A(PATH_MIG_STATE))

static const struct row rows[] = {
    ROW(RC, RESET, INIT, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS), 0),
    ROW(UC, RESET, INIT, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS), 0),
    ROW(UD, RESET, INIT, A(PKEY_INDEX) | A(PORT) | A(QKEY), 0),

    ROW(RC, INIT, INIT, 0, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS)),
    ROW(UC, INIT, INIT, 0, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS)),
    ROW(UD, INIT, INIT, 0, A(PKEY_INDEX) | A(PORT) | A(QKEY)),

    ROW(RC, INIT, RTR, A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN) | A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER),
        A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX)),
    ROW(UC, INIT, RTR, A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN), A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX)),
    ROW(UD, INIT, RTR, 0, A(PKEY_INDEX) | A(QKEY)),

    ROW(RC, RTR, RTS, A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(SQ_PSN) | A(MAX_QP_RD_ATOMIC),
        A(CUR_STATE) | A(ACCESS_FLAGS) | A(MIN_RNR_TIMER) | MIGRATION),
    ROW(UC, RTR, RTS, A(SQ_PSN), A(CUR_STATE) | A(ACCESS_FLAGS) | MIGRATION),
    ROW(UD, RTR, RTS, A(SQ_PSN), A(CUR_STATE) | A(QKEY)),

    ROW(RC, RTS, RTS, 0, A(CUR_STATE) | A(ACCESS_FLAGS) | A(MIN_RNR_TIMER) | MIGRATION),
    ROW(UC, RTS, RTS, 0, A(CUR_STATE) | A(ACCESS_FLAGS) | MIGRATION),
    ROW(UD, RTS, RTS, 0, A(CUR_STATE) | A(QKEY)),

    ROW(RC, RTS, SQD, 0, A(EN_SQD_ASYNC_NOTIFY)),
    ROW(UC, RTS, SQD, 0, A(EN_SQD_ASYNC_NOTIFY)),
    ROW(UD, RTS, SQD, 0, A(EN_SQD_ASYNC_NOTIFY)),

    ROW(RC, SQD, SQD, 0,
        A(PORT) | A(AV) | A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_QP_RD_ATOMIC) | A(MAX_DEST_RD_ATOMIC) | A(CUR_STATE) | A(ACCESS_FLAGS)
            | A(PKEY_INDEX) | A(MIN_RNR_TIMER) | MIGRATION),
    ROW(UC, SQD, SQD, 0, A(AV) | A(CUR_STATE) | A(ACCESS_FLAGS) | A(PKEY_INDEX) | MIGRATION),
    ROW(UD, SQD, SQD, 0, A(PKEY_INDEX) | A(QKEY)),

    ROW(RC, SQD, RTS, 0, A(CUR_STATE) | A(ACCESS_FLAGS) | A(MIN_RNR_TIMER) | MIGRATION),
    ROW(UC, SQD, RTS, 0, A(CUR_STATE) | A(ACCESS_FLAGS) | MIGRATION),
    ROW(UD, SQD, RTS, 0, A(CUR_STATE) | A(QKEY)),

    ROW(UC, SQE, RTS, 0, A(CUR_STATE) | A(ACCESS_FLAGS)),
    ROW(UD, SQE, RTS, 0, A(CUR_STATE) | A(QKEY)),
};

int sr_transition_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    int given = mask & ~(int) IBV_QP_STATE;

    if (IBV_QPS_RESET == to || IBV_QPS_ERR == to) {
        return 0 == (given & ~(int) IBV_QP_CUR_STATE) ? 0 : EINVAL;
    }
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        const struct row *row = &rows[i];
        if (type == row->type && from == row->from && to == row->to) {
            return row->required == (given & row->required) && 0 == (given & ~(row->required | row->optional)) ? 0 : EINVAL;
        }
    }
    return EINVAL;
}
