/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Every accepted descriptor returns to its owner here, exactly once. See DESIGN.txt 15.4, "The life of a work request".
 */
#include "out/btl_openib_complete.h"

#include "bfo_assert.h"

/* OPAL_ERR_FATAL goes to one descriptor only. The carrier has no owner, so the first part gets it; the other parts get OPAL_ERROR. */
static __attribute__((noinline)) void complete_parts(ofo_frag_t *carrier, int status)
{
    ofo_frag_t *frag = carrier->parts;

    carrier->parts = NULL;
    while (NULL != frag) {
        ofo_frag_t *next = frag->next_part;
        frag->work.qp = carrier->work.qp;
        ofo_send_complete(frag, status);
        status = OPAL_SUCCESS == status ? OPAL_SUCCESS : OPAL_ERROR;
        frag = next;
    }
    opal_free_list_return(carrier->list, &carrier->base.super);
}

void ofo_send_complete(ofo_frag_t *frag, int status)
{
    ofo_endpoint_t *ep = frag->ep;
    ofo_module_t *module = ep->module;
    uint32_t flags = frag->base.des_flags;

    frag->work.qps = NULL;
    if (NULL != frag->parts) {
        complete_parts(frag, status);
        return;
    }
    OPAL_THREAD_LOCK(&ep->lock);
    BFO_ASSERT(0 < ep->sends_out);
    --ep->sends_out;
    OPAL_THREAD_UNLOCK(&ep->lock);
    if (frag->is_sendi) {
        if (OPAL_UNLIKELY(OPAL_SUCCESS != status) && NULL != module->ext.failed_frag) {
            module->ext.failed_frag(&module->super, ep, frag->hdr->tag, frag->segment.seg_addr.pval, frag->segment.seg_len, status);
        }
    } else if (NULL != frag->base.des_cbfunc) {
        frag->base.order = frag->work.qp;
        frag->base.des_cbfunc(&module->super, ep, &frag->base, status);
    }
    if (flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP) {
        opal_free_list_return(frag->list, &frag->base.super);
    }
}
