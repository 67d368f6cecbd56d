/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The classes of completion statuses. See DESIGN.txt 4 (B10).
 */
#include "formats/btl_openib_status.h"

ofo_wc_class_t ofo_status_class(enum ibv_wc_status status, bool is_first, bool is_fenced, bool is_sound)
{
    switch (status) {
    case IBV_WC_SUCCESS:
        return OFO_WC_GOOD;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
    case IBV_WC_FATAL_ERR:
    case IBV_WC_GENERAL_ERR:
        return OFO_WC_RAIL;
    case IBV_WC_LOC_QP_OP_ERR: /* some drivers report it for all work that a dead port or a broken queue pair cannot send */
        return is_sound && is_first ? OFO_WC_POISON : OFO_WC_RAIL;
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_PROT_ERR:
        return is_first ? OFO_WC_POISON : OFO_WC_RAIL;
    default:
        return is_first && !is_fenced ? OFO_WC_POISON : OFO_WC_RAIL;
    }
}
