/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The cases of sr_check about time: events, the link, processes, threads. They are in sr_check_events.c.
 */
#ifndef SR_CHECK_H
#define SR_CHECK_H

void srq_raises_limit_once_and_last_wqe(void **state);
void channel_wakes_for_what_was_asked(void **state);
void cq_keeps_completions_when_resized(void **state);
void short_outage_is_survived(void **state);
void long_outage_ends_in_retry_exceeded(void **state);
void sleeping_program_is_woken_when_retries_end(void **state);
void thread_sleeps_while_the_program_polls(void **state);
void killed_peer_is_a_dead_remote_end(void **state);
void threads_may_share_a_queue_pair(void **state);
void drained_send_queue_keeps_what_is_posted(void **state);
void unreliable_sender_stops_at_its_own_error_only(void **state);
void retry_time_is_that_of_the_attributes(void **state);

#endif /* SR_CHECK_H */
