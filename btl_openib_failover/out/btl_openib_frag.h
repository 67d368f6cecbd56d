/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Fragments of a module. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_FRAG_H
#define BTL_OPENIB_FRAG_H

#include "types/btl_openib_types.h"

/* Takes a fragment that holds so many bytes of payload; NULL if there is none. */
ofo_frag_t *ofo_frag_alloc(ofo_module_t *module, size_t payload);
/* Takes a fragment as large as the buffers of that queue; NULL if there is none. */
ofo_frag_t *ofo_frag_alloc_whole(ofo_module_t *module, unsigned queue);
/* The functions of the module that the PML calls. */
mca_btl_base_descriptor_t *ofo_alloc(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, uint8_t order, size_t size, uint32_t flags);
int ofo_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *des);
mca_btl_base_descriptor_t *ofo_prepare_src(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, struct opal_convertor_t *convertor, uint8_t order,
                                           size_t reserve, size_t *size, uint32_t flags);

#endif /* BTL_OPENIB_FRAG_H */
