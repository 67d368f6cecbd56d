#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# What stock transports do when the rail they use is lost and another is well: survived, aborted or hung, after how
# many seconds, and what they say. Not part of CI (about 20 minutes). Run it after "make check" has built vm_ring:
#   . BUILD/tests/env.sh && tests/vm/compare.sh > tests/vm/results/compare-$(date +%F).txt
# DESIGN.txt 17.
here=$(cd "$(dirname "$0")" && pwd -P)
export VM_RING=${BFO_BUILDDIR:?source tests/env.sh of the build directory first}/tests/vm/vm_ring
[ -x "$VM_RING" ] || { echo "compare.sh: no $VM_RING; remedy: make -C $BFO_BUILDDIR/tests/vm check" >&2; exit 1; }
pml=$BFO_BUILDDIR/pml_bfo/.libs btl=$BFO_BUILDDIR/btl_openib_failover/.libs
[ -e "$pml/mca_pml_bfo.so" ] && [ -e "$btl/mca_btl_openib.so" ] && export VM_COMPONENTS=$pml:$btl
version() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || echo none; }
cat <<END
What becomes of an MPI job when one of its two rails is lost in mid-job                    $(date +%F)

Two virtual machines (QEMU $(version qemu-system-x86)), two soft-RoCE rails, one rank each. Open MPI $(version libopenmpi3),
UCX $(version libucx0), libfabric $(version libfabric1). A verified ring of 200,000 bytes runs; the fault hits, at node2, the
rail that carries most. survived: goes on (s: the stall); aborted: mpirun ends (s: after); hung: neither within ${VM_COMPARE_SECONDS:-60} s.
Each case once. Made by tests/vm/compare.sh.

END
exec "$here/run.sh" --timeout 3000 "$@" -- "$here/jobs/compare.sh" </dev/null
