/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The log. Any thread. See DESIGN.txt 15.1.
 */
#ifndef BTL_OPENIB_LOG_H
#define BTL_OPENIB_LOG_H

/* Writes one line if the user asked for this level by -mca btl_openib_verbose N. */
void ofo_log(unsigned level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* BTL_OPENIB_LOG_H */
