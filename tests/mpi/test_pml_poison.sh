#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A work request comes back with a status that blames the request itself. A broken adapter gives the same status: the rail is lost, and
# the message arrives over another rail. A message that a second rail refuses in the same way is not sent again: with a short message
# the PML declares the peer, a long message fails alone, and the third rail stays up.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self)

# Tag of BTL and PML: 0x41 MATCH, 0x42 RNDV, 0x44 ACK, 0x49 FIN.
fault_stream "error rail=sr1 op=send payload=0:41 status=remote nth=20" 1500
fault_stream "error rail=sr1 op=send payload=0:42 status=request nth=20" 300000 --mca pml_bfo_use_get 0
fault_stream "error rail=sr1 op=send payload=0:44 status=access nth=20" 300000 --mca pml_bfo_use_get 0 --mca pml_bfo_use_put 0
fault_stream "error rail=sr1 op=send payload=0:49 status=local nth=20" 300000
fault_stream "error rail=sr1 op=write status=access nth=20" 300000 --mca pml_bfo_use_get 0
fault_stream "error rail=sr1 op=read status=remote nth=20" 300000 --mca pml_bfo_use_put 0

# poison HOW MATCH: two of three rails refuse the message of mpi_poison; the third rail is not tried
poison() {
    local how=$1 log=$TEST_TMP/log done
    echo "error $2 status=request" >"$TEST_TMP/plan"
    on_rails "-n 3 --plan $TEST_TMP/plan" 2 --mca pml_bfo_use_get 0 "$BFO_BUILDDIR/tests/mpi/mpi_poison" "$how" ||
        { show_log; fail "$how: the job ended with an error"; }
    [ "$(grep -c '^PASSED [1-9]' "$log")" = 2 ] || { show_log; fail "$how: not all ranks passed"; }
    done=$(sed -n 's/.*"done": \([0-9]*\).*/\1/p' "$REPORT")
    [ "$done" = 2 ] || { show_log; fail "$how: ${done:-no} rails refused the message, not 2"; }
    rails_carried 1000 3
    note "$how: two rails refused it"
}
poison match "op=send payload=16:af7e0000"
poison write "op=write payload=0:eeeeeeeeeeeeeeee"
exit 0
