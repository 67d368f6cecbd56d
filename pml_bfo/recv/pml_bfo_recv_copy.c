/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A BTL without failover refuses a PUT or READ: the receiver asks for the missing bytes by ACK, and they come as FRAGs.
 * DESIGN.txt sections 9 (rule 12) and 14.3.
 */
#include "types/pml_bfo.h"

#include "types/pml_bfo_local.h"
#include "recv/pml_bfo_recv_answer.h"
#include "recv/pml_bfo_recv_copy.h"

/* A BTL without failover may refuse a PUT or READ at any time (vader: process_vm_readv is forbidden, or cannot reach the
 * buffer). No rail is lost and no transfer was interrupted, so an ACK for the missing bytes is enough. Call before `open` is lowered. */
void bfo_recv_copy_from(bfo_recv_t *req, size_t offset)
{
    BFO_ASSERT(offset <= req->length);
    BFO_ASSERT(0 < __atomic_load_n(&req->open, __ATOMIC_RELAXED)); /* the caller's PUT or READ: no thread copies the rest meanwhile */
    BFO_LOCK(&bfo.lock);
    if (!req->copies || offset < req->copy_from) {
        req->copy_from = offset;
    }
    __atomic_store_n(&req->copies, true, __ATOMIC_SEQ_CST);
    BFO_UNLOCK(&bfo.lock);
}

/* The last PUT or READ of a message that is to be copied has ended. A thread that was about to start a PUT or READ finds `copies` set and
 * calls this function too. The first caller asks for the copy. */
void bfo_recv_copy_rest(bfo_recv_t *req)
{
    size_t offset;

    BFO_ASSERT(__atomic_load_n(&req->copies, __ATOMIC_RELAXED));
    BFO_LOCK(&bfo.lock);
    offset = req->copy_from;
    req->copy_from = SIZE_MAX;
    BFO_UNLOCK(&bfo.lock);
    if (SIZE_MAX != offset && BFO_RECV_ACTIVE == bfo_se_state(bfo_se_load(&req->m))) {
        __atomic_store_n(&req->bytes, offset, __ATOMIC_SEQ_CST); /* bytes beyond this offset are sent again */
        bfo_recv_ask(req, offset);
    }
}

/* For a caller that has raised `open` to start another PUT or READ. */
int bfo_recv_copies_instead(bfo_recv_t *req)
{
    const int32_t open = bfo_add32(&req->open, -1);

    BFO_ASSERT(0 <= open);
    if (0 == open) {
        bfo_recv_copy_rest(req);
    }
    return OMPI_ERR_NOT_AVAILABLE;
}
