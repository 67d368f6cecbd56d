/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Copies that the peer makes if the kernel forbids this process to make them.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_SERVICE_H
#define SR_SERVICE_H

#include "sr_objects.h"

/* Start the thread that copies for peers that cannot reach this process's memory. */
int sr_service_start(void);
/* Have the peer copy `length` bytes (at most SR_SERVICE_BYTES). Returns 0, ESRCH, EFAULT, or EPERM without service. */
int sr_service_ask(struct sr_peer *peer, void *local, uint64_t remote, size_t length, bool write);

#endif /* SR_SERVICE_H */
