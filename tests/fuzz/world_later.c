/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the PML does not do yet. Each case fails today; XFAIL_TESTS holds the script of each. DESIGN.txt sections 9, 11, 14.
 */
#define _GNU_SOURCE
#include "world_case.h"

#include "door/pml_bfo_send_api.h"

#include <sys/mman.h>

static char room[9000];

static bfo_peer_t *life_begins(void)
{
    world_begin();
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    return peer_of_rank(1);
}

static ompi_request_t *send_start(size_t size)
{
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_isend(room, size, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_SYNCHRONOUS, world_comm[0], &request),
         "a send does not start");
    return request;
}

/* Neither rail had a descriptor for the first of two messages. */
static void older_message_goes_first(void)
{
    const bfo_rndv_hdr_t *h;

    (void) life_begins();
    bfo_params.use_put = bfo_params.use_get = false;
    world_refuse_memory = 2;
    (void) send_start(100);
    must(0 == world_posted(), "a message without a descriptor does not wait");
    (void) send_start(100);
    (void) bfo_progress();
    must(2 == world_posted(), "a message waits although there are descriptors again");
    h = world_posted_message(0);
    must(0 == h->match.seq, "a later message takes the descriptor for which an earlier message waits");
}

/* A fence ends, while a request of another peer lies in memory that cannot be read. */
static void fence_looks_at_requests_of_its_peer_only(void)
{
    bfo_send_t *stranger = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void) life_begins();
    must(0 == bfo_ids_add(&bfo.sends, &stranger->name) && 0 == mprotect(stranger, 65536, PROT_NONE), "no memory");
    world_btl[0].ext.fence_done(&world_btl[0].super, &world_proc[1]->super, 0, 0, false);
}

static const world_case_t cases[] = {
    {"older_message_goes_first", older_message_goes_first},
    {"fence_looks_at_requests_of_its_peer_only", fence_looks_at_requests_of_its_peer_only},
};

int main(int argc, char **argv)
{
    if (argc > 1) {
        world_init();
    }
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
