/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Copies between this process's memory and a peer's.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_COPY_H
#define SR_COPY_H

#include "sr_objects.h"

/* Copy between local memory and a peer's. Return 0; ESRCH: the peer is gone; EFAULT: memory is gone, and
 * sr_copy_is_local_fault says whether it is ours; never EINTR. */
int sr_copy_to(struct sr_peer *peer, const struct iovec *local, unsigned locals, const struct iovec *remote, unsigned remotes);
int sr_copy_from(struct sr_peer *peer, const struct iovec *local, unsigned locals, const struct iovec *remote, unsigned remotes);
bool sr_copy_is_local_fault(const struct iovec *local, unsigned locals);

#endif /* SR_COPY_H */
