#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# pml bfo over two kernel rails, through every fault: a verified stream and NetPIPE in integrity mode, with the longest
# stall, warnings and counters; hpcc and ScaLAPACK's LU test through those that cost a rail. "make check-vm-faults" (an
# hour); 1 if a row fails. survive.sh FAULT...: these rows alone, with the programs of VM_PROGRAMS. Kept as
# tests/vm/results/faults-DATE.txt. DESIGN.txt 17.
here=$(cd "$(dirname "$0")" && pwd -P)
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/lib.sh" || exit 1
. "$here/lib.sh"
need NPopenmpi netpipe-openmpi
vm_components
[ -x "$VM_TRAFFIC" ] || fail "no $VM_TRAFFIC; remedy: make -C $BFO_BUILDDIR/tests/vm check"
export VM_REAL=${VM_REAL:-yes} VM_HEADING=yes
if [ $# = 0 ]; then
    cat <<END
pml bfo over our openib BTL on two soft-RoCE rails between two virtual machines, one rank each            $(date +%F)

Each fault hits, at node2 (the peer) unless it says "own", the rail that carries most. stall: the longest time without a
message of a verified stream, from the fault on (the timers of a rail: 7 x 0.54 s). warnings: of both
ranks, for one lost rail. Verified by themselves, the fault in mid-run: NetPIPE -i, 1 B to 1 MiB; hpcc; ScaLAPACK's xdlu.
"peer killed": one of four ranks, under mpirun --enable-recovery; stall is the time until MPI_ERR_OTHER.

END
    set -- 'link down, peer' 'link down, own' 'carrier pulled' 'loss 100 %, one way' 'loss 100 %, both ways' 'lost acknowledgements' \
        'loss 1 %' 'address gone for 2 s' 'link flap 0.4 s' 'link flap 3 s' 'path flap 0.4 s' 'path flap 3 s' \
        'machine paused 3 s' 'peer killed'
fi
status=0 chunk=${VM_CHUNK:-4}
while [ $# -gt 0 ]; do # new machines every few rows
    "$RUN" --timeout 5000 ${VM_OUT:+--out "$VM_OUT"} -- "$here/jobs/survive.sh" "${@:1:$chunk}" </dev/null || status=$?
    VM_HEADING=no
    shift $(($# < chunk ? $# : chunk))
done
exit $status
