/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * In what the transports of adapters differ. Code asks for the fact on which it depends, not for the transport. Tests alone name the rows.
 * See DESIGN.txt 15.7.
 */
#ifndef BTL_OPENIB_TRANSPORT_H
#define BTL_OPENIB_TRANSPORT_H

#include <infiniband/verbs.h>
#include <stdbool.h>

typedef struct {
    const char *type;      /* the value of btl_openib_device_type that chooses this transport */
    const char *alias;     /* another such value */
    bool delivers;         /* a success says that the peer's adapter has the data (A1), so a lost rail can be repaired */
    bool has_partitions;   /* ports have partition keys */
    bool has_gids;         /* a GID says which network the port belongs to; otherwise the IP address of the port's interface says so */
    bool moves_itself;     /* the device moves a queue pair at connect and accept. A connect needs a queue pair, which cannot connect again */
    bool acceptor_listens; /* the side that accepted sends nothing on a queue pair until it has received something (RFC 5044, 7.1) */
    bool closes;           /* a process that leaves closes its connections, and receives come back at the peer */
    bool returns_markers;  /* a queue pair in the error state gives back what is posted on it */
    bool keeps_dead;       /* completions of a queue pair stay in their queue when the queue pair is destroyed */
    bool fills_upwards;    /* the last byte of a WRITE arrives last, so an eager ring can watch this byte */
    bool reads_as_writes;  /* the peer writes the data of our READ (RFC 5040), so the memory must be open to writes of the peer */
} ofo_transport_t;

extern const ofo_transport_t ofo_transport_infiniband; /* RoCE too */
extern const ofo_transport_t ofo_transport_iwarp;

const ofo_transport_t *ofo_transport_of(const struct ibv_device *verbs);
/* Is this transport among those that the value `wanted` of btl_openib_device_type names? "all" names all. */
bool ofo_transport_is_wanted(const ofo_transport_t *transport, const char *wanted);

#endif /* BTL_OPENIB_TRANSPORT_H */
