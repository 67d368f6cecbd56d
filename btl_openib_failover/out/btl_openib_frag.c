/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Fragments come from the lists of their module, as descriptors for the PML or for the BTL itself. See DESIGN.txt 15.4.
 */
#include "out/btl_openib_frag.h"

#include "types/btl_openib_atomic.h"

#include "opal/datatype/opal_convertor.h"

static ofo_frag_t *alloc_from(ofo_frag_list_t *list)
{
    ofo_frag_t *frag = (ofo_frag_t *) opal_free_list_get(&list->free);

    if (OPAL_LIKELY(NULL != frag)) {
        frag->is_sendi = false;
        frag->joined = 0;
        frag->goes_over = false;
        frag->parts = NULL;
        frag->base.des_cbfunc = NULL;
    } else if (0 == list->queue && 1 < OFO.params.completion_interval) {
        (void) __atomic_fetch_or(&list->module->wants, OFO_WANTS_REPORTS, __ATOMIC_RELAXED);
    }
    return frag;
}

ofo_frag_t *ofo_frag_alloc_whole(ofo_module_t *module, unsigned queue)
{
    return alloc_from(module->whole[queue]);
}

ofo_frag_t *ofo_frag_alloc(ofo_module_t *module, size_t payload)
{
    ofo_frag_list_t *list = module->frags, *end = list + module->frag_lists;
    ofo_frag_t *frag;

    while (list < end && list->size < payload + sizeof(ofo_data_hdr_t)) {
        ++list;
    }
    frag = OPAL_LIKELY(list < end) ? alloc_from(list) : NULL;

    if (OPAL_LIKELY(NULL != frag)) {
        frag->segment.seg_len = payload;
    }
    return frag;
}

/* The user may allow longer first fragments than others. The PML allocates such a fragment to send a message of btl_sendi again. */
static inline size_t longest(const mca_btl_base_module_t *btl)
{
    return btl->btl_eager_limit > btl->btl_max_send_size ? btl->btl_eager_limit : btl->btl_max_send_size;
}

mca_btl_base_descriptor_t *ofo_alloc(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, uint8_t order, size_t size, uint32_t flags)
{
    ofo_frag_t *frag = size <= longest(btl) ? ofo_frag_alloc((ofo_module_t *) btl, size) : NULL;

    if (OPAL_UNLIKELY(NULL == frag)) {
        return NULL;
    }
    frag->base.order = order;
    frag->base.des_flags = flags;
    return &frag->base;
}

int ofo_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *des)
{
    ofo_frag_t *frag = (ofo_frag_t *) des;

    opal_free_list_return(frag->list, &des->super);
    return OPAL_SUCCESS;
}

mca_btl_base_descriptor_t *ofo_prepare_src(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, struct opal_convertor_t *convertor, uint8_t order,
                                           size_t reserve, size_t *size, uint32_t flags)
{
    size_t most = longest(btl);
    struct iovec iov;
    uint32_t iov_count = 1;
    ofo_frag_t *frag;

    if (reserve + *size > most) {
        *size = most - reserve;
    }
    frag = ofo_frag_alloc((ofo_module_t *) btl, reserve + *size);
    if (OPAL_UNLIKELY(NULL == frag)) {
        return NULL;
    }
    iov.iov_base = (uint8_t *) frag->segment.seg_addr.pval + reserve;
    iov.iov_len = *size;
    if (0 > opal_convertor_pack(convertor, &iov, &iov_count, size)) {
        ofo_free(btl, &frag->base);
        return NULL;
    }
    frag->segment.seg_len = reserve + *size;
    frag->base.order = order;
    frag->base.des_flags = flags;
    return &frag->base;
}
