#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Receive queues of every kind under the verified stream: per peer, shared, mixed; a shared queue grows at its limit
# event; rails are cut over shared queues that several peers use.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
QUEUES=--mca\ btl_openib_receive_queues

# shellcheck disable=SC2086
{
run_stream 2 "" 2 1 $QUEUES S,2048,64,32,16:S,12544,32,16,8:S,65792,16,8,4
run_stream 2 "--link-layer=eth" 4 1 $QUEUES P,512,32:S,4096,64:S,65792,16
run_stream 1 "" 4 1 $QUEUES S,65792,64,60,16,4,2 --mca btl_openib_verbose 1
grep -q 'shared queue 0 grows to' "$TEST_TMP/log" || { show_log; fail "a shared queue of 4 buffers did not grow under 3 peers"; }
cut_stream 0 2 2 100000 $QUEUES S,2048,64,32,16:S,12544,32,16,8:S,65792,16,8,4
cut_stream "1 0 3" 4 3 1500 $QUEUES S,65792,16,8,4
cut_stream 1 2 4 1000000 $QUEUES P,512,32:S,2048,64,32,16:S,65792,16,8,4
}
