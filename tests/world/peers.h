/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Peers without an image: they answer the one process that has an image at the level of the wire. See peers.c.
 */
#ifndef WORLD_PEERS_H
#define WORLD_PEERS_H

#include <stddef.h>

enum { PEERS_PER_NODE = 16 };

/* What the peer has published under the key. NULL: nothing. */
const void *peers_published(unsigned rank, const char *key, size_t *size);

#endif /* WORLD_PEERS_H */
