/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Connections of librdmacm within one process: what rping and perftest do not show. Run it below softrail run -n 2.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <rdma/rdma_cma.h>

enum { WAIT_MS = 60000, PORT = 7471 };

static struct sockaddr_in rail1(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };

    address.sin_addr.s_addr = htonl(0x7f2a0101); /* 127.42.1.1 */
    return address;
}

/* A channel whose rdma_get_cm_event does not wait. */
static struct rdma_event_channel *channel_new(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();

    assert_non_null(channel);
    assert_int_equal(0, fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK));
    return channel;
}

static void assert_silent(struct rdma_event_channel *channel)
{
    struct rdma_cm_event *event;

    assert_int_equal(-1, rdma_get_cm_event(channel, &event));
    assert_int_equal(EAGAIN, errno);
}

/* The next event; it must be of this type. */
static struct rdma_cm_event *next(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
    struct rdma_cm_event *event = NULL;

    while (0 != rdma_get_cm_event(channel, &event)) {
        assert_int_equal(EAGAIN, errno);
        assert_int_equal(1, poll(&fd, 1, WAIT_MS));
    }
    assert_string_equal(rdma_event_str(type), rdma_event_str(event->event));
    return event;
}

static void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    assert_int_equal(0, rdma_ack_cm_event(next(channel, type)));
}

static struct rdma_cm_id *listener_new(struct rdma_event_channel *channel)
{
    struct sockaddr_in address = rail1();
    struct rdma_cm_id *id;

    assert_int_equal(0, rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    assert_int_equal(0, rdma_bind_addr(id, (struct sockaddr *) &address));
    assert_int_equal(0, rdma_listen(id, 4));
    return id;
}

/* An identifier that may call rdma_connect. */
static struct rdma_cm_id *caller_new(struct rdma_event_channel *channel)
{
    struct sockaddr_in address = rail1();
    struct rdma_cm_id *id;

    assert_int_equal(0, rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    assert_int_equal(0, rdma_resolve_addr(id, NULL, (struct sockaddr *) &address, WAIT_MS));
    expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(0, rdma_resolve_route(id, WAIT_MS));
    expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    return id;
}

/* As a request of InfiniBand: 56 bytes are the caller's, one more is refused. */
static void private_data(void **state)
{
    struct rdma_event_channel *ears = channel_new(), *mouth = channel_new();
    struct rdma_cm_id *listener = listener_new(ears), *caller = caller_new(mouth), *accepted;
    uint8_t data[57];
    struct rdma_conn_param param = { .private_data = data, .private_data_len = sizeof(data) };
    struct rdma_cm_event *event;

    (void) state;
    memset(data, 0x5a, sizeof(data));
    assert_int_equal(-1, rdma_connect(caller, &param));
    assert_int_equal(EINVAL, errno);
    param.private_data_len = 56;
    assert_int_equal(0, rdma_connect(caller, &param));
    event = next(ears, RDMA_CM_EVENT_CONNECT_REQUEST);
    accepted = event->id;
    assert_ptr_equal(listener, event->listen_id);
    assert_int_equal(56, event->param.conn.private_data_len);
    assert_memory_equal(data, event->param.conn.private_data, 56);
    rdma_ack_cm_event(event);
    assert_int_equal(0, rdma_reject(accepted, "no", 2));
    event = next(mouth, RDMA_CM_EVENT_REJECTED);
    assert_memory_equal("no", event->param.conn.private_data, 2);
    rdma_ack_cm_event(event);
    rdma_destroy_id(accepted);
    rdma_destroy_id(caller);
    rdma_destroy_id(listener);
    rdma_destroy_event_channel(mouth);
    rdma_destroy_event_channel(ears);
}

/* The listener comes after the call; and nobody comes at all. */
static void late_listener(void **state)
{
    struct rdma_event_channel *ears = channel_new(), *mouth = channel_new();
    struct rdma_cm_id *caller = caller_new(mouth), *listener;
    struct pollfd heard = { .fd = ears->fd, .events = POLLIN }, timer = { .fd = mouth->fd, .events = POLLIN };
    struct rdma_cm_event *event;

    (void) state;
    assert_int_equal(0, rdma_connect(caller, NULL));
    event = next(mouth, RDMA_CM_EVENT_REJECTED);
    assert_int_equal(8, event->status); /* no such service */
    rdma_ack_cm_event(event);
    rdma_destroy_id(caller);

    caller = caller_new(mouth);
    assert_int_equal(0, rdma_connect(caller, NULL));
    assert_silent(mouth);
    listener = listener_new(ears);
    while (0 == poll(&heard, 1, 0)) {
        assert_int_equal(1, poll(&timer, 1, WAIT_MS));
        assert_silent(mouth);
    }
    event = next(ears, RDMA_CM_EVENT_CONNECT_REQUEST);
    rdma_destroy_id(caller);
    caller = event->id;
    rdma_ack_cm_event(event);
    rdma_destroy_id(caller);
    rdma_destroy_id(listener);
    rdma_destroy_event_channel(mouth);
    rdma_destroy_event_channel(ears);
}

/* A socket to the listener that says nothing. */
static int silent_peer(void)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    char pattern[200];
    glob_t found;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    snprintf(pattern, sizeof(pattern), "%.160s/cm-*-%u-*", getenv("FABRIC_PATH"), (unsigned) PORT);
    assert_int_equal(0, glob(pattern, 0, NULL, &found));
    assert_int_equal(1, found.gl_pathc);
    assert_true(sizeof(un.sun_path) > strlen(found.gl_pathv[0]));
    strcpy(un.sun_path, found.gl_pathv[0]);
    globfree(&found);
    assert_int_equal(0, connect(fd, (struct sockaddr *) &un, sizeof(un)));
    return fd;
}

/* A listener that ends closes what it has accepted and not yet handed out. */
static void listener_ends(void **state)
{
    struct rdma_event_channel *ears = channel_new();
    struct rdma_cm_id *listener = listener_new(ears);
    int fd = silent_peer();
    struct pollfd closed = { .fd = fd };

    (void) state;
    assert_silent(ears);
    assert_int_equal(0, poll(&closed, 1, 0));
    rdma_destroy_id(listener);
    assert_int_equal(1, poll(&closed, 1, WAIT_MS));
    assert_true(0 != (closed.revents & POLLHUP));
    assert_silent(ears);
    close(fd);
    rdma_destroy_event_channel(ears);
}

/* Events that nobody has fetched yet, and requests to come, move with the identifier. */
static void migrate(void **state)
{
    struct rdma_event_channel *ears = channel_new(), *mouth = channel_new(), *other = channel_new();
    struct rdma_cm_id *listener = listener_new(ears), *caller;
    struct sockaddr_in address = rail1();
    struct rdma_cm_event *event;

    (void) state;
    assert_int_equal(0, rdma_create_id(mouth, &caller, NULL, RDMA_PS_TCP));
    assert_int_equal(0, rdma_resolve_addr(caller, NULL, (struct sockaddr *) &address, WAIT_MS));
    assert_int_equal(0, rdma_migrate_id(caller, other));
    assert_silent(mouth);
    expect(other, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_silent(other);
    assert_int_equal(0, rdma_connect(caller, NULL));
    assert_int_equal(0, rdma_migrate_id(listener, mouth));
    event = next(mouth, RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_ptr_equal(mouth, event->id->channel);
    assert_silent(ears);
    rdma_destroy_id(caller);
    caller = event->id;
    rdma_ack_cm_event(event);
    rdma_destroy_id(caller);
    rdma_destroy_id(listener);
    rdma_destroy_event_channel(other);
    rdma_destroy_event_channel(mouth);
    rdma_destroy_event_channel(ears);
}

/* sr_connect [CASE] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(private_data), cmocka_unit_test(late_listener),
                                        cmocka_unit_test(listener_ends), cmocka_unit_test(migrate) };

    if (1 < argc) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
