#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# ibv_devinfo and ibv_devices see the rails in either link layer, also a rail that is down.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/sim/sim.sh"
need ibv_devinfo ibverbs-utils

rails -n 3 -- ibv_devices > "$TEST_TMP/devices" || fail "ibv_devices"
[ "$(grep -c 'sr[0-9]' "$TEST_TMP/devices")" = 3 ] || fail "not three devices: $(cat "$TEST_TMP/devices")"
rails -n 2 -- ibv_devinfo -v > "$TEST_TMP/ib" || fail "ibv_devinfo"
[ "$(grep -c 'state:.*PORT_ACTIVE' "$TEST_TMP/ib")" = 2 ] || fail "not two active ports: $(cat "$TEST_TMP/ib")"
grep -q 'link_layer:.*InfiniBand' "$TEST_TMP/ib" || fail "link layer is not InfiniBand"
[ "$(grep 'GID\[' "$TEST_TMP/ib" | sort -u | wc -l)" = 2 ] || fail "the rails do not have GIDs of their own"
rails -n 1 --link-layer eth -- ibv_devinfo -v > "$TEST_TMP/eth" || fail "ibv_devinfo over eth"
grep -q 'link_layer:.*Ethernet' "$TEST_TMP/eth" || fail "link layer is not Ethernet"
grep -q 'GID\[.*RoCE v2' "$TEST_TMP/eth" || fail "no RoCE v2 GID: $(grep GID "$TEST_TMP/eth")"
rails -n 2 -- sh -c "'$SOFTRAIL' down sr1 && ibv_devinfo" > "$TEST_TMP/down" || fail "ibv_devinfo on a rail that is down"
grep -q 'state:.*PORT_DOWN' "$TEST_TMP/down" || fail "sr1 is not down"
rails -n 1 -- env -u SOFTRAIL_FABRIC ibv_devinfo > "$TEST_TMP/none" 2>&1
grep -q "softrail run" "$TEST_TMP/none" || fail "no hint without a fabric: $(cat "$TEST_TMP/none")"
