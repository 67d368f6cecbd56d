#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# `bfo events --follow` runs a program for each event, one after the other, with the event in its environment and without a shell; it ends
# a program that hangs; and it writes each event to the system log.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/tools/tools.sh"
use_components pml btl
export HEAR_SYSLOG=$TEST_TMP/syslog T=$TEST_TMP
HEAR=$BFO_BUILDDIR/tests/tools/.libs/hear_syslog.so
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$TEST_TMP"' EXIT

hook() { # NAME: a program of what stdin holds
    { echo '#!/bin/sh'; cat; } >"$TEST_TMP/$1"
    chmod +x "$TEST_TMP/$1"
}
hook record <<'E'
mkdir "$T/busy" || echo overlap >>"$T/overlap"
env | grep '^BFO_[A-Z_]*=' | sort >"$T/one"
cat >>"$T/one" # its stdin is empty
sleep 0.05
{ cat "$T/one"; echo; } >>"$T/recorded"
rmdir "$T/busy"
[ "$BFO_EVENT" != rail-lost ] || exit 7
E
hook hang <<'E'
echo $$ >>"$T/hanging"
exec sleep 1000
E

: >"$TEST_TMP/recorded"

for wrong in "--exec $TEST_TMP/record" --syslog; do
    "$BFO" events $wrong >"$TEST_TMP/out" 2>&1
    [ $? = 2 ] && grep -q 'they go with --follow' "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "$wrong without --follow"; }
done

# Any name that a batch system, or a user in its place, gives to a job.
SLURM_JOB_ID='$(touch $T/pwned);`touch $T/pwned`' start_job 2 2
"$BFO" events --follow --exec "$TEST_TMP/record" >"$TEST_TMP/shown" 2>"$TEST_TMP/said" <<<nothing &
LD_PRELOAD=$HEAR${LD_PRELOAD:+:$LD_PRELOAD} "$BFO" events --follow --syslog >/dev/null 2>&1 &
"$BFO" events --follow --exec "$TEST_TMP/hang" >/dev/null 2>"$TEST_TMP/hung" &
"$BFO" events --follow --since 0s >"$TEST_TMP/new" 2>&1 &
until_so "the program is not run" grep -q '^BFO_EVENT=begun$' "$TEST_TMP/recorded"
"$SOFTRAIL" silent --fabric "$FABRIC" 1 || fail "rail 1 could not be silenced"
until_so "the loss runs no program" grep -q '^BFO_EVENT=rail-lost$' "$TEST_TMP/recorded"
"$SOFTRAIL" down --fabric "$FABRIC" 1 || fail "rail 1 could not be cut"
until_so "the word of the device runs no program" grep -q '^BFO_EVENT=port-down$' "$TEST_TMP/recorded"
awk -v RS= '/BFO_EVENT=rail-lost/ { print; exit }' "$TEST_TMP/recorded" >"$TEST_TMP/lost"
for line in 'AFTER=lost' 'BATCH=\$\(touch \$T/pwned\);`touch \$T/pwned`' 'BEFORE=up' 'CAUSE=.+' 'EVENT=rail-lost' "HOST=$(uname -n)" 'JOB=[0-9]+\.1' \
    'LINE=20.* rail-lost sr1:1 \(GUID .*' 'PEER=[01]' "PEER_HOST=$(uname -n)" 'PEER_PORT=sr1:1' 'PORT=sr1:1' 'PROCESSES=[12]' 'RANK=[01]' 'TIME=20[0-9-]+T[0-9:.]+[+-][0-9]{4}'; do
    grep -Eqx "BFO_$line" "$TEST_TMP/lost" || { cat "$TEST_TMP/lost"; fail "the environment has no BFO_$line"; }
done
awk -v RS= '/BFO_EVENT=begun/ { print; exit }' "$TEST_TMP/recorded" >"$TEST_TMP/begun"
grep -qx 'BFO_CAUSE=' "$TEST_TMP/begun" && grep -qx 'BFO_PEER=-1' "$TEST_TMP/begun" || { cat "$TEST_TMP/begun"; fail "what an event has not is not empty"; }
[ ! -e "$TEST_TMP/pwned" ] || fail "a shell has read what the event holds"
[ ! -e "$TEST_TMP/overlap" ] || fail "two programs ran at once"
! grep -q nothing "$TEST_TMP/recorded" || fail "the program reads the input of the command"
until_so "nobody says how the program ended" grep -q "^bfo events: $TEST_TMP/record ended with status 7$" "$TEST_TMP/said"
# In the end there are as many programs as lines. (The last line is shown before its program runs.)
until_so "not every line ran a program" eval '[ "$(grep -c ^BFO_EVENT= "$TEST_TMP/recorded")" = "$(wc -l <"$TEST_TMP/shown")" ]'
! grep -q ' begun' "$TEST_TMP/new" || fail "--since 0s shows what was before"
note "$(grep -c ^BFO_EVENT= "$TEST_TMP/recorded") events ran a program each, one at a time"

until_so "the loss is not in the system log" grep -Eq '^<4> 20.* job [0-9]+\.1 .* rail-lost sr1:1 .*; cause: ' "$TEST_TMP/syslog"
grep -Eq '^<5> 20.* rank [01] begun' "$TEST_TMP/syslog" || { cat "$TEST_TMP/syslog"; fail "the beginning is not in the system log"; }
note "the system log has $(wc -l <"$TEST_TMP/syslog") lines"

"$BFO" events --follow --exec "$TEST_TMP/record --all" >"$TEST_TMP/out" 2>&1
[ $? = 3 ] && grep -q 'it is the name of a program, without arguments' "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "a program that is not there"; }
until_so "a program that hangs is left alone" grep -q "^bfo events: $TEST_TMP/hang takes longer than 30 s and is ended$" "$TEST_TMP/hung"
until_so "after it no other program is run" eval '[ "$(wc -l <"$TEST_TMP/hanging")" -ge 2 ]'
first=$(head -n 1 "$TEST_TMP/hanging")
! kill -0 "$first" 2>/dev/null || fail "the program that hangs lives on"
note "a program that hangs is ended"
kill "$(tail -n 1 "$TEST_TMP/hanging")" 2>/dev/null
finish_job
exit 0
