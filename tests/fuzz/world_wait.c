/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * No rail to a peer is left: its requests wait for a rail, for pml_bfo_last_rail_timeout. Two rails with failover reach rank 1.
 * DESIGN.txt section 11.
 */
#define _GNU_SOURCE
#include "world_case.h"

#include "failover/pml_bfo_failover_peer.h"
#include "door/pml_bfo_recv_api.h"
#include "door/pml_bfo_send_api.h"

#include <sys/wait.h>
#include <unistd.h>

void fuzz_progress(void);

enum { SHORT = 100, LONG = 8000, PATIENCE = 60 };

static char room[9000];

static bfo_peer_t *life_begins(int timeout)
{
    world_begin();
    bfo_params.rejoin = true;
    bfo_params.last_rail_timeout = timeout;
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    return peer_of_rank(1);
}

static void all_rails_fail(void)
{
    world_rail_fails(&world_btl[0]);
    world_rail_fails(&world_btl[1]);
}

/* All posted work comes back with an error. */
static void fences_end(void)
{
    while (0 != world_fences()) {
        world_fence_done(0, false);
    }
    must(0 == world_posted(), "something is still posted");
}

static ompi_request_t *send_start(size_t size, mca_pml_base_send_mode_t mode)
{
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_isend(room, size, &ompi_mpi_byte.dt, 1, 7, mode, world_comm[0], &request), "a send does not start");
    return request;
}

static ompi_request_t *recv_start(size_t size)
{
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_irecv(room, size, &ompi_mpi_byte.dt, 1, 7, world_comm[0], &request), "a receive does not start");
    return request;
}

/* Sets the wait back, as if so many seconds had passed. */
static void time_passes(bfo_peer_t *peer, unsigned seconds)
{
    must(0 != peer->waits_since, "the PML does not wait for a rail to the peer");
    peer->waits_since -= 1000u * seconds;
    peer->asked_at -= 0 == peer->asked_at ? 0 : 1000u * seconds;
    fuzz_progress();
}

static void last_rail_is_waited_for(void)
{
    bfo_peer_t *peer = life_begins(PATIENCE);

    all_rails_fail();
    must(!peer->declared, "a peer is declared although its rails may return");
    must(0 != peer->waits_since && 1 == bfo.n_waits && 1 == bfo_local_stat(BFO_STAT_PEERS_WAITED), "the wait is not counted");
    fences_end();
    world_rail_returns(&world_btl[1]);
    must(0 == peer->waits_since && 0 == bfo.n_waits && 2 == peer->send_mask, "the wait does not end");
    world_rail_fails(&world_btl[1]);
    must(!peer->declared && 1 == bfo.n_waits, "the PML does not wait the second time");
}

static void nobody_waits_unless_that_is_asked_for(void)
{
    bfo_peer_t *peer = life_begins(0);

    all_rails_fail();
    must(peer->declared && 0 == bfo.n_waits, "a peer without a rail is not declared");
}

/* The peer may have ended the last rail in favour of another rail that still proves itself here. DESIGN.txt 10.2. */
static void rail_in_its_proof_is_waited_for(void)
{
    bfo_peer_t *peer = life_begins(0);

    world_rail_fails(&world_btl[0]);
    fences_end();
    world_btl[0].returns = true;
    world_rail_fails(&world_btl[1]);
    must(!peer->declared && 1 == bfo.n_waits, "a peer is declared although a rail to it is in its proof");
    fences_end();
    (void) send_start(SHORT, MCA_PML_BASE_SEND_SYNCHRONOUS);
    time_passes(peer, 14);
    must(!peer->declared && 0 == world_posted(), "the wait for a proof ends early");
    world_rail_returns_unheard(&world_btl[0]);
    fuzz_progress();
    must(!peer->declared, "a proof that has just succeeded is taken for a failure");
    world_btl[0].ext.rail_restored(&world_btl[0].super, &world_proc[1]->super, 0, world_btl[0].gen);
    fuzz_progress();
    must(0 == bfo.n_waits && 1 == peer->send_mask && 1 == world_posted(), "the rail is not used after its proof");
}

static void proof_that_fails_ends_the_wait(void)
{
    bfo_peer_t *peer = life_begins(0);

    world_rail_fails(&world_btl[0]);
    fences_end();
    world_btl[0].returns = true;
    world_rail_fails(&world_btl[1]);
    fences_end();
    must(!peer->declared, "a peer is declared although a rail to it is in its proof");
    world_btl[0].returns = false;
    fuzz_progress();
    must(peer->declared && 0 == bfo.n_waits, "the wait goes on after the proof has failed");
}

/* Short and long sends start during the wait. */
static void sends_of_the_meantime_go_afterwards(void)
{
    bfo_peer_t *peer = life_begins(PATIENCE);

    all_rails_fail();
    fences_end();
    (void) send_start(SHORT, MCA_PML_BASE_SEND_STANDARD);
    (void) send_start(SHORT, MCA_PML_BASE_SEND_SYNCHRONOUS);
    (void) send_start(LONG, MCA_PML_BASE_SEND_STANDARD);
    fuzz_progress();
    must(0 == world_posted() && 3 == bfo.n_pending && !peer->declared, "three sends do not wait");
    world_rail_returns(&world_btl[0]);
    fuzz_progress();
    must(3 == world_posted() && 0 == bfo.n_pending, "three sends do not go when a rail is back");
    for (unsigned i = 0; i < 3; ++i) {
        must(&world_btl[0] == world_btl_of(i) && i == ((const bfo_match_hdr_t *) world_posted_message(i))->seq, "the sends go out in another order");
    }
}

/* Messages in flight on both rails, of all kinds that are sent again without a restart. */
static void what_was_under_way_goes_again(void)
{
    bfo_peer_t *peer = life_begins(PATIENCE);
    ompi_request_t *sync;

    (void) send_start(SHORT, MCA_PML_BASE_SEND_STANDARD);
    sync = send_start(SHORT, MCA_PML_BASE_SEND_SYNCHRONOUS);
    (void) send_start(LONG, MCA_PML_BASE_SEND_STANDARD);
    must(3 == world_posted(), "three sends are not in flight");
    all_rails_fail();
    fences_end();
    fuzz_progress();
    must(0 == world_posted() && 3 == bfo.n_pending, "three messages do not wait");
    must(!peer->declared && !is_complete(sync), "the wait ends a request");
    world_rail_returns(&world_btl[1]);
    fuzz_progress();
    must(3 == world_posted() && 0 == bfo.n_pending, "three messages do not go again");
}

/* Before the fence ends, the BTL hands up a message that has arrived. */
static void answers_wait_too(void)
{
    bfo_peer_t *peer = life_begins(PATIENCE);
    bfo_rndv_hdr_t rndv = {.match = {.type = BFO_MSG_RNDV, .ctx = (uint16_t) BFO_OMPI_CTX_OF(world_comm[0]), .src = 1, .tag = 7, .seq = 0},
                           .msg_length = LONG,
                           .src_id = 0x700000001u};

    (void) recv_start(LONG);
    bfo_params.use_put = false;
    all_rails_fail();
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_RNDV), &rndv, sizeof(rndv), sizeof(rndv));
    must(!peer->declared && 0 == world_posted() && 0 != bfo.n_pending + peer->fencing, "the answer does not wait");
    fences_end();
    fuzz_progress();
    world_rail_returns(&world_btl[0]);
    fuzz_progress();
    must(1 == world_posted() && !peer->declared, "the answer, or the start of a restart, does not go out when a rail is back");
}

static void wait_ends_in_time(void)
{
    bfo_peer_t *peer = life_begins(PATIENCE);
    ompi_request_t *send, *recv;

    recv = recv_start(SHORT);
    all_rails_fail();
    fences_end();
    send = send_start(SHORT, MCA_PML_BASE_SEND_SYNCHRONOUS);
    time_passes(peer, PATIENCE - 10);
    must(!peer->declared && !is_complete(send) && !is_complete(recv), "the wait ends early");
    time_passes(peer, 10);
    must(peer->declared && 0 == bfo.n_waits, "the wait does not end");
    fuzz_progress();
    must(is_complete(send) && MPI_ERR_OTHER == send->req_status.MPI_ERROR, "a send does not end with the wait");
    must(is_complete(recv) && MPI_ERR_OTHER == recv->req_status.MPI_ERROR, "a receive does not end with the wait");
    must(0 == bfo.n_pending, "work of a declared peer waits");
    world_rail_returns(&world_btl[0]);
    must(0 == peer->send_mask && 0 == bfo.n_waits, "a declared peer is used");
}

static void wait_without_end_has_one_at_finalize(void)
{
    bfo_peer_t *peer = life_begins(-1);

    all_rails_fail();
    fences_end();
    (void) send_start(SHORT, MCA_PML_BASE_SEND_SYNCHRONOUS);
    time_passes(peer, 400);
    must(!peer->declared, "a wait without end ends");
    bfo_failover_flush();
    must(peer->declared && 0 == bfo.n_pending, "MPI_Finalize does not give up");
}

/* No message to the peer is open; the peer may have left long ago. */
static void finalize_does_not_wait_for_a_rail_that_nobody_needs(void)
{
    bfo_peer_t *peer = life_begins(-1);

    (void) recv_start(SHORT);
    all_rails_fail();
    fences_end();
    bfo_failover_flush();
    must(!peer->declared && 1 == bfo.n_waits, "MPI_Finalize declares the peer, or ends the wait");
}

/* ---- a dead process, not a dead rail ------------------------------------------------------------------- */

enum { PID = 4, ELSEWHERE = 77 };

/* The record of a process of this node that has ended. */
static bfo_life_t life_that_ended(void)
{
    bfo_life_t life;
    int way[2];
    pid_t pid;

    must(0 == pipe(way), "no pipe");
    pid = fork();
    if (0 == pid) {
        life = bfo_life_own(0);
        _exit((ssize_t) sizeof(life) == write(way[1], &life, sizeof(life)) ? 0 : 1);
    }
    must((ssize_t) sizeof(life) == read(way[0], &life, sizeof(life)) && pid == waitpid(pid, NULL, 0), "the process does not end");
    return life;
}

/* Rank 1 is on another node, and rank 2 on the node `of_2`. No rail to rank 1 is left. */
static bfo_peer_t *wait_begins_for_another_node(uint64_t of_2, bool knows_2)
{
    bfo_peer_t *peer;

    world_life[0] = bfo_life_own(0);
    world_life[1] = (bfo_life_t){.node = ELSEWHERE, .started = 1000, .pid = PID};
    world_life[2] = (bfo_life_t){.node = of_2, .started = 2000, .pid = PID + 1};
    peer = life_begins(PATIENCE);
    if (knows_2) {
        must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[2])), "no rail to the witness");
    } else {
        must(NULL != bfo_lane(bfo_comm_of(world_comm[0]), 1), "no lane");
    }
    all_rails_fail();
    fences_end();
    return peer;
}

/* A rail to rank 2 of the same node is up, and the second before the first question is over. */
static bfo_peer_t *wait_begins_beside_a_witness(void)
{
    bfo_peer_t *peer = wait_begins_for_another_node(ELSEWHERE, true);

    fuzz_progress();
    must(0 == world_posted(), "a question goes out at once");
    time_passes(peer, 1);
    return peer;
}

/* The question that is posted arrives. Returns its number. */
static uint32_t question_goes(void)
{
    const int n = world_find(BFO_MSG_LIFE);
    const bfo_life_hdr_t *h;
    uint32_t number;

    must(0 <= n && 1 == world_posted() && &world_btl[2] == world_btl_of((unsigned) n), "the question does not go to the one witness");
    h = world_posted_message((unsigned) n);
    must(BFO_PROCESS_ASKED == h->answer && 0 != h->number && ELSEWHERE == h->about.node && 1000 == h->about.started && PID == h->about.pid,
         "the question has other contents");
    number = h->number;
    world_complete((unsigned) n, OPAL_SUCCESS);
    return number;
}

static bfo_life_hdr_t words_of(unsigned rank, bfo_life_answer_t answer, uint32_t number)
{
    return (bfo_life_hdr_t){.type = BFO_MSG_LIFE, .answer = (uint8_t) answer, .number = number, .jobid = 77, .vpid = rank, .about = world_life[1]};
}

static void hear(world_btl_t *btl, const bfo_life_hdr_t *h, size_t length)
{
    world_receive(btl, BFO_TAG(BFO_MSG_LIFE), h, length, length);
    fuzz_progress();
}

static void witness_says(bfo_life_answer_t answer, uint32_t number)
{
    const bfo_life_hdr_t h = words_of(2, answer, number);

    hear(&world_btl[2], &h, sizeof(h));
}

/* Sets the wait back, so that the next question is due, and goes on until the PML has looked for a witness: it looks at most once in a millisecond. */
static void question_is_due(bfo_peer_t *peer)
{
    uint64_t before;

    peer->waits_since -= 1000;
    before = peer->asked_at -= 1000;
    while (before == peer->asked_at) {
        fuzz_progress();
    }
}

static void dead_process_of_this_machine_ends_the_wait(void)
{
    bfo_peer_t *peer;
    ompi_request_t *send;

    world_life[0] = bfo_life_own(0);
    world_life[1] = life_that_ended();
    peer = life_begins(PATIENCE);
    all_rails_fail();
    fences_end();
    send = send_start(SHORT, MCA_PML_BASE_SEND_SYNCHRONOUS);
    fuzz_progress();
    must(!peer->declared, "the PML looks at the process at once");
    time_passes(peer, 1);
    must(peer->declared && 0 == bfo.n_waits, "a dead process is waited for");
    fuzz_progress();
    must(is_complete(send) && MPI_ERR_OTHER == send->req_status.MPI_ERROR, "a send to a dead process does not end");
}

static void living_process_of_this_machine_is_waited_for(void)
{
    bfo_peer_t *peer;

    world_life[0] = world_life[1] = bfo_life_own(0);
    peer = life_begins(PATIENCE);
    all_rails_fail();
    fences_end();
    time_passes(peer, 1);
    must(!peer->declared && 0 == world_posted(), "a living process is declared, or a question goes out");
}

static void dead_process_is_found_by_a_witness(void)
{
    bfo_peer_t *peer = wait_begins_beside_a_witness();
    ompi_request_t *recv = recv_start(SHORT);
    const uint32_t number = question_goes();

    must(!peer->declared && !is_complete(recv), "the wait ends with the question");
    witness_says(BFO_PROCESS_DEAD, number);
    must(peer->declared && !peer_of_rank(2)->declared && 0 == bfo.n_waits, "a dead process is waited for");
    must(is_complete(recv) && MPI_ERR_OTHER == recv->req_status.MPI_ERROR, "a receive from a dead process does not end");
}

static void witness_is_met_if_none_is_known(void)
{
    bfo_peer_t *peer = wait_begins_for_another_node(ELSEWHERE, false);

    time_passes(peer, 1);
    witness_says(BFO_PROCESS_DEAD, question_goes());
    must(peer->declared && !peer_of_rank(2)->declared, "the answer of a known witness is not believed");
}

/* At first there is no memory for the process, and then no rail. Each wait tries again. */
static void witness_that_cannot_be_met_is_met_in_a_later_wait(void)
{
    void **place = &world_proc[2]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML], *const endpoint = *place;
    bfo_peer_t *peer = wait_begins_for_another_node(ELSEWHERE, false);

    for (int i = 0; i < 3; ++i) {
        no_memory = 0 == i ? 1 : 0;
        *place = 1 == i ? NULL : endpoint;
        0 == i ? time_passes(peer, 1) : question_is_due(peer);
        must(0 == no_memory && !peer->declared && (2 == i) == (1 == world_posted()), "a process that cannot be reached is asked, or is never met");
        if (2 > i) {
            world_rail_returns(&world_btl[0]);
            all_rails_fail();
            fences_end();
        }
    }
    witness_says(BFO_PROCESS_DEAD, question_goes());
    must(peer->declared && !peer_of_rank(2)->declared, "the answer of a witness that was met late is not believed");
}

static void nobody_is_met_who_runs_elsewhere(void)
{
    bfo_peer_t *peer = wait_begins_for_another_node(ELSEWHERE + 1, false);

    time_passes(peer, 1);
    must(0 == world_posted() && NULL == peer_of_rank(2), "a process of another node is contacted");
}

static void living_process_is_waited_for(void)
{
    bfo_peer_t *peer = wait_begins_beside_a_witness();
    const uint32_t number = question_goes();

    witness_says(BFO_PROCESS_ALIVE, number);
    witness_says(BFO_PROCESS_UNKNOWN, number);
    must(!peer->declared && 0 == world_posted(), "a living process is declared, or questions about it go out all the time");
    question_is_due(peer);
    must(number == question_goes(), "the number changes within a wait, so that an answer that takes longer than a second is lost");
    witness_says(BFO_PROCESS_DEAD, number);
    must(peer->declared, "only the first answer counts");
}

static void witness_that_does_not_answer_says_nothing(void)
{
    bfo_peer_t *peer = wait_begins_beside_a_witness();

    must(1 == world_posted(), "nobody is asked");
    question_is_due(peer);
    must(1 == world_posted() && !peer->declared, "a witness is asked again before the first question has left");
    (void) question_goes();
    time_passes(peer, PATIENCE - 10 - 2);
    must(!peer->declared, "silence ends the wait");
    time_passes(peer, 10);
    must(peer->declared, "the wait does not end in time");
}

static void word_of_others_does_not_count(void)
{
    bfo_peer_t *peer = wait_begins_beside_a_witness();
    const uint32_t number = question_goes();
    const bfo_life_hdr_t good = words_of(2, BFO_PROCESS_DEAD, number);
    bfo_life_hdr_t odd[9];

    for (unsigned i = 0; i < 9; ++i) {
        odd[i] = good;
    }
    odd[0].jobid = 78;
    odd[1].vpid = 1;
    odd[2].number = number + 1;
    odd[3].number = 0;
    odd[4].answer = BFO_PROCESS_ANSWERS;
    odd[5].about.pid += 1;
    odd[6].about.started += 1;
    odd[7].about.node += 1;
    odd[8].flags = BFO_FLAG_NBO;
    for (unsigned i = 0; i < 9; ++i) {
        hear(&world_btl[2], &odd[i], sizeof(odd[i]));
        must(!peer->declared, "a message that is not the answer declares a process");
    }
    hear(&world_btl[2], &good, sizeof(good) - 1);
    must(!peer->declared, "half a message declares a process");
    peer_of_rank(2)->life.node += 1;
    hear(&world_btl[2], &good, sizeof(good));
    must(!peer->declared, "the answer of a process of another node is believed");
    hear(&world_btl[2], &odd[7], sizeof(odd[7]));
    must(!peer->declared, "the answer about a process of another node is believed");
    peer_of_rank(2)->life.node -= 1;
    hear(&world_btl[2], &good, sizeof(good));
    must(peer->declared, "the answer is not believed");
}

static void process_of_another_machine_is_not_asked(void)
{
    bfo_peer_t *peer = wait_begins_beside_a_witness();

    (void) question_goes();
    peer_of_rank(2)->life.node += 1;
    question_is_due(peer);
    must(0 == world_posted() && !peer->declared, "a process of another node is asked");
}

static void question_that_is_lost_declares_nobody(void)
{
    bfo_peer_t *peer = wait_begins_beside_a_witness(), *witness = peer_of_rank(2);

    must(1 == world_posted(), "nobody is asked");
    world_complete(0, OPAL_ERROR);
    must(!witness->declared && !peer->declared && 2 == bfo.n_waits, "a lost question declares its witness, or the rail stays");
    fences_end();
    fuzz_progress();
    must(0 == bfo.n_pending && 0 == world_posted(), "a question is kept");
    world_rail_returns(&world_btl[2]);
    question_is_due(peer);
    (void) question_goes();
}

static void question_without_room_is_asked_later(void)
{
    bfo_peer_t *peer = wait_begins_for_another_node(ELSEWHERE, true);

    world_refuse_busy = 1;
    time_passes(peer, 1);
    must(0 == world_refuse_busy && 0 == world_posted() && 0 == bfo.n_pending && !peer->declared, "a question without room is kept");
    world_refuse_memory = 1;
    question_is_due(peer);
    must(0 == world_refuse_memory && 0 == world_posted() && 0 == bfo.n_pending && !peer->declared, "a question without memory is kept");
    question_is_due(peer);
    (void) question_goes();
}

static void answer_after_the_wait_does_not_count(void)
{
    bfo_peer_t *peer = wait_begins_beside_a_witness();
    const uint32_t number = question_goes();

    world_rail_returns(&world_btl[0]);
    must(0 == bfo.n_waits, "the wait goes on");
    witness_says(BFO_PROCESS_DEAD, number);
    world_rail_fails(&world_btl[0]);
    fences_end();
    fuzz_progress();
    must(!peer->declared, "an answer from before the rail came back declares a process");
    witness_says(BFO_PROCESS_DEAD, number);
    must(!peer->declared, "an answer to the question of another wait counts");
    question_is_due(peer);
    must(number != question_goes(), "two waits have one number");
}

static void questions_are_answered_from_this_machine(void)
{
    static const bfo_life_answer_t answers[] = {BFO_PROCESS_ALIVE, BFO_PROCESS_DEAD, BFO_PROCESS_UNKNOWN};
    bfo_life_hdr_t h = {.type = BFO_MSG_LIFE, .number = 5, .jobid = 77, .vpid = 1};

    world_life[0] = bfo_life_own(0);
    (void) life_begins(PATIENCE);
    for (unsigned i = 0; i < 3; ++i) {
        const bfo_life_hdr_t *answer;

        h.about = 1 == i ? life_that_ended() : world_life[0];
        h.about.node += 2 == i;
        hear(&world_btl[1], &h, sizeof(h));
        hear(&world_btl[1], &h, sizeof(h)); /* the same question again, before the answer has left */
        must(1 == world_posted() && 0 == world_find(BFO_MSG_LIFE), "there is not one answer");
        answer = world_posted_message(0);
        must(answers[i] == answer->answer && 5 == answer->number && 0 == memcmp(&h.about, &answer->about, sizeof(h.about)), "the answer differs");
        world_complete(0, OPAL_SUCCESS);
    }
    h.vpid = 2;
    hear(&world_btl[1], &h, sizeof(h));
    must(0 == world_posted(), "a question is answered whose sender is not the process that it names");
    h.vpid = 1;
    bfo_failover_declare(peer_of_rank(1), "a test");
    hear(&world_btl[1], &h, sizeof(h));
    must(0 > world_find(BFO_MSG_LIFE), "a question of a process that is given up is answered");
}

static const world_case_t cases[] = {
    {"last_rail_is_waited_for", last_rail_is_waited_for},
    {"nobody_waits_unless_that_is_asked_for", nobody_waits_unless_that_is_asked_for},
    {"rail_in_its_proof_is_waited_for", rail_in_its_proof_is_waited_for},
    {"proof_that_fails_ends_the_wait", proof_that_fails_ends_the_wait},
    {"sends_of_the_meantime_go_afterwards", sends_of_the_meantime_go_afterwards},
    {"what_was_under_way_goes_again", what_was_under_way_goes_again},
    {"answers_wait_too", answers_wait_too},
    {"wait_ends_in_time", wait_ends_in_time},
    {"wait_without_end_has_one_at_finalize", wait_without_end_has_one_at_finalize},
    {"finalize_does_not_wait_for_a_rail_that_nobody_needs", finalize_does_not_wait_for_a_rail_that_nobody_needs},
    {"dead_process_of_this_machine_ends_the_wait", dead_process_of_this_machine_ends_the_wait},
    {"living_process_of_this_machine_is_waited_for", living_process_of_this_machine_is_waited_for},
    {"dead_process_is_found_by_a_witness", dead_process_is_found_by_a_witness},
    {"witness_is_met_if_none_is_known", witness_is_met_if_none_is_known},
    {"witness_that_cannot_be_met_is_met_in_a_later_wait", witness_that_cannot_be_met_is_met_in_a_later_wait},
    {"nobody_is_met_who_runs_elsewhere", nobody_is_met_who_runs_elsewhere},
    {"living_process_is_waited_for", living_process_is_waited_for},
    {"witness_that_does_not_answer_says_nothing", witness_that_does_not_answer_says_nothing},
    {"word_of_others_does_not_count", word_of_others_does_not_count},
    {"process_of_another_machine_is_not_asked", process_of_another_machine_is_not_asked},
    {"question_that_is_lost_declares_nobody", question_that_is_lost_declares_nobody},
    {"question_without_room_is_asked_later", question_without_room_is_asked_later},
    {"answer_after_the_wait_does_not_count", answer_after_the_wait_does_not_count},
    {"questions_are_answered_from_this_machine", questions_are_answered_from_this_machine},
};

int main(int argc, char **argv)
{
    if (argc > 1) {
        world_second_is_safe = true;
        world_init();
    }
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
