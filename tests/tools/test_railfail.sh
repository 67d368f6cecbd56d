#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# railfail on software rails: bfo survives cells of several operations, faults and times, and railfail writes and shows the results, as in
# docs/railfail.md. The outcomes of ob1 are only recorded. railfail runs the program that it has built itself.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
use_components pml btl
export SOFTRAIL
cd "$TEST_TMP" || exit 1
words() { echo "$MPIRUN --oversubscribe --bind-to none --mca pml $1 --mca btl openib,self --mca osc ^ucx,rdma"; }
railfail() { timeout -k 30 "$MPI_TIMEOUT" perl "$BFO_SRCDIR/railfail/railfail" --softrail 2 --logs logs "$@" >out 2>&1 </dev/null; }
give_up() { cat out; tail -n 30 logs/*.log; fail "$*"; }

railfail --mpicc "$MPICC" --label bfo --mpirun "$(words bfo)" --output bfo.json --only flood/cut --only rendezvous/peer --only types/silent --only rma/cut \
    --only allreduce/cut/contact --only eager/cut/finalize || give_up "railfail under bfo"
[ "$(grep -c ' survived  *[0-9.]* s  [1-9][0-9]* messages' out)" = 6 ] || give_up "under bfo not all six cells are survived"
grep -q '^bfo: 6 of 6 cells with a fault survived$' out || give_up "the score"
perl "$BFO_SRCDIR/railfail/railfail" --markdown bfo.json >page || give_up "--markdown"
grep -q '^| flood | .*survived [0-9.]* s' page || { cat page; fail "the page has no row of flood"; }
perl -MJSON::PP -e 'local $/; my $j = decode_json(<STDIN>); exit !(6 == @{ $j->{cells} } && !grep { $_->{runs}[0]{messages} < 1 || $_->{runs}[0]{longest_s} <= 0 } @{ $j->{cells} })' \
    <bfo.json || { cat bfo.json; fail "the file of results"; }
note "bfo: six cells are survived"

railfail --program "$BFO_BUILDDIR/railfail/railfail_job" --mpirun "$MPIRUN --oversubscribe --bind-to none --mca pml ob1 --mca btl $SHARED_MEMORY,self" --only eager/cut ||
    give_up "railfail over shared memory"
grep -q '^eager .* no verdict .* the rails carried nothing' out || give_up "a job that uses no rail has survived the loss of a rail"

# The tables of docs/railfail.md are those of the results: one file for each stack.
perl "$BFO_SRCDIR/railfail/railfail" --markdown "$BFO_SRCDIR"/railfail/results/*.json >page || fail "--markdown of the results"
sed -n '/^<!-- railfail -->$/,/^<!-- end -->$/p' "$BFO_SRCDIR/docs/railfail.md" | sed '1d;$d' | diff - page ||
    fail "docs/railfail.md does not show railfail --markdown railfail/results/*.json"

railfail --program "$BFO_BUILDDIR/railfail/railfail_job" --label ob1 --mpirun "$(words ob1)" --timeout 20 --only flood/cut || give_up "railfail under ob1"
grep -q '^flood ' out || give_up "no cell was run under ob1"
note "ob1: $(grep -m 1 '^flood ' out)"
exit 0
