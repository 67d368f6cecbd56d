/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The clock of all timers of the BTL. Any thread. See DESIGN.txt 15.1.
 */
#ifndef BTL_OPENIB_CLOCK_H
#define BTL_OPENIB_CLOCK_H

#include <stdint.h>

/* Milliseconds of the monotonic clock. */
uint64_t ofo_now_ms(void);

#endif /* BTL_OPENIB_CLOCK_H */
