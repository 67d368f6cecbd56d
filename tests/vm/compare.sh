#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# What stock transports do when they lose the rail that they use while another rail works: survived, aborted or hung, after how
# many seconds, and their messages. Not part of CI (an hour and a half). Run it after "make check" has built vm_traffic:
#   . BUILD/tests/env.sh && tests/vm/compare.sh > tests/vm/results/compare-$(date +%F).txt
# compare.sh FAULT...: only these rows, without the heading; VM_STACKS=STACK:STACK...: only these stacks, as VM_STACKS='pml bfo, our btl
# openib' for the rows of bfo (half an hour), which replace older rows of the table. VM_TURN=COMMAND: COMMAND starts each set of machines
# (some minutes), for instance a command that holds a lock of the host meanwhile. VM_NOTE=LETTER: the column n, a letter that the notes
# under the table explain. DESIGN.txt 17.
here=$(cd "$(dirname "$0")" && pwd -P)
export VM_TRAFFIC=${BFO_BUILDDIR:?source tests/env.sh of the build directory first}/tests/vm/vm_traffic
[ -x "$VM_TRAFFIC" ] || { echo "compare.sh: no $VM_TRAFFIC; remedy: make -C $BFO_BUILDDIR/tests/vm check" >&2; exit 1; }
pml=$BFO_BUILDDIR/pml_bfo/.libs btl=$BFO_BUILDDIR/btl_openib_failover/.libs
[ -e "$pml/mca_pml_bfo.so" ] && [ -e "$btl/mca_btl_openib.so" ] && export VM_COMPONENTS=$pml:$btl

version() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || echo none; }
heading() {
    cat <<END
What becomes of an MPI job when one of its two rails is lost in mid-job                    $(date +%F)

bfo $(git -C "$BFO_SRCDIR" describe --always --dirty 2>/dev/null || echo "$BFO_VERSION"); $(nproc) cores.
Two virtual machines (QEMU $(version qemu-system-x86)), two soft-RoCE rails, one rank each. Open MPI $(version libopenmpi3),
UCX $(version libucx0), libfabric $(version libfabric1). A verified stream both ways of messages up to 400,000 bytes runs; the
fault hits the rail that carries most and lasts. survived: goes on and ends well (s: the longest stall); aborted: mpirun ends
(s: after); hung: no message in ${VM_TRAFFIC_SECONDS:-40} s. rails: how many carry a tenth or more of the bytes, some 6 s after
the stream goes on; -: the job did not survive. Each case once. Made by tests/vm/compare.sh.

END
    printf '%-26s| %-47s| %-9s| %6s | %5s | %s | %s\n' stack fault outcome s rails n 'what it says'
}

# The faults; the stacks, in two lots. Each lot gets new machines, so that a fault that does not heal spoils few rows.
[ $# -gt 0 ] || { heading; set -- 'link down, peer' 'carrier pulled' 'loss 100 %, one way' 'silent to the end, one rail of two: longest gap' 'lost acknowledgements' \
    'link down, own' 'loss 1 %' 'address gone for 2 s' 'link flap 0.4 s' 'link flap 3 s' 'path flap 0.4 s' 'path flap 3 s' 'flap of each rail in turn' \
    'all rails away for 3 s' 'machine paused 3 s'; }
status=0 lots=('ob1, btl tcp:cm, mtl ofi tcp;ofi_rxm:cm, mtl ofi verbs;ofi_rxm' 'pml ucx:pml ucx, retry count 6')
[ -n "${VM_COMPONENTS:-}" ] && lots=('pml bfo, our btl openib:ob1, our btl openib:ob1, btl tcp:cm, mtl ofi tcp;ofi_rxm' 'cm, mtl ofi verbs;ofi_rxm:pml ucx:pml ucx, retry count 6')
[ -n "${VM_STACKS:-}" ] && lots=("$VM_STACKS")
for fault in "$@"; do
    for lot in "${lots[@]}"; do
        IFS=: read -ra stacks <<<"$lot"
        ${VM_TURN:-} "$here/run.sh" --timeout 1500 ${BFO_COMPARE_OUT:+--out "$BFO_COMPARE_OUT"} -- "$here/jobs/compare.sh" "$fault" "${stacks[@]}" </dev/null || status=$?
    done
done
exit $status
