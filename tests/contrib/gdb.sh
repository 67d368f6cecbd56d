#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# contrib/bfo.gdb in a running job: a rank under gdb stops while it streams a message and both rails are up; the commands show requests, peers, rails and queue pairs
# with the names of their states. Then the second rail's cable is pulled, and the same commands show the loss. The job passes, therefore the
# commands have changed nothing.
. "$BFO_SRCDIR/tests/lib.sh" || exit 1
need gdb gdb
use_components pml btl
fabric=bfo-gdb-$$
cat >"$TEST_TMP/commands" <<END
set pagination off
set confirm off
set breakpoint pending on
break bfo_send_schedule if ((ofo_endpoint_t *) bfo.peers->rails[1].endpoint)->gate == OFO_GATE_UP
run
echo == streaming\n
bfo-send req
echo == requests\n
bfo-requests
echo == peers\n
bfo-peers
echo == rail\n
bfo-rail bfo.peers->rails[1].endpoint
delete
break bfo_tell_rail_lost
shell "$SOFTRAIL" down --fabric $fabric sr1
continue
finish
echo == lost\n
bfo-peers
bfo-rail bfo.peers->rails[1].endpoint
delete
continue
END
ranks=(--mca pml bfo --mca btl openib,self --mca pml_bfo_use_put 0 --mca pml_bfo_use_get 0)
stream=$BFO_BUILDDIR/contrib/bfo_stream
timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run -n 2 --name "$fabric" --retry-time=100ms -- "$MPIRUN" --oversubscribe --bind-to none "${ranks[@]}" -np 1 "$stream" -s 3 : \
    -np 1 gdb --batch -x "$BFO_SRCDIR/contrib/bfo.gdb" -x "$TEST_TMP/commands" --args "$stream" -s 3 >"$TEST_TMP/log" 2>&1 </dev/null ||
    { tail -n 40 "$TEST_TMP/log"; fail "the job under gdb"; }
grep -q ' 0 wrong$' "$TEST_TMP/log" || { tail -n 40 "$TEST_TMP/log"; fail "the job verified nothing"; }

# part NAME: prints the output under this heading; shows NAME PATTERN: a line of it matches PATTERN
part() { sed -n "/^== $1\$/,/^== /p" "$TEST_TMP/log"; }
shows() { part "$1" | grep -Eq -- "$2" || { part "$1"; fail "not shown under $1: $2"; }; }
shows streaming '^send 0x[0-9a-f]+, 0x[0-9a-f]+\.[0-9a-f]+: BFO_SEND_STREAM, epoch 0, [0-9]+ events$'
shows streaming '  to rank 0, tag [0-9]+, message [0-9]+, [0-9]+ of [1-9][0-9]* bytes delivered, first fragment of type 2'
request=$(part streaming | sed -n 's/^send \(0x[0-9a-f]*\),.*/\1/p')
shows requests "^send $request, .*: BFO_SEND_STREAM"
shows requests '^receive 0x[0-9a-f]+, .*: BFO_RECV_(UNMATCHED|ACTIVE), epoch 0'
shows peers '^peer 0x[0-9a-f]+, process [0-9]+\.0: met, failover, [0-9]+ wait'
shows peers '^  up: 0 1; for new work: 0 1; being fenced: none; out by this side: none'
shows peers '^  rail 1: name [01], BTL openib, generation 0, up, fenced up to -1, endpoint 0x[0-9a-f]+$'
shows rail '^rail 0x[0-9a-f]+, name [01]: gate OFO_GATE_(UP|WAITING|CLOSED), connection OFO_ST_[A-Z_]+ of generation [0-9]+'
shows lost '^  up: 0; for new work: 0;'
shows lost '^  rail 1: .*, generation 0, down, fenced up to -?[0-9]+, endpoint 0x[0-9a-f]+(, lost: [a-z: ]+)?$'
shows lost '^rail 0x[0-9a-f]+, name [01]: gate OFO_GATE_REFUSING'
shows lost '^queue pairs 0x[0-9a-f]+, generation 0: OFO_DRAIN_[A-Z]+'
shows lost '^  0: number 0x[0-9a-f]+, IBV_QPS_[A-Z]+, [0-9]+ of [0-9]+ slots free'
# Each command has its help.
for command in $(sed -n 's/^define //p' "$BFO_SRCDIR/contrib/bfo.gdb"); do
    gdb --batch -x "$BFO_SRCDIR/contrib/bfo.gdb" -ex "help $command" 2>&1 | grep -q "^$command[ :]" || fail "no help of $command"
done
exit 0
