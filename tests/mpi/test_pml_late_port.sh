#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A port that is down when the job starts: the job starts without its rail, and uses the rail after the cable was plugged in, if
# btl_openib_if_include names the port, or if the port has the address of a fabric: an IP address on RoCE, a LID on InfiniBand. Other ports
# are left out, and so are all such ports where no rail comes back: under ob1 and with pml_bfo_rejoin 0. A job without any active port
# ends with a message, although its ports are named.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BFO_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1 --mca btl_openib_rejoin_after 50)
BTL_ARGS=("${BFO_ARGS[@]}")
log=$TEST_TMP/log

# begin_without RAIL "softrail options" MPIRUN-ARGUMENTS...: the stream begins while the cable of RAIL is pulled, over the other rail.
begin_without() {
    local up=$((1 - $1)) options=$2
    first down "sr$1"
    shift 2
    begin_stream "-n 2 $options" 2 "$@" "$STREAM" -s 600 -m 300000
    wait_until "carried_by $up 100000 && has_said 'messages verified'"
    carried_by $up 100000 || give_up "nothing moved over sr$up ($options $*)"
}
# carried_by RAIL BYTES: the rail of the running job has sent as many bytes.
carried_by() {
    local bytes
    "$SOFTRAIL" status --json --fabric "$FABRIC" >"$TEST_TMP/status" 2>/dev/null || return
    bytes=$(rail_counter "$TEST_TMP/status" "$1" tx_bytes)
    [ "${bytes:-0}" -ge "$2" ]
}

# joins RAIL "softrail options" MPIRUN-ARGUMENTS...: the rail is used when its cable is plugged in.
joins() {
    begin_without "$@"
    has_said " rail 1: sr$1:1 - sr$1:1" 2 || give_up "the port that is down makes no rail of the last name"
    has_said 'at most one rail to at least one other process works, because a port of this host is down' || give_up "not said that a loss is not survived"
    "$SOFTRAIL" up --fabric "$FABRIC" "sr$1" || give_up "sr$1 cannot be plugged in"
    wait_until "have_moved 1000000 2"
    end_stream
    verified "sr$1 came up while the job ran ($2 ${*:3})"
    rails_carried 1000000 2
    has_said "A rail is back: .*rail 1 from sr$1:1" || give_up "not said that the rail is used now"
}
joins 1 "" --mca btl_openib_if_include sr0,sr1:1
has_said 'The port sr1:1 is down. The job starts without it' || give_up "not said that the named port is down"
joins 1 "--link-layer=eth" --mca btl_openib_if_include sr0,sr1:1
for options in "" "--link-layer=eth --ipv4-gids"; do
    joins 0 "$options"
    ! has_said 'The job starts without it' || give_up "a port that nobody named is a message in each job"
done
joins 1 "--default-prefix --one-sm-lid"
joins 1 "--link-layer=eth --ipv4-gids" --mca btl_openib_cpc_include rdmacm

# stays_out WHY "softrail options" MPIRUN-ARGUMENTS...: the job goes on over sr0 alone, also after sr1 has come up.
stays_out() {
    local shown
    begin_without 1 "${@:2}"
    shown=$(grep -c 'messages verified' "$log")
    "$SOFTRAIL" up --fabric "$FABRIC" sr1 || give_up "sr1 cannot be plugged in"
    wait_until "has_said 'messages verified' $((shown + 2))"
    end_stream
    verified "sr1 stays out: $1"
    [ "$(rail_counter "$REPORT" 1 tx_bytes)" -lt 10000 ] || give_up "$1: the job used a port that was down"
    ! has_said 'The job starts without it' || give_up "$1: said of a port that stays out that it is used later"
}
stays_out "no IP address" "--link-layer=eth"
stays_out "not in the list" "" --mca btl_openib_if_include sr0
stays_out "no rail comes back" "" --mca pml_bfo_rejoin 0 --mca btl_openib_if_include sr0,sr1
BTL_ARGS=(--mca pml ob1 --mca btl openib,self --mca btl_openib_verbose 1)
stays_out "ob1" ""
stays_out "ob1, named" "" --mca btl_openib_if_include sr0,sr1
BTL_ARGS=("${BFO_ARGS[@]}")

first down sr0 sr1
! on_rails "-n 2" 2 --mca btl_openib_if_include sr0,sr1 "$STREAM" -s 600 || give_up "a job ran without any port"
has_said 'None of the 2 port.* that the BTL openib may use is active' || give_up "no message that names the reason"
exit 0
