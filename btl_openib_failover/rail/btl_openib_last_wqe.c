/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * How long a fence waits for LAST_WQE_REACHED. See DESIGN.txt 10.3.
 */
#include "rail/btl_openib_last_wqe.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"
#include "types/btl_openib_mail.h"
#include "qp/btl_openib_qpset.h"
#include "types/btl_openib_timers.h"

#include "bfo_assert.h"

#include <poll.h>

bool ofo_device_has_unread(const ofo_device_t *device)
{
    struct pollfd fd = {.fd = device->context->async_fd, .events = POLLIN};

    return 0 < poll(&fd, 1, 0) || OFO_LOAD(device->reading);
}

/* When the wait ends. It is shorter on a device that was never seen to raise the event and has no unread events (DESIGN.txt 10.3). */
static uint64_t last_wqe_due(const ofo_device_t *device, uint64_t since)
{
    enum { LOOK_AGAIN_MS = 10 };
    const uint64_t whole = since + OFO_LAST_WQE_MS, now = ofo_now_ms();
    uint64_t due = since + OFO_LAST_WQE_UNSEEN_MS;

    if (OFO_LOAD(device->raises_last_wqe)) {
        return whole;
    }
    if (now >= due && ofo_device_has_unread(device)) {
        due = now + LOOK_AGAIN_MS;
    }
    return due < whole ? due : whole;
}

void ofo_async_await_last_wqe(ofo_endpoint_t *ep)
{
    BFO_ASSERT(NULL != ep->fenced_set && 0 == ep->last_wqe_at);
    ep->last_wqe_at = last_wqe_due(ep->module->device, ep->error_at);
    ofo_timers_add(ep);
}

/* The driver does not raise the event, or it was lost. All received messages are in the completion queue by now, and the loss check
 * compares the counts of both sides. */
void ofo_async_last_wqe_late(ofo_endpoint_t *ep, uint64_t now)
{
    BFO_ASSERT(NULL != ep->fenced_set);                               /* the timer ends with the fence that it belongs to */
    ep->last_wqe_at = last_wqe_due(ep->module->device, ep->error_at); /* the device may have raised its first one since */
    if (now < ep->last_wqe_at) {
        return;
    }
    ep->last_wqe_at = 0;
    ep->module->count.last_wqe_missed += ofo_qpset_assume_last_wqe(ep->fenced_set);
    ofo_tell_progress(ep->module, OFO_MAIL_LAST_WQE, ep, ep->fsm.gen, NULL, NULL);
}
