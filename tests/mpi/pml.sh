# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs our MPI programs. Source after lib.sh. A prefix command (softrail run ... --) goes into PML_PREFIX, the program's
# arguments into PML_ARGS.
PML_DIR=$BFO_BUILDDIR/tests/mpi
PML_PREFIX=()
PML_ARGS=()

# run_program PROGRAM RANKS MPIRUN-ARGUMENTS...: the program must end with success and print that it checked something.
run_program() {
    local program=$1 n=$2 log=$TEST_TMP/$1.log limit=$MPI_TIMEOUT
    shift 2
    # In Open MPI 6.0.0rc2, two threads that send at once can give two messages in a fast box of BTL sm the same number: the job hangs, with ob1 too.
    [[ $OMPI_VERSION:$program != 6.*:mpi_threads ]] || set -- "$@" --mca btl_sm_fbox_max 0
    [ "$program" != mpi_huge ] || limit=$((4 * MPI_TIMEOUT)) # it takes some seconds, but minutes where other programs use the cores
    timeout -k 5 "$limit" ${PML_PREFIX[@]+"${PML_PREFIX[@]}"} \
        "$MPIRUN" --oversubscribe --bind-to none -np "$n" "$@" "$PML_DIR/$program" ${PML_ARGS[@]+"${PML_ARGS[@]}"} >"$log" 2>&1 </dev/null ||
        { tail -n 30 "$log"; fail "$program, $n ranks, $*"; }
    grep -q '^PASSED [1-9][0-9]* checks' "$log" || { tail -n 30 "$log"; fail "$program, $n ranks, $*: no result"; }
    note "$program, $n ranks: $(grep '^PASSED' "$log")"
}

# All of point-to-point on 1 to 8 ranks, with the BTL's limits and with small and odd limits.
run_point_to_point() {
    local program
    run_program mpi_match 1 "$@"
    run_program mpi_modes 1 "$@"
    for program in mpi_sizes mpi_match mpi_modes mpi_types mpi_comms mpi_threads mpi_life mpi_huge; do
        run_program $program 2 "$@"
    done
    run_program mpi_modes 3 "$@"
    run_program mpi_queues 4 "$@"
    for program in mpi_match mpi_comms mpi_threads; do
        run_program $program 4 "$@"
    done
    run_wide "$@"
    # copies only, with a short eager limit
    run_program mpi_sizes 2 "$@" --mca pml_bfo_use_get 0 --mca pml_bfo_use_put 0 --mca pml_bfo_eager_limit 256
    run_program mpi_types 2 "$@" --mca pml_bfo_use_get 0 --mca pml_bfo_use_put 0 --mca pml_bfo_eager_limit 1000
    # RDMA writes in small pieces, with many transfers of one message at a time
    run_program mpi_sizes 2 "$@" --mca pml_bfo_use_get 0 --mca pml_bfo_frag_size 5000 \
        --mca pml_bfo_recv_pipeline_depth 7
    # truncated messages in every protocol
    run_program mpi_modes 2 "$@" --mca pml_bfo_use_get 0 --mca pml_bfo_use_put 0
    run_program mpi_modes 2 "$@" --mca pml_bfo_use_get 0 --mca pml_bfo_frag_size 5000
}

# Eight ranks on however many cores there are.
run_wide() {
    local program
    for program in mpi_match mpi_modes mpi_comms mpi_life; do
        run_program $program 8 "$@"
    done
}

# two_nodes: sets TWO_NODES, arguments of mpirun for two nodes of two ranks each. Both nodes are this machine: mpirun starts its two daemons
# through an agent that stays here, and takes ranks of different daemons for ranks of different nodes. From 5.0 on mpirun asks each daemon for
# the name of its machine, and waits without limit if both names are the same; therefore each daemon gets a name of its own (unshare, hostname).
two_nodes() {
    cat >"$TEST_TMP/agent" <<'AGENT'
#!/bin/bash
# agent NODE COMMAND: each node has its own directories, because the files of both nodes have the same names
export TMPDIR=$(dirname "$0")/$1
export OMPI_MCA_btl_${SHARED_MEMORY}_backing_directory=$TMPDIR
mkdir -p "$TMPDIR"
node=$1
shift
[ "$SHARED_MEMORY" = vader ] || exec unshare --uts bash -c "hostname $node; $*"
exec bash -c "$*"
AGENT
    chmod +x "$TEST_TMP/agent"
    TWO_NODES=(--mca plm_rsh_agent "$TEST_TMP/agent" -H "left:2,right:2")
}
