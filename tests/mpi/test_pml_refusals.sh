#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The PML refuses what cannot work with one message that names the remedy; it never hangs.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
use_components pml
PROGRAM=$PML_DIR/mpi_match

# run MPIRUN-ARGUMENTS...: a job, with its output in $LOG.
run() {
    local rc=0
    : >"$TEST_TMP/own"
    timeout -k 5 60 "$MPIRUN" --oversubscribe --bind-to none "$@" >"$LOG" 2>&1 </dev/null || rc=$?
    cat "$TEST_TMP/own" >>"$LOG"
    return $rc
}

# refused TEXT COUNT MPIRUN-ARGUMENTS...: the job ends with an error and prints TEXT, COUNT times.
refused() {
    local text=$1 count=$2 rc=0 said
    shift 2
    ends_refused "$text" "$LOG" run "$@" || rc=$?
    [ $rc != 0 ] || { tail -n 20 "$LOG"; fail "not refused: $*"; }
    [ $rc != 124 ] && [ $rc != 137 ] || { tail -n 20 "$LOG"; fail "hung: $*"; }
    said=$(grep -c -- "$text" "$LOG")
    [ "$said" = "$count" ] || { tail -n 40 "$LOG"; fail "'$text' was said $said times, not $count: $*"; }
    note "refused: $*"
}
BFO=(--mca pml bfo --mca btl "$SHARED_MEMORY,self" --mca pml_bfo_warn_no_failover 0)

refused 'pml_bfo_max_rails cannot be 0' 1 -np 2 "${BFO[@]}" --mca pml_bfo_max_rails 0 "$PROGRAM"
refused 'pml_bfo_max_rails cannot be 9' 1 -np 2 "${BFO[@]}" --mca pml_bfo_max_rails 9 "$PROGRAM"
refused 'pml_bfo_send_pipeline_depth cannot be 0' 1 -np 2 "${BFO[@]}" --mca pml_bfo_send_pipeline_depth 0 "$PROGRAM"
refused 'pml_bfo_eager_limit cannot be 3' 1 -np 2 "${BFO[@]}" --mca pml_bfo_eager_limit 3 "$PROGRAM"
refused 'pml_bfo_last_rail_timeout cannot be 60' 1 -np 2 "${BFO[@]}" --mca pml_bfo_rejoin 0 --mca pml_bfo_last_rail_timeout 60 "$PROGRAM"
refused 'pml_bfo_free_list_max cannot be 1' 1 -np 2 "${BFO[@]}" --mca pml_bfo_free_list_max 1 "$PROGRAM"
refused 'pml_bfo_status_dir cannot be figures' 1 -np 2 "${BFO[@]}" --mca pml_bfo_status_dir figures "$PROGRAM"
# no other PML takes its place
refused 'pml_bfo_max_rails cannot be 9' 1 -np 2 --mca pml bfo,ob1 --mca btl "$SHARED_MEMORY,self" --mca pml_bfo_max_rails 9 "$PROGRAM"
# rank 0 uses another protocol, or another PML, than rank 1
odd() { printf %s "[ \$OMPI_COMM_WORLD_RANK = 0 ] && export $1; exec $PROGRAM"; }
refused "do not$" 1 -np 2 "${BFO[@]}" bash -c "$(odd OMPI_MCA_pml_bfo_protocol_version=1)"
grep -q "Install the same version of bfo" "$LOG" || fail "no remedy for another protocol version"
refused "selected pml" 1 -np 2 "${BFO[@]}" bash -c "$(odd OMPI_MCA_pml=ob1)"
# components that were built for another release of Open MPI
use_components pml btl
other_release=$BFO_BUILDDIR/tests/mpi/.libs/other_release.so
[ -e "$other_release" ] || fail "$other_release is missing"
preload=$other_release${LD_PRELOAD:+:$LD_PRELOAD}
# The first process of a node prints the message, unless another refused process ends the job before: therefore the job has one process.
# mpirun may lose output of a process that ends in MPI_Init, therefore the process writes into a file.
PROGRAM_OWN=(bash -c "exec $PROGRAM 2>>$TEST_TMP/own")
refused 'The PML bfo was built for Open MPI' 1 -np 1 "${BFO[@]}" -x LD_PRELOAD="$preload" "${PROGRAM_OWN[@]}"
grep -q 'this is Open MPI 0.0.1' "$LOG" || fail "the release that runs is not named"
refused 'The BTL openib of bfo was built for Open MPI' 1 -np 1 --mca pml ob1 --mca btl "openib,$SHARED_MEMORY,self" -x LD_PRELOAD="$preload" "${PROGRAM_OWN[@]}"
exit 0
