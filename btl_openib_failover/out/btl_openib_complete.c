/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Every accepted descriptor returns to its owner here, exactly once. See DESIGN.txt 15.4, "The life of a work request".
 */
#include "out/btl_openib_complete.h"

#include "bfo_assert.h"
#include "out/btl_openib_coalesce.h"

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
    if (carrier->goes_over) {
        --carrier->ep->module->carriers_over;
        BFO_ASSERT(0 <= carrier->ep->module->carriers_over);
    }
    opal_free_list_return(carrier->list, &carrier->base.super);
}

/* A message of sendi failed, or each that its fragment holds: the PML gets the bytes, except those that a second copy has. */
static __attribute__((noinline)) void sendi_failed(ofo_frag_t *frag, int status)
{
    ofo_module_t *module = frag->ep->module;
    const uint8_t *bytes = frag->segment.seg_addr.pval;
    size_t at = 0;
    ofo_part_t part;

    if (NULL == module->ext.failed_frag) {
        return;
    }
    if (0 == frag->joined) {
        module->ext.failed_frag(&module->super, frag->ep, frag->hdr->tag, bytes, frag->segment.seg_len, status);
        return;
    }
    for (unsigned i = 0; ofo_parts_next(bytes, frag->segment.seg_len, &at, &part); ++i) {
        if (0 == (frag->copied >> i & 1)) {
            module->ext.failed_frag(&module->super, frag->ep, part.tag, bytes + part.at, part.length, status);
            status = OPAL_ERROR; /* OPAL_ERR_FATAL goes to one message only */
        }
    }
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
    BFO_ASSERT(ofo_send_messages(frag) <= ep->sends_out);
    ep->sends_out -= ofo_send_messages(frag);
    OPAL_THREAD_UNLOCK(&ep->lock);
    if (frag->is_sendi) {
        if (OPAL_UNLIKELY(OPAL_SUCCESS != status)) {
            sendi_failed(frag, status);
        }
    } else if (NULL != frag->base.des_cbfunc) {
        frag->base.order = frag->work.qp;
        frag->base.des_cbfunc(&module->super, ep, &frag->base, status);
    }
    if (flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP) {
        opal_free_list_return(frag->list, &frag->base.super);
    }
}
