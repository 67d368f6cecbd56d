#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Single faults at the rail under a verified stream: a message is lost, is delivered although its sender gets an error,
# or arrives late; for sends, writes and reads, with each protocol. softrail makes the fault at the n-th message.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
COPY=(--mca pml_bfo_use_put 0 --mca pml_bfo_use_get 0)
PUT=(--mca pml_bfo_use_get 0)
for fault in lose unacked; do
    for n in 7 60 211 450; do
        fault_stream "$fault rail=sr1 op=send nth=$n" 200000
        fault_stream "$fault rail=sr0 op=send nth=$n" 200000 "${COPY[@]}"
    done
    fault_stream "$fault rail=sr1 op=send nth=300" 200000 "${PUT[@]}"
    fault_stream "$fault rail=sr1 op=write nth=30" 1000000 "${PUT[@]}"
    fault_stream "$fault rail=sr0 op=write nth=31" 1000000 "${PUT[@]}"
    fault_stream "$fault rail=sr1 op=read nth=20" 1000000
    fault_stream "$fault rail=sr0 op=read nth=31" 1000000
done
fault_stream "late rail=sr1 op=write nth=30 time=200ms" 1000000 "${PUT[@]}"
fault_stream "late rail=sr1 op=read nth=30 time=200ms" 1000000
fault_stream "late rail=sr1 op=send nth=300 time=200ms" 300000
exit 0
