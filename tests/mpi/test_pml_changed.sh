#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A lost rail comes back with another address (LIDs on InfiniBand, GIDs on RoCE), and with a path that carries shorter packets than before: such a
# rail stays out, because it fails its proof by full packets, and comes back when the path carries full packets again. A verified stream goes on.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 2 --mca pml_bfo_verbose 1 --mca btl_openib_rejoin_after 50
    --mca btl_openib_rejoin_half_life 0 --mca btl_openib_connect_timeout 1)
log=$TEST_TMP/log

act() { "$SOFTRAIL" "$1" --fabric "$FABRIC" "${@:2}" >/dev/null || give_up "softrail $*"; }
both() { await "$log" "rail 1 generation [0-9]* (.*) $1" "$2" || give_up "rail 1: not $2 times $1"; }
goes_on() {
    local shown
    shown=$(grep -c 'messages verified' "$log")
    await "$log" 'messages verified' $((shown + 2)) || give_up "$1: the stream stands still"
}
carries() {
    local least
    "$SOFTRAIL" status --json --fabric "$FABRIC" >"$TEST_TMP/status" || give_up 'the job is over'
    least=$(($(rail_counter "$TEST_TMP/status" 1 tx_bytes) + 1000000))
    wait_until "have_moved $least 2"
    have_moved $least 2 || give_up 'rail 1 carries nothing after its return'
}
begin() { # SOFTRAIL-OPTIONS
    begin_stream "-n 2 --retry-time=300ms $1" 2 "$STREAM" -m 300000 -s 400
    await "$log" 'messages verified' || give_up 'no stream'
    act down 1
    both lost 2
}
end() {
    end_stream
    [ "$rc" = 0 ] || give_up "$1: the job ended with $rc"
    grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$log" || give_up "$1: the stream did not verify"
    note "$1"
}

for change in lid gid; do
    begin "--link-layer=$([ $change = lid ] && echo ib || echo eth)"
    act $change 1
    act up 1
    both 'is back' 2
    carries
    end "another $change"
done

# Both ports of a silent rail get other addresses. No question about the rail arrives any more, because each port asks the old address of the
# other; the addresses go over the other rail.
begin_stream "-n 2 --retry-time=300ms" 2 "$STREAM" -m 300000 -s 400
await "$log" 'messages verified' || give_up 'no stream'
act silent 1
both lost 2
act lid 1
for rank in 0 1; do # each side has looked up the old address again
    asked=$(($(grep -c "DOWN([0-9]*) of rail 1 to $rank" "$log") + 4))
    await "$log" "DOWN([0-9]*) of rail 1 to $rank" $asked || give_up "nobody asks rank $rank about a silent rail"
done
act up 1
both 'is back' 2
carries
end 'other addresses at both ends of a silent rail'

tries() { grep -c 'rail 1 .* -> requested on restored' "$log"; }
begin ''
act set --mtu-blackhole 1024 1
act up 1
least=$(($(tries) + 3))
wait_until '[ "$(tries)" -ge $least ]'
[ "$(tries)" -ge $least ] || give_up 'nobody tries to bring the rail back'
! grep -q 'rail 1 .* is back' "$log" || give_up 'a rail came back whose path drops full packets'
goes_on 'a path drops full packets'
act set --mtu-blackhole 0 1
both 'is back' 2
carries
end 'a path that drops full packets for a while'
exit 0
