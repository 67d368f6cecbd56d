/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Two queue pairs that talk to each other, for tests: the objects that a case needs, and short names for its steps.
 */
#ifndef SR_PAIR_H
#define SR_PAIR_H

#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define PAIR_BYTES (1 << 20)
#define PAIR_DEPTH 32

struct side {
    struct ibv_qp *qp;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    struct ibv_mr *mr;
    unsigned char *memory; /* PAIR_BYTES, registered with every access right */
};

struct pair {
    struct ibv_context *context;
    struct ibv_comp_channel *channel;
    struct ibv_pd *pd;
    struct side a, b;
    enum ibv_qp_type type;
    unsigned rail;
};

struct pair_options {
    enum ibv_qp_type type;
    bool srq;
    int rnr_retry; /* -1 stands for 7 (without end) */
    int min_rnr_timer;
    unsigned rail;
};

void pair_open(struct pair *pair, struct pair_options options);
void pair_close(struct pair *pair);

struct ibv_context *open_rail(unsigned rail);
void side_open(struct pair *pair, struct side *side, bool srq);
void side_close(struct side *side);
void side_to_init(struct pair *pair, struct side *side);
/* Moves the queue pair to RTR and RTS towards (lid or gid, qpn). */
void side_connect(struct pair *pair, struct side *side, const struct ibv_ah_attr *where, uint32_t qpn, struct pair_options options);
void own_address(struct pair *pair, struct ibv_ah_attr *attr);
/* Opens rail 0 with side a only, in INIT; the other side is in another process. Returns the queue pair's number. */
uint32_t half_open(struct pair *pair, struct ibv_ah_attr *own);

int post_recv(struct side *side, uint64_t wr_id, uint32_t offset, uint32_t length);
int post_send(struct side *side, enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t offset, uint32_t length, unsigned flags, const struct side *to,
              uint32_t remote_offset);
int post_wr(struct side *side, struct ibv_send_wr *wr);

/* Wait for one completion, at most five seconds; check its id and status. */
struct ibv_wc expect_wc(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
void expect_nothing(struct ibv_cq *cq);
/* Wait for an asynchronous event of that type, at most five seconds, and acknowledge it. */
struct ibv_async_event expect_event(struct ibv_context *context, enum ibv_event_type type);
void expect_no_event(struct ibv_context *context);
void drain_events(struct ibv_context *context);

void fill(unsigned char *memory, size_t length, unsigned seed);
void verify(const unsigned char *memory, size_t length, unsigned seed);

/* Run the softrail command of this build. */
void softrail(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t now_ms(void);
/* A result that is due at once may be late on a busy machine, but not in each try. A result that waits for a clock is never early. */
enum { TRIES = 10 };

/* Posts a send of 100 bytes, and a receive for it. */
void send_one(struct pair *p, uint64_t id);
/* The end of a test with rules. */
int no_rules(void **state);

#endif /* SR_PAIR_H */
