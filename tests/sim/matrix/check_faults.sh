#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# make check-faults: every cell of the fault matrix. The results are in all.tsv, the table in all.txt. A second start runs
# only cells that failed or have no result yet. SEED=N gives other values to the axes other than kind, fault, place and side.
. "$BFO_SRCDIR/tests/lib.sh"
use_components pml btl
need perl perl
perl "$BFO_SRCDIR/tests/sim/matrix/matrix.pl" --set all --jobs "${JOBS:-2}" --seed "${SEED:-1}" --results "$PWD/all.tsv" ${FAULTS:+--only "$FAULTS"} ||
    fail "cells of the fault matrix failed; see above"
