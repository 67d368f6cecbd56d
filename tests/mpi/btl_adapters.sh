#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Habits of real adapters and fabrics: the BTL takes each as it is, or leaves the adapter to others.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components btl
MPI_TIMEOUT=60
export OMPI_MCA_btl_openib_verbose=2
TRY=("$BFO_BUILDDIR/tests/mpi/btl_check" everybody)

# works "softrail options" "what the log says" mpirun-arguments...: two ranks talk to each other
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
# A path that swallows large packets carries those of a handshake: such a rail is not used until its MTU is set.
works "-n 1 --mtu-blackhole 1024" 'mtu 3' --mca btl_openib_ib_mtu 3
on_rails "-n 1 --retry-time=200ms --mtu-blackhole 1024" 2 --mca btl_openib_connect_timeout 1 "${TRY[@]}" &&
    fail "a path that swallows full packets was used"
note "a path that swallows full packets is not used"
