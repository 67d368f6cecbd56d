#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A large job in its short form, 24 processes with two rails, and one process with 300 peers: all events of scale.c. The figures are counts and
# virtual times, so the machine's load changes nothing. "make scale" runs the whole series.
. "$BFO_SRCDIR/tests/lib.sh"
bash "$BFO_SRCDIR/tests/world/scale.sh" 24:2 1+300:2 >"$TEST_TMP/figures" || { cat "$TEST_TMP/figures"; fail "a job fails"; }
# Bounds for a process: kind of job, phase, figure, least, most. A rail that is lost and comes back costs DOWN and DACK of both sides, the three
# messages of the handshake, and eight questions with their answers.
awk '
    NR == FNR { value[$1, $4, $5] = $6; next }
    NF == 5 {
        if (($1, $2, $3) in value && value[$1, $2, $3] >= $4 && value[$1, $2, $3] <= $5) next
        printf "%s %s %s: %s, not %s to %s\n", $1, $2, $3, value[$1, $2, $3], $4, $5
        bad = 1
    }
    END { exit bad }' "$TEST_TMP/figures" - <<'BOUNDS' || fail "a figure is not within its bounds"
scale sizes queue_pairs 100 140
scale sizes end_KiB 100 450
scale contact control 30 92
scale contact round_ms 0.01 1
scale contact sends_beyond 0 0
scale healthy sends_beyond 0 0
scale healthy inquiries 0 0
scale leaf flows_ms 0.01 60
scale leaf back_ms 3000 3100
scale leaf rails_lost 17.5 17.5
scale leaf rails_back 17.5 17.5
scale leaf control 100 460
scale leaf control_peak_of_one 50 460
scale leaf control_unheard 0 0
scale leaf hard 0 0
scale leaf sends_beyond 0 23
scale spine flows_ms 0.01 60
scale spine rails_lost 69 69
scale spine rails_back 69 69
scale spine control 500 1800
scale spine control_peak_of_one 100 460
scale spine control_unheard 0 0
scale spine hard 0 0
scale spine sends_beyond 0 69
scale silent flows_ms 100 260
scale silent back_ms 1000 2500
scale silent control 300 900
scale silent control_unheard 0 0
scale silent sends_beyond 0 46
scale port flows_ms 0.01 60
scale port back_ms 0.01 100
scale port rails_lost 7 7.2
scale port control 10 60
scale idle control 4 20
scale idle keepalives 23 69
scale idle inquiries 0 0
star sizes queue_pairs 902 902
star healthy control 600 1500
star leaf rails_lost 300 300
star leaf rails_back 300 300
star leaf back_ms 3000 3200
star leaf control 1500 6000
star spine rails_back 900 900
star spine back_ms 7000 7500
star spine control_unheard 0 0
star port rails_lost 300 300
star port flows_ms 0.01 60
star idle keepalives 300 900
star idle inquiries 0 0
BOUNDS
