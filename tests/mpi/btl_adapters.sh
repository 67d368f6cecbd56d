#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Habits of real adapters and fabrics: the BTL works with each of them, or does not use the adapter.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components btl
export OMPI_MCA_btl_openib_verbose=2
TRY=("$BFO_BUILDDIR/tests/mpi/btl_check" everybody)

# works "softrail options" "what the log says" mpirun-arguments...: two ranks exchange messages
works() {
    local options=$1 expected=$2
    shift 2
    on_rails "$options" 2 "$@" "${TRY[@]}" || { show_log; fail "the job ended with an error: $options $*"; }
    grep -q 'all right' "$TEST_TMP/log" || { show_log; fail "not all right: $options $*"; }
    grep -qE -- "$expected" "$TEST_TMP/log" || { show_log; fail "$options $*: not seen: $expected"; }
    note "$options $*: $expected"
}

works "-n 1 --grh-required" 'rail 0: sr0:1 - sr0:1'
works "-n 1 --pkeys 0x7fff,0x8001,0xffff" 'pkey index 1'
works "-n 1 --pkeys 0x7fff,0x8001,0xffff" 'pkey index 2' --mca btl_openib_pkey 0x7fff
works "-n 1 --pkeys 0xffff,0x8001" 'pkey index 1' --mca btl_openib_ib_pkey_index 1
works "-n 1 --max-inline 100" ', inline 64,'
works "-n 2 --default-prefix --crossed-guids" 'rail 1: sr1:1 - sr1:1'
works "-n 2" 'sr1:1: infiniband' --mca btl_openib_if_include sr1
[ "$(rail_counter "$REPORT" 0 registrations)" = 0 ] || fail "a device that nobody wants was used"
works "-n 2" 'sr1:1: infiniband' --mca btl_openib_if_exclude sr0
[ "$(rail_counter "$REPORT" 0 registrations)" = 0 ] || fail "a device that nobody wants was used"
works "-n 1 --link-layer eth --foreign-gid" 'ethernet, gid index 1'
works "-n 1 --link-layer eth --traffic-class 106" 'queue pair .* class 106,'
works "-n 1 --link-layer eth --traffic-class 106" 'queue pair .* class 0,' --mca btl_openib_ib_traffic_class 0
works "-n 1 --traffic-class 106" 'queue pair .* class 0,'
works "-n 2 --rate 1=800G" 'sr1:1: lane 0, 800000 Mbit/s, latency 4'
BTL_ARGS=(--mca pml ob1 --mca btl openib,tcp,self)
works "-n 1 --no-rc" 'sr0: no reliable connections'

BTL_ARGS=(--mca pml ob1 --mca btl openib,self)
works "-n 1 --no-empty-write" 'rail 0: sr0:1 - sr0:1' --mca btl_openib_keepalive 1
# A path that drops large packets carries the small packets of the handshake: the BTL does not use such a rail until its MTU is set.
works "-n 1 --mtu-blackhole 1024" 'mtu 3' --mca btl_openib_ib_mtu 3
on_rails "-n 1 --retry-time=200ms --mtu-blackhole 1024" 2 --mca btl_openib_connect_timeout 1 "${TRY[@]}" &&
    fail "a job used a path that drops full packets"
grep -q -- '-> proving on' "$TEST_TMP/log" || { show_log; fail "no rail was to be proved"; }
grep -q -- '-> up on' "$TEST_TMP/log" && { show_log; fail "a path that drops full packets was used"; }
note "a path that drops full packets is not used"

# Two fabrics have the same prefix, and the hosts are wired differently. The LIDs of the subnet managers show which ports belong together, or
# the user says so, or the port at which a request arrives shows it.
# both_rails "options" SAYS: ports of different numbers are paired, and both rails carry messages.
both_rails() {
    works "-n 2 --default-prefix --crossed-wires $1" "rail 0: sr0:1 - sr1:1$2"
    grep -q "rail 1: sr1:1 - sr0:1$2" "$TEST_TMP/log" || { show_log; fail "there is no second rail: $1"; }
    grep -q 'did not connect' "$TEST_TMP/log" && { show_log; fail "a rail did not connect: $1"; }
    rails_carried 100 2
}
TRY=("$BFO_BUILDDIR/tests/mpi/btl_check" everybody)
both_rails '' ''
grep -q 'ASK' "$TEST_TMP/log" && { show_log; fail "ports were tried although the records tell"; }
both_rails --one-sm-lid ', proved'
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self)
both_rails --one-sm-lid ', proved'
# A rail is lost: both sides give it the same name, although they reach it through ports of different names.
begin_stream "-n 2 --default-prefix --crossed-wires --one-sm-lid --retry-time=200ms" 2 --mca pml_bfo_verbose 1 "$STREAM" -s 600 -m 100000
wait_until "have_moved 100000 2 && has_said 'messages verified'"
"$SOFTRAIL" down --fabric "$FABRIC" 0 || { show_log; fail "rail 0 could not be cut"; }
lost='bfo: [01]->[01] \(rail [01]\) generation 0 (\(sr[01]\):1) lost'
wait_until "has_said 'bfo: 0->1 rail . generation 0 .* lost' && has_said 'bfo: 1->0 rail . generation 0 .* lost'"
[ "$(sed -n "s/.*$lost.*/\1/p" "$TEST_TMP/log" | sort -u | wc -l)" = 1 ] && [ "$(sed -n "s/.*$lost.*/\2/p" "$TEST_TMP/log" | sort -u | wc -l)" = 2 ] ||
    { grep lost "$TEST_TMP/log"; fail "two ports were not lost under one name"; }
shown=$(grep -c 'messages verified' "$TEST_TMP/log")
wait_until "has_said 'messages verified' $((shown + 2))"
end_stream
verified "a rail of crossed wires is lost"
# Four processes, three fabrics.
on_rails "-n 3 --default-prefix --crossed-wires --one-sm-lid" 4 "${TRY[@]}" || { show_log; fail "four processes on three fabrics"; }
grep -q 'did not connect' "$TEST_TMP/log" && { show_log; fail "a rail of three fabrics did not connect"; }
rails_carried 100 3
# A host with one port and a host with two: the list of ports alone says which of the two belongs to the rail.
# shellcheck disable=SC2016
on_rails "-n 2 --default-prefix --crossed-wires --one-sm-lid" 2 --mca btl_openib_connect_timeout 1 --mca pml_bfo_last_rail_timeout 1 \
    bash -c '[ "$OMPI_COMM_WORLD_RANK" = 1 ] || export OMPI_MCA_btl_openib_if_include=sr0; exec "$0" everybody' "$BFO_BUILDDIR/tests/mpi/btl_check" &&
    fail "ports of different fabrics talk to each other"
grep -q 'Several ports of a host have that prefix' "$TEST_TMP/log" || { show_log; fail "nobody said why ports do not connect"; }
note "nothing tells the fabrics apart: the user is told"
# shellcheck disable=SC2016
TRY=(bash -c 'one=east two=west; [ "$OMPI_COMM_WORLD_RANK" = 1 ] && one=west two=east
              OMPI_MCA_btl_openib_fabrics=sr0:1=$one,sr1:1=$two exec "$0" everybody' "$BFO_BUILDDIR/tests/mpi/btl_check")
both_rails --one-sm-lid ''
grep -q 'ASK' "$TEST_TMP/log" && { show_log; fail "ports were tried although the user told the fabrics apart"; }

# InfiniBand packets do not leave their subnet.
TRY=("$BFO_BUILDDIR/tests/mpi/btl_check" everybody)
works "-n 2" 'joins ports of different' --mca btl_openib_rail_map sr0:1-sr1:1,sr0:1-sr0:1
[ "$(grep -c 'joins ports of different' "$TEST_TMP/log")" = 1 ] || { show_log; fail "one message was expected"; }
