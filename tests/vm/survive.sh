#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# pml bfo over two kernel rails, through every fault: a verified stream and programs of other authors, each with its longest
# stall, warnings, evidence that the fault hit it, and counters. "make check-vm-faults" (20 minutes); the status is 1 if a row fails.
# survive.sh FAULT...: only these rows, with the programs of VM_PROGRAMS. VM_TURN=COMMAND: COMMAND starts each set of machines
# (some minutes), for instance a command that holds a lock of the host meanwhile. Results are kept as tests/vm/results/faults-DATE.txt.
# DESIGN.txt 17.
here=$(cd "$(dirname "$0")" && pwd -P)
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/lib.sh" || exit 1
. "$here/lib.sh"
need NPopenmpi netpipe-openmpi
need hpcc hpcc
[ -e "$(echo /usr/lib/*/scalapack/openmpi-tests/xdlu)" ] || skip_missing xdlu scalapack-mpi-test
vm_components
[ -x "$VM_TRAFFIC" ] || fail "no $VM_TRAFFIC; remedy: make -C $BFO_BUILDDIR/tests/vm check"
export VM_REAL=${VM_REAL:-yes} VM_HEADING=yes
version() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || echo none; }
if [ $# = 0 ]; then
    cat <<END
pml bfo over our BTL openib on two soft-RoCE rails between two virtual machines, one rank each               $(date +%F)

bfo $(git -C "$BFO_SRCDIR" describe --always --dirty 2>/dev/null || echo "$BFO_VERSION"), Open MPI $(version libopenmpi3), QEMU $(version qemu-system-x86) on $(nproc) cores.
Each fault comes in mid-run and hits, at node2 (the peer) unless it says "own", the rail that carries most at that moment.
stream: bfo's own, every byte verified by its receiver. NetPIPE -i (1 B to 1 MiB), hpcc, ScaLAPACK's xdlu: verified by themselves.
stall: the longest time without a message of the stream; with the others, in which none came to node1. A silent rail is given up when
another one has answered for 0.25 s, or by the adapter, after 7 x 0.54 s; "1.9 s", "7.5 s": only by the adapter, after 7 x 0.27 s,
7 x 1.07 s; "one rail": it is the only one, 7 x 4.3 s. warnings: of both ranks,
for one lost rail. rails: how many the stream uses after a fault that is over; they must be both. A row whose fault hit nothing fails.

END
    set -- 'no fault' 'link down, peer' 'link down, own' 'carrier pulled' 'loss 100 %, one way' 'loss 100 %, both ways' \
        'lost acknowledgements' 'loss 1 %' 'address gone for 2 s' 'link flap 0.4 s' 'link flap 3 s' 'path flap 0.4 s' \
        'path flap 3 s' 'path flap 3 s, 7.5 s' 'path flap 3 s, 1.9 s' 'path flap 3 s, one rail' 'path flap 3 s, one rail, ob1' \
        'all rails away for 3 s' 'machine paused 3 s' 'peer killed'
fi
status=0 chunk=${VM_CHUNK:-4}
while [ $# -gt 0 ]; do # new machines every few rows
    ${VM_TURN:-} "$RUN" --timeout 5000 ${VM_OUT:+--out "$VM_OUT"} -- "$here/jobs/survive.sh" "${@:1:$chunk}" </dev/null | tee -a "$TEST_TMP/rows"
    result=${PIPESTATUS[0]}
    [ "$result" = 0 ] || status=$result
    VM_HEADING=no
    shift $(($# < chunk ? $# : chunk))
done

# Prints the summary, with that of the tests if "make check-vm" ran here before.
results() { grep -lx ":test-result: $1" "$BFO_BUILDDIR"/tests/vm/*.trs 2>/dev/null | wc -l; }
failed=$(awk '/^[0-9]+ failed$/ { n += $1 } END { print n + 0 }' "$TEST_TMP/rows")
repeated=$(grep -c '^retried: ' "$TEST_TMP/rows")
[ $(($(results PASS) + $(results FAIL) + $(results SKIP))) = 0 ] ||
    echo "tests of the machines: $(results PASS) passed, $(results FAIL) failed, $(results SKIP) skipped"
echo "rows of faults: $(($(grep -c '^[^|]*|.*|' "$TEST_TMP/rows") - 1 - failed - repeated)) passed, $failed failed, $repeated repeated, $SECONDS s"
[ $status = 0 ] || echo "a set of machines ended with status $status"
exit $status
