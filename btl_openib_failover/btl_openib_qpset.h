/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The queue pairs of one generation of one rail. Context: service. See DESIGN.txt 15.
 */
#ifndef BTL_OPENIB_QPSET_H
#define BTL_OPENIB_QPSET_H

#include "btl_openib_types.h"

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

#endif /* BTL_OPENIB_QPSET_H */
