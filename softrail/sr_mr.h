/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Memory regions: keys, and which memory a key gives access to.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_MR_H
#define SR_MR_H

#include "sr_objects.h"

struct ibv_mr *sr_mr_reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access);
int sr_mr_dereg(struct ibv_mr *mr);
/* Finds the address in the memory of `peer` (sr.self: of this process) that (key, addr, length) stands for. False if
 * it is not registered in `pd` with all of `access`. */
bool sr_mr_resolve(struct sr_peer *peer, uint32_t pd, uint32_t key, uint64_t addr, uint64_t length, unsigned access, uint64_t *where);
/* Is one region registered that holds all of this memory (for writing, if `write`)? */
bool sr_mr_covers(uint64_t addr, uint64_t length, bool write);
/* Does this process have memory there? */
bool sr_mr_is_mapped(const void *addr, size_t length);
/* After fork: the child forgets the objects of its parent. */
void sr_mr_reset(void);

#endif /* SR_MR_H */
