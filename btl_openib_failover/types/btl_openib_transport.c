/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The table of the transports: InfiniBand with RoCE, and iWARP. See DESIGN.txt 15.7.
 */
#include "types/btl_openib_transport.h"

#include <string.h>

const ofo_transport_t ofo_transport_infiniband = {
    .type = "infiniband",
    .alias = "ib",
    .delivers = true,
    .has_partitions = true,
    .has_gids = true,
    .returns_markers = true,
    .fills_upwards = true,
};

const ofo_transport_t ofo_transport_iwarp = {
    .type = "iwarp",
    .alias = "iwarp",
    .moves_itself = true,
    .acceptor_listens = true,
    .closes = true,
    .keeps_dead = true,
    .reads_as_writes = true,
};

const ofo_transport_t *ofo_transport_of(const struct ibv_device *verbs)
{
    return IBV_TRANSPORT_IWARP == verbs->transport_type ? &ofo_transport_iwarp : &ofo_transport_infiniband;
}

bool ofo_transport_is_wanted(const ofo_transport_t *transport, const char *wanted)
{
    return 0 == strcmp(wanted, "all") || 0 == strcmp(wanted, transport->type) || 0 == strcmp(wanted, transport->alias);
}
