/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Connections of librdmacm within one process: behaviour that rping and perftest do not show. Run this program under softrail run -n 2;
 * with the argument "impatient" under softrail run -n 2 --retry-time 500ms.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

enum { WAIT_MS = 60000, PORT = 7471 };

static struct sockaddr_in rail1(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};

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
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
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

/* As in a request of InfiniBand, the caller has 56 bytes; one byte more is refused. */
static void private_data(void **state)
{
    struct rdma_event_channel *ears = channel_new(), *mouth = channel_new();
    struct rdma_cm_id *listener = listener_new(ears), *caller = caller_new(mouth), *accepted;
    uint8_t data[57];
    struct rdma_conn_param param = {.private_data = data, .private_data_len = sizeof(data)};
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

/* The listener begins after the call; then a call finds no listener at all. */
static void late_listener(void **state)
{
    struct rdma_event_channel *ears = channel_new(), *mouth = channel_new();
    struct rdma_cm_id *caller = caller_new(mouth), *listener;
    struct pollfd heard = {.fd = ears->fd, .events = POLLIN}, timer = {.fd = mouth->fd, .events = POLLIN};
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

/* Connects a socket to the listener and sends nothing over it. */
static int silent_peer(void)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
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

/* A listener that ends closes sockets that it has accepted and not yet handed out. */
static void listener_ends(void **state)
{
    struct rdma_event_channel *ears = channel_new();
    struct rdma_cm_id *listener = listener_new(ears);
    int fd = silent_peer();
    struct pollfd closed = {.fd = fd};

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

/* Events that are not fetched yet, and later requests, move with the identifier to its new channel. */
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

/* ---- calls that wait by themselves -------------------------------------------------------------- */

struct visitor {
    pthread_t thread;
    struct rdma_addrinfo *where;
    bool refused;
    char text[8];
};

static struct ibv_qp_init_attr one_each(void)
{
    return (struct ibv_qp_init_attr){.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}, .sq_sig_all = 1};
}

/* Connects and gets a message, or sees that the listener refuses it. */
static void *visit(void *arg)
{
    struct visitor *v = arg;
    struct ibv_qp_init_attr init = one_each();
    struct rdma_cm_id *id;
    struct ibv_mr *mr;
    struct ibv_wc wc;

    if (0 != rdma_create_ep(&id, v->where, NULL, &init) || NULL == (mr = rdma_reg_msgs(id, v->text, sizeof(v->text)))
        || 0 != rdma_post_recv(id, NULL, v->text, sizeof(v->text), mr)) {
        return (void *) "no endpoint";
    }
    if (0 != rdma_connect(id, NULL)) {
        v->refused = ECONNREFUSED == errno;
    } else if (1 != rdma_get_recv_comp(id, &wc) || IBV_WC_SUCCESS != wc.status || 0 != rdma_disconnect(id)) {
        return (void *) "no message";
    }
    rdma_dereg_mr(mr);
    rdma_destroy_ep(id);
    return NULL;
}

static void visitor_start(struct visitor *v)
{
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP};

    assert_int_equal(0, rdma_getaddrinfo("127.42.1.1", "7471", &hints, &v->where));
    assert_int_equal(0, pthread_create(&v->thread, NULL, visit, v));
}

static void visitor_ends(struct visitor *v)
{
    void *complaint;

    assert_int_equal(0, pthread_join(v->thread, &complaint));
    assert_null(complaint);
    rdma_freeaddrinfo(v->where);
}

/* Neither end has a channel; each identifier has its own queues, memory and events. */
static void endpoints(void **state)
{
    struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *here;
    struct visitor refused = {.refused = false}, welcome = {.refused = false};
    struct ibv_qp_init_attr init = one_each();
    struct rdma_cm_id *listener, *id;
    char text[8] = "hello";
    struct ibv_mr *mr;
    struct ibv_wc wc;

    (void) state;
    assert_int_equal(0, rdma_getaddrinfo("127.42.1.1", "7471", &hints, &here));
    assert_int_equal(0, rdma_create_ep(&listener, here, NULL, &init));
    assert_int_equal(0, rdma_listen(listener, 4));
    visitor_start(&refused);
    assert_int_equal(0, rdma_get_request(listener, &id));
    assert_ptr_not_equal(listener->channel, id->channel);
    assert_int_equal(0, rdma_reject(id, NULL, 0));
    rdma_destroy_ep(id);
    visitor_ends(&refused);
    assert_true(refused.refused);

    visitor_start(&welcome);
    assert_int_equal(0, rdma_get_request(listener, &id));
    assert_non_null(id->qp);
    assert_non_null(mr = rdma_reg_msgs(id, text, sizeof(text)));
    assert_int_equal(0, rdma_accept(id, NULL));
    assert_int_equal(RDMA_CM_EVENT_ESTABLISHED, id->event->event);
    assert_int_equal(0, rdma_post_send(id, NULL, text, sizeof(text), mr, 0));
    assert_int_equal(1, rdma_get_send_comp(id, &wc));
    assert_int_equal(0, rdma_disconnect(id));
    assert_int_equal(RDMA_CM_EVENT_DISCONNECTED, id->event->event);
    visitor_ends(&welcome);
    assert_string_equal("hello", welcome.text);
    rdma_dereg_mr(mr);
    rdma_destroy_ep(id);
    rdma_destroy_ep(listener);
    rdma_freeaddrinfo(here);
}

/* ---- datagrams ---------------------------------------------------------------------------------- */

/* The caller learns where to send datagrams. A refusal and a missing listener give different errors. */
static void datagrams(void **state)
{
    struct rdma_event_channel *ears = channel_new(), *mouth = channel_new();
    struct sockaddr_in address = rail1();
    struct rdma_cm_id *listener, *caller, *asked;
    struct rdma_conn_param me = {.qp_num = 77, .private_data = "port", .private_data_len = 4};
    struct rdma_cm_event *event;

    (void) state;
    for (int welcome = 0; welcome < 2; ++welcome) {
        assert_int_equal(0, rdma_create_id(ears, &listener, NULL, RDMA_PS_UDP));
        assert_int_equal(0, rdma_bind_addr(listener, (struct sockaddr *) &address));
        assert_int_equal(0, rdma_listen(listener, 4));
        assert_int_equal(0, rdma_create_id(mouth, &caller, NULL, RDMA_PS_UDP));
        assert_int_equal(0, rdma_resolve_addr(caller, NULL, (struct sockaddr *) &address, WAIT_MS));
        expect(mouth, RDMA_CM_EVENT_ADDR_RESOLVED);
        assert_int_equal(0, rdma_resolve_route(caller, WAIT_MS));
        expect(mouth, RDMA_CM_EVENT_ROUTE_RESOLVED);
        assert_int_equal(0, rdma_connect(caller, &me));
        event = next(ears, RDMA_CM_EVENT_CONNECT_REQUEST);
        asked = event->id;
        assert_memory_equal("port", event->param.ud.private_data, 4);
        rdma_ack_cm_event(event);
        assert_int_equal(0, welcome ? rdma_accept(asked, &me) : rdma_reject(asked, NULL, 0));
        event = next(mouth, welcome ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_UNREACHABLE);
        if (welcome) {
            assert_int_equal(77, event->param.ud.qp_num);
            assert_int_equal(RDMA_UDP_QKEY, event->param.ud.qkey);
            assert_int_equal(1, event->param.ud.ah_attr.port_num);
        } else {
            assert_int_equal(2, event->status);
        }
        rdma_ack_cm_event(event);
        rdma_destroy_id(asked);
        rdma_destroy_id(caller);
        rdma_destroy_id(listener);
        assert_silent(ears);
        assert_silent(mouth);
    }
    rdma_destroy_event_channel(mouth);
    rdma_destroy_event_channel(ears);
}

/* Calls that are not offered fail at once. */
static void refused(void **state)
{
    struct sockaddr_in group = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xefffff01)};
    struct rdma_event_channel *mouth = channel_new();
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;

    (void) state;
    assert_int_equal(0, rdma_create_id(mouth, &id, NULL, RDMA_PS_UDP));
    assert_int_equal(-1, rdma_join_multicast(id, (struct sockaddr *) &group, NULL));
    assert_int_equal(EOPNOTSUPP, errno);
    assert_int_equal(0, rdma_resolve_addr(id, NULL, (struct sockaddr *) &group, WAIT_MS));
    event = next(mouth, RDMA_CM_EVENT_ADDR_ERROR);
    assert_int_equal(-EOPNOTSUPP, event->status);
    rdma_ack_cm_event(event);
    rdma_destroy_id(id);
    rdma_destroy_event_channel(mouth);
}

/* ---- rails that fail meanwhile ------------------------------------------------------------------ */

static void rail(const char *command)
{
    char line[300];

    snprintf(line, sizeof(line), "\"%.200s\" %s sr1", getenv("SOFTRAIL"), command);
    assert_int_equal(0, system(line));
}

/* Each letter of a connection that is sent while the path is silent arrives after the silence. */
static void silence_that_ends(void **state)
{
    struct rdma_event_channel *ears = channel_new(), *mouth = channel_new();
    struct rdma_cm_id *listener = listener_new(ears), *caller = caller_new(mouth), *asked;
    struct rdma_cm_event *event;

    (void) state;
    rail("silent");
    assert_int_equal(0, rdma_connect(caller, NULL));
    assert_silent(ears);
    rail("up");
    while (0 != rdma_get_cm_event(ears, &event)) { /* polls the caller's channel too, because this channel does the caller's part of the work */
        assert_int_equal(EAGAIN, errno);
        assert_silent(mouth);
    }
    assert_int_equal(RDMA_CM_EVENT_CONNECT_REQUEST, event->event);
    asked = event->id;
    rdma_ack_cm_event(event);
    rail("down");
    assert_int_equal(0, rdma_accept(asked, NULL));
    assert_silent(mouth);
    rail("up");
    expect(mouth, RDMA_CM_EVENT_CONNECT_RESPONSE);
    assert_int_equal(0, rdma_establish(caller));
    expect(ears, RDMA_CM_EVENT_ESTABLISHED);
    rail("silent");
    assert_int_equal(0, rdma_disconnect(caller));
    expect(mouth, RDMA_CM_EVENT_DISCONNECTED);
    assert_silent(ears);
    rail("up");
    expect(ears, RDMA_CM_EVENT_DISCONNECTED);
    rdma_destroy_id(asked);
    rdma_destroy_id(caller);
    rdma_destroy_id(listener);
    rdma_destroy_event_channel(mouth);
    rdma_destroy_event_channel(ears);
}

/* No call waits without end for a silent network. */
static void silence_that_stays(void **state)
{
    struct rdma_event_channel *ears = channel_new(), *mouth = channel_new();
    struct rdma_cm_id *listener = listener_new(ears), *caller = caller_new(mouth), *other;
    struct sockaddr_in address = rail1();
    struct rdma_cm_event *event;

    (void) state;
    rail("silent");
    assert_int_equal(0, rdma_connect(caller, NULL));
    event = next(mouth, RDMA_CM_EVENT_UNREACHABLE);
    assert_int_equal(-ETIMEDOUT, event->status);
    rdma_ack_cm_event(event);
    assert_int_equal(0, rdma_create_id(mouth, &other, NULL, RDMA_PS_TCP));
    assert_int_equal(0, rdma_resolve_addr(other, NULL, (struct sockaddr *) &address, 50));
    event = next(mouth, RDMA_CM_EVENT_ADDR_ERROR);
    assert_int_equal(-ETIMEDOUT, event->status);
    rdma_ack_cm_event(event);
    rail("up");
    assert_int_equal(0, rdma_resolve_addr(other, NULL, (struct sockaddr *) &address, WAIT_MS));
    expect(mouth, RDMA_CM_EVENT_ADDR_RESOLVED);
    rail("silent");
    assert_int_equal(0, rdma_resolve_route(other, 50));
    expect(mouth, RDMA_CM_EVENT_ROUTE_ERROR);
    rdma_destroy_id(caller);
    rail("up");
    assert_silent(ears); /* no letter of the call that was given up arrives */
    rdma_destroy_id(other);

    rdma_destroy_id(listener);
    rdma_destroy_event_channel(mouth);
    rdma_destroy_event_channel(ears);
}

/* The last case of a fabric: each identifier of the device gets one event about the end of the device. */
static void device_removal(void **state)
{
    struct rdma_event_channel *ears = channel_new(), *mouth = channel_new();
    struct rdma_cm_id *listener = listener_new(ears), *caller = caller_new(mouth), *waiting = caller_new(mouth);
    struct sockaddr_in address = rail1();

    (void) state;
    assert_int_equal(0, rdma_connect(caller, NULL));
    rail("gone");
    expect(mouth, RDMA_CM_EVENT_DEVICE_REMOVAL);
    expect(mouth, RDMA_CM_EVENT_DEVICE_REMOVAL);
    assert_silent(mouth);
    expect(ears, RDMA_CM_EVENT_DEVICE_REMOVAL);
    assert_int_equal(-1, rdma_connect(waiting, NULL));
    rdma_destroy_id(waiting);
    rdma_destroy_id(caller);
    rdma_destroy_id(listener);
    assert_int_equal(0, rdma_create_id(mouth, &caller, NULL, RDMA_PS_TCP));
    assert_int_equal(-1, rdma_bind_addr(caller, (struct sockaddr *) &address));
    rdma_destroy_id(caller);
    rdma_destroy_event_channel(mouth);
    rdma_destroy_event_channel(ears);
}

/* ---- a channel that is closed while a thread reads it --------------------------------------------- */

struct reader {
    struct rdma_event_channel *channel;
    sem_t has_read, may_read;
    _Atomic pid_t tid; /* 0: the thread has not yet asked the closed channel */
    atomic_bool returned;
};

static void *read_twice(void *arg)
{
    struct reader *reader = arg;
    struct rdma_cm_event *event;

    assert_int_equal(-1, rdma_get_cm_event(reader->channel, &event));
    sem_post(&reader->has_read);
    sem_wait(&reader->may_read);
    atomic_store(&reader->tid, (pid_t) syscall(SYS_gettid));
    rdma_get_cm_event(reader->channel, &event);
    atomic_store(&reader->returned, true);
    return NULL;
}

static bool sleeps(pid_t tid)
{
    char name[64], state = 0;
    FILE *file;

    snprintf(name, sizeof(name), "/proc/self/task/%d/stat", (int) tid);
    file = fopen(name, "r");
    assert_non_null(file);
    assert_int_equal(1, fscanf(file, "%*d (%*[^)]) %c", &state));
    fclose(file);
    return 'S' == state;
}

/* A thread asks a channel for events that another thread has closed. The thread sleeps, as with the kernel; rping does this at its end. */
static void closed_under_reader(void **state)
{
    static struct reader reader; /* the thread stays until the process ends */
    pthread_t thread;

    (void) state;
    reader.channel = channel_new();
    sem_init(&reader.has_read, 0, 0);
    sem_init(&reader.may_read, 0, 0);
    assert_int_equal(0, pthread_create(&thread, NULL, read_twice, &reader));
    pthread_detach(thread);
    sem_wait(&reader.has_read);
    rdma_destroy_event_channel(reader.channel);
    sem_post(&reader.may_read);
    while (0 == atomic_load(&reader.tid)) {
        usleep(1000);
    }
    for (int ms = 0; !sleeps(atomic_load(&reader.tid)); ms++) {
        assert_false(atomic_load(&reader.returned));
        assert_in_range(ms, 0, WAIT_MS);
        usleep(1000);
    }
    assert_false(atomic_load(&reader.returned));
}

/* sr_connect [CASE | impatient] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(private_data),   cmocka_unit_test(late_listener),      cmocka_unit_test(listener_ends), cmocka_unit_test(migrate),
        cmocka_unit_test(endpoints),      cmocka_unit_test(datagrams),          cmocka_unit_test(refused),       cmocka_unit_test(silence_that_ends),
        cmocka_unit_test(device_removal), cmocka_unit_test(closed_under_reader)};
    const struct CMUnitTest impatient[] = {cmocka_unit_test(silence_that_stays)};

    if (1 < argc && 0 == strcmp("impatient", argv[1])) {
        return cmocka_run_group_tests(impatient, NULL, NULL);
    }
    if (1 < argc) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
