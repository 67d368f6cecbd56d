/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Events of a device: its end is reported once, by the first thread that learns of it, and its ports do not come back; an event of one of
 * two ports leaves the other port alone; how long a fence waits for LAST_WQE_REACHED. DESIGN.txt sections 10.3 and 15.5.
 */
#include "async_played.h"

/* ---- tests -------------------------------------------------------------------------------------- */

static struct ibv_context context;
static ofo_module_t module[PORTS];

static void begin_with(int ports)
{
    context.async_fd = -1;
    device = (ofo_device_t){.context = &context};
    memset(module, 0, sizeof(module));
    for (int i = 0; i < ports; ++i) {
        module[i].device = &device;
        module[i].port_num = (uint8_t) (1 + i);
        module[i].use_grh = true;
        module[i].port_up = true;
        OFO.module[i] = &module[i];
    }
    OFO.module_count = (unsigned) ports;
    memset(lid, 0, sizeof(lid));
    memset(has_gid, true, sizeof(has_gid));
    memset(has_other_gid, false, sizeof(has_other_gid));
    memset(downs, 0, sizeof(downs));
    memset(ups, 0, sizeof(ups));
    last_wqes = looks = 0;
    state = IBV_PORT_ACTIVE;
    is_deaf = falls = OFO.closing = false;
}

static void begin(void)
{
    begin_with(1);
}

static void raise_event(enum ibv_event_type type, int port)
{
    waiting = type;
    waiting_port = port;
    ofo_async_read(&module[0]);
}

static void assert_letters(int port, unsigned down, unsigned up)
{
    assert_int_equal(downs[port], down);
    assert_int_equal(ups[port], up);
    assert_int_equal(module[port - 1].port_up, down == up);
}

/* Two threads learn of DEVICE_FATAL and of rdmacm's removal: neither looks at a port before the other has reported it. */
static void end_of_a_device_is_told_by_one(void **state)
{
    begin();
    is_second_due = true;
    ofo_async_device_gone(&device);
    pthread_join(second, NULL);
    assert_false(overtook);
    assert_letters(1, 1, 0);
}

static void port_of_a_device_that_is_gone_does_not_come_back(void **state)
{
    begin();
    raise_event(IBV_EVENT_PORT_ERR, 1);
    now = 3000;
    raise_event(IBV_EVENT_PORT_ACTIVE, 1);
    assert_letters(1, 1, 1);
    assert_int_equal(module[0].up_since, 3000);
    ofo_async_device_gone(&device);
    now = 4000;
    raise_event(IBV_EVENT_PORT_ACTIVE, 1); /* an event that was on its way */
    assert_letters(1, 2, 1);
    assert_int_equal(module[0].up_since, 3000);
}

/* Rails that were spared or in doubt when the port went down end now. A second report changes nothing. */
static void end_of_a_port_that_is_down_is_told_once(void **state)
{
    begin_with(2);
    module[1].cq[0] = &failed_cq;
    module[1].cq_count = 1;
    raise_event(IBV_EVENT_PORT_ERR, 2);
    assert_letters(2, 1, 0);
    raise_event(IBV_EVENT_PORT_ERR, 2);
    assert_letters(2, 1, 0);
    raise_event(IBV_EVENT_CQ_ERR, 0);
    assert_letters(2, 2, 0);
    assert_string_equal(module[1].down_why, "a completion queue failed");
    raise_event(IBV_EVENT_PORT_ACTIVE, 2);
    assert_letters(2, 2, 0);

    raise_event(IBV_EVENT_PORT_ERR, 1);
    assert_letters(1, 1, 0);
    ofo_async_device_gone(&device);
    assert_letters(1, 2, 0);
    assert_string_equal(module[0].down_why, "the device failed");
    ofo_async_device_gone(&device);
    raise_event(IBV_EVENT_PORT_ERR, 1);
    raise_event(IBV_EVENT_PORT_ACTIVE, 1);
    assert_letters(1, 2, 0);
    assert_letters(2, 2, 0);
    assert_int_equal(module[0].downs, 1); /* all processes count the same, in whatever order the reports come */
    assert_int_equal(module[1].downs, 1);
}

/* Both ports went down, and the event of one port has come. The event of the other port is on its way. */
static void event_of_a_port_leaves_the_other_alone(void **state)
{
    begin_with(2);
    raise_event(IBV_EVENT_PORT_ERR, 2);
    assert_letters(1, 0, 0);
    assert_letters(2, 1, 0);
    raise_event(IBV_EVENT_PORT_ERR, 1);
    assert_letters(1, 1, 0);
    raise_event(IBV_EVENT_PORT_ACTIVE, 2);
    assert_letters(1, 1, 0);
    assert_letters(2, 1, 1);
    raise_event(IBV_EVENT_PORT_ACTIVE, 1);
    assert_letters(1, 1, 1);
    lid[1] = lid[2] = 7;
    raise_event(IBV_EVENT_LID_CHANGE, 2);
    assert_letters(1, 1, 1);
    assert_letters(2, 2, 2);
    has_gid[1] = has_gid[2] = false;
    now = 1000;
    raise_event(IBV_EVENT_GID_CHANGE, 2);
    assert_int_equal(device.look_at, 1020);
    now = 2000;
    ofo_async_look_again(&device, now);
    assert_letters(1, 1, 1);
    assert_letters(2, 3, 2);
}

/* Rails that were spared or in doubt have the old address, and therefore end once the port is up. */
static void port_returns_with_another_address(void **state)
{
    begin();
    raise_event(IBV_EVENT_PORT_ERR, 1);
    lid[1] = 7;
    raise_event(IBV_EVENT_PORT_ACTIVE, 1);
    assert_letters(1, 2, 2);
    assert_string_equal(module[0].down_why, "the port has another address");
    raise_event(IBV_EVENT_PORT_ACTIVE, 1);
    raise_event(IBV_EVENT_LID_CHANGE, 1);
    assert_letters(1, 2, 2);
    raise_event(IBV_EVENT_PORT_ERR, 1);
    lid[1] = 8;
    raise_event(IBV_EVENT_LID_CHANGE, 1);
    assert_letters(1, 4, 4);
    assert_string_equal(module[0].down_why, "the port has another address");
}

static void address_missing_for_a_moment_ends_nothing(void **state)
{
    begin();
    has_gid[1] = false;
    for (now = 1000; now < 1500; now += 20) {
        if (1000 == now) {
            raise_event(IBV_EVENT_GID_CHANGE, 1);
        } else {
            ofo_async_look_again(&device, now);
        }
        assert_letters(1, 0, 0);
        assert_int_equal(device.look_at, now + 20);
    }
    has_gid[1] = true;
    ofo_async_look_again(&device, now);
    assert_letters(1, 0, 0);
    assert_int_equal(device.look_at, 0);

    has_gid[1] = false; /* the next loss starts the time limit again, and now it passes */
    now = 9000;
    raise_event(IBV_EVENT_GID_CHANGE, 1);
    assert_letters(1, 0, 0);
    now = 9500;
    ofo_async_look_again(&device, now);
    assert_letters(1, 1, 0);
    has_gid[1] = true;
    raise_event(IBV_EVENT_GID_CHANGE, 1);
    assert_letters(1, 1, 1);
}

static void port_takes_another_address_when_its_own_is_gone(void **state)
{
    begin();
    has_gid[1] = false;
    has_other_gid[1] = true;
    now = 1000;
    raise_event(IBV_EVENT_GID_CHANGE, 1);
    assert_letters(1, 0, 0); /* its own may come again */
    now = 1500;
    ofo_async_look_again(&device, now);
    assert_letters(1, 1, 1);
    assert_string_equal(module[0].down_why, "the port has another address");
    raise_event(IBV_EVENT_PORT_ERR, 1);
    assert_letters(1, 2, 1);
    raise_event(IBV_EVENT_PORT_ACTIVE, 1); /* and when it returns */
    assert_true(module[0].port_up);
    assert_string_equal(module[0].down_why, "the port has another address");
}

static void port_whose_completion_queue_failed_does_not_come_back(void **state)
{
    begin();
    module[0].cq[0] = &failed_cq;
    module[0].cq_count = 1;
    raise_event(IBV_EVENT_CQ_ERR, 0);
    assert_letters(1, 1, 0);
    raise_event(IBV_EVENT_PORT_ACTIVE, 1);
    assert_letters(1, 1, 0);
}

/* Without control messages no rail of the port can be connected again. */
static void failed_queue_of_control_messages_ends_its_port_for_good(void **state)
{
    static struct ibv_cq sound_cq;

    for (int is_send = 0; is_send <= 1; ++is_send) {
        begin_with(2);
        module[0].ud.send_cq = module[0].ud.recv_cq = &sound_cq;
        module[1].ud.send_cq = is_send ? &failed_cq : &sound_cq;
        module[1].ud.recv_cq = is_send ? &sound_cq : &failed_cq;
        raise_event(IBV_EVENT_CQ_ERR, 0);
        assert_letters(1, 0, 0);
        assert_letters(2, 1, 0);
        raise_event(IBV_EVENT_PORT_ACTIVE, 2);
        assert_letters(2, 1, 0);
    }
}

static void failed_shared_queue_ends_its_port_for_good(void **state)
{
    static ofo_srq_t shared = {.srq = &failed_srq};

    begin_with(2);
    module[1].srq[0] = &shared;
    raise_event(IBV_EVENT_SRQ_ERR, 0);
    assert_letters(1, 0, 0);
    assert_letters(2, 1, 0);
    raise_event(IBV_EVENT_PORT_ACTIVE, 2);
    assert_letters(2, 1, 0);
}

static void end_of_a_device_takes_both_ports(void **state)
{
    begin_with(2);
    raise_event(IBV_EVENT_DEVICE_FATAL, 0);
    assert_letters(1, 1, 0);
    assert_letters(2, 1, 0);
}

static void fence_waits_for_the_last_receive_of_who_tells_it(void **state)
{
    static ofo_endpoint_t ep;
    ofo_qpset_t *qps = calloc(1, sizeof(*qps) + sizeof(qps->qp[0]));
    int fds[2];

    begin();
    ep.module = qps->module = &module[0];
    qps->ep = &ep;
    ep.fenced_set = qps;
    qps->qp[0].returns.qps = qps;
    verbs_qp.qp_context = &qps->qp[0];
    now = ep.error_at = 5000;
    ofo_async_await_last_wqe(&ep);
    assert_int_equal(ep.last_wqe_at, 5100);
    assert_int_equal(pipe(fds), 0);
    context.async_fd = fds[0];
    assert_int_equal(write(fds[1], "", 1), 1); /* the device has an event that is not read yet */
    now = 5100;
    ofo_async_last_wqe_late(&ep, now);
    assert_int_equal(ep.last_wqe_at, 5110);
    context.async_fd = -1;
    now = 5110;
    raise_event(IBV_EVENT_QP_LAST_WQE_REACHED, 0); /* one of two queue pairs */
    assert_true(qps->qp[0].last_wqe_seen);
    assert_int_equal(last_wqes, 1);
    ofo_async_last_wqe_late(&ep, now);
    assert_int_equal(ep.last_wqe_at, 6000);
    assert_int_equal(module[0].count.last_wqe_missed, 0);
    now = 6000;
    ofo_async_last_wqe_late(&ep, now);
    assert_int_equal(ep.last_wqe_at, 0);
    assert_int_equal(module[0].count.last_wqe_missed, 1);
    assert_int_equal(last_wqes, 2);

    device.raises_last_wqe = false;
    now = ep.error_at = 7000;
    ofo_async_await_last_wqe(&ep);
    now = 7100;
    ofo_async_last_wqe_late(&ep, now); /* no event of this queue pair came, and none is unread */
    assert_int_equal(ep.last_wqe_at, 0);
    assert_int_equal(last_wqes, 3);
    close(fds[0]);
    close(fds[1]);
    free(qps);
}

/* Many queue pairs fail together while service is busy. */
static void progress_waits_once_for_a_service_that_is_deaf(void **unused)
{
    int fds[2];

    begin();
    assert_int_equal(pipe(fds), 0);
    context.async_fd = fds[0];
    assert_int_equal(write(fds[1], "", 1), 1);
    now = 20000;
    assert_false(ofo_async_settled(&device));
    assert_in_range(looks, 1, 1000);
    looks = 0;
    is_deaf = true;
    for (int i = 0; i < 100; ++i) {
        assert_false(ofo_async_settled(&device));
        assert_false(ofo_async_port_is_up(&module[0], false));
        assert_true(ofo_async_port_is_up(&module[0], true));
    }
    assert_int_equal(looks, 0);
    now += 1000;
    assert_false(ofo_async_settled(&device));
    assert_in_range(looks, 1, 1000);
    context.async_fd = -1;
    close(fds[0]);
    close(fds[1]);
}

static void service_asks_for_the_port(void **unused)
{
    begin();
    now = 30000;
    assert_true(ofo_async_port_is_up(&module[0], false));
    state = IBV_PORT_DOWN; /* its event is still to come */
    assert_false(ofo_async_port_is_up(&module[0], true));
    assert_int_equal(looks, 0);
    is_deaf = true;
    assert_false(ofo_async_port_is_up(&module[0], false));
    assert_in_range(looks, 1, 1000);
    assert_true(ofo_async_port_is_up(&module[0], true));
    module[0].port_up = false;
    assert_false(ofo_async_port_is_up(&module[0], true));
}

static void queues_of_others_are_left_alone(void **state)
{
    static struct ibv_cq sound_cq;
    static struct ibv_srq sound_srq;
    static ofo_srq_t sound = {.srq = &sound_srq}, failed = {.srq = &failed_srq};
    static ofo_device_t other;

    begin_with(2);
    module[0].device = &other;
    module[0].cq[0] = &failed_cq; /* another device; in truth the two have no queue in common */
    module[0].cq_count = 1;
    module[0].srq[0] = &failed;
    module[1].cq[0] = &sound_cq;
    module[1].cq_count = 1;
    module[1].srq[0] = &sound;
    waiting = IBV_EVENT_CQ_ERR;
    ofo_async_read(&module[1]);
    waiting = IBV_EVENT_SRQ_ERR;
    ofo_async_read(&module[1]);
    assert_letters(1, 0, 0);
    assert_letters(2, 0, 0);
}

static void queue_pair_that_is_fatal_once_stays_fatal(void **state)
{
    static ofo_endpoint_t ep;
    ofo_qpset_t *qps = calloc(1, sizeof(*qps) + sizeof(qps->qp[0]));

    begin();
    failures = 0;
    ep.module = qps->module = &module[0];
    qps->ep = &ep;
    qps->qp[0].returns.qps = qps;
    verbs_qp.qp_context = &qps->qp[0];
    raise_event(IBV_EVENT_QP_ACCESS_ERR, 0); /* the peer or a request is at fault */
    assert_false(qps->qp[0].is_fatal);
    raise_event(IBV_EVENT_QP_FATAL, 0);
    assert_true(qps->qp[0].is_fatal);
    raise_event(IBV_EVENT_QP_REQ_ERR, 0);
    assert_true(qps->qp[0].is_fatal);
    assert_int_equal(failures, 3);
    free(qps);
}

static void port_without_its_address_stays_as_it_is(void **state)
{
    begin();
    has_gid[1] = false;
    has_other_gid[1] = true;
    raise_event(IBV_EVENT_PORT_ACTIVE, 1); /* the port is up: GID_CHANGE will tell, and waits */
    assert_letters(1, 0, 0);
    has_other_gid[1] = false;
    raise_event(IBV_EVENT_PORT_ERR, 1);
    raise_event(IBV_EVENT_PORT_ACTIVE, 1); /* and there is no other address */
    assert_letters(1, 1, 0);
    raise_event(IBV_EVENT_GID_CHANGE, 1); /* a port that is down need not wait for its address */
    assert_letters(1, 1, 0);
    assert_int_equal(device.look_at, 0);
}

/* Two modules of one port; here the port's event names one of them only. */
static void other_lane_of_a_port_that_takes_another_address_ends_its_connections(void **state)
{
    begin_with(2); /* both have the port_index 0 */
    raise_event(IBV_EVENT_PORT_ERR, 1);
    has_gid[1] = false;
    has_other_gid[1] = true;
    raise_event(IBV_EVENT_PORT_ACTIVE, 1);
    assert_true(module[0].port_up);
    assert_letters(2, 1, 0);
    assert_string_equal(module[1].down_why, "the port has another address");
}

static void nobody_is_asked_at_the_end_and_a_port_that_falls_meanwhile_is_down(void **unused)
{
    begin();
    OFO.closing = true;
    state = IBV_PORT_DOWN;
    assert_true(ofo_async_port_is_up(&module[0], false)); /* nobody is asked */
    OFO.closing = false;
    is_deaf = falls = true;
    now += 5000;
    assert_false(ofo_async_port_is_up(&module[0], true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(end_of_a_device_is_told_by_one),
        cmocka_unit_test(port_of_a_device_that_is_gone_does_not_come_back),
        cmocka_unit_test(end_of_a_port_that_is_down_is_told_once),
        cmocka_unit_test(event_of_a_port_leaves_the_other_alone),
        cmocka_unit_test(port_returns_with_another_address),
        cmocka_unit_test(address_missing_for_a_moment_ends_nothing),
        cmocka_unit_test(port_takes_another_address_when_its_own_is_gone),
        cmocka_unit_test(port_whose_completion_queue_failed_does_not_come_back),
        cmocka_unit_test(failed_queue_of_control_messages_ends_its_port_for_good),
        cmocka_unit_test(failed_shared_queue_ends_its_port_for_good),
        cmocka_unit_test(end_of_a_device_takes_both_ports),
        cmocka_unit_test(progress_waits_once_for_a_service_that_is_deaf),
        cmocka_unit_test(service_asks_for_the_port),
        cmocka_unit_test(fence_waits_for_the_last_receive_of_who_tells_it),
        cmocka_unit_test(queues_of_others_are_left_alone),
        cmocka_unit_test(queue_pair_that_is_fatal_once_stays_fatal),
        cmocka_unit_test(port_without_its_address_stays_as_it_is),
        cmocka_unit_test(other_lane_of_a_port_that_takes_another_address_ends_its_connections),
        cmocka_unit_test(nobody_is_asked_at_the_end_and_a_port_that_falls_meanwhile_is_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
