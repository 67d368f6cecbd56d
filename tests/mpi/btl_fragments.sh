#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Eager RDMA rings, coalesced messages and messages that ask for no completion: the BTL uses them, and every message arrives exactly once
# when it, its predecessor or its successor is lost, delivered without an acknowledgement or late, and when rails are cut.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
COUNT=(--mca btl_openib_verbose 1)
RING=("${COUNT[@]}" --mca btl_openib_use_eager_rdma 1)
FEW=("${COUNT[@]}" --mca btl_openib_receive_queues P,2048,8:P,65792,4) # small messages wait for credits
FEW_SHARED=("${COUNT[@]}" --mca btl_openib_receive_queues S,2048,64,32,4:S,65792,8,4,4) # and for slots

# rings_say PATTERN NEVER: the line of at least one ring matches PATTERN, and no line matches NEVER.
rings_say() {
    grep -qE "$1" "$TEST_TMP/log" || { show_log; fail "no ring: $1"; }
    grep -E "$2" "$TEST_TMP/log" && fail "a ring: $2"
    note "rings: $1"
}

run_stream 2 "" 2 "${RING[@]}"
counted 'ring [1-9][0-9]* out [1-9]'
run_stream 2 "--link-layer=eth" 4 "${RING[@]}" --mca btl_openib_eager_rdma_num 3 --mca btl_openib_eager_rdma_threshold 1
counted 'ring [1-9][0-9]* out [1-9]'
rings_say 'eager ring of 3 slots' 'eager ring of ([^3]|.[0-9])'
# Three peers, and a limit on the rings of a port.
for most in 16 1; do
    on_rails "-n 1" 4 "${RING[@]}" --mca btl_openib_max_eager_rdma $most "$BFO_BUILDDIR/tests/mpi/mpi_match" || { show_log; fail "max_eager_rdma=$most"; }
    counted 'ring [1-9][0-9]* out [1-9]'
    never='[^1-3]'
    [ $most = 1 ] && never='[^1]'
    rings_say "ring $((most == 1 ? 1 : 2)) of this port" "ring $never of this port"
done
for fault in lose unacked late; do
    time=
    [ $fault = late ] && time=time=200ms
    fault_stream "$fault rail=sr1 op=write nth=300 $time" 1500 "${RING[@]}"
    counted 'ring [1-9][0-9]* out [1-9]'
    fault_stream "$fault rail=sr0 op=send nth=150 $time" 200 "${FEW[@]}"
    counted 'coalesced [1-9]'
done
fault_stream "unacked rail=sr1 op=write nth=7" 2000 "${RING[@]}" --mca btl_openib_eager_rdma_threshold 1
fault_stream "unacked rail=sr1 op=send nth=77" 200 "${FEW_SHARED[@]}"
counted 'coalesced [1-9]'
cut_stream "1 0" 3 3 1500 "${RING[@]}" --mca btl_openib_receive_queues P,2048,8:P,65792,4
counted 'ring [1-9][0-9]* out [1-9]'
counted 'coalesced [1-9]'
cut_stream 1 2 2 300000 "${RING[@]}" --mca btl_openib_receive_queues S,2048,64,32,8:S,65792,8,4,4
counted 'ring [1-9][0-9]* out [1-9]'

# Runs of messages without a completion, as long as the queue allows, are in flight when the rail is lost: each place of a run is hit.
SILENT=("${COUNT[@]}" --mca btl_openib_receive_queues P,256,64:P,65792,4 --mca btl_openib_completion_interval 1024)
for nth in 300 301 302 303 317 331; do
    for fault in lose unacked; do
        fault_stream "$fault rail=sr1 op=send nth=$nth" 200 "${SILENT[@]}"
        counted 'silent [1-9]'
    done
done
fault_stream "lose rail=sr0 op=send nth=250-400" 200 "${SILENT[@]}" --mca btl_openib_use_message_coalescing 0
counted 'silent [1-9]'
fault_stream "unacked rail=sr1 op=write nth=200" 200 "${SILENT[@]}" --mca btl_openib_use_eager_rdma 1
counted 'silent [1-9]'
cut_stream 1 2 3 200 "${SILENT[@]}"
counted 'silent [1-9]'
