#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# `bfo check` on software rails: a command cuts each port of a job and gives it back, and the report agrees with softrail's own counters. It
# cuts nothing where the job would not survive, and gives a port back whatever happens (a signal, a command that fails, a rank that dies). It
# distinguishes a port that was not seen lost, or did not come back, from a loss that the job survived. Without a command it asks a person.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/tools/tools.sh"
need perl perl
need script bsdutils
export BFO_CONF=$TEST_TMP/bfo.conf PATH=${SOFTRAIL%/*}:$BFO_BUILDDIR/contrib:${MPIRUN%/*}:$PATH
sed "s,[^ ]*:SYS_DEFAULT,$BFO_BUILDDIR/pml_bfo/.libs:$BFO_BUILDDIR/btl_openib_failover/.libs:SYS_DEFAULT," "$BFO_BUILDDIR/bfo.conf" >"$BFO_CONF"
cd "$TEST_TMP" || exit 1
JOB_ARGS=(--oversubscribe --bind-to none --mca btl openib,self -np 2)
FABRIC=bfo-check-$$
REPORT=$TEST_TMP/fabric
export CUTS=$TEST_TMP/cuts CUT_HOW=

# The command that cuts. It records its arguments and the bytes that both rails have carried, after a cut and before a return.
cat >cut <<'END'
#!/bin/bash
carried() { softrail status --json | awk -F'[:,]' '/"tx_bytes"/ { printf " %.0f", $2 }'; }
[ "$1" = down ] || echo "up $2$(carried) $(date +%s.%N)" >>"$CUTS"
case $CUT_HOW-$1 in
nothing-*) ;;
silent-down) softrail silent "$2" ;;
fails-up) exit 5 ;;
other-down) softrail down sr1:1 ;;
other-up) softrail up sr1:1 ;;
late-up) [ "$(grep -c '^up' "$CUTS")" -lt 2 ] && exit 5 || softrail up "$2" ;;
*) softrail "$1" "$2" ;;
esac || exit 1
[ "$1" = up ] || echo "down $2$(carried) $(date +%s.%N)" >>"$CUTS"
[ "$CUT_HOW-$1" != killer-down ] || kill -9 "$(ls "$FIGURES" | sed -n 's/^[0-9.]*\.1\.\([0-9]*\)$/\1/p')"
[ "$CUT_HOW-$1" != late-down ] && [ "$CUT_HOW-$1" != fails-down ]
END
chmod +x cut
export FIGURES

# check STATUS RAILS OPTIONS... [-- MORE-MPIRUN-ARGUMENTS]: the report is in `out`, the messages before it in `said`
check() {
    local expected=$1 rails=$2 status options=()
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
    rm -f "$CUTS" bfo-check-*.log
    timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run -n "$rails" --name "$FABRIC" --retry-time=200ms --report="$REPORT" -- \
        "$BFO" check --down 1 --up 0.2 "${options[@]}" -- "${JOB_ARGS[@]}" "${@:2}" >out 2>said </dev/null
    status=$?
    [ $status = "$expected" ] || give_up "bfo check ${options[*]}: status $status, not $expected"
}
show_said() { cat out said "$CUTS" bfo-check-*.log 2>/dev/null | tail -n 80; }
# was_asked WORDS: the command was called with these words, in this order
was_asked() { [ "$(cut -d' ' -f1,2 "$CUTS" 2>/dev/null | tr '\n' ' ')" = "$1" ] || give_up "the command was not called for: $1"; }
no_cut() { [ ! -e "$CUTS" ] || give_up "a port was cut"; }
# verdicts_are LIST: the verdicts of the ports in the JSON report
verdicts_are() { [ "$(json out 'join ",", map { "$_->{port} $_->{verdict}" } @{$j->{ports}}')" = "$1" ] || give_up "the verdicts are not: $1"; }

# All is well, and the counters of the fabric agree.
check 0 2 --cut "$TEST_TMP/cut" --yes --json
verdicts_are 'sr0:1 survived,sr1:1 survived'
was_asked 'down sr0:1 up sr0:1 down sr1:1 up sr1:1 '
awk '{ rail = substr($2, 3, 1); own = $(3 + rail); other = $(4 - rail) }
     $1 == "down" { own_before = own; other_before = other; since = $5 }
     $1 == "up" { own -= own_before; other -= other_before }
     $1 == "up" && (own > 2500000 || other < own || other < 1000000 || $5 < since + 1) { exit 1 }' "$CUTS" ||
    give_up "a rail carried something while it was away, or the other one nothing, or it was away for less than a second"
[ "$(json out '2 == grep { $_->{noticed_s} >= 0 && $_->{command_s} > 0 && $_->{longest_gap_s} > 0 && $_->{longest_gap_s} <= $j->{longest_gap_s}
    && $_->{used_again_s} >= 0 && $_->{resent} >= 0 && $_->{state} eq "up" } @{$j->{ports}}')" = 1 ] || give_up "figures of the ports"
[ "$(json out '$j->{well} && 0 == $j->{status} && 0 == $j->{wrong} && $j->{messages} > 0
    && !defined $j->{log} && "" eq $j->{reason}')" = 1 ] || give_up "the sums"
verified=$(json out '$j->{bytes}')
carried=$(($(rail_counter "$REPORT" 0 tx_bytes) + $(rail_counter "$REPORT" 1 tx_bytes)))
[ "$verified" -gt 0 ] && [ "$carried" -ge "$verified" ] && [ $((carried / 2)) -lt "$verified" ] ||
    give_up "$verified bytes are said to be verified, and the rails carried $carried"
[ -z "$(ls bfo-check-*.log 2>/dev/null)" ] || give_up "a log is left although all was well"
note "two ports are cut and come back: $verified bytes verified, $carried carried"

# softrail itself as the command that cuts; a single port; the report for people; a path that is silent.
check 0 2 --cut softrail --yes --ports sr1:1 --log kept
says '^  sr1:1 +survived +[0-9.]+ s +[0-9.]+ s +[0-9.]+ s +[0-9]+ +[0-9.]+ s  up$'
says '^  [0-9]+ messages, [0-9.]+ MiB verified, 0 wrong; longest gap [0-9.]+ s$'
says '^  all is well: '
says '^  log: kept$'
! grep -q 'sr0:1' out || give_up "a port was cut that was not named"
grep -q 'A rail was lost: .* sr1:1 ' kept || give_up "the log does not have what the job said"
CUT_HOW=silent check 0 2 --cut "$TEST_TMP/cut" --yes --ports sr0:1 --json
verdicts_are 'sr0:1 survived'
note "softrail as the command, a silent path"

# Nothing is cut where the job would not survive.
check 1 1 --cut "$TEST_TMP/cut" --yes
no_cut
says 'not well: failover is not in force, because there is only one rail .*; nothing was cut$'
says '^  log: bfo-check-.*\.log$'
[ -s "$(sed -n 's/^  log: //p' out)" ] || give_up "there is no such log"
"$BFO" drain sr0:1 --wait 0 >/dev/null 2>&1
check 1 2 --cut "$TEST_TMP/cut" --yes
no_cut
says 'not well: sr0:1 is taken out of service'
"$BFO" release sr0:1 --wait 0 >/dev/null 2>&1
check 2 2 --cut "$TEST_TMP/cut" --yes --ports sr1:1,sr7:1
no_cut
says "the job has no port 'sr7:1' on this node"
check 2 2 --cut "$TEST_TMP/cut" --yes --ports ,
no_cut
note "one rail, a drained port, no such port: nothing is cut"

# Bad ends.
check 1 2 --cut "$TEST_TMP/cut" --yes --wait 20 --json -- --mca pml_bfo_rejoin 0
verdicts_are 'sr0:1 not come back,sr1:1 not tried'
was_asked 'down sr0:1 up sr0:1 '
CUT_HOW=nothing check 1 2 --cut "$TEST_TMP/cut" --yes --wait 20 --json --ports sr0:1
verdicts_are 'sr0:1 not seen lost'
was_asked 'down sr0:1 up sr0:1 '
CUT_HOW=killer check 1 2 --cut "$TEST_TMP/cut" --yes --json
verdicts_are 'sr0:1 not survived,sr1:1 not tried'
was_asked 'down sr0:1 up sr0:1 '
CUT_HOW=other check 1 2 --cut "$TEST_TMP/cut" --yes --json
verdicts_are 'sr0:1 interrupted,sr1:1 not tried'
was_asked 'down sr0:1 up sr0:1 '
[ "$(json out '$j->{reason} =~ /^sr1:1 was lost while sr0:1 was to be away/')" = 1 ] || give_up "the other port is not named"
note "not come back, not seen lost, not survived"

# A command that fails, when it cuts, and when it gives back.
CUT_HOW=late check 3 2 --cut "$TEST_TMP/cut" --yes
was_asked 'down sr0:1 up sr0:1 up sr0:1 '
says "not well: the command '$TEST_TMP/cut down sr0:1' failed with status 1\$"
[ "$(tail -n 1 "$CUTS" | cut -d' ' -f2)" = sr0:1 ] && ! grep -q 'may still be down' said || give_up "the port was not given back"
CUT_HOW=fails check 3 2 --cut "$TEST_TMP/cut" --yes --json
was_asked 'down sr0:1 up sr0:1 up sr0:1 up sr0:1 '
[ "$(json out '$j->{reason} =~ /sr0:1 may still be down: .* failed with status 5, 3 times$/')" = 1 ] ||
    give_up "a port that stays down is not reported"
SAID=said says '^the last lines of bfo-check-.*\.log:$'
check 3 2 --cut "$TEST_TMP/cut" --yes -- --no-such-option
no_cut
SAID=said says 'no-such-option'
note "a command that fails, a job that does not begin"

# A signal while a port is down. bash makes a background process ignore INT; the check must not ignore it.
for signal in INT TERM HUP QUIT; do
    rm -f "$CUTS" bfo-check-*.log said pid
    timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run -n 2 --name "$FABRIC" --retry-time=200ms -- \
        perl -e '$SIG{HUP} = "DEFAULT"; open my $out, ">", "pid"; print $out $$; close $out;
        exec @ARGV' "$BFO" check --cut "$TEST_TMP/cut" --yes --down 600 -- "${JOB_ARGS[@]}" >out 2>said </dev/null &
    job=$!
    await said 'sr0:1 is seen lost' || give_up "no port is cut"
    kill -$signal "$(cat pid)"
    wait $job
    status=$?
    [ $status = $((128 + $(kill -l $signal))) ] || give_up "SIG$signal: status $status"
    was_asked 'down sr0:1 up sr0:1 '
    says '^  sr0:1 +interrupted '
    says "not well: it was stopped by signal $(kill -l $signal) "
done
note "INT, TERM, HUP and QUIT give the port back"

# By hand: a person does what the check says.
rm -f "$CUTS" bfo-check-*.log said
timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run -n 2 --name "$FABRIC" --retry-time=200ms -- \
    "$BFO" check --down 0.5 --up 0.2 --json -- "${JOB_ARGS[@]}" >out 2>said </dev/null &
job=$!
for port in sr0:1 sr1:1; do
    await said "take $port away now" || give_up "it does not ask for $port"
    softrail down "$port" --fabric "$FABRIC" || give_up "$port could not be cut"
    await said "give $port back now; the check waits" || give_up "it does not want $port back"
    softrail up "$port" --fabric "$FABRIC"
done
wait $job || give_up "by hand: status $?"
verdicts_are 'sr0:1 survived,sr1:1 survived'
[ "$(json out '2 == grep { !defined $_->{noticed_s} && !defined $_->{used_again_s} } @{$j->{ports}}')" = 1 ] || give_up "nobody knows when a hand pulled the cable"
note "by hand"

# The check asks on a terminal, and refuses without a terminal.
rm -f "$CUTS"
echo n | script -qec "$SOFTRAIL run -n 2 --name $FABRIC -- $BFO check --cut $TEST_TMP/cut -- ${JOB_ARGS[*]}" /dev/null >out 2>&1
[ $? = 1 ] || give_up "the answer no"
no_cut
says 'Cut these ports\? \[y/N\]'
says "'$TEST_TMP/cut down PORT' cuts them\. Nothing else may need them: no storage"
says 'sr0:1, sr1:1'
echo y | script -qec "$SOFTRAIL run -n 2 --name $FABRIC -- $BFO check --cut $TEST_TMP/cut --down 0.2 --ports sr1:1 -- ${JOB_ARGS[*]}" /dev/null >out 2>&1 ||
    give_up "the answer yes"
was_asked 'down sr1:1 up sr1:1 '
usage() {
    "$BFO" check "${@:2}" >out 2>&1 </dev/null
    [ $? = 2 ] || give_up "bfo check ${*:2}: not refused"
    says "$1"
}
usage 'there is no terminal .* --yes says so' --cut softrail
usage 'it is empty' --cut ' ' --yes
usage 'there is no such program' --cut /nowhere/cut --yes
usage "'-?np' is no option|invalid option|unrecognized option" --yes -np 2
usage "'job' is no option; the arguments of mpirun come after '--'" job
usage '--down is a number of seconds' --down soon
[ -z "$(find . -maxdepth 1 -name 'bfo-check-*.log' -newer "$CUTS")" ] || give_up "a log of wrong usage"
touch there
"$BFO" check --cut softrail --yes --log there >out 2>&1 </dev/null
[ $? = 3 ] && [ ! -s there ] || give_up "a file that is there is not kept"
says '^bfo check: there: File exists; --log names another file$'
note "questions, wrong usage"
exit 0
