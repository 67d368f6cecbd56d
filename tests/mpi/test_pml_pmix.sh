#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# With pml_bfo_pmix_events the processes of a node that have a PMIx handler get an event when a rail is lost and when it is back, from each process
# that notices, with the words of `bfo events`. A process without a handler gets no event and continues; without the parameter no process gets an
# event. A job that drains a port gets an event as well. A release of Open MPI with which this was not tried refuses the parameter.
# BFO_PMIX_JOBS: number of jobs with handlers (1).
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/tools/tools.sh"
use_components pml btl
PROGRAM=$BFO_BUILDDIR/tests/mpi/mpi_pmix
EVENTS=(--mca pml_bfo_pmix_events 1)

case $OMPI_VERSION in
4.*) ;;
*)
    timeout -k 5 60 "$MPIRUN" --oversubscribe -np 1 --mca pml bfo --mca btl "$SHARED_MEMORY,self" "${EVENTS[@]}" "$BFO_BUILDDIR/tests/mpi/mpi_match" \
        >"$LOG" 2>&1 </dev/null && fail "not refused"
    grep -q 'pml_bfo_pmix_events cannot be 1' "$LOG" || { cat "$LOG"; fail "not refused with a message"; }
    exit 0
    ;;
esac
[ -x "$PROGRAM" ] || skip_missing "mpi_pmix, which needs the headers of PMIx," libpmix-dev
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_time_wait 1 --mca btl_openib_rejoin_after 50 --mca pml_bfo_verbose 1)

# begin MPIRUN-ARGUMENTS... -- LISTENER...
begin() {
    local args=()
    while [ "$1" != -- ]; do
        args+=("$1")
        shift
    done
    shift
    rm -f "$TEST_TMP/end"
    begin_stream "-n 2 --retry-time=300ms" 2 "${args[@]}" "$PROGRAM" "$TEST_TMP" "$@"
    await "$LOG" '^rank [01] is ready$' 2 || { cat "$LOG"; fail "the job does not begin"; }
}
ends_well() {
    touch "$TEST_TMP/end"
    wait "$job" || { tail -n 40 "$LOG"; fail "the job ended with $?"; }
    grep -q '^PASSED [1-9]' "$LOG" || { tail -n 40 "$LOG"; fail "the job verified nothing"; }
}
# both WHAT TIMES: both processes have noticed TIMES times that rail 1 is WHAT
both() { await "$LOG" "rail 1 generation [0-9]* (sr1:1) $1" $((2 * $2)) || { tail -n 40 "$LOG"; fail "rail 1: not $1 at both sides"; }; }
# flap COMMAND TIMES: the path of rail 1 drops everything (silent), or its port is down; then it works again
flap() {
    "$SOFTRAIL" "$1" --fabric "$FABRIC" 1 || fail "rail 1 could not be cut"
    both lost "$2"
    "$SOFTRAIL" up --fabric "$FABRIC" 1 || fail "rail 1 did not return"
    both 'is back' "$2"
}
# hears RANK SOURCE WORDS: waits until RANK has printed an event of SOURCE with these words
hears() {
    await "$LOG" "^rank $1 heard -6056 of rank $2: bfo.event=$3" || { cat "$LOG"; fail "rank $1 does not hear of rank $2: $3"; }
}

# hear_all LISTENERS WORDS: each listener gets this event from both processes
hear_all() {
    local rank
    for rank in $1; do
        hears "$rank" 0 "$2"
        hears "$rank" 1 "$2"
    done
}

for ((i = 0; i < ${BFO_PMIX_JOBS:-1}; ++i)); do
    begin "${EVENTS[@]}" --
    flap silent 1
    hear_all '0 1' 'rail-lost bfo.time=[0-9]* bfo.port=sr1:1 bfo.peer.port=sr1:1 bfo.peer=[01] .*bfo.before=up bfo.after=lost bfo.cause='
    hear_all '0 1' 'rail-back bfo.time=[0-9]* bfo.port=sr1:1 bfo.peer.port=sr1:1 bfo.peer=[01] .*bfo.before=lost bfo.after=up bfo.lasted='
    ends_well
done
note "a rail is lost, and is back: both processes hear so of both"

begin "${EVENTS[@]}" -- 1
flap down 1
hears 1 0 'rail-back '
hears 1 1 'rail-back '
hears 1 '[01]' '\(port-down\|rail-lost\) '
ends_with 0 "$BFO" drain sr1:1
hear_all 1 'port-drained bfo.time=[0-9]* bfo.port=sr1:1 bfo.before=draining bfo.after=drained'
ends_with 0 "$BFO" release sr1:1
hear_all 1 'port-released bfo.time=[0-9]* bfo.port=sr1:1 '
ends_well
! grep -q '^rank 0 heard' "$LOG" || { cat "$LOG"; fail "rank 0 has no handler"; }
note "a process without handler runs on; what the user drains is heard"

begin "${EVENTS[@]}" -- 2
flap down 1
ends_well
note "nobody listens: the job runs on"

begin --
flap silent 1
ends_with 0 "$BFO" drain sr1:1
ends_with 0 "$BFO" release sr1:1
ends_well
[ "$(grep -c '^rank [01] heard ' "$LOG")" = 0 ] || { cat "$LOG"; fail "somebody hears without the parameter"; }
note "without the parameter nobody hears anything"
exit 0
