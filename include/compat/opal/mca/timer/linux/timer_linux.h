/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Stand-in for a header that Open MPI's installed timer headers include but distributions do not ship. DESIGN.txt section 18.2.
 */
#ifndef BFO_COMPAT_TIMER_LINUX_H
#define BFO_COMPAT_TIMER_LINUX_H

#include <stdint.h>

typedef uint64_t opal_timer_t;

#endif /* BFO_COMPAT_TIMER_LINUX_H */
