#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A simulation takes every row of the state machines. "make check-rows" adds the rows that jobs over software rails take.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
rows=$BFO_SRCDIR/tests/sim/rows
bash "$rows/simulate.sh" "$PWD/simulated" || exit $?
perl "$rows/rows.pl" "$rows/unreached.list" met="$PWD/simulated/met" raised="$PWD/simulated/raised" || fail "rows that no simulation took"
exit 0
