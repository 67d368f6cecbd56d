/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What happens when a fragment, a rail or a peer fails: the cold half of the PML. Symptoms come in here; the
 * hot half never asks. DESIGN.txt sections 7, 10, 11 and 14.6.
 */
#ifndef PML_BFO_FAILOVER_H
#define PML_BFO_FAILOVER_H

#include "pml_bfo.h"

/* The extension of a BTL that has one and may be used, now with our callbacks in it; else NULL. */
bfo_btl_ext_t *bfo_failover_adopt(mca_btl_base_module_t *btl);

/* Says once per node if failover is not in force for a peer reached by the rails found, and why. */
void bfo_failover_announce(const bfo_peer_t *peer);
/* Names, once per node, the components of this job that go past the PML over rails that can fail. Its file:
 * pml_bfo_failover_bypass.c */
void bfo_failover_announce_bypass(const bfo_peer_t *peer);

/* A rail of the peer failed: error status of a descriptor, or a post refused with UNREACH. Context: progress
 * or post; locks: none held. */
void bfo_failover_rail_lost(bfo_peer_t *peer, uint8_t rail, const char *cause) BFO_COLD;

/* A PUT or READ failed: does copying bring the bytes over, with no rail lost? */
bool bfo_failover_may_copy(const bfo_peer_t *peer, uint8_t rail, bool refused) BFO_COLD;

/* The BML's error callback. */
void bfo_failover_btl_error(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *info);

/* BTL order tag that binds a WRITE on the rail and its FIN to one queue pair. */
uint8_t bfo_failover_write_order(const bfo_peer_t *peer, uint8_t rail);

/* Once, at start. */
void bfo_failover_init(void);

#if PML_BFO
/* Name of the rail that a module is to the peer; BFO_MAX_RAILS: it has none. */
uint8_t bfo_failover_rail_name(const bfo_peer_t *peer, mca_btl_base_module_t *btl);
/* Names and generations of the peer's rails, and whether torn transfers can be restarted. Returns the mask of those
 * that are down already; those whose fence is not done count as being fenced. Locks: bfo.lock held. */
uint8_t bfo_failover_name_rails(bfo_peer_t *peer);
/* Asks the BTL for the fence of a rail that has one. */
void bfo_failover_fence(bfo_peer_t *peer, uint8_t rail, uint16_t gen) BFO_COLD;
/* Brings those rails down at the peer too, who may never have seen the port down. peer->ready is set. Locks: none held. */
void bfo_failover_fence_down(bfo_peer_t *peer, uint8_t down);
/* Fills in which rails are dead here, for NOTIFY. */
void bfo_failover_dead_set(const bfo_peer_t *peer, bfo_dance_hdr_t *h);
/* False: NOTIFY names a generation that cannot exist; it is to be dropped. */
bool bfo_failover_rails_are_possible(const bfo_peer_t *peer, uint8_t mask, const uint16_t *gen);
/* Handles what a NOTIFY says of dead rails: each of ours that still lives is fenced. */
void bfo_failover_rails_down(bfo_peer_t *peer, uint8_t mask, const uint16_t *gen);
/* Our side of the rail is being fenced from now on; fence_done() ends that. False: it is done, or there is none. */
bool bfo_failover_fence_begins(bfo_peer_t *peer, uint8_t rail, uint16_t gen) BFO_COLD;
#else
/* Compiled out: no rail has a name, a generation or a fence. */
static inline uint8_t bfo_failover_rail_name(const bfo_peer_t *peer, mca_btl_base_module_t *btl) { return BFO_MAX_RAILS; }
static inline uint8_t bfo_failover_name_rails(bfo_peer_t *peer) { return 0; }
static inline void bfo_failover_fence(bfo_peer_t *peer, uint8_t rail, uint16_t gen) { }
static inline void bfo_failover_fence_down(bfo_peer_t *peer, uint8_t down) { }
static inline bool bfo_failover_fence_begins(bfo_peer_t *peer, uint8_t rail, uint16_t gen) { return false; }
#endif
/* May the FIN be taken now? False: it waits for the fence of the rail that carried its data. */
bool bfo_failover_fin_is_visible(bfo_peer_t *from, const bfo_fin_hdr_t *fin) BFO_COLD;

/* ---- pml_bfo_failover_peer.c ------------------------------------------------------------------------ */
/* The peer cannot be reached any more: all its requests end with MPI_ERR_OTHER. */
void bfo_failover_declare(bfo_peer_t *peer, const char *cause) BFO_COLD;
/* Every request in an ERR-class state looks at its guards again. */
void bfo_failover_settle_all(void) BFO_COLD;
/* peer_dead of bfo_btl_ext.h. */
void bfo_failover_peer_dead(mca_btl_base_module_t *btl, opal_proc_t *proc, const char *cause) BFO_COLD;
#if PML_BFO
/* From now on MPI_Finalize begins with a flush. Call when MPI_COMM_SELF exists. */
int bfo_failover_flush_at_finalize(void);
/* The same in front of MPI_Comm_disconnect, from now on until given back. */
void bfo_failover_take_fence(void);
void bfo_failover_give_fence(void);
#else
static inline int bfo_failover_flush_at_finalize(void) { return OMPI_SUCCESS; }
static inline void bfo_failover_give_fence(void) { }
#endif

/* ---- pml_bfo_failover_actions.c; pml_bfo_failover_out.c when failover is compiled out ---------------- */
/* The request, in an ERR-class state, looks at its guards. */
void bfo_failover_send_settle(bfo_send_t *req) BFO_COLD;
void bfo_failover_recv_settle(bfo_recv_t *req) BFO_COLD;
/* An event of the request's machine; the request may be complete and taken again when this returns. */
void bfo_failover_send_raise(bfo_send_t *req, unsigned event, void *arg) BFO_COLD;
void bfo_failover_recv_raise(bfo_recv_t *req, unsigned event, void *arg) BFO_COLD;
void bfo_dance_pack(bfo_dance_hdr_t *h, uint8_t type, uint16_t epoch, bool failed, bfo_id_t src_id, bfo_id_t dst_id);
/* Sends a message of a dance; false: no rail is left. The callback, if any, gets an event of the request. */
bool bfo_dance_send(bfo_peer_t *peer, const bfo_dance_hdr_t *h, mca_btl_base_completion_fn_t done, void *req);
void bfo_failover_put_on_dead_rail(bfo_send_t *req, bfo_id_t dst_id) BFO_COLD;
void bfo_failover_rget_on_dead_rail(bfo_recv_t *req) BFO_COLD;

/* ---- pml_bfo_failover_dance.c ---------------------------------------------------------------------- */
/* A message of the NOTIFY family came from `from` (NULL: its BTL cannot say, it is dropped). */
void bfo_failover_on_dance(bfo_peer_t *from, const bfo_dance_hdr_t *h) BFO_COLD;
/* RNDV or RGET with RESTART; its header was checked. */
struct bfo_in_t;
void bfo_failover_on_restart(const struct bfo_in_t *in, size_t handle_size) BFO_COLD;

#if PML_BFO
/* ---- pml_bfo_failover_poison.c ---------------------------------------------------------------------- */
/* What a suspect is: a message we send, one that we receive, or a FIN. */
typedef enum { BFO_SUSPECT_SENT, BFO_SUSPECT_RECEIVED, BFO_SUSPECT_FIN } bfo_suspect_t;
/* Something of the request came back with `status`: will no rail carry it? False the first time, which is remembered. */
bool bfo_failover_send_is_poison(const bfo_send_t *req, uint8_t rail, int status) BFO_COLD;
bool bfo_failover_recv_is_poison(const bfo_recv_t *req, uint8_t rail, int status) BFO_COLD;
/* The same of MATCH, NACK or FIN without a request. */
bool bfo_failover_ctl_is_poison(const bfo_peer_t *peer, uint8_t rail, const bfo_hdr_t *h, int status) BFO_COLD;
/* The peer goes. */
void bfo_failover_forget_suspects(const bfo_peer_t *peer);
#else
static inline void bfo_failover_forget_suspects(const bfo_peer_t *peer) { }
#endif

/* ---- error completions; each takes over and gives back the event of the descriptor. Compiled out: the peer is declared */

/* MATCH, RNDV or RGET of a request. */
void bfo_failover_rts_failed(bfo_send_t *req, uint8_t rail, int status) BFO_COLD;
/* FRAG or WRITE. */
void bfo_failover_data_failed(bfo_send_t *req, uint8_t rail, int status) BFO_COLD;
/* ACK, PUT or READ. */
void bfo_failover_answer_failed(bfo_recv_t *req, uint8_t rail, int status) BFO_COLD;
/* FIN or another message without request; `header` is valid during the call. */
void bfo_failover_ctl_failed(bfo_peer_t *peer, uint8_t rail, const void *header, size_t length, int status) BFO_COLD;

#endif /* PML_BFO_FAILOVER_H */
