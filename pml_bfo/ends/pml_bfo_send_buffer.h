/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The buffer of a send request, through its convertor. DESIGN.txt section 14.3.
 */
#ifndef PML_BFO_SEND_BUFFER_H
#define PML_BFO_SEND_BUFFER_H

#include "types/pml_bfo.h"

/* Prepares a convertor over the message, or over its packed copy; returns an Open MPI status. */
int bfo_send_prepare_own(const bfo_send_t *req, opal_convertor_t *convertor, bool packed);
/* Prepares the convertor of the user's buffer. */
void bfo_send_prepare(bfo_send_t *req) __attribute__((noinline));
/* The request's convertor, prepared when first needed: to pack, or to send from the buffer piece by piece. */
static inline opal_convertor_t *bfo_send_convertor(bfo_send_t *req)
{
    if (!req->prepared) {
        bfo_send_prepare(req);
    }
    return &req->req_send.req_base.req_convertor;
}
static inline void bfo_send_unprepare(bfo_send_t *req)
{
    if (req->prepared) {
        opal_convertor_cleanup(&req->req_send.req_base.req_convertor);
        req->prepared = false;
    }
}

#endif /* PML_BFO_SEND_BUFFER_H */
