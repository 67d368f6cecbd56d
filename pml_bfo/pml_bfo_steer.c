/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The list of ports that stand out: in comes memory that another process writes, out goes a copy that is whole. Nothing of it is
 * trusted: a length out of range is an empty list, and no name has to end. DESIGN.txt section 19.6.
 */
#include "pml_bfo.h"

#include "pml_bfo_figures_file.h"
#include "pml_bfo_steer.h"

#include <string.h>

static const bfo_steer_t *steer; /* as it is now; NULL: none */
static bfo_steer_t list;         /* as it was read. Lock: bfo.lock, which who reads it takes to write */

bool bfo_steer_open(void)
{
    steer = NULL == steer ? bfo_figures_steer() : steer;
    return NULL != steer;
}

void bfo_steer_close(void)
{
    steer = NULL;
    memset(&list, 0, sizeof(list));
}

uint64_t bfo_steer_number(void)
{
    return NULL == steer ? 0 : __atomic_load_n(&steer->sequence, __ATOMIC_ACQUIRE);
}

uint64_t bfo_steer_number_read(void)
{
    return list.sequence;
}

uint32_t bfo_steer_ports(void)
{
    return list.n_out;
}

const char *bfo_steer_port(uint32_t i)
{
    return list.out[i];
}

/* Place of a port in a list; `n_out`: it is not there. */
static uint32_t place_in(const bfo_steer_t *in, const char *port)
{
    uint32_t i = 0;

    while (i < in->n_out && 0 != strncmp(port, in->out[i], sizeof(in->out[i]))) {
        ++i;
    }
    return i;
}

uint32_t bfo_steer_place(const char *port)
{
    return place_in(&list, port);
}

bool bfo_steer_read(void (*gone)(const char *port))
{
    const uint64_t number = bfo_steer_number();
    bfo_steer_t new;

    if (NULL == steer || 0 != (number & 1)) {
        return false;
    }
    memcpy(&new, steer, sizeof(new));
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (number != __atomic_load_n(&steer->sequence, __ATOMIC_RELAXED)) {
        return false;
    }
    new.n_out = new.n_out <= BFO_STEER_PORTS ? new.n_out : 0;
    new.sequence = number;
    for (uint32_t i = 0; i < list.n_out; ++i) {
        if (new.n_out == place_in(&new, list.out[i])) {
            gone(list.out[i]);
        }
    }
    BFO_LOCK(&bfo.lock);
    list = new;
    BFO_UNLOCK(&bfo.lock);
    return true;
}
