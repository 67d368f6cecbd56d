/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Tags whose keys meet in one bin of the matching tables.
 */
#ifndef MATCH_KEYS_H
#define MATCH_KEYS_H

#include "formats/pml_bfo_recv_match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* The bin of this key at the present number of bins. */
static inline size_t bin_of_key(bfo_match_t *m, bfo_lane_match_t *lane, int src, int tag)
{
    bfo_unexpected_t got = {.by_key = {.src = src, .tag = tag}};
    const bfo_link_t *l, *heads;

    bfo_match_store(m, lane, &got);
    heads = m->unexpected_key.heads;
    for (l = got.by_key.link.next; l < heads || l >= heads + m->unexpected_key.n; l = l->next) {
    }
    bfo_match_take(m, &got);
    return (size_t) (l - heads);
}

/* Finds `n` tags whose keys meet in one of `bins` bins with each of these sources; tries `tag`, `tag` + `step` and so on. */
static inline void find_tags(uint32_t bins, const int *sources, int n_sources, int tag, int step, int *found, int n)
{
    bfo_unexpected_t *fill = calloc(4 * (size_t) bins, sizeof(*fill));
    bfo_lane_match_t lane;
    bfo_match_t m;

    assert_int_equal(0, bfo_match_init(&m));
    bfo_lane_match_init(&lane, 0);
    for (uint32_t i = 0; m.unexpected_key.n < bins; ++i) {
        fill[i] = (bfo_unexpected_t){.by_key = {.src = 9, .tag = (int) i}};
        bfo_match_store(&m, &lane, &fill[i]);
    }
    for (int i = 0; i < n; tag += step) {
        bool fits = true;

        for (int s = 0; i > 0 && s < n_sources && fits; ++s) {
            fits = bin_of_key(&m, &lane, sources[s], tag) == bin_of_key(&m, &lane, sources[s], found[0]);
        }
        if (fits) {
            found[i++] = tag;
        }
    }
    bfo_match_free(&m);
    free(fill);
}

#endif /* MATCH_KEYS_H */
