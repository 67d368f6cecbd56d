#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# make check-rows: builds the components with row counters, runs all cells of the fault matrix and a soak with them, and
# checks which rows of the state machines these jobs and the simulated world took. The product's build has no
# counters.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
work=$PWD/work
srcdir=$BFO_SRCDIR rows=$BFO_SRCDIR/tests/sim/rows
bash "$rows/simulate.sh" "$PWD/simulated" || exit $?
mkdir -p "$work/build" && rm -rf "$work/counts" "$work/cells.tsv" && mkdir "$work/counts" || fail "cannot write to $work"
(cd "$work/build" && "$srcdir/configure" -q --enable-assertions CPPFLAGS=-DBFO_COUNT_ROWS=1 &&
    for part in include softrail pml_bfo btl_openib_failover; do make -s -j2 -C $part || exit 1; done &&
    make -s -C tests/sim/matrix traffic && make -s -C tests/soak soak) >"$work/build.log" 2>&1 ||
    fail "the build with counters failed, see $work/build.log"
simulated=$PWD/simulated
. "$work/build/tests/env.sh"
use_components pml btl
export BFO_ROWS_DIR=$work/counts
perl "$srcdir/tests/sim/matrix/matrix.pl" --set "${ROWS_SET:-all}" --results "$work/cells.tsv" ${FAULTS:+--only "$FAULTS"} >"$work/cells.log" 2>&1 ||
    { tail -n 40 "$work/cells.log"; fail "cells of the fault matrix failed, see $work/cells.log"; }
perl "$srcdir/tests/soak/soak.pl" --seconds "${ROWS_SECONDS:-60}" --seed 500 --keep-going >"$work/soak.log" 2>&1 ||
    { tail -n 40 "$work/soak.log"; fail "jobs of the soak failed, see $work/soak.log"; }
perl "$rows/rows.pl" "$rows/unreached.list" met="$simulated/met" raised="$simulated/raised" jobs="$work/counts" ||
    fail "rows that no simulation took"
