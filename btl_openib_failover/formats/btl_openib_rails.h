/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which of our ports forms a rail with which port of a peer, and the rail's name. Both sides compute the same
 * list from the two modex records. No Open MPI header. See DESIGN.txt 10.
 */
#ifndef BTL_OPENIB_RAILS_H
#define BTL_OPENIB_RAILS_H

#include "formats/btl_openib_wire.h"

#include <stdbool.h>

typedef struct {
    uint8_t local;  /* index into the own record's ports */
    uint8_t remote; /* index into the peer's record's ports */
    uint8_t lane;
} ofo_pair_t;

typedef struct {
    unsigned count; /* the rail's name is its index */
    ofo_pair_t pair[OFO_MAX_RAILS];
    uint64_t hash;          /* FNV-1a over the list, equal on both sides */
    unsigned unused_local;  /* our ports without a partner, except those that were down at the start */
    unsigned unused_remote; /* the same of the peer */
    unsigned unroutable;    /* pairs of the map that were left out: see btl_openib_rails.c */
} ofo_rails_t;

/* Fills in *rails. `own_is_lower`: our process name is the lower of the two. `map` is NULL or the list
 * "portA-portB,..." (btl_openib_rail_map), which both sides read the same way. Returns 0, or -1 if `map` cannot be
 * read (rails->count is 0 then). */
int ofo_rails_pair(const ofo_record_t *own, const ofo_record_t *peer, bool own_is_lower, const char *map, ofo_rails_t *rails);

/* The ports of the peer that may be at the other end of this rail, one bit for each: those of all rails whose ports have the same
 * InfiniBand prefix and the same LIDs of subnet managers. 0 if there is only one, or if the rail is one of a port that was down at the
 * start: such a rail is as in the list. Both sides get the same result. */
uint16_t ofo_rails_choices(const ofo_record_t *own, const ofo_record_t *peer, const ofo_rails_t *rails, unsigned rail);

/* Sets the network of the IP address in a GID. A `prefix_len` of 0, or one that is too long, means /24 for IPv4 and /64 for IPv6. */
void ofo_subnet_set_ip(ofo_subnet_t *subnet, const uint8_t *gid, unsigned prefix_len);

/* Mixes the name of the port's fabric into its subnet, if `list` ("device:port=name,...", or NULL) names one. */
void ofo_subnet_add_fabric(ofo_subnet_t *subnet, const char *list, const char *port);

/* Does each entry of the list have a port and a name? True for NULL. */
bool ofo_fabrics_are_well(const char *list);

/* The first entry whose port is not in the record; NULL if there is none. */
const char *ofo_fabrics_stray(const char *list, const ofo_record_t *record);

/* FNV-1a, 64 bits; start with OFO_FNV_START. */
#define OFO_FNV_START UINT64_C(0xcbf29ce484222325)
uint64_t ofo_fnv1a(uint64_t hash, const void *data, size_t length);

#endif /* BTL_OPENIB_RAILS_H */
