/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The BTL's functions, grouped by the file that defines them. See DESIGN.txt 15.
 */
#ifndef BTL_OPENIB_H
#define BTL_OPENIB_H

#include "btl_openib_atomic.h"
#include "btl_openib_clock.h"
#include "btl_openib_lock.h"
#include "btl_openib_log.h"
#include "btl_openib_mail.h"
#include "btl_openib_types.h"

/* btl_openib_params.c: registers the table of parameters. */
int ofo_params_register(mca_base_component_t *component, mca_btl_base_module_t *defaults);
/* After registration: reads receive_queues and checks what contradicts; says what is wrong. */
int ofo_params_check(void);
/* Says which port of btl_openib_fabrics is not used here. After the ports are opened. */
void ofo_params_compare_fabrics(void);
/* Does the user leave rdmacm as a connection manager, whichever is chosen? */
bool ofo_params_allow_rdmacm(void);

static inline bool ofo_is_iwarp(const struct ibv_device *verbs)
{
    return IBV_TRANSPORT_IWARP == verbs->transport_type;
}

/* btl_openib_device.c */
/* Opens the device, its PD and registration cache; NULL and *why (constant text) on failure. */
ofo_device_t *ofo_device_open(struct ibv_device *verbs, const char **why);
void ofo_device_close(ofo_device_t *device);
/* Whole pages for free(), or NULL: fork support takes the pages of registered memory from a child, with whatever else
 * lies on them. */
void *ofo_pages_alloc(size_t size);
/* Tells the user that the device may not lock enough memory, and what the limit is. */
void ofo_device_say_locked_memory(const ofo_device_t *device);
mca_btl_base_registration_handle_t *ofo_register_mem(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, void *base,
                                                     size_t size, uint32_t flags);
int ofo_deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle);

/* btl_openib_port.c */
/* Opens devices and creates one module per usable port and lane in OFO. Returns the number of modules. */
int ofo_ports_open(mca_btl_base_module_t *defaults);
/* Finds the GID of a module's port anew, by value; false if it is gone. Context: service. */
bool ofo_port_find_gid(ofo_module_t *module, const uint8_t *gid);
/* True if no interface that is up has the port's IP address any more. Port, GID table and events follow later. */
bool ofo_port_lost_interface(const ofo_module_t *module);

/* btl_openib_module.c */
int ofo_module_init(ofo_module_t *module);
void ofo_module_destroy(ofo_module_t *module);
/* Stops all service threads, then frees all that ofo_ports_open() and ofo_sleep_create() made. */
void ofo_modules_free(void);
void ofo_module_set_functions(mca_btl_base_module_t *super);
ofo_frag_t *ofo_frag_alloc(ofo_module_t *module, size_t payload);
/* As large as the buffers of that queue. */
ofo_frag_t *ofo_frag_alloc_whole(ofo_module_t *module, unsigned queue);

/* btl_openib_peer.c */
/* The peer of that name, created if need be. NULL: it has no rail to us. Locks: peers_lock. Service gives no `proc`: Open MPI's
 * table of processes is for progress alone, which is told to give it later (OFO_MAIL_MET). */
ofo_peer_t *ofo_peer_get(const opal_process_name_t *name, opal_proc_t *proc);
/* The peer if it is known already. Any thread. */
ofo_peer_t *ofo_peer_find(uint32_t jobid, uint32_t vpid);
ofo_endpoint_t *ofo_peer_endpoint(ofo_peer_t *peer, const ofo_module_t *module);
/* Tells the user, once, if the two ports of a rail that does not connect may be on different fabrics. Context: service. */
void ofo_peer_doubt_pair(const ofo_endpoint_t *ep);
void ofo_peers_free(void);
/* Declares the peer unreachable, for good and once; false if it was already. `why` is constant text. The PML is told
 * unless it is the one who says so. Any thread. */
bool ofo_peer_declare(ofo_peer_t *peer, const char *why, bool tell_pml);

/* btl_openib_send.c */
int ofo_send(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, mca_btl_base_descriptor_t *des, mca_btl_base_tag_t tag);
int ofo_sendi(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, struct opal_convertor_t *convertor, void *header,
              size_t header_size, size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
              mca_btl_base_descriptor_t **descriptor);
/* Runs the callback or the PML's hook and gives the fragment back. Context: progress, ep->lock not held. */
void ofo_send_complete(ofo_frag_t *frag, int status);
/* Posts what waits on the endpoint, as far as slots and credits go. Context: progress or a post. */
void ofo_pending_flush(ofo_endpoint_t *ep);
/* The same for a set the gate is not open to yet. Locks: ep->gate_lock and ep->lock held. */
void ofo_pending_post(ofo_endpoint_t *ep, ofo_qpset_t *qps);
/* True if a post may proceed; else *rc says why not, or the caller queues. Locks: ep->lock held. */
bool ofo_gate_admits(ofo_endpoint_t *ep, bool *start, int *rc);
/* Credits due on any queue pair of a set the gate is not open to yet. Locks: ep->gate_lock and ep->lock held. */
void ofo_credits_post(ofo_endpoint_t *ep, ofo_qpset_t *qps);
/* Tells the peer about posted receive buffers if it is due. Locks: takes ep->lock. */
void ofo_credits_return(ofo_endpoint_t *ep, ofo_qpset_t *qps, unsigned index);

/* A message of the BTL itself; it has no callback. */
int ofo_send_own(ofo_endpoint_t *ep, ofo_frag_t *frag, uint8_t tag);

/* btl_openib_silent.c */
/* May the message be posted without asking for a completion? Only what nobody waits for, behind another that is not reported
 * yet, and never so many that none in a full send queue asks. Locks: ep->lock held. */
static inline bool ofo_silent_may(const ofo_qp_t *qp, unsigned index, const ofo_frag_t *frag)
{
    return frag->is_sendi && 0 == index && qp->sq_free < qp->sq_slots
           && qp->silent_run + 1 < (int32_t) OFO.params.completion_interval && 2 * (qp->silent_run + 1) < qp->sq_slots;
}
/* It was posted. Locks: ep->lock held since. */
static inline void ofo_silent_posted(ofo_qp_t *qp, ofo_frag_t *frag)
{
    qp->place = frag->place;
    if (OPAL_LIKELY(!frag->is_silent)) {
        qp->silent_run = 0;
        return;
    }
    ++qp->silent_run;
    frag->next_silent = NULL;
    if (NULL == qp->silent) {
        __atomic_store_n(&qp->silent, frag, __ATOMIC_RELAXED);
    } else {
        qp->silent_last->next_silent = frag;
    }
    qp->silent_last = frag;
}
/* Silent messages posted before that place, or all of the queue pair, arrived: reports them. Context: progress. */
void ofo_silent_arrived(ofo_qpset_t *qps, unsigned index, uint32_t place);
/* Those posted before `place` return with an error: lost or delivered. The set has failed, so nothing is posted on it. */
void ofo_silent_lost(ofo_qpset_t *qps, unsigned index, uint32_t place);
void ofo_silent_all_arrived(ofo_qpset_t *qps, unsigned index);
/* This one came back itself. */
void ofo_silent_forget(ofo_qpset_t *qps, unsigned index, ofo_frag_t *frag);
/* Has those that arrived reported soon, of an endpoint or of all of a module. Locks: takes ep->lock. */
void ofo_silent_ask(ofo_endpoint_t *ep);
void ofo_silent_ask_all(ofo_module_t *module);

/* btl_openib_coalesce.c */
/* Replaces what waits at the head of a list by a carrier, if two or more fit. Locks: ep->lock held. */
void ofo_coalesce(ofo_endpoint_t *ep, unsigned index);
/* Completes each part, and gives the carrier back. Context: as ofo_send_complete. */
void ofo_parts_complete(ofo_frag_t *carrier, int status);
void ofo_parts_deliver(ofo_module_t *module, uint8_t *bytes, size_t length);

/* btl_openib_ring.c */
uint32_t ofo_ring_slot_size(void);
/* Memory of the ring the peer writes into. Context: service. */
int ofo_ring_create(ofo_qpset_t *qps);
void ofo_ring_destroy(ofo_qpset_t *qps);
/* Context of the next four: progress. */
void ofo_ring_ask(ofo_module_t *module, ofo_qpset_t *qps);
void ofo_ring_open(ofo_module_t *module, ofo_endpoint_t *ep, uint16_t gen);
int ofo_rings_poll(ofo_module_t *module);
/* Hands up what is complete and stops polling. The queue pairs are drained. */
void ofo_ring_drain(ofo_qpset_t *qps);
/* The peer's ring. */
void ofo_ring_announced(ofo_qpset_t *qps, const void *bytes, size_t length);
void ofo_ring_prepare(ofo_qpset_t *qps, ofo_frag_t *frag, struct ibv_sge *sge, struct ibv_send_wr *wr);
void ofo_ring_posted(ofo_qpset_t *qps);
/* Slots of the eager ring go back with any message; in one of their own never for the last credit, which is for
 * credits. Locks: ep->lock held. */
static inline bool ofo_ring_must_return(const ofo_qpset_t *qps)
{
    return qps->ring_in.is_open && 2 * qps->ring_in.owed >= qps->ring_in.slots
           && (qps->qp[0].shared || ofo_credits_may_send(&qps->qp[0].credits));
}

/* btl_openib_rdma.c */
int ofo_put(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, void *local_address, uint64_t remote_address,
            mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle,
            size_t size, int flags, int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
            void *cbdata);
int ofo_get(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, void *local_address, uint64_t remote_address,
            mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle,
            size_t size, int flags, int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
            void *cbdata);
/* Posts parts while there are slots; true when all parts are posted. Locks: ep->lock held. */
bool ofo_rdma_post(ofo_rdma_t *rdma, ofo_qpset_t *qps);
/* One part completed; runs the callback after the last. Context: progress. */
void ofo_rdma_part_done(ofo_rdma_t *rdma, int status);
/* Ends an operation of which nothing more will be posted. Context: progress. */
void ofo_rdma_abandon(ofo_rdma_t *rdma);

/* btl_openib_recv.c */
/* `qpn`: of the queue pair, as the completion names it; tells the sender on a shared queue. */
void ofo_recv_handle(ofo_module_t *module, ofo_recv_t *recv, uint32_t length, uint32_t qpn);
/* A message that arrived, checked for length: its credits and its payload. `length` with the header. */
void ofo_recv_message(ofo_module_t *module, ofo_qpset_t *qps, ofo_data_hdr_t *hdr, uint32_t length);
/* iWARP: one was received, and service keeps it for progress. Context: service, inside the poll lock. */
void ofo_recv_kept(ofo_module_t *module, const ofo_recv_t *recv, uint32_t qpn);
/* Payload to the callback of its tag. */
void ofo_recv_deliver(ofo_module_t *module, uint8_t tag, void *bytes, size_t length);
/* The queue pair a receive came by; NULL: none we know. */
ofo_qp_t *ofo_recv_qp(ofo_module_t *module, const ofo_recv_t *recv, uint32_t qpn);
/* Work and scatter entry of a buffer; it is then posted by its `wr` for good. `qps` NULL: of a shared queue. */
void ofo_recv_init(ofo_recv_t *recv, ofo_qpset_t *qps, unsigned index, void *buffer, uint32_t size, uint32_t lkey);
static inline void ofo_recv_collect(ofo_recv_chain_t *chain, ofo_recv_t *recv)
{
    recv->wr.next = NULL;
    if (0 == chain->count) {
        chain->first = recv;
    } else {
        chain->last->wr.next = &recv->wr;
    }
    chain->last = recv;
    ++chain->count;
}
/* The chain is empty then; or what verbs do not take now stays in it and is not counted. Returns how many were taken. */
uint32_t ofo_recv_post_chain(ofo_recv_chain_t *chain, struct ibv_qp *qp, struct ibv_srq *srq);

/* btl_openib_srq.c */
int ofo_srqs_create(ofo_module_t *module);
void ofo_srqs_destroy(ofo_module_t *module);
/* Receives of shared queues that can be completed at once. */
unsigned ofo_srqs_buffers_max(const ofo_module_t *module);
/* A received buffer goes back. Context: progress. */
void ofo_srq_return(ofo_srq_t *srq, ofo_recv_t *recv);
/* More buffers, up to what was asked for. Context: service of the device's first module. */
void ofo_srq_limit_reached(ofo_srq_t *srq);
/* Up to so many buffers went with a queue pair and will not come back: others take their place. Context: any service. */
void ofo_srq_buffers_missing(ofo_srq_t *srq, uint32_t count);

/* btl_openib_poll.c */
/* A message arrived: for DACK and the loss check. Context: progress. */
void ofo_send_count(ofo_qpset_t *qps, const ofo_frag_t *frag);
int ofo_component_progress(void);
/* Handles completions until there are none. Context: progress, inside the poll lock. */
void ofo_poll_out(ofo_module_t *module);
int ofo_module_progress(ofo_module_t *module);
/* Asks all CQs for an event and then looks once more: false if there was something, or if another thread is at it. */
bool ofo_module_arm(ofo_module_t *module);
/* Takes completions from the CQs, because a set proves itself or is about to be destroyed with what is in them: zero-byte
 * WRITEs of proofs are counted, all else is kept for progress in order. False: progress is at it. Context: service. */
bool ofo_poll_and_keep(ofo_module_t *module);
/* iWARP: receives of queue pairs that are destroyed come back all the same. They are kept and those of the set thrown away,
 * before its memory goes. False: progress is at it. Context: service. */
bool ofo_poll_and_forget(const ofo_qpset_t *qps);

/* btl_openib_sleep.c: blocking progress */
int ofo_sleep_create(void);
void ofo_sleep_destroy(void);
/* The completion channel of a module, before its first CQ. */
int ofo_sleep_open(ofo_module_t *module);
void ofo_sleep_close(ofo_module_t *module);
/* After each pass over all modules; sleeps when many in a row found nothing. */
void ofo_sleep_if_idle(bool found);

/* btl_openib_wc_error.c */
void ofo_wc_error(ofo_module_t *module, const struct ibv_wc *wc);
/* One work request comes back with an error, to whoever posted it. */
void ofo_work_failed(ofo_qpset_t *qps, ofo_work_t *work, int status);

/* btl_openib_failover.c */
/* Opens the gate. Locks: the poll lock held, by progress or by service in its place. */
void ofo_rail_up(ofo_endpoint_t *ep, ofo_qpset_t *qps);
/* The rail's current set failed: refuse posts, tell PML and service. Context: progress, no lock held. */
void ofo_rail_failed(ofo_qpset_t *qps, const char *why);
/* iWARP: the peer closed the connection. Context: progress, no lock held. */
void ofo_rail_closed(ofo_qpset_t *qps);
void ofo_drain_start(ofo_endpoint_t *ep, ofo_qpset_t *qps, uint16_t gen);
void ofo_drain_check(ofo_qpset_t *qps);
/* A shared queue gives nothing more to a queue pair of the draining set; or so we assume. */
void ofo_drain_last_wqe(ofo_endpoint_t *ep, uint16_t gen);
void ofo_fence_done_again(ofo_endpoint_t *ep, uint16_t gen);
/* Locks: peers_lock and ep->lock held during a visit. */
void ofo_for_each_endpoint(ofo_module_t *module, void (*visit)(ofo_endpoint_t *));
/* Must a port event leave this rail alone? It ends no rail under a PML without failover, and never the last live rail to a
 * peer. */
bool ofo_rail_is_spared(const ofo_endpoint_t *ep);
void ofo_port_down(ofo_module_t *module);
/* Another rail to the endpoint's peer answered what was asked when the port had gone down `downs` times: ends the rail if it is in doubt. */
void ofo_port_ends(ofo_endpoint_t *ep, uint16_t downs);
/* Tells the PML of rails without queue pairs that have ended so. Context: progress, after the letters. */
void ofo_port_tell(ofo_module_t *module);
void ofo_port_returned(ofo_module_t *module);
void ofo_peer_lost(ofo_peer_t *peer);
void ofo_ext_fill(ofo_module_t *module);

/* btl_openib_doubt.c */
/* The port is down: can another rail to the peer say whether the peer is there? Then the rail is in doubt. Locks: ep->lock held. */
bool ofo_doubt_begin(ofo_endpoint_t *ep);
/* Asks over this rail, if another rail to its peer is in doubt. Locks: ep->lock held. */
void ofo_doubt_ask_over(ofo_endpoint_t *ep);
/* Asks over the rails of all other modules that have a rail in doubt beside them. Context: progress, no lock held. */
void ofo_doubt_ask(const ofo_module_t *module);
/* The WRITE of the rail came back well, and somebody waits for that. Context: progress. Locks: ep->lock held. */
void ofo_doubt_answered(ofo_endpoint_t *ep);

/* btl_openib_keepalive.c */
/* A WRITE of one byte on each connected rail whose turn it is and where nothing came or went since its last turn. Context: progress. */
void ofo_keepalive(ofo_module_t *module);
/* Must the peer be there? Others may have ended properly, and a WRITE to them would pass for the loss of a rail. */
bool ofo_keepalive_may_ask(const ofo_peer_t *peer);
/* That WRITE; the caller has looked that none is out. Locks: ep->lock held. */
void ofo_keepalive_post(ofo_endpoint_t *ep, ofo_qpset_t *qps);

/* btl_openib_fence.c */
void ofo_fence_begin(ofo_qpset_t *qps);
void ofo_fence_extend(ofo_qpset_t *qps);
void ofo_fence_end(ofo_qpset_t *qps);
/* Is the time of a fence over? */
bool ofo_fence_is_due(const ofo_module_t *module);
/* Asks service to end the fences that are overdue. Call it when a poll of all CQs found nothing, or has emptied them. */
void ofo_fence_watch(ofo_module_t *module);
/* Service has destroyed the queue pairs: whatever is still out comes back with an error. */
void ofo_fence_abandon(ofo_module_t *module, ofo_qpset_t *qps);

/* btl_openib_qpset.c. Context: service. */
ofo_qpset_t *ofo_qpset_create(ofo_endpoint_t *ep, uint16_t gen);
int ofo_qpset_connect(ofo_qpset_t *qps, const ofo_ctl_t *remote);
/* Largest path MTU this side takes; and the one with a peer that says `theirs` of itself. */
uint8_t ofo_mtu_own(const ofo_module_t *module);
uint8_t ofo_mtu_with(const ofo_module_t *module, uint8_t theirs);
/* READs at a time on one queue pair: those this side answers; and those it asks of a peer that answers so many (0: unknown). */
uint8_t ofo_reads_answered(const ofo_module_t *module);
uint8_t ofo_reads_asked(const ofo_module_t *module, uint8_t answered);
/* Logs what the provider made of the parameters. */
void ofo_qpset_log(const ofo_module_t *module, const ofo_qp_t *qp);
/* Makes *wr a WRITE of `length` bytes to the page that the peer keeps for that. */
void ofo_qpset_ask(const ofo_qpset_t *qps, struct ibv_send_wr *wr, struct ibv_sge *sge, uint32_t length);
int ofo_qpset_prove(ofo_qpset_t *qps);
void ofo_qpset_error(ofo_qpset_t *qps);
bool ofo_qpset_is_shared(const ofo_qpset_t *qps); /* has it a shared queue? NULL: no */
/* As if LAST_WQE_REACHED had come of each queue pair. True if one has not. NULL: no */
bool ofo_qpset_assume_last_wqe(ofo_qpset_t *qps);
/* Destroys the queue pairs alone: true if none is left, so that no transfer of theirs goes on. */
bool ofo_qpset_stop(ofo_qpset_t *qps);
/* The same for a set that may still hold buffers of shared queues. Its numbers stay known: completions name them. */
bool ofo_qpset_stop_busy(ofo_qpset_t *qps);
/* What was delivered and what came in. Only when the set is silent. */
void ofo_qpset_counts(const ofo_qpset_t *qps, ofo_counts_t *sent, ofo_counts_t *received);
/* False if a queue pair cannot be destroyed: the set and its memory stay. */
bool ofo_qpset_destroy(ofo_qpset_t *qps);
/* To be destroyed after the time-wait. */
void ofo_qpset_bury(ofo_qpset_t *qps);

/* btl_openib_service.c */
int ofo_service_start(ofo_module_t *module);
void ofo_service_stop(ofo_module_t *module); /* it can still be told and woken: another may do so */
void ofo_service_free(ofo_module_t *module); /* once no service runs any more */
/* Frees the letters that nobody reads any more, with the sets of queue pairs that only they know. */
void ofo_mailbox_free(ofo_mailbox_t *box);
void ofo_timers_add(ofo_endpoint_t *ep);

/* btl_openib_connect.c */
/* The connection manager of that name, or NULL. */
const ofo_cpc_t *ofo_cpc_find(const char *name, size_t length);
/* Fills the common header and sends to the rail's remote port; nothing to a declared peer. Context: service of the
 * module. */
void ofo_ctl_send(ofo_endpoint_t *ep, ofo_ctl_t *ctl);
/* A valid control message. Context: service of the module that received it. */
void ofo_ctl_dispatch(ofo_module_t *module, const ofo_ctl_t *ctl);

/* btl_openib_connect_ud.c, btl_openib_connect_rdmacm.c */
extern const ofo_cpc_t ofo_cpc_ud, ofo_cpc_rdmacm;
/* The address handle of the rail's remote port is made anew with the next message. Context: service of the module. */
void ofo_ud_forget(ofo_endpoint_t *ep);
/* The device reported a failure of a queue pair: if it is the one of a module's control messages, that module looks
 * after it. Context: any service. */
void ofo_ud_doubt(const ofo_device_t *device, const struct ibv_qp *qp);

/* btl_openib_open.c. Context: service of the module. */
void ofo_open_want(ofo_endpoint_t *ep);                       /* a post wants the rail */
void ofo_open_ask(ofo_endpoint_t *ep, const ofo_ctl_t *req);  /* the peer does */
bool ofo_open_due(ofo_module_t *module);
void ofo_open_next(ofo_module_t *module); /* opens one at most */

/* btl_openib_rail.c: the machine's owner. Context: service of the endpoint's module. */
void ofo_rail_init(ofo_endpoint_t *ep);
void ofo_rail_event(ofo_endpoint_t *ep, ofo_fsm_event_t event, const ofo_ctl_t *ctl);
void ofo_rail_message(ofo_endpoint_t *ep, const ofo_ctl_t *ctl);
/* A REQ whose turn has come. */
void ofo_rail_asked(ofo_endpoint_t *ep, const ofo_ctl_t *req);
void ofo_rail_timers(ofo_endpoint_t *ep, uint64_t now);
void ofo_rail_fence_done(ofo_endpoint_t *ep, uint16_t gen, ofo_qpset_t *qps);
/* The PML asks for the end of a generation that the peer reports as dead. */
void ofo_rail_fence(ofo_endpoint_t *ep, const ofo_mail_t *mail);
/* The peer was declared: this rail ends without a word but PEERDEAD. */
void ofo_rail_declared(ofo_endpoint_t *ep);
void ofo_rail_send_peerdead(ofo_endpoint_t *ep);

/* btl_openib_rail_actions.c. Context: service of the endpoint's module. */
extern const ofo_fsm_action_fn_t ofo_rail_actions[OFO_DO_COUNT];
enum { OFO_CONNECT_PATIENCE = 11 }; /* a connection gets 12 times connect_timeout where its end is that of the job */
void ofo_rail_give_time(ofo_endpoint_t *ep); /* connect_timeout from now on */
void ofo_rail_repeat_after(ofo_endpoint_t *ep, unsigned backoff_ms);
void ofo_rail_send_down(ofo_endpoint_t *ep, uint16_t gen);
/* A place for what is known of a generation whose fence is done. */
ofo_kept_t *ofo_rail_keep(ofo_endpoint_t *ep, uint16_t gen);
/* The fence was given up, and nothing is missing, or nothing matters any more: now the PML may go on. */
void ofo_rail_close_check(ofo_endpoint_t *ep);

/* btl_openib_async.c */
void ofo_async_read(ofo_module_t *module);
/* Did the port go down last because its address is another? */
bool ofo_port_has_moved(const ofo_module_t *module);
/* Is the port up, with the address that its connections were made with? */
bool ofo_port_came_back(const ofo_module_t *module);
/* Looks for the GIDs that the device's ports have lost. Context: the service that reads its events. */
void ofo_async_look_again(ofo_device_t *device, uint64_t now);
/* The fence waits for LAST_WQE_REACHED, not for ever; and the timer's end. Context: service of the module. */
void ofo_async_await_last_wqe(ofo_endpoint_t *ep);
void ofo_async_last_wqe_late(ofo_endpoint_t *ep, uint64_t now);
/* All ports of the device are down, for good. Context: any service. */
void ofo_async_device_gone(const ofo_device_t *device);
/* Waits until all that the device has to say was noted; false if that takes too long. Any thread but service. */
bool ofo_async_settled(ofo_device_t *device);
/* Does the port still stand? The event that tells may come after a completion that does, so service asks the device;
 * `unanswered` if the answer takes too long and no event has come. Context: progress. */
bool ofo_async_port_is_up(ofo_module_t *module, bool unanswered);
void ofo_async_answer(ofo_module_t *module); /* service's part */
/* How often the port went down, and is it up? Both as events have told. Any thread. */
uint32_t ofo_async_downs(const ofo_module_t *module, bool *is_up);

#endif /* BTL_OPENIB_H */
