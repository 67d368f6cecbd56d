#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A program takes a port out of service, and gives it back, through the control variable pml_bfo_drain of MPI_T: softrail's counters show that the
# rail carries nothing meanwhile. Other parameters change through MPI_T as well; the PML takes back a value that cannot be used, with one message.
# A thread that writes variables while others send harms nothing. pml_bfo_drain at the start keeps a port out from the beginning.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/tools/tools.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_time_wait 1)
steps=$TEST_TMP/steps
mkdir "$steps"

# at_step NUMBER: waits until both ranks have begun this step
at_step() { await "$LOG" "^rank [01] step $1\$" 2 || { cat "$LOG"; fail "step $1 does not begin"; }; }
events_have() { "$BFO" events >"$TEST_TMP/out" 2>&1 && grep -Eq -- "$1" "$TEST_TMP/out"; }

begin_stream "-n 2 --retry-time=500ms" 2 "$BFO_BUILDDIR/tests/mpi/mpi_cvars" "$steps" sr0:1
at_step 1
moves 0
moves 1
touch "$steps/1"
at_step 2
until_so "the port is not drained" status_has '^  [^ ]+ +sr0:1 +[0-9]+[GM] +drained '
rests 0 1
ends_with 0 "$BFO" drain
[ ! -s "$TEST_TMP/out" ] || { cat "$TEST_TMP/out"; fail "the user has asked for nothing"; }
note "drained by the program"
touch "$steps/2"
at_step 3
until_so "rank 1 does not give the port back" events_have 'rank 1 port-released sr0:1 '
rests 0 1
touch "$steps/3"
at_step 4
moves 0
moves 1
note "given back by the program, when both ranks had done so"
until_so "verbose is not shown" events_have 'parameter: pml_bfo_verbose = 1 \(MPI_T\)'
until_so "the refusal is not shown" events_have 'parameter: pml_bfo_resend_burst = 0 \(MPI_T; refused: it must be 1 to 1000000\)'
touch "$steps/4"
at_step 5
moves 1
touch "$steps/5"
wait "$job" || { tail -n 40 "$LOG"; fail "the job ended with $?"; }
grep -q '^PASSED [1-9]' "$LOG" || { tail -n 40 "$LOG"; fail "the job verified nothing"; }
for words in 'bfo: rank 0: pml_bfo_verbose = 1 (MPI_T)' 'bfo: rank 0 counters: ' 'The program has set pml_bfo_resend_burst to 0 through MPI_T'; do
    [ "$(grep -cF -- "$words" "$LOG")" = 1 ] || { cat "$LOG"; fail "not said once: $words"; }
done
note "parameters: taken up, taken back, written while messages go"

begin_stream "-n 2 --retry-time=500ms" 2 --mca pml_bfo_drain sr9:1,sr0:1,sr8:1 "$STREAM" -m 300000 -s 600
await "$LOG" 'messages verified' 2 || { cat "$LOG"; fail 'no stream'; }
[ "$(bytes 0)" -lt 10000 ] || fail "a port that stands out since the start carried $(bytes 0) bytes"
until_so "the port is not drained" status_has '^  [^ ]+ +sr0:1 +[0-9]+[GM] +drained '
ends_with 1 "$BFO" release sr0:1
end_stream
[ "$rc" = 0 ] || { tail -n 40 "$LOG"; fail "the job ended with $rc"; }
for port in sr9:1 sr8:1; do
    [ "$(grep -cF "names the port \"$port\"" "$LOG")" = 1 ] || { cat "$LOG"; fail "it is not said once that there is no port $port"; }
done
note "out since the start"
exit 0
