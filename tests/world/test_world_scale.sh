#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A large job in its short form: 24 processes, two rails, all events of scale.c. Its figures are counts and virtual times, so the machine's load
# changes nothing. "make scale" runs the whole series.
. "$BFO_SRCDIR/tests/lib.sh"
bash "$BFO_SRCDIR/tests/world/scale.sh" 24:2 >"$TEST_TMP/figures" || { cat "$TEST_TMP/figures"; fail "the job fails"; }
# Bounds of each process, which has 23 peers: phase, figure, least, most. A rail that is lost and comes back costs DOWN and DACK of both sides,
# the three messages of the handshake, and eight questions with their answers.
awk '
    NR == FNR { value[$4, $5] = $6; next }
    NF == 4 {
        if (($1, $2) in value && value[$1, $2] >= $3 && value[$1, $2] <= $4) next
        printf "%s %s: %s, not %s to %s\n", $1, $2, value[$1, $2], $3, $4
        bad = 1
    }
    END { exit bad }' "$TEST_TMP/figures" - <<'BOUNDS' || fail "a figure is not within its bounds"
sizes queue_pairs 100 140
sizes end_KiB 100 450
contact control 30 92
contact round_ms 0.01 1
contact sends_beyond 0 0
healthy sends_beyond 0 0
healthy inquiries 0 0
leaf flows_ms 0.01 60
leaf back_ms 3000 3100
leaf rails_lost 17.5 17.5
leaf rails_back 17.5 17.5
leaf control 100 460
leaf control_peak_of_one 50 460
leaf control_unheard 0 0
leaf hard 0 0
leaf sends_beyond 0 23
spine flows_ms 0.01 60
spine rails_lost 69 69
spine rails_back 69 69
spine control 500 1800
spine control_peak_of_one 100 460
spine control_unheard 0 0
spine hard 0 0
spine sends_beyond 0 69
silent flows_ms 100 260
silent back_ms 1000 2500
silent control 300 900
silent control_unheard 0 0
silent sends_beyond 0 46
port flows_ms 0.01 60
port back_ms 0.01 100
port rails_lost 7 7.2
port control 10 60
idle control 4 20
idle keepalives 23 69
idle inquiries 0 0
BOUNDS
