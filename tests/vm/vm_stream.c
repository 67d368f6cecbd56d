/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A numbered stream of sends over one RC queue pair, with a retry count of the caller's choice. The client ends
 * at the first error completion (or after --count messages). It prints the status of that completion, and how many
 * messages it posted, how many were acknowledged, and for how many the server got completions. Addresses and this
 * number are exchanged over TCP, which should use another network. DESIGN.txt 17. */
#include <argp.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MSG_SIZE = 1024, WINDOW = 16, RECVS = 128, IDLE_US = 300 };

struct options {
    const char *device, *port, *host; /* host: the server's name; NULL: this process is the server */
    long count, timeout, retry, seconds;
};

struct peer {
    uint32_t qpn, psn;
    union ibv_gid gid;
};

struct rail {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    unsigned char *memory;
    int gid_index;
    struct peer self;
};

static void die(const char *what)
{
    fprintf(stderr, "vm_stream: %s: %s\n", what, strerror(errno));
    exit(2);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

/* Finds the RoCE v2 GID that is made of an IPv4 address, whatever its index. */
static int find_gid(struct ibv_context *context, union ibv_gid *gid)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct ibv_gid_entry entries[64];
    ssize_t n = ibv_query_gid_table(context, entries, 64, 0);
    for (ssize_t i = 0; i < n; i++) {
        if (IBV_GID_TYPE_ROCE_V2 == entries[i].gid_type && 0 == memcmp(entries[i].gid.raw, mapped, 12)) {
            *gid = entries[i].gid;
            return (int) entries[i].gid_index;
        }
    }
    fprintf(stderr, "vm_stream: no RoCE v2 GID of an IPv4 address\n");
    exit(2);
}

static void open_rail(struct rail *r, const char *device)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    size_t size = (size_t) MSG_SIZE * RECVS;
    for (int i = 0; NULL != list && NULL != list[i]; i++) {
        if (0 == strcmp(ibv_get_device_name(list[i]), device)) {
            r->context = ibv_open_device(list[i]);
        }
    }
    if (NULL == r->context) {
        die(device);
    }
    r->gid_index = find_gid(r->context, &r->self.gid);
    r->memory = calloc(1, size);
    r->pd = ibv_alloc_pd(r->context);
    r->cq = ibv_create_cq(r->context, 2 * RECVS, NULL, NULL, 0);
    r->mr = r->memory && r->pd ? ibv_reg_mr(r->pd, r->memory, size, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (NULL == r->cq || NULL == r->mr) {
        die("cannot set up the device");
    }
    struct ibv_qp_init_attr init = {.send_cq = r->cq,
                                    .recv_cq = r->cq,
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1,
                                    .cap = {.max_send_wr = WINDOW, .max_recv_wr = RECVS, .max_send_sge = 1, .max_recv_sge = 1}};
    r->qp = ibv_create_qp(r->pd, &init);
    if (NULL == r->qp) {
        die("create_qp");
    }
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    if (0 != ibv_modify_qp(r->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) {
        die("modify_qp to INIT");
    }
    r->self.qpn = r->qp->qp_num;
    r->self.psn = (uint32_t) getpid() & 0xffffff;
}

static void connect_rail(struct rail *r, const struct peer *peer, const struct options *o)
{
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = peer->qpn,
                              .rq_psn = peer->psn,
                              .min_rnr_timer = 12,
                              .ah_attr = {.is_global = 1, .port_num = 1}};
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .sq_psn = r->self.psn, .timeout = (uint8_t) o->timeout, .retry_cnt = (uint8_t) o->retry, .rnr_retry = 7};
    rtr.ah_attr.grh.dgid = peer->gid;
    rtr.ah_attr.grh.sgid_index = (uint8_t) r->gid_index;
    rtr.ah_attr.grh.hop_limit = 64;
    if (0
        != ibv_modify_qp(r->qp, &rtr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC
                             | IBV_QP_MIN_RNR_TIMER)) {
        die("modify_qp to RTR");
    }
    if (0
        != ibv_modify_qp(r->qp, &rts,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)) {
        die("modify_qp to RTS");
    }
}

static void all(ssize_t got, size_t want, const char *what)
{
    if (got != (ssize_t) want) {
        die(what);
    }
}

static void exchange(int sock, const struct peer *self, struct peer *peer)
{
    all(write(sock, self, sizeof(*self)), sizeof(*self), "write");
    all(recv(sock, peer, sizeof(*peer), MSG_WAITALL), sizeof(*peer), "no answer from the other side");
}

static int tcp(const struct options *o)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = o->host ? 0 : AI_PASSIVE}, *found;
    double deadline = now() + 10;
    int sock, on = 1;
    if (0 != getaddrinfo(o->host, o->port, &hints, &found)) {
        errno = EHOSTUNREACH;
        die(o->host ? o->host : o->port);
    }
    for (;;) {
        sock = socket(AF_INET, SOCK_STREAM, 0);
        if (NULL == o->host) {
            setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
            if (0 != bind(sock, found->ai_addr, found->ai_addrlen) || 0 != listen(sock, 1)) {
                die("listen");
            }
            sock = accept(sock, NULL, NULL);
            break;
        }
        if (0 == connect(sock, found->ai_addr, found->ai_addrlen)) {
            break;
        }
        if (now() > deadline) {
            die("no server");
        }
        close(sock);
        usleep(100000);
    }
    freeaddrinfo(found);
    return sock;
}

static void post_recv(struct rail *r, uint64_t slot)
{
    struct ibv_sge sge = {(uintptr_t) r->memory + slot * MSG_SIZE, MSG_SIZE, r->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    if (0 != ibv_post_recv(r->qp, &wr, &bad)) {
        die("post_recv");
    }
}

/* Message n: its number, then bytes that are computed from the number. */
static void fill(unsigned char *at, uint64_t n)
{
    memcpy(at, &n, sizeof(n));
    memset(at + sizeof(n), (int) (n * 7 + 1), MSG_SIZE - sizeof(n));
}

static int is_message(const unsigned char *at, uint64_t n)
{
    unsigned char want[MSG_SIZE];
    fill(want, n);
    return 0 == memcmp(at, want, MSG_SIZE);
}

/* Counts the messages received; ends 0.3 s after the client has said that it has finished. */
static int serve(struct rail *r, int sock, double end)
{
    uint64_t received = 0, wrong = 0;
    struct ibv_wc wc;
    char c;
    double quiet = 0;
    while (now() < end && (0 == quiet || now() < quiet)) {
        int n = ibv_poll_cq(r->cq, 1, &wc);
        if (0 == n) {
            if (0 == quiet && 0 <= recv(sock, &c, 1, MSG_DONTWAIT)) {
                quiet = now() + 0.3;
            }
            usleep(IDLE_US);
        } else if (IBV_WC_SUCCESS == wc.status) {
            wrong += !is_message(r->memory + wc.wr_id * MSG_SIZE, received);
            received++;
            post_recv(r, wc.wr_id);
        }
    }
    uint64_t result[2] = {received, wrong};
    all(write(sock, result, sizeof(result)), sizeof(result), "write");
    return 0;
}

static int post_send(struct rail *r, uint64_t n)
{
    unsigned char *at = r->memory + (n % WINDOW) * MSG_SIZE;
    struct ibv_sge sge = {(uintptr_t) at, MSG_SIZE, r->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    fill(at, n);
    return ibv_post_send(r->qp, &wr, &bad);
}

static int stream(struct rail *r, int sock, const struct options *o)
{
    uint64_t sent = 0, acknowledged = 0, result[2] = {0, 0};
    double end = now() + (double) o->seconds;
    struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
    while (IBV_WC_SUCCESS == wc.status && now() < end && acknowledged < (uint64_t) o->count) {
        if (sent < (uint64_t) o->count && sent - acknowledged < WINDOW && 0 == post_send(r, sent)) {
            sent++;
        }
        int n = ibv_poll_cq(r->cq, 1, &wc);
        if (0 == n) {
            wc.status = IBV_WC_SUCCESS;
            usleep(IDLE_US);
        } else if (IBV_WC_SUCCESS == wc.status && 20 == ++acknowledged) {
            printf("flowing\n");
            fflush(stdout);
        }
    }
    printf("status %d (%s)\n", (int) wc.status, ibv_wc_status_str(wc.status));
    fflush(stdout);
    shutdown(sock, SHUT_WR);
    all(recv(sock, result, sizeof(result), MSG_WAITALL), sizeof(result), "no result from the server");
    printf("sent %llu acknowledged %llu received %llu wrong %llu\n", (unsigned long long) sent, (unsigned long long) acknowledged,
           (unsigned long long) result[0], (unsigned long long) result[1]);
    return IBV_WC_SUCCESS == wc.status && acknowledged == (uint64_t) o->count && 0 == result[1] && sent == result[0] ? 0 : 1;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case 'd':
        o->device = arg;
        return 0;
    case 'p':
        o->port = arg;
        return 0;
    case 'n':
        o->count = atol(arg);
        return 0;
    case 't':
        o->timeout = atol(arg);
        return 0;
    case 'r':
        o->retry = atol(arg);
        return 0;
    case 's':
        o->seconds = atol(arg);
        return 0;
    case ARGP_KEY_ARG:
        o->host = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option table[] = {
    {"device", 'd', "NAME", 0, "the rail (rxe0)", 0},
    {"port", 'p', "PORT", 0, "TCP port of the exchange", 0},
    {"count", 'n', "N", 0, "messages to send (1000000)", 0},
    {"timeout", 't', "T", 0, "acknowledgement timeout, 4.096 us x 2^T (14)", 0},
    {"retry", 'r', "N", 0, "retry count (3)", 0},
    {"seconds", 's', "S", 0, "the longest it may take (60)", 0},
    {0},
};

int main(int argc, char **argv)
{
    const struct argp argp = {table, parse, "[SERVER]", "A stream of RC sends; without SERVER: its receiver.", 0, 0, 0};
    struct options o = {"rxe0", "18800", NULL, 1000000, 14, 3, 60};
    struct rail r = {0};
    struct peer peer;
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    open_rail(&r, o.device);
    for (uint64_t slot = 0; NULL == o.host && slot < RECVS; slot++) {
        post_recv(&r, slot);
    }
    int sock = tcp(&o);
    exchange(sock, &r.self, &peer);
    connect_rail(&r, &peer, &o);
    exchange(sock, &r.self, &peer); /* both sides are ready */
    return o.host ? stream(&r, sock, &o) : serve(&r, sock, now() + (double) o.seconds);
}
