#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Two rails that the BTL takes for equal, but one delivers a tenth of what the other delivers: the slow rail carries about a tenth of the
# bulk, and short messages avoid it. Of two rails that are equal neither counts as slow. The rates are so low that the rails decide, not the
# cores.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
use_components pml btl
REPORT=$TEST_TMP/rails.json
LOG=$TEST_TMP/mpi_slow.log
ROUNDS=32 PINGS=4000

# job RATE-OF-SR1 PINGS MPIRUN-ARGUMENTS...
job() {
    PML_PREFIX=("$SOFTRAIL" run -n 2 --rate sr0=400M --rate "sr1=$1" --report "$REPORT" --)
    PML_ARGS=("$ROUNDS" "$2")
    shift 2
    run_program mpi_slow 2 --mca pml bfo --mca btl openib,self --mca btl_openib_bandwidth 10000 --mca pml_bfo_verbose 1 "$@"
    rails_moved "$REPORT" 0 1
}
# part: prints the per cent of all bytes that rail 1 carried
part() { awk -v a="$(rail_counter "$REPORT" 0 tx_bytes)" -v b="$(rail_counter "$REPORT" 1 tx_bytes)" 'BEGIN { printf "%d", 100 * b / (a + b) }'; }

for way in "read" "written --mca pml_bfo_use_get 0" "copied --mca pml_bfo_use_get 0 --mca pml_bfo_use_put 0"; do
    read -r name options <<<"$way"
    # shellcheck disable=SC2086
    job 40M 0 $options
    says 'bfo: 0->1 slow rails .*sr1'
    says 'bfo: 1->0 slow rails .*sr1'
    bulk=$(rail_counter "$REPORT" 1 tx_messages)
    # The first pieces use both rails equally, because no rate is known yet; after that the share of the slow rail is 9 %, or more if the
    # processes lack the time to keep the fast rail busy. Equal shares would be 50 %.
    [ "$(part)" -le 40 ] || fail "$name: the slow rail carried $(part) % of the bytes"
    note "$name: the slow rail carried $(part) % of the bytes"
    # shellcheck disable=SC2086
    job 40M $PINGS $options
    pings=$(($(rail_counter "$REPORT" 1 tx_messages) - bulk))
    [ $pings -lt $((PINGS / 2)) ] || fail "$name: of $((2 * PINGS)) short messages some $pings went over the slow rail"
    note "$name: of $((2 * PINGS)) short messages some $pings went over the slow rail"
    # shellcheck disable=SC2086
    job 400M 0 $options
    [ "$(part)" -ge 35 ] && [ "$(part)" -le 65 ] || fail "$name: one of two alike carried $(part) % of the bytes"
    note "$name: one of two alike carried $(part) % of the bytes"
done
exit 0
