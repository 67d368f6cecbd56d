/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Memory regions: keys, and what memory a key opens to whom.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_MR_H
#define SR_MR_H

#include "sr_objects.h"

struct ibv_mr *sr_mr_reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access);
int sr_mr_dereg(struct ibv_mr *mr);
/* Address in the memory of `peer` (or here: sr.self) behind (key, addr, length), if it is registered in `pd`
 * with all of `access`. Returns false if not. */
bool sr_mr_resolve(struct sr_peer *peer, uint32_t pd, uint32_t key, uint64_t addr, uint64_t length, unsigned access, uint64_t *where);
/* Is all of this memory registered (for writing)? */
bool sr_mr_covers(uint64_t addr, uint64_t length, bool write);
/* Does this process have memory there? */
bool sr_mr_is_mapped(const void *addr, size_t length);
/* After fork: the child forgets the objects of its parent. */
void sr_mr_reset(void);

#endif /* SR_MR_H */
