/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Stand-in for a header that Open MPI's installed request headers include but distributions do not ship.
 * PERUSE itself is not used. DESIGN.txt section 18.2.
 */
#ifndef BFO_COMPAT_PERUSE_H
#define BFO_COMPAT_PERUSE_H

typedef void *peruse_event_h;
#define PERUSE_ERR_INIT 1

#endif /* BFO_COMPAT_PERUSE_H */
