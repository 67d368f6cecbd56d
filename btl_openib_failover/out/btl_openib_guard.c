/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Messages that other components than the PML send, and that must survive the loss of a rail. They come in by btl_send, and the PML takes
 * them over. The module gets another btl_send when a range of tags is guarded, so nothing is checked before. DESIGN.txt section 14.11.
 */
#include "out/btl_openib_guard.h"

#include "out/btl_openib_frag.h"
#include "out/btl_openib_send.h"

static struct {
    mca_btl_base_tag_t first, last;
} guarded; /* written before any module has the guard */

/* Like ofo_send(). Returns 1 if the PML has taken the message: the descriptor is done then. */
static int guarded_send(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, mca_btl_base_descriptor_t *des, mca_btl_base_tag_t tag)
{
    const ofo_module_t *module = (const ofo_module_t *) btl;
    const uint32_t flags = des->des_flags;

    if (tag < guarded.first || tag > guarded.last
        || !module->ext.take_frag(btl, ep->peer->proc, tag, des->des_segments[0].seg_addr.pval, des->des_segments[0].seg_len)) {
        return ofo_send(btl, ep, des, tag);
    }
    if (0 != (flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK) && NULL != des->des_cbfunc) {
        des->des_cbfunc(btl, ep, des, OPAL_SUCCESS);
    }
    if (0 != (flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP)) {
        (void) ofo_free(btl, des);
    }
    return 1;
}

void ofo_guard(mca_btl_base_module_t *btl, mca_btl_base_tag_t first, mca_btl_base_tag_t last)
{
    guarded.first = first;
    guarded.last = last;
    btl->btl_send = guarded_send;
}
