/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Integers in network byte order at any address, for records and control messages. No Open MPI header. See DESIGN.txt 15.2 and 15.3.
 */
#ifndef BTL_OPENIB_BYTES_H
#define BTL_OPENIB_BYTES_H

#include <stdint.h>

static inline void ofo_put16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t) (value >> 8);
    at[1] = (uint8_t) value;
}

static inline void ofo_put32(uint8_t *at, uint32_t value)
{
    ofo_put16(at, (uint16_t) (value >> 16));
    ofo_put16(at + 2, (uint16_t) value);
}

static inline void ofo_put64(uint8_t *at, uint64_t value)
{
    ofo_put32(at, (uint32_t) (value >> 32));
    ofo_put32(at + 4, (uint32_t) value);
}

static inline uint16_t ofo_get16(const uint8_t *at)
{
    return (uint16_t) (at[0] << 8 | at[1]);
}

static inline uint32_t ofo_get32(const uint8_t *at)
{
    return (uint32_t) ofo_get16(at) << 16 | ofo_get16(at + 2);
}

static inline uint64_t ofo_get64(const uint8_t *at)
{
    return (uint64_t) ofo_get32(at) << 32 | ofo_get32(at + 4);
}

#endif /* BTL_OPENIB_BYTES_H */
