#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# stalls.sh [-a]: how long a message between connected ranks waits while connections are made and a rail is lost, and every
# control verb that can block takes 400 ms (address handle, RTR, error state, destruction). The service thread calls these verbs and
# sleeps in them; in a whole phase a rank that polls may not sleep for half the time of one verb, however loaded the machine is.
# -a: ranks bound to cores and unbound, verbs slow and fast.
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
slow_ms=400
bad=0

# one NAME BINDING SECONDS "RULES"
one() {
    local name=$1 binding=$2 seconds=$3 fabric=bfo-stalls-$$ log=$TEST_TMP/log job
    printf '%b' "$4" >"$TEST_TMP/plan"
    : >"$log"
    timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run -n 2 --name "$fabric" --plan "$TEST_TMP/plan" --report "$REPORT" -- "$MPIRUN" --oversubscribe \
        --bind-to "$binding" -np 4 --mca pml bfo --mca btl openib,self --mca btl_openib_receive_queues P,65792,32 \
        --mca btl_openib_time_wait 1 "$BFO_BUILDDIR/tests/perf/perf_stall" "$seconds" >"$log" 2>&1 </dev/null &
    job=$!
    await "$log" '^phase connects' || { show_log; fail "$name: no second phase"; }
    sleep 0.2
    "$SOFTRAIL" down --fabric "$fabric" sr1 || { show_log; fail "$name: rail 1 could not be cut"; }
    wait $job || { show_log; fail "$name: the job ended with an error"; }
    grep -q '^stalls: all right' "$log" || { show_log; fail "$name: no result"; }
    grep -q '^A rail was lost: .* from sr1:1 ' "$log" || { show_log; fail "$name: rail 1 was not lost"; }
    rails_carried 1000 2
    while read -r _ phase _ _ _ median _ longest _ call _ slept; do
        printf '%-22s %-9s %12s %12s %12s %12s\n' "$name" "$phase" "$median" "$longest" "$call" "$slept"
        [ "$slept" -lt $((slow_ms * 500)) ] || { echo "  it slept for $slept us"; bad=1; }
    done <<<"$(grep '^phase [qcf]' "$log")"
}
slow="slow op=destroy_qp nth=9-12 time=${slow_ms}ms\n" # neither the queue pairs that only try the 8 devices, nor those of MPI_Finalize
for call in create_ah qp_rtr qp_error; do slow="${slow}slow op=$call time=${slow_ms}ms\n"; done

printf '%-22s %-9s %12s %12s %12s %12s\n' "verbs, ranks" phase "median us" "longest us" "MPI call us" "slept us"
one "slow, unbound" none 2.5 "$slow"
done=$(grep -o '"done": *[0-9]*' "$REPORT" | tr -dc '0-9\n')
[ "$(awk '$1 >= 2' <<<"$done" | wc -l)" = 4 ] || fail "not every verb was slow: $(cat "$REPORT")"
if [ "${1:-}" = -a ]; then
    one "slow, bound" core:overload-allowed 2.5 "$slow"
    one "fast, unbound" none 2.5 ""
    one "fast, bound" core:overload-allowed 2.5 ""
fi
[ $bad = 0 ] || fail "a control verb held messages up"
exit 0
