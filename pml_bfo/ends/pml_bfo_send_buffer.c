/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The convertor over the buffer of a send request. DESIGN.txt section 14.3.
 */
#include "types/pml_bfo.h"

#include "ends/pml_bfo_send_buffer.h"

int bfo_send_prepare_own(const bfo_send_t *req, opal_convertor_t *convertor, bool packed)
{
    const mca_pml_base_request_t *base = &req->req_send.req_base;

    if (packed) { /* in the attached buffer, because the user's buffer may be gone */
        return opal_convertor_copy_and_prepare_for_send(base->req_proc->super.proc_convertor, &ompi_mpi_packed.dt.super, bfo_send_length(req),
                                                        req->base, 0, convertor);
    }
    return opal_convertor_copy_and_prepare_for_send(base->req_proc->super.proc_convertor, &base->req_datatype->super, base->req_count, base->req_addr,
                                                    0, convertor);
}

void bfo_send_prepare(bfo_send_t *req)
{
    (void) bfo_send_prepare_own(req, &req->req_send.req_base.req_convertor, false);
    req->prepared = true;
}
