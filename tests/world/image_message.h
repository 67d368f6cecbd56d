/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A message of the application: what both ends know of it, its memory, and the guards around it.
 */
#ifndef IMAGE_MESSAGE_H
#define IMAGE_MESSAGE_H

#include "image_ompi.h"

#include "ompi/request/request.h"

/* How a message is sent and received: received by its sender's rank, from any source, by a matched probe, with persistent requests, or on
 * the second communicator. */
typedef enum { NAMED, ANY, PROBED, PERSISTENT, OTHER, KINDS } kind_t;

enum { GUARD = 64, BLOCK = 32, EXTENT = 80, HEADER = 16 };

typedef struct message {
    struct message *next;
    ompi_request_t *request;
    uint8_t *memory;
    size_t size, length; /* bytes of the message, and of its memory */
    bool is_send, is_strided, is_done;
    bool is_idle;                  /* its persistent request does not run */
    unsigned peer, number, posted; /* number: among the messages from its sender; a receive of kind ANY learns it */
    kind_t kind;
} message_t;

/* Reads the plan. */
void message_begin(void);

/* ---- what both ends know ------------------------------------------------------------------------------------ */

kind_t kind_of(unsigned from, unsigned to, unsigned number);
size_t size_of(unsigned from, unsigned to, unsigned number);
/* The tag of its sender. On the second communicator tags vary. */
int tag_of(kind_t kind, unsigned thread, unsigned number);
ompi_communicator_t *comm_of(kind_t kind);
/* Bytes of the longest message. */
size_t message_longest(void);

/* ---- memory --------------------------------------------------------------------------------------------------- */

message_t *message_make(bool is_send, unsigned peer, unsigned number, kind_t kind, size_t size);
void message_free(message_t *m);
ompi_datatype_t *type_of(const message_t *m);
size_t count_of(const message_t *m);
/* As it was made. */
void memory_clear(message_t *m);
/* Its bytes are written, or looked at. */
void memory_fill(message_t *m, unsigned from, unsigned to);
void memory_check(const message_t *m, unsigned from, unsigned to, const char *when);
/* What stands at this place of a memory in which nothing was received. */
uint8_t guard_at(size_t i);

#endif /* IMAGE_MESSAGE_H */
