#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# For each parameter of the PML there must be a test that shows its effect (a refusal is no effect): here, in another test of this
# folder, in tests/tools, or in tests/fuzz/fuzz_params.c.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
use_components pml
LOG=$TEST_TMP/mpi_match.log

ARGS=(--mca btl "$SHARED_MEMORY,self" --mca pml_bfo_warn_no_failover 0 --mca pml_base_verbose 10 --mca pml_bfo_counters 1)
run_program mpi_match 1 --mca pml bfo "${ARGS[@]}" --mca pml_bfo_priority 7
grep -q 'selected bfo best priority 7$' "$LOG" || { cat "$LOG"; fail "priority 7 is not in the log"; }
run_program mpi_match 1 --mca pml bfo,ob1 "${ARGS[@]}" --mca pml_bfo_priority 0
grep -q 'bfo: rank 0 counters' "$LOG" || { cat "$LOG"; fail "bfo is not used although it is named first"; }

names=$("$OMPI_INFO" --param pml bfo --level 9 --parsable | sed -n 's/.*param:pml_bfo_\([a-z_0-9]*\):value:.*/\1/p')
[ "$(wc -w <<<"$names")" -ge 20 ] || fail "ompi_info lists only: $names"
for name in $names; do
    [ "$name" != protocol_version ] || continue # tests use it only to be refused
    grep -lE "(pml_bfo_|bfo_params\.)$name\b" "$BFO_SRCDIR"/tests/mpi/test_pml_*.sh "$BFO_SRCDIR"/tests/tools/*.sh "$BFO_SRCDIR"/tests/fuzz/fuzz_params.c |
        grep -qv refusals || fail "no test shows what the parameter $name does"
done
# Without rejoin the default is not to wait for a rail; the PML refuses a wait without rejoin (test_pml_refusals.sh).
for rejoin in "1 300" "0 0"; do
    OMPI_MCA_pml_bfo_rejoin=${rejoin% *} "$OMPI_INFO" --param pml bfo --level 9 --parsable | grep -q "param:pml_bfo_last_rail_timeout:value:${rejoin#* }\$" ||
        fail "with pml_bfo_rejoin ${rejoin% *} the default of pml_bfo_last_rail_timeout is not ${rejoin#* }"
done
note "$(wc -w <<<"$names") parameters have a test"
exit 0
