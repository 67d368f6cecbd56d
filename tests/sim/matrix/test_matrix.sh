#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The part of the fault matrix that "make check" runs: each kind of fragment x fault x side that sees the error,
# a second fault in each state of a restart, and ports. "make check-faults" runs all cells.
. "$BFO_SRCDIR/tests/lib.sh"
use_components pml btl
need perl perl
perl "$BFO_SRCDIR/tests/sim/matrix/matrix.pl" --set fast --jobs "${JOBS:-2}" --results "$PWD/fast.tsv" --fresh --limit 3600 ||
    fail "cells of the fault matrix failed; matrix.pl --set fast --only ID runs one again"
