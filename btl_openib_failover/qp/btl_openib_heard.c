/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Reports the first message of a set of queue pairs to service. See DESIGN.txt 15.3.
 */
#include "qp/btl_openib_heard.h"

#include "device/btl_openib_buffers.h"
#include "types/btl_openib_mail.h"

void ofo_recv_tell_first(ofo_qpset_t *qps)
{
    for (unsigned i = 0; qps->ep->module->transport->acceptor_listens && i < qps->nqp; ++i) {
        qps->heard |= (uint8_t) ((0 < qps->qp[i].n_recv) << i);
        if (0 == (qps->heard >> i & 1) || !qps->qp[i].cm_passive) {
            return;
        }
    }
    qps->told_first_recv = true;
    ofo_tell_service(qps->ep, OFO_MAIL_FIRST_RECV, qps->gen, NULL, NULL);
}

void ofo_recv_kept(ofo_module_t *module, const ofo_recv_t *recv, uint32_t qpn)
{
    ofo_qp_t *qp = ofo_recv_qp(module, recv, qpn);
    ofo_qpset_t *qps = NULL != qp ? qp->returns.qps : NULL;

    if (NULL != qps && qps != qps->ep->qps && !qps->told_first_recv) {
        qps->heard |= (uint8_t) (1u << (qp - qps->qp));
        ofo_recv_tell_first(qps);
    }
}
