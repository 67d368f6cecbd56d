/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The queue pairs of one generation of one rail. Context: service. See DESIGN.txt 15.
 */
#ifndef BTL_OPENIB_QPSET_H
#define BTL_OPENIB_QPSET_H

#include "types/btl_openib_types.h"

/* Makes the queue pairs, receive buffers posted; NULL on failure. */
ofo_qpset_t *ofo_qpset_create(ofo_endpoint_t *ep, uint16_t gen);
int ofo_qpset_connect(ofo_qpset_t *qps, const ofo_ctl_t *remote);
/* The largest path MTU that this side takes; and the path MTU to use with a peer that takes `theirs`. */
uint8_t ofo_mtu_own(const ofo_module_t *module);
uint8_t ofo_mtu_with(const ofo_module_t *module, uint8_t theirs);
/* READs at a time on one queue pair: how many this side answers, and how many it asks of a peer that answers `answered` (0: unknown). */
uint8_t ofo_reads_answered(const ofo_module_t *module);
uint8_t ofo_reads_asked(const ofo_module_t *module, uint8_t answered);
/* Logs what the provider made of the parameters. */
void ofo_qpset_log(const ofo_module_t *module, const ofo_qp_t *qp);
/* The acknowledgement timeout of a queue pair, as verbs count it. */
uint8_t ofo_qpset_ack_timeout(const ofo_module_t *module);
/* Makes *wr a WRITE of `length` bytes to the peer's proof page. */
void ofo_qpset_ask(const ofo_qpset_t *qps, struct ibv_send_wr *wr, struct ibv_sge *sge, uint32_t length);
int ofo_qpset_prove(ofo_qpset_t *qps);
void ofo_qpset_error(ofo_qpset_t *qps);
bool ofo_qpset_is_shared(const ofo_qpset_t *qps); /* does a queue pair use a shared queue? False for NULL */
/* Treats every queue pair as if it had raised LAST_WQE_REACHED; returns true if one had not. False for NULL. */
bool ofo_qpset_assume_last_wqe(ofo_qpset_t *qps);
/* Destroys the queue pairs, not their set. True if none is left, so that no transfer goes on. */
bool ofo_qpset_stop(ofo_qpset_t *qps);
/* The same for a set that may still hold buffers of shared queues. The numbers stay in the table, because completions name them. */
bool ofo_qpset_stop_busy(ofo_qpset_t *qps);
/* Gets what was delivered and what came in. Call it only when all work of the set has come back. */
void ofo_qpset_counts(const ofo_qpset_t *qps, ofo_counts_t *sent, ofo_counts_t *received);
/* Destroys the set. False if a queue pair cannot be destroyed: the set and its memory stay. */
bool ofo_qpset_destroy(ofo_qpset_t *qps);
/* Has the set destroyed after the time-wait. */
void ofo_qpset_bury(ofo_qpset_t *qps);

#endif /* BTL_OPENIB_QPSET_H */
