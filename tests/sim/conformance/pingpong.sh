#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The ping-pongs of ibverbs-utils: RC, UC, UD, SRQ; polling and with completion events; LIDs and RoCE GIDs.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/sim/sim.sh"
need ibv_rc_pingpong ibverbs-utils

for tool in ibv_rc_pingpong ibv_uc_pingpong ibv_srq_pingpong; do
    pair 0 $tool -n 200 -s 3000
    pair 1 $tool -n 200 -s 100 -e
done
pair 0 ibv_rc_pingpong -n 100 -s 1000000 -e
pair 0 ibv_ud_pingpong -n 200 -s 1024
pair 1 ibv_ud_pingpong -n 200 -s 2048 -e
SIM_OPTIONS="--link-layer eth"
pair 0 ibv_rc_pingpong -n 100 -g 0 -e
pair 1 ibv_ud_pingpong -n 100 -g 0 -e
