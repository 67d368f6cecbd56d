/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Asynchronous events and completion channels.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_EVENT_H
#define SR_EVENT_H

#include "sr_objects.h"

/* Handles: small numbers for objects, so that no pointer goes through shared memory. 0: none. */
uint32_t sr_handle_add(void *object);
void *sr_handle_get(uint32_t id);
void sr_handle_remove(uint32_t id);
/* Makes a FIFO of this process. Returns its number, and its descriptor in *fd; 0 on failure (errno set). */
uint32_t sr_fifo_open(int *fd);
void sr_fifo_close(uint32_t number, int fd);
/* Write an event to a peer's FIFO, over a cached descriptor. */
void sr_event_send(struct sr_peer *peer, uint32_t fifo, uint32_t type, uint32_t id);
void sr_acks_init(struct sr_acks *acks);
void sr_acks_wait(struct sr_acks *acks);
int sr_event_get(struct ibv_context *context, struct ibv_async_event *event);
void sr_event_ack(struct ibv_async_event *event);
int sr_channel_get(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void sr_channel_ack(struct ibv_cq *cq, unsigned count);
struct ibv_comp_channel *sr_channel_create(struct ibv_context *context);
int sr_channel_destroy(struct ibv_comp_channel *channel);

/* After fork: the child forgets the objects of its parent. */
void sr_event_reset(void);

#endif /* SR_EVENT_H */
