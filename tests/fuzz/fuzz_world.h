/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A world of one process for the PML: two peers, BTLs that keep what is posted until the fuzzer lets it complete, two
 * communicators. No MPI_Init, no other process. Also the world of tests/sim/rows. DESIGN.txt section 18.
 */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H

#include "types/pml_bfo.h"

#include "door/pml_bfo_module.h"
#include "types/pml_bfo_params.h"
#include "rails/pml_bfo_pending.h"
#include "rails/pml_bfo_rails.h"

enum {
    WORLD_RANKS = 3, /* this process is 0; two rails with failover reach 1, a rail without failover reaches 2 */
    WORLD_BTLS = 3,
    WORLD_ALL_BTLS = 4, /* including the third rail to 1 */
    WORLD_HANDLE = 16,  /* bytes of a registration handle of the rails with failover */
    WORLD_COMMS = 2
};

/* A BTL module. The extension directly follows the module, as in our BTL. */
typedef struct {
    mca_btl_base_module_t super;
    bfo_btl_ext_t ext;
    bfo_traffic_t traffic;
    int peer;        /* the rank that it reaches */
    uint16_t gen;    /* of the rail */
    bool returns;    /* the rail proves its next generation */
    bool stands_out; /* by force, as the PML says */
    bool asks;       /* the peer's acknowledgement of its end is missing */
} world_btl_t;

extern world_btl_t world_btl[WORLD_ALL_BTLS];
extern ompi_communicator_t *world_comm[WORLD_COMMS];
extern ompi_proc_t *world_proc[WORLD_RANKS];
extern ompi_datatype_t *world_strided;

/* The BTLs refuse so many of the next posts, each for its reason; every refusal counts down. */
extern unsigned world_refuse_busy, world_refuse_dead, world_refuse_memory;
/* The next btl_sendi calls it once, before it answers; stands for the steps of another thread meanwhile. */
extern void (*world_in_sendi)(void);

/* Set before world_init(): rank 1 has a third rail, world_btl[3]. */
extern bool world_third_rail;
/* Set before world_init(): the rail to rank 2 has failover too. */
extern bool world_second_is_safe;
/* The life record of each process. */
extern bfo_life_t world_life[WORLD_RANKS];
/* NULL, or called with each line that the PML writes; may also stand for another thread that runs at that moment. */
extern void (*world_on_output)(const char *line);
/* How often the error handler of a communicator was called, and of which communicator last. */
extern unsigned world_handled;
extern const void *world_handled_last;

void world_init(void);
/* NULL, or called in every call of progress. */
extern void (*world_on_progress)(void);
/* Does the PML look at ports that stand out with each call of progress? */
bool world_looks_at_ports(void);
/* A fresh PML, as after MPI_Init. */
void world_begin(void);
/* Ends every peer; all posted work comes back. */
void world_drain(void);
void world_end(void);

/* Adds or removes the second communicator. */
void world_comm_add(void);
void world_comm_remove(void);
bool world_comm_is_there(void);

/* Hands a fragment up as the BTL does, in memory of its exact size. */
void world_receive(world_btl_t *btl, uint8_t tag, const void *bytes, size_t length, size_t split);
/* The peer answers the send with a PUT for these bytes, over this rail. */
void world_put_comes(world_btl_t *btl, const bfo_send_t *req, size_t from, size_t size);
/* The first fragment of a message of rank 1 with tag 4 comes over this rail; it offers a READ (RGET). */
void world_rget_comes(world_btl_t *btl, size_t length, uint32_t seq);
/* Number of operations (messages, RDMA) that are posted and not complete; n below is the place of an operation in this list. */
unsigned world_posted(void);
/* Header and payload of operation n, which is a message. */
const void *world_posted_message(unsigned n);
/* Operation n completes. */
void world_complete(unsigned n, int status);
/* Number of fences that the PML asked for, or that the BTL began after an error. world_fence_done() ends fence n. */
unsigned world_fences(void);
void world_fence_done(unsigned n, bool lossy);
/* The BTL reports an error of its rail; every post is refused afterwards. */
void world_rail_fails(world_btl_t *btl);
/* The fence of the rail is done; the rail comes back with its next generation. */
void world_rail_returns(world_btl_t *btl);
/* The BTL reports the end of the probation of that generation of the rail. */
void world_rail_is_trusted(world_btl_t *btl, uint16_t gen);
/* The BTL has the rail's next generation, and has not reported it yet. */
void world_rail_returns_unheard(world_btl_t *btl);
/* Number of PUTs that receives have asked for and that have not ended. */
unsigned world_open_puts(void);
/* Operation n, a message of btl_sendi, comes back. */
void world_sendi_fails(unsigned n, int status);

/* The first operation that sends a message of this type (also by btl_sendi), or that is of one of these kinds; -1: none. */
enum { WORLD_PUT = 256, WORLD_GET };
int world_find(unsigned type);
/* Bytes of operation n, which is a READ or a WRITE, and the first byte of the peer's handle that it uses. */
size_t world_size_of(unsigned n);
uint8_t world_handle_of(unsigned n);
/* The first byte of a handle that module b makes. */
#define WORLD_HANDLE_OF(b) ((uint8_t) (0xa0 + (b)))
/* The module on which operation n was posted. */
world_btl_t *world_btl_of(unsigned n);

/* ---- between the two halves of the world ------------------------------------------------------------ */
void world_list_module(int b);
void world_btl_make(int b, int peer, const mca_btl_base_component_t *component, bool failover);
void world_btl_handler(mca_btl_base_tag_t tag, mca_btl_base_module_recv_cb_fn_t handler);
void world_btl_begin(void);

/* ---- fuzz_races.c -------------------------------------------------------------------------------- */
/* Runs orders of events that threads can bring about, one by one; ends the process if one of them goes wrong. */
void fuzz_races(void);

/* ---- fuzz_threads.c ------------------------------------------------------------------------------ */
/* As fuzz_races(), for steps of a second thread between two steps of the first. */
void fuzz_threads(void);

/* ---- fuzz_early.c -------------------------------------------------------------------------------- */
/* As fuzz_races(), for messages that come before their communicator or their turn. */
void fuzz_early(void);

/* ---- fuzz_params.c ------------------------------------------------------------------------------- */
/* As fuzz_races(), for the effects of parameters. */
void fuzz_params(void);

#endif /* FUZZ_WORLD_H */
