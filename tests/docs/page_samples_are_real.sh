#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Outputs on pages have the words that the product prints: README's `bfo status` and the line of a protected job, from a job that loses a
# rail; the site guide's `bfo doctor`. (demo_draws_the_picture.sh does the same with README's demo.)
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
. "$BFO_SRCDIR/tests/tools/tools.sh"
use_components pml btl
need perl perl
BTL_ARGS=(--mca pml bfo --mca btl openib,self)
export SLURM_JOB_ID=4711
readme=$BFO_SRCDIR/README.md guide=$BFO_SRCDIR/docs/site-guide.md
give_up() { show_log; cat "$TEST_TMP/status.txt"; fail "$1"; }

begin_stream "-n 2" 2 "$STREAM" -s 600
wait_until "have_moved 100000 2 && has_said 'messages verified'"
"$SOFTRAIL" down --fabric "$FABRIC" sr1 || give_up "sr1 cannot be cut"
is_lost() { "$BFO" status >"$TEST_TMP/status.txt" 2>&1; grep -Eq 'G +lost .* the port is down' "$TEST_TMP/status.txt"; } # of both ranks: not "partly lost"
wait_until is_lost
is_lost || give_up "bfo status does not show the loss"
end_stream
verified "a rail is lost"
samples_are_real "$readme" 'failover: in force' "$TEST_TMP/status.txt" lmp ann
samples_are_real "$readme" 'failover is in force' "$TEST_TMP/log"

"$SOFTRAIL" run -n 2 --link-layer=eth --ipv4-gids -- sh -c '"$1" down 1 && exec "$2" doctor' sh "$SOFTRAIL" "$BFO" >"$TEST_TMP/out" 2>&1 </dev/null
samples_are_real "$guide" 'is the only port' "$TEST_TMP/out"

# A sample that is not printed is found.
sed 's/failover: in force/failover: is working/' "$readme" >"$TEST_TMP/README.md"
(samples_are_real "$TEST_TMP/README.md" 'failover: is working' "$TEST_TMP/status.txt" lmp ann) >/dev/null 2>&1 && fail "a line that is not printed is not found"
exit 0
