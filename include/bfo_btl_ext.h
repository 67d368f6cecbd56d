/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The interface between the PML bfo and a failover-capable BTL, beyond BTL 3.1.0. A BTL that offers it puts
 * one bfo_btl_ext_t directly after its mca_btl_base_module_t; the PML finds it by component name and magic.
 * See DESIGN.txt 4.
 */
#ifndef BFO_BTL_EXT_H
#define BFO_BTL_EXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bfo_ompi.h"
#include "bfo_traffic.h"

#include "opal_config.h"
#include "opal/mca/btl/btl.h"
#include "opal/util/proc.h"

/* "BFOBTLX1", first character in the lowest byte. */
#define BFO_BTL_EXT_MAGIC UINT64_C(0x31584c54424f4642)
#define BFO_BTL_EXT_VERSION 10u
#define BFO_BTL_EXT_COMPONENT "openib"

/* In des_flags: this is the second copy of a message, which the BTL does not offer again. */
#define BFO_BTL_DES_COPY 0x40000000u

/* State of one rail to one process, as the BTL sees it (DESIGN.txt, "Rails"). Only a rail that is UP carries data;
 * CLOSED and CONNECTING accept posts, which wait in the BTL until the connection is established. */
typedef enum {
    BFO_RAIL_CLOSED = 0,
    BFO_RAIL_CONNECTING,
    BFO_RAIL_UP,
    BFO_RAIL_DOWN_LOCAL, /* own fence running, or waiting for the peer's acknowledgement */
    BFO_RAIL_DOWN_BOTH,  /* own fence done and the peer's acknowledgement received */
    BFO_RAIL_REQUESTING, /* rejoin, active side */
    BFO_RAIL_READY,      /* rejoin, passive side */
    BFO_RAIL_UNUSABLE    /* this module has no rail to that process */
} bfo_rail_state_t;

typedef struct {
    bfo_rail_state_t state;
    uint8_t name;        /* rail name, the same on both sides, 0..7; above 7: it has no name yet, and has carried nothing */
    uint16_t generation; /* of the current set of queue pairs, or of the last one */
    bool returns;        /* the rail refuses posts while a new generation is connected or proved, or is UP and rail_restored follows */
    bool is_asking;      /* own fence done, and the peer's acknowledgement is missing; the peer sends it after a call of MPI */
} bfo_rail_info_t;

/* ---- called by the BTL, set by the PML (NULL until then) ---------------------------------------- */

/* A fragment posted by btl_sendi failed: it may be lost or delivered. `data` (header and payload, `length`
 * bytes) is valid during the call only. `status` is OPAL_ERROR or OPAL_ERR_FATAL (suspect).
 * Context: progress; never from within a post. */
typedef void (*bfo_btl_failed_frag_fn_t)(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_tag_t tag,
                                         const void *data, size_t length, int status);

/* The BTL has returned every descriptor and handed up every receive of generation `generation` of the rail to `proc`; that generation
 * no longer touches memory. `lossy`: the BTL gave up the fence and destroyed the queue pairs, and its loss check found all messages; or
 * the local adapter has died, or answers no query. The data of a WRITE may be missing. Context: progress. */
typedef void (*bfo_btl_fence_done_fn_t)(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, uint8_t rail, uint16_t generation, bool lossy);

/* The rail to `proc` is up again with a new generation. Context: progress. */
typedef void (*bfo_btl_rail_restored_fn_t)(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, uint8_t rail, uint16_t generation);

/* The probation of that generation of the rail is over: the rail has answered the BTL's questions. The PML may end the probation earlier, by
 * what it sends over the rail. If the PML leaves this NULL, the BTL asks nothing. Context: progress. */
typedef void (*bfo_btl_rail_trusted_fn_t)(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, uint8_t rail, uint16_t generation);

/* The BTL had to declare `proc` unreachable, because the peer declared us so, or because messages that were reported as delivered were
 * lost with a device. `why`: constant text. The BTL is fencing every rail to the peer. Context: progress. */
typedef void (*bfo_btl_peer_dead_fn_t)(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, const char *why);

/* Offers the PML a message to `proc` whose tag is guarded. True: the PML has copied the bytes and sends them, and the BTL completes the
 * descriptor; false: the BTL sends the message itself. Context: btl_send. */
typedef bool (*bfo_btl_take_frag_fn_t)(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, mca_btl_base_tag_t tag, const void *data,
                                       size_t length);

/* The rail seems silent while another one to `proc` answers (`is_soft`), or does not seem so any more. True: the PML begins no new work on
 * the rail, and the BTL offers it the rail's messages with send_again. False: the PML has no other rail. Context: progress. */
typedef bool (*bfo_btl_rail_soft_fn_t)(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, uint8_t rail, uint16_t generation, bool is_soft);

/* Offers the PML a message that is out on such a rail, or waits there. `des`: its descriptor; NULL: it was posted by btl_sendi. True: the PML
 * sends these bytes over another rail, in a descriptor that takes over the callback of `des`, and the BTL calls neither that callback nor
 * failed_frag for the old message, which may still arrive at any time before the end of its generation. `data` is valid during the call only,
 * and is not memory of the user. Context: progress. */
typedef bool (*bfo_btl_send_again_fn_t)(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, mca_btl_base_tag_t tag, const void *data,
                                        size_t length, const mca_btl_base_descriptor_t *des);

/* ---- called by the PML, set by the BTL ---------------------------------------------------------- */

/* From now on the BTL offers messages with the tags `first` to `last`, which senders other than the PML send, to take_frag first. */
typedef void (*bfo_btl_guard_fn_t)(struct mca_btl_base_module_t *btl, mca_btl_base_tag_t first, mca_btl_base_tag_t last);

/* True if no descriptor of this module to `proc` is outstanding, in a pending list or held by flow control. */
typedef bool (*bfo_btl_flush_fn_t)(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc);

/* The peer reports generation `generation` of the rail as dead: bring ours down, then call fence_done.
 * Asynchronous; idempotent; a generation that is fenced already calls fence_done again from progress.
 * Returns OPAL_SUCCESS, or OPAL_ERR_BAD_PARAM for a rail that does not exist. */
typedef int (*bfo_btl_fence_fn_t)(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, uint8_t rail, uint16_t generation);

/* The PML declares `proc` unreachable: the BTL fences every rail to it, of any module, notifies the peer, and uses no rail to it
 * again. Asynchronous; idempotent. fence() still reports the end of each rail. */
typedef void (*bfo_btl_declare_fn_t)(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc);

/* The process that sent a received descriptor. It comes from the endpoint, never from a field of the message. Only valid
 * during the receive callback that hands `des` up. */
typedef struct opal_proc_t *(*bfo_btl_des_peer_fn_t)(struct mca_btl_base_module_t *btl, const bfo_arrival_t *des);

/* Fills *info for the rail of this module to `proc`. Returns OPAL_SUCCESS or OPAL_ERR_NOT_FOUND. */
typedef int (*bfo_btl_rail_state_fn_t)(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, bfo_rail_info_t *info);

/* Is the local port up now? Asks the device, because a completion may come before the event that explains it. */
typedef bool (*bfo_btl_port_is_up_fn_t)(struct mca_btl_base_module_t *btl);

/* Both ports as messages name them: "device:port (GUID 0x..)" or "device:port (GID ..)", terminated. `downs`: how often device events
 * reported that the local port went down; all processes of a node count alike. `is_up`: the port's state according to these events. */
typedef struct {
    char here[112], there[112];
    uint32_t downs;
    bool is_up;
} bfo_btl_ports_t;

/* Names both ports of the rail to `proc`; `there` is empty if `proc` is NULL or its port is not known. */
typedef void (*bfo_btl_name_ports_fn_t)(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, bfo_btl_ports_t *ports);

/* For the user: the penalty of the rail to `proc` for its failures, decayed to this moment; each failure of a rail that is UP adds 1000.
 * `is_held`: the rail failed too often, and stays out until the penalty has decayed. */
typedef uint32_t (*bfo_btl_penalty_fn_t)(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, bool *is_held);

/* From now on the rail to `proc` carries no new work even if no other rail is left (`stands_out`), or does again. Such a rail does not replace
 * another one: it is no witness against others, and a rail beside it is the last. Context: any. */
typedef void (*bfo_btl_stand_out_fn_t)(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, bool stands_out);

/* `directory`: descriptor of a directory of this machine that only this user can read and write, or -1. The BTL may share what it knows of the
 * network with other processes there, by files in memory. It keeps no copy of the descriptor. Context: set-up. */
typedef void (*bfo_btl_share_fn_t)(struct mca_btl_base_module_t *btl, int directory);

typedef struct {
    uint64_t magic;   /* BFO_BTL_EXT_MAGIC */
    uint32_t version; /* BFO_BTL_EXT_VERSION */
    uint32_t size;    /* sizeof(bfo_btl_ext_t) of the BTL's build */
    /* set by the PML */
    bfo_btl_failed_frag_fn_t failed_frag;
    bfo_btl_fence_done_fn_t fence_done;
    bfo_btl_rail_restored_fn_t rail_restored;
    bfo_btl_rail_trusted_fn_t rail_trusted;
    bfo_btl_peer_dead_fn_t peer_dead;
    bfo_btl_take_frag_fn_t take_frag;
    bfo_btl_rail_soft_fn_t rail_soft;
    bfo_btl_send_again_fn_t send_again;
    bool waits; /* rails return, and a process without any is waited for: so the adapter need not be patient. Before the first connection */
    /* set by the BTL */
    bfo_btl_flush_fn_t flush;
    bfo_btl_fence_fn_t fence;
    bfo_btl_declare_fn_t declare;
    bfo_btl_des_peer_fn_t des_peer;
    bfo_btl_rail_state_fn_t rail_state;
    bfo_btl_port_is_up_fn_t port_is_up;
    bfo_btl_name_ports_fn_t name_ports;
    bfo_btl_penalty_fn_t penalty;
    bfo_btl_stand_out_fn_t stand_out;
    bfo_btl_guard_fn_t guard;
    bfo_btl_share_fn_t share;
    const char *port; /* name of the local port, for messages; NULL: none */
    /* What this module has carried. The PML may point it to its own memory, which stays until the process ends. Atomic */
    bfo_traffic_t *traffic;
} bfo_btl_ext_t;

/* Whether a module has a usable extension, or why not. */
typedef enum {
    BFO_BTL_EXT_OK = 0,
    BFO_BTL_EXT_OTHER_COMPONENT, /* not the component that can have it */
    BFO_BTL_EXT_NO_MAGIC,        /* stock openib, or failover compiled out */
    BFO_BTL_EXT_WRONG_VERSION
} bfo_btl_ext_verdict_t;

/* Where the extension of `btl` would be; valid only if bfo_btl_ext_check() says OK. */
static inline bfo_btl_ext_t *bfo_btl_ext(struct mca_btl_base_module_t *btl)
{
    return (bfo_btl_ext_t *) (btl + 1);
}

/* The PML moves the counters while other threads count: only what they count in the old place at that moment is lost. */
static inline bfo_traffic_t *bfo_traffic_of(bfo_btl_ext_t *ext)
{
    return __atomic_load_n(&ext->traffic, __ATOMIC_RELAXED);
}

/* Every openib module, stock or ours, is longer than the header read here. */
static inline bfo_btl_ext_verdict_t bfo_btl_ext_check(struct mca_btl_base_module_t *btl)
{
    if (0 != strcmp(btl->btl_component->btl_version.mca_component_name, BFO_BTL_EXT_COMPONENT)) {
        return BFO_BTL_EXT_OTHER_COMPONENT;
    }
    if (BFO_BTL_EXT_MAGIC != bfo_btl_ext(btl)->magic) {
        return BFO_BTL_EXT_NO_MAGIC;
    }
    if (BFO_BTL_EXT_VERSION != bfo_btl_ext(btl)->version || sizeof(bfo_btl_ext_t) != bfo_btl_ext(btl)->size) {
        return BFO_BTL_EXT_WRONG_VERSION;
    }
    return BFO_BTL_EXT_OK;
}

/* Name of the module's local port, or of its BTL if the BTL names no port. */
static inline const char *bfo_btl_port_name(struct mca_btl_base_module_t *btl)
{
    return BFO_BTL_EXT_OK == bfo_btl_ext_check(btl) && NULL != bfo_btl_ext(btl)->port ? bfo_btl_ext(btl)->port
                                                                                      : btl->btl_component->btl_version.mca_component_name;
}

#endif /* BFO_BTL_EXT_H */
