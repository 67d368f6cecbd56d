#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# UCX: its own benchmark over rc_verbs and ud_verbs, connections of librdmacm (io_demo), and Open MPI's pml ucx with verbs
# only.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/sim/sim.sh"
need ucx_perftest ucx-utils
use_components none

# ucx RAIL ARGUMENTS...: server and client of ucx_perftest.
ucx() {
    local rail=$1
    shift
    pair "$rail" ucx_perftest_on "$rail" "$@"
}
# pair() appends -d, -p and the host in the form of ibverbs-utils; this wrapper translates them.
mkdir "$TEST_TMP/bin"
cat > "$TEST_TMP/bin/ucx_perftest_on" <<'TOOL'
#!/bin/bash
rail=$1; shift
arguments=()
while [ $# -gt 0 ]; do
    case $1 in
    -d) arguments+=(-d "sr$rail:1"); shift ;;
    *) arguments+=("$1") ;;
    esac
    shift
done
exec timeout 30 ucx_perftest "${arguments[@]}"
TOOL
chmod +x "$TEST_TMP/bin/ucx_perftest_on"
PATH=$TEST_TMP/bin:$PATH

ucx 0 -x rc_verbs -t am_lat -n 300 -w 10
ucx 1 -x rc_verbs -t put_bw -D zcopy -s 100000 -n 200 -w 10
ucx 0 -x rc_verbs -t get -D zcopy -s 100000 -n 200 -w 10
ucx 1 -x ud_verbs -t am_lat -n 300 -w 10
ucx 0 -x ud_verbs -t am_bw -D bcopy -s 3000 -n 300 -w 10

# The server runs until it is stopped; the client names rail 1 by its address.
cat > "$TEST_TMP/demo" <<'DEMO'
export UCX_TLS=rc_verbs,self UCX_NET_DEVICES=sr1:1
io_demo -p 13377 > "$1.server" 2>&1 & server=$!
deadline=$((SECONDS + 60))
until compgen -G "$FABRIC_PATH/cm-*" > /dev/null; do
    [ $SECONDS -lt $deadline ] && kill -0 $server || break
    sleep 0.05
done
timeout 60 io_demo -p 13377 -i 20 127.42.1.1 > "$1.client" 2>&1; client=$?
kill $server
exit $client
DEMO
fabric=ucx-$$
export FABRIC_PATH=${SOFTRAIL_DIR:-/dev/shm}/softrail-$(id -u)/$fabric
SIM_TIMEOUT=150 rails --name $fabric -n 2 -- bash "$TEST_TMP/demo" "$TEST_TMP/demo" || fail "io_demo: $(cat "$TEST_TMP"/demo.*)"
[ "$(rail_counter "$REPORT" 1 tx_bytes)" -gt 50000 ] || fail "io_demo: rail 1 carried $(rail_counter "$REPORT" 1 tx_bytes) bytes"
note "io_demo by librdmacm: $(rail_counter "$REPORT" 1 tx_bytes) bytes on sr1"

[ -e "$BFO_OMPI_COMPONENTDIR/mca_pml_ucx.so" ] || skip_missing "pml ucx" openmpi-bin
rails -n 2 -- "$MPIRUN" --oversubscribe --bind-to none -np 2 --mca pml ucx --mca osc ^ucx \
    -x UCX_TLS=rc_verbs,ud_verbs,self -x UCX_NET_DEVICES=sr0:1,sr1:1 ./sr_ring 5 > "$TEST_TMP/out" 2>&1 ||
    fail "pml ucx: $(cat "$TEST_TMP/out")"
[ "$(grep -c verified "$TEST_TMP/out")" = 2 ] || fail "pml ucx: $(cat "$TEST_TMP/out")"
note "pml ucx: sr0 $(rail_counter "$REPORT" 0 tx_bytes) bytes, sr1 $(rail_counter "$REPORT" 1 tx_bytes) bytes"
[ $(($(rail_counter "$REPORT" 0 tx_bytes) + $(rail_counter "$REPORT" 1 tx_bytes))) -gt 10000000 ] ||
    fail "pml ucx did not use the rails"
