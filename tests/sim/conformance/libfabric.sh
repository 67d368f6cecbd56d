#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# fi_info lists the providers of libfabric: those that look at verbs devices do so at the rails and leave them whole.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/sim/sim.sh"
need fi_info libfabric-bin

for layer in ib eth; do
    rails -n 2 --link-layer $layer -- fi_info > "$TEST_TMP/out" 2>&1 || fail "fi_info over $layer ended with $?: $(tail -5 "$TEST_TMP/out")"
    grep -q 'provider: tcp' "$TEST_TMP/out" || fail "fi_info over $layer lists nothing: $(tail -5 "$TEST_TMP/out")"
done
