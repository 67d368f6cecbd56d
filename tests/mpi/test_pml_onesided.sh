#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Windows run over the PML: with the osc line of the installed bfo.conf, over vader, tcp and our rails, and with a
# rail cut meanwhile. Where all ranks share a machine, osc/sm handles windows whose memory Open MPI allocates: it needs the PML
# to make the window, not to use it. The PML names once the components that would bypass it, collectives included.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
FILE=$TEST_TMP/bfo.conf
ARGS=(--mca pml bfo --mca btl openib,self) BTL_ARGS=("${ARGS[@]}")

# in_shared_memory: prints how many ranks have their window in osc/sm's memory
in_shared_memory() { grep -c '^rank [0-9]*: window in /dev/shm/osc_sm\.' "$TEST_TMP/mpi_onesided.log"; }
# Windows whose memory Open MPI allocates.
allocated() {
    local kind n
    for kind in allocate shared; do
        PML_ARGS=(/ $kind)
        for n in 2 4; do
            run_program mpi_onesided $n --mca pml bfo --mca btl "$SHARED_MEMORY,self" --mca pml_bfo_warn_no_failover 0
            [ "$(in_shared_memory)" = $n ] || { cat "$TEST_TMP/mpi_onesided.log"; fail "$kind, $n ranks: not osc/sm"; }
        done
    done
    PML_ARGS=()
}
# named COMPONENTS MPIRUN-ARGUMENTS...: the job says once that these components bypass the PML
named() {
    local list=$1 said
    shift
    run_program mpi_sizes 2 "${ARGS[@]}" "$@"
    said=$(grep -c "components:  $list\$" "$TEST_TMP/mpi_sizes.log")
    [ "$said" = 1 ] || { grep -v PASSED "$TEST_TMP/mpi_sizes.log"; fail "$list was named $said times, not once: $*"; }
}
# unnamed WHY MPIRUN-ARGUMENTS...: the job names no component
unnamed() {
    local why=$1
    shift
    run_program mpi_sizes 2 "${ARGS[@]}" "$@"
    ! grep -q 'go past it' "$TEST_TMP/mpi_sizes.log" || fail "a component was named: $why"
}
# Collectives of hcoll: a component of that name stands for the real hcoll.
use_hcoll() {
    export OMPI_MCA_mca_base_component_path=$PML_DIR/.libs:$BFO_BUILDDIR/pml_bfo/.libs:$BFO_BUILDDIR/btl_openib_failover/.libs:$BFO_OMPI_COMPONENTDIR
}

# Open MPI 5.0 and 6.0 have no osc/pt2pt. Therefore a window of the program's memory is refused under the PML, and osc/rdma, which bypasses it, is named.
case $OMPI_VERSION in
4.*) ;;
*)
    use_components pml btl
    export OMPI_MCA_osc=^ucx,rdma # as bfo.conf says
    allocated
    run_program mpi_onesided 2 --mca pml bfo --mca btl "$SHARED_MEMORY,self" --mca pml_bfo_warn_no_failover 0 --mca osc rdma
    ! mpi 2 --mca pml bfo --mca btl "$SHARED_MEMORY,self" "$PML_DIR/mpi_onesided" >"$TEST_TMP/log" 2>&1 ||
        fail "a window of the program's memory went another way"
    [ "$(grep -c 'this release of Open MPI has no component osc/pt2pt' "$TEST_TMP/log")" = 1 ] ||
        { cat "$TEST_TMP/log"; fail "nobody says, or not once, why there is no window"; }
    PML_PREFIX=("$SOFTRAIL" run -n 2 --)
    named osc/rdma --mca osc rdma
    unnamed "it is excluded"
    use_hcoll
    named coll/hcoll
    named "coll/hcoll, osc/rdma" --mca osc rdma
    unnamed "it cannot run" -x HCOLL_CANNOT_RUN=1
    exit 0
    ;;
esac

# The installed file for --tune, with the components of this build.
sed "s,^mca_base_component_path = [^:]*,mca_base_component_path = $BFO_BUILDDIR/pml_bfo/.libs:$BFO_BUILDDIR/btl_openib_failover/.libs," \
    "$BFO_BUILDDIR/bfo.conf" >"$FILE"
grep -q '^osc = ^ucx,rdma$' "$FILE" || fail "the installed file for --tune does not set osc: $(cat "$FILE")"
export OMPI_MCA_mca_base_param_files=$FILE

for btl in $SHARED_MEMORY tcp; do
    for n in 1 2 4; do
        run_program mpi_onesided $n --mca pml bfo --mca btl "$btl,self" --mca pml_bfo_warn_no_failover 0
    done
done
allocated
PML_ARGS=(/ allocate)
run_program mpi_onesided 2 --mca pml bfo --mca btl "$SHARED_MEMORY,self" --mca pml_bfo_warn_no_failover 0 --mca osc pt2pt
[ "$(in_shared_memory)" = 0 ] || fail "without osc/sm a window is in its memory"
PML_ARGS=()
run_program mpi_onesided 2 --mca pml bfo --mca btl "$SHARED_MEMORY,self" --mca pml_bfo_warn_no_failover 0
[ "$(in_shared_memory)" = 0 ] || fail "the program's own memory is osc/sm's"
PML_PREFIX=("$SOFTRAIL" run -n 2 --report "$REPORT" --)
for n in 2 4 8; do
    run_program mpi_onesided $n "${ARGS[@]}"
    rails_moved "$REPORT" 0 1
    ! grep -q 'go past it' "$TEST_TMP/mpi_onesided.log" || fail "something goes past the PML with the parameter file"
done

# cut_under_windows RAIL RANKS MPIRUN-ARGUMENTS...: the job continues until the rail is lost, and for some more rounds
cut_under_windows() {
    local rail=$1 n=$2 end=$TEST_TMP/end
    shift 2
    rm -f "$end"
    begin_stream "-n 2 --retry-time=300ms" "$n" "$@" "$PML_DIR/mpi_onesided" "$end"
    await "$LOG" '^round 2$'
    "$SOFTRAIL" down --fabric "$FABRIC" "$rail" || { cat "$LOG"; fail "rail $rail could not be cut"; }
    await "$LOG" "^A rail was lost: .* rail $rail from "
    await "$LOG" '^round' $(($(grep -c '^round' "$LOG") + 3))
    touch "$end"
    passes "windows on $n ranks, rail $rail lost: $*"
    says "^A rail was lost: .* rail $rail from "
    note "rail $rail cut under windows on $n ranks $*: $(grep '^PASSED' "$LOG")"
}
cut_under_windows 0 2
cut_under_windows 1 4
cut_under_windows 1 2 --mca pml_bfo_use_put 0 --mca pml_bfo_use_get 0

if [ -f "$BFO_OMPI_COMPONENTDIR/mca_osc_ucx.so" ]; then
    named osc/ucx --mca osc ucx,pt2pt
fi
ATOMICS=(--mca btl_openib_flags send,put,get,atomics,fetching-atomics)
named osc/rdma --mca osc rdma,pt2pt "${ATOMICS[@]}"
unnamed "the parameter file excludes it" "${ATOMICS[@]}"
use_hcoll
named coll/hcoll
named "coll/hcoll, osc/rdma" --mca osc rdma,pt2pt "${ATOMICS[@]}"
unnamed "it is excluded" --mca coll ^hcoll
unnamed "it cannot run" -x HCOLL_CANNOT_RUN=1
unnamed "the user wants no such notice" --mca pml_bfo_warn_no_failover 0
exit 0
