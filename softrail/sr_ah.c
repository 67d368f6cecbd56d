/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Address handles, and how to answer the sender of a datagram. DESIGN.txt 16.
 */
#include "sr_ah.h"
#include "sr_device.h"
#include "sr_injector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ibv_ah *sr_ah_create(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct sr_ah *ah;
    int rc = sr_device_check(pd->context);

    if (0 == rc && 1 != attr->port_num) {
        rc = EINVAL;
    }
    if (0 == rc && sr_unlikely(sr_faults_planned()) && sr_faults_refuse(sr_context(pd->context)->rail, SR_CALL_CREATE_AH)) {
        rc = ENOMEM;
    }
    if (0 != rc || NULL == (ah = calloc(1, sizeof(*ah)))) {
        errno = 0 != rc ? rc : ENOMEM;
        return NULL;
    }
    rc = sr_address_resolve(sr_context(pd->context)->rail, attr, &ah->address);
    if (0 != rc) {
        free(ah);
        errno = rc;
        return NULL;
    }
    ah->ibv.context = pd->context;
    ah->ibv.pd = pd;
    atomic_fetch_add(&sr_pd(pd)->uses, 1);
    return &ah->ibv;
}

int sr_ah_destroy(struct ibv_ah *ah)
{
    atomic_fetch_sub(&sr_pd(ah->pd)->uses, 1);
    free(ah);
    return 0;
}

int sr_ah_attr_from_wc(struct ibv_context *context, uint8_t port, const struct ibv_wc *wc, const struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
    (void) context;
    memset(attr, 0, sizeof(*attr));
    attr->port_num = port;
    attr->dlid = wc->slid;
    attr->sl = wc->sl;
    attr->src_path_bits = wc->dlid_path_bits;
    if (0 != (wc->wc_flags & IBV_WC_GRH)) {
        attr->is_global = 1;
        attr->grh.dgid = grh->sgid;
        attr->grh.hop_limit = 0xff;
    }
    return 0;
}
