# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Helpers that the tests here share, in addition to tests/lib.sh. Sourced by test_*.sh.
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/lib.sh" || exit 1
: "${TEST_TMP:?tests/lib.sh did not make a scratch directory}"
RUN=$BFO_SRCDIR/tests/vm/run.sh
# The limits are long, because a slow test on a loaded machine is no failure; a test that hangs still ends.
export BFO_VM_TIMEOUT=${BFO_VM_TIMEOUT:-900} BFO_VM_BOOT_TIMEOUT=${BFO_VM_BOOT_TIMEOUT:-180}
export VM_STREAM=$BFO_BUILDDIR/tests/vm/vm_stream VM_RING=$BFO_BUILDDIR/tests/vm/vm_ring VM_MEET=$BFO_BUILDDIR/tests/vm/vm_meet
export VM_TRAFFIC=$BFO_BUILDDIR/tests/vm/vm_traffic

# Failures that a machine that stands still cannot cause, a hang among them: a job whose output shows one is never repeated.
export VM_GRAVE='WRONG|[1-9][0-9]* wrong|Signal: |Segmentation|Assertion|hung|hangs|\(124\)'

# vm_job JOB [OPTION...] [-- ARGUMENT...]: runs the job script in two machines; its status is the test's, and its logs are printed if it
# fails. Timers of a rail run in real time, therefore a job that fails while the machines stood still (guest.sh, witness) proves nothing:
# it runs again, three times at most, and not after 400 s.
vm_job() {
    local job=$BFO_SRCDIR/tests/vm/$1 begin=$SECONDS status log still try options=()
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    for try in 1 2 3; do
        rm -rf "$TEST_TMP/out"
        "$RUN" --out "$TEST_TMP/out" ${options[@]+"${options[@]}"} -- "$job" "${@:2}" </dev/null | tee "$TEST_TMP/said"
        status=${PIPESTATUS[0]}
        still=$(sort -n "$TEST_TMP/out/.stood_still" 2>/dev/null | tail -n 1)
        note "$((SECONDS - begin)) s; the machines stood still for ${still:-0} ms at the longest"
        [ $status != 0 ] && [ $status != 77 ] || exit $status
        for log in "$TEST_TMP"/out/*; do
            [ -s "$log" ] && ! grep -q '^ok: .* 0 wrong' "$log" && echo "--- ${log##*/}" && grep -v '^round' "$log" | tail -n 80
        done
        [ "${still:-0}" -ge 1000 ] && [ $try != 3 ] && [ $status != 124 ] && [ $((SECONDS - begin)) -lt 400 ] || break
        ! grep -rqE "$VM_GRAVE" "$TEST_TMP/out" "$TEST_TMP/said" || break
        retry "the machines stood still"
    done
    exit $status
}

# vm_components: sets where the jobs find our components.
vm_components() {
    local part
    for part in pml_bfo/.libs/mca_pml_bfo.so btl_openib_failover/.libs/mca_btl_openib.so; do
        [ -e "$BFO_BUILDDIR/$part" ] || fail "$BFO_BUILDDIR/$part is not built"
    done
    export VM_COMPONENTS=$BFO_BUILDDIR/pml_bfo/.libs:$BFO_BUILDDIR/btl_openib_failover/.libs
}
