/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The BTL hands a received message up until the fence of its queue pair is done, and never afterwards. The buffer goes back in both
 * cases. This program stands in for the functions that the room calls. DESIGN.txt sections 10.3 and 15.5.
 */
#include "bfo_config.h"

#include "device/btl_openib_buffers.h"
#include "out/btl_openib_coalesce.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "qp/btl_openib_marker.h"
#include "formats/btl_openib_qpmap.h"
#include "in/btl_openib_recv.h"
#include "out/btl_openib_ring.h"
#include "out/btl_openib_send.h"
#include "device/btl_openib_srq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TAG = 0x41, NUMBER = 0x111 };

ofo_component_t mca_btl_openib_component;

/* ---- functions that the room calls -------------------------------------------------------------- */

static unsigned handed_up, returned, drain_checks;

void ofo_srq_return(ofo_srq_t *srq, ofo_recv_t *recv)
{
    ++returned;
}
void ofo_drain_check(ofo_qpset_t *qps)
{
    ++drain_checks;
}
void ofo_log(unsigned level, const char *format, ...) {}
void ofo_tell_service(ofo_endpoint_t *ep, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps) {}
bool ofo_parts_next(const uint8_t *bytes, size_t length, size_t *at, ofo_part_t *part)
{
    return false;
}
void ofo_ring_announced(ofo_qpset_t *qps, const void *bytes, size_t length) {}
void ofo_ring_ask(ofo_module_t *module, ofo_qpset_t *qps) {}
void ofo_pending_flush(ofo_endpoint_t *ep) {}
void ofo_credits_return(ofo_endpoint_t *ep, ofo_qpset_t *qps, unsigned index) {}

/* ---- tests -------------------------------------------------------------------------------------- */

static void hand_up(BFO_ARRIVAL_ARGS)
{
    ++handed_up;
}

static void message_after_the_fence_is_not_handed_up(void **state)
{
    static ofo_module_t module = {.transport = &ofo_transport_infiniband};
    static ofo_endpoint_t ep;
    static ofo_peer_t peer;
    static struct {
        ofo_data_hdr_t hdr;
        uint8_t payload[32];
    } buffer;
    ofo_qpset_t *qps = calloc(1, sizeof(*qps) + sizeof(qps->qp[0]));
    ofo_recv_t recv;

    mca_btl_base_active_message_trigger[TAG].cbfunc = hand_up;
    ep = (ofo_endpoint_t){.module = &module, .peer = &peer};
    module.ext.traffic = &module.traffic;
    qps->ep = &ep;
    qps->nqp = 1;
    qps->qp[0].shared = true;
    qps->qp[0].returns.qps = qps;
    assert_true(ofo_qpmap_add(&module.qpmap, NUMBER, &qps->qp[0]));
    buffer.hdr.tag = TAG;
    ofo_recv_init(&recv, NULL, 0, &buffer, sizeof(buffer), 0);

    ofo_recv_handle(&module, &recv, sizeof(buffer), NUMBER); /* while the set is in use */
    (void) ofo_drain_step(&qps->drain, OFO_DEV_DRAIN);
    ofo_recv_handle(&module, &recv, sizeof(buffer), NUMBER); /* while the set is drained */
    assert_int_equal(handed_up, 2);
    assert_int_equal(qps->n_received, 2);
    assert_int_equal(drain_checks, 1);
    (void) ofo_drain_step(&qps->drain, OFO_DEV_DRAINED);
    ofo_recv_handle(&module, &recv, sizeof(buffer), NUMBER);
    assert_int_equal(handed_up, 2);
    assert_int_equal(qps->n_received, 2); /* the counts that DACK carried do not change */
    assert_int_equal(module.count.late_receives, 1);
    assert_int_equal(returned, 3);
    ofo_qpmap_free(&module.qpmap);
    free(qps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(message_after_the_fence_is_not_handed_up)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
