#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The stock openib BTL of the distribution under ob1, over two rails at once: a verified ring of mixed sizes and
# NetPIPE in integrity mode. Both rails must have carried payload; the job has no other way to send.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/sim/sim.sh"
use_components none
[ -e "$BFO_OMPI_COMPONENTDIR/mca_btl_openib.so" ] || skip_missing "the stock openib BTL" openmpi-bin

stock="--mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1 --mca btl_openib_warn_no_device_params_found 0"
# Open MPI patches munmap for its registration cache, but AddressSanitizer has already replaced munmap.
has_asan && stock="$stock --mca memory ^patcher"
for ranks in 2 4; do
    # shellcheck disable=SC2086
    rails -n 2 -- "$MPIRUN" --oversubscribe --bind-to none -np $ranks $stock ./sr_ring 6 > "$TEST_TMP/out" 2>&1 ||
        fail "ring of $ranks ranks: $(cat "$TEST_TMP/out")"
    [ "$(grep -c 'verified' "$TEST_TMP/out")" = $ranks ] || fail "ring of $ranks ranks: $(cat "$TEST_TMP/out")"
    rails_moved "$REPORT" 0 1
    note "$ranks ranks: sr0 $(rail_counter "$REPORT" 0 tx_bytes) bytes, sr1 $(rail_counter "$REPORT" 1 tx_bytes) bytes"
done
need NPopenmpi netpipe-openmpi
# shellcheck disable=SC2086
(cd "$TEST_TMP" && rails -n 2 -- "$MPIRUN" --oversubscribe --bind-to none -np 2 $stock NPopenmpi -i -n 5 -u 300000 -o np.out) \
    > "$TEST_TMP/out" 2>&1 || fail "NetPIPE: $(cat "$TEST_TMP/out")"
grep -qi 'fail\|corrupt' "$TEST_TMP/out" && fail "NetPIPE found wrong data: $(cat "$TEST_TMP/out")"
grep -q 'Integrity check passed' "$TEST_TMP/out" || fail "NetPIPE did not run: $(cat "$TEST_TMP/out")"
rails_moved "$REPORT" 0 1
