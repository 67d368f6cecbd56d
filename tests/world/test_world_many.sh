#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A run of many seeds that is killed continues, and each seed counts once. A stand-in for the world writes down which seeds it gets and kills the run at
# one of two moments: before the seeds of a part have ended, or afterwards, when they do not count yet. Then many.sh and world.sh run the same
# seeds, and count the same steps.
. "$BFO_SRCDIR/tests/lib.sh"
state=$TEST_TMP/state
cat >"$TEST_TMP/runs" <<'STANDIN'
echo "$2 $4" >>"$ASKED"
[ "$KILLED" != "$2 before" ] || kill -KILL $PPID
for ((seed = $2; seed < $2 + $4; ++seed)); do
    case $seed in 7 | 23) echo "seed $seed failed" ;; 24) echo "seed $seed: Aborted" ;; esac
done >"$ASKED.failed"
cat "$ASKED.failed"
echo "$4 seeds from $2: $(wc -l <"$ASKED.failed") failed; $4.0 million steps, $4 s of their time"
[ "$KILLED" != "$2 after" ] || kill -KILL $PPID
STANDIN
export ASKED=$TEST_TMP/asked
# many KILLED ARGUMENT...: runs with the stand-in.
many() { KILLED=$1 BFO_WORLD_RUNS=$TEST_TMP/runs bash "$BFO_SRCDIR/tests/world/many.sh" -s "$state" -p 10 "${@:2}" >"$TEST_TMP/log" 2>&1; }
# asked LINES: the stand-in got these parts since the last question.
asked() { [ "$(cat "$ASKED")" = "$1" ] || { cat "$ASKED" "$TEST_TMP/log"; fail "other parts were run than $1"; }; rm "$ASKED"; }
counted='35 seeds from 1: 3 failed; 35.0 million steps, 35 s of their time'

many '11 before' -n 35 && fail "the run that is killed ends well"
asked $'1 10\n11 10'
many '21 after' -n 35 && fail "the run that is killed ends well"
asked $'11 10\n21 10'
many - -n 35 && fail "a run with failed seeds ends well"
asked $'21 10\n31 5'
says "^$counted"
says 'these seeds failed: 7 23 24$'
[ "$(ls "$state.reports" | tr '\n' ' ')" = "1 21 " ] || fail "other reports are kept than those of 1 and 21: $(ls "$state.reports")"
many - -n 35 && fail "a run with failed seeds ends well"
[ ! -e "$ASKED" ] || fail "a run that has ended runs again"
says "^$counted"
many - -n 40 && fail "a run with failed seeds ends well"
asked '36 5'
many - -n 10 -f 31 || give_up "a run of other seeds does not begin again"
asked '31 10'
many - -n 10 -f 31 messages=2 || give_up "a run of another plan does not begin again"
asked '31 10'

short="nodes=2 per_node=1 crowd=0 messages=3 rounds=0 kills=0"
# shellcheck disable=SC2086
bash "$BFO_SRCDIR/tests/world/many.sh" -s "$TEST_TMP/parts" -p 4 -n 10 $short >"$TEST_TMP/log" 2>&1 || give_up "ten seeds fail"
# shellcheck disable=SC2086
bash "$BFO_SRCDIR/tests/world/world.sh" --from 1 --seeds 10 $short >"$TEST_TMP/whole" || fail "ten seeds fail"
# Each part rounds its numbers.
awk '{ split($0, word, /[:;,] /); steps[NR] = word[3] + 0; seconds[NR] = word[4] + 0; seeds[NR] = $1 }
     END { exit !(2 == NR && 10 == seeds[1] && 10 == seeds[2] && (steps[1] - steps[2]) ^ 2 < 0.1 && (seconds[1] - seconds[2]) ^ 2 < 9) }' \
    "$TEST_TMP/log" "$TEST_TMP/whole" || { cat "$TEST_TMP/log" "$TEST_TMP/whole"; fail "parts count other steps than the whole"; }
exit 0
