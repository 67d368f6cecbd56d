#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# What the user sees of lost rails: one line per rail and node, whatever the number of ranks, with time, host, both ports with
# GUIDs, cause and the rails that are left; an explanation once per job; lines of pml_bfo_verbose; the counters at the end; MPI_T
# variables that count what was recovered.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca pml_bfo_rejoin 0)

# job RANKS RAILS "CUT" "FAULTS" MPIRUN-ARGUMENTS...: CUT = rails that are cut in the middle of the job, FAULTS = rules added then
job() {
    local n=$1 rails=$2 cut=$3 faults=$4 rail
    shift 4
    rm -f "$TEST_TMP/go"
    begin_stream "-n $rails --retry-time=100ms" "$n" "$@" "$BFO_BUILDDIR/tests/mpi/mpi_counters" "$TEST_TMP/go"
    await "$LOG" '^ready'
    for rail in $cut; do
        "$SOFTRAIL" down --fabric "$FABRIC" "$rail" || { cat "$LOG"; fail "rail $rail could not be cut"; }
        sleep 0.3
    done
    if [ -n "$faults" ]; then
        echo "$faults" >"$TEST_TMP/plan"
        "$SOFTRAIL" fault --fabric "$FABRIC" --file "$TEST_TMP/plan" >/dev/null || fail "no faults: $faults"
    fi
    [ -z "$cut$faults" ] || sleep 1
    touch "$TEST_TMP/go"
    passes "$n ranks, cut $cut, faults $faults, $*"
}
warnings() { # NUMBER: of warnings of a lost rail
    [ "$(grep -c '^A rail was lost:' "$LOG")" = "$1" ] || { cat "$LOG"; fail "$(grep -c '^A rail' "$LOG") warnings, not $1"; }
}
explained() {
    [ "$(grep -c '^A rail of this job has failed' "$LOG")" = 1 ] || { cat "$LOG"; fail "a lost rail is not explained once"; }
}
# sum NAME: sum of a performance variable over all ranks
sum() { awk -v name="pml_bfo_$1" '$1 == "pvar" && $3 == name { n += $4; found = 1 } END { print found ? n : "no" }' "$LOG"; }

job 4 2 1 ""
warnings 1
TIME='20[0-9-]+T[0-9:]+[+-][0-9]{4}' GUID='GUID 0x[0-9a-f]{16}'
says "^A rail was lost: $TIME host $(hostname), rail 1 from sr1:1 \($GUID\) to all peers( that another rail reaches)?; cause: the port is down; left: 1: sr0:1\$"
explained
says_not '^\[.*\] bfo: '
[ "$(grep -cE '^bfo [0-9.]+: failover is in force; rank 0 on .* reaches rank [1-3] on .* over rails 2: sr0:1 sr1:1$' "$LOG")" = 1 ] ||
    { cat "$LOG"; fail "rank 0 does not say once that the job is protected"; }
note "a port lost to 4 ranks: one warning"

job 4 2 "" "lose rail=sr0"
warnings 1
says "^A rail was lost: $TIME host $(hostname), rail 0 from sr0:1 \($GUID\) to sr0:1 \($GUID\) on $(hostname), noticed by rank [0-3] \
talking to rank [0-3]; cause: (transport retry counter exceeded|the other side gave it up|the rail was brought down|the peer reports: [a-z ]*|the peer lost it); \
left: 1: sr1:1\$"
[ "$(sed -n 's/^A rail was lost: .* from sr0:1 (GUID \(0x[0-9a-f]*\)) to sr0:1 (GUID \1).*/same/p' "$LOG")" = "" ] ||
    { cat "$LOG"; fail "the peer's port has the GUID of our own"; }
explained
note "a rail that loses everything, 4 ranks, no port event: one warning"

job 3 3 "0 2" "" --mca pml_bfo_counters 1 --mca pml_bfo_verbose 1
warnings 2
says '^A rail was lost: .* rail 0 from sr0:1 '
says '^A rail was lost: .* rail 2 from sr2:1 '
explained
says 'bfo: 0->1 rails 3: sr0:1 sr1:1 sr2:1$'
for rank in 0 1 2; do
    says "bfo: $rank->[012] rail 2 generation 0 \(sr2:1\) lost: .*; left 1: sr1:1\$"
    says "bfo: rank $rank counters: .*eager [0-9]+.*rails_lost 4"
done
says_not ' -> '
note "two of three rails lost: two warnings, each rank's lines and counters"

# A MATCH and a FIN arrive and are reported as failed, therefore the receiver must recognise their copies; a read is lost. The first
# byte of a message is the tag of its type.
job 2 4 "" "unacked rail=sr1 op=send payload=0:41
unacked rail=sr2 op=send payload=0:49
lose rail=sr3 op=read" --mca pml_bfo_verbose 3
warnings 3
for name in rails_lost errors resends restarts duplicate stale dropped; do
    [ "$(sum $name)" -gt 0 ] || { cat "$LOG"; fail "pml_bfo_$name is $(sum $name)"; }
done
says 'bfo: [01]->[01] send req 0x[0-9a-f.]+ seq [0-9]+ epoch [0-9]+: .* -> notified on '
says 'bfo: [01]<-[01] recv req 0x[0-9a-f.]+ seq [0-9]+ epoch [0-9]+: .* -> '
says 'bfo: [01]<-[01] recv req 0x[0-9a-f.]+ seq [0-9]+ epoch [1-9][0-9]*: waitrts -> active on .* \(R14\)' # a row that is fired
says 'bfo: [01]->[01] (MATCH|match|FIN|fin|RNDV|rndv) sent again$'
says 'bfo: [01] message dropped: duplicate$'
[ "$(grep -c ' sent again$' "$LOG")" = "$(sum resends)" ] || { cat "$LOG"; fail "not every message sent again is counted"; }
note "counted by MPI_T: $(for name in resends restarts duplicate stale; do echo "$name $(sum $name)"; done | tr '\n' ' ')"

# A job loses three rails within a second, or within two minutes at most: with one warning per minute at least one warning is held back.
job 2 4 "0 1 2" "" --mca pml_bfo_warnings_per_minute 1
said=$(grep -c '^A rail was lost:' "$LOG")
held=$(sed -n 's/^bfo: the processes on .* have held back \([0-9]*\) more warnings.*/\1/p' "$LOG" | awk '{ n += $1 } END { print n + 0 }')
[ "$held" -ge 1 ] && [ $((said + held)) = 3 ] || { cat "$LOG"; fail "3 rails lost: $said warnings, $held held back"; }
note "three rails lost, one warning a minute: $said said, $held held back"

job 2 1 "" "" --mca pml_bfo_warn_no_failover 0
says_not "failover is in force"
job 2 2 "" "" --mca pml_bfo_counters 1 --mca pml_bfo_say_protected 0
says_not "failover is in force"
warnings 0
says_not 'counters:.*(rails_lost|resends|restarts)'
for name in resends restarts duplicate stale errors; do
    [ "$(sum $name)" = 0 ] || { cat "$LOG"; fail "pml_bfo_$name is $(sum $name) without a fault"; }
done
exit 0
