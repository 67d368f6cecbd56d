#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# perftest, latency and bandwidth of every operation, with the usual options. These short runs show only that the
# tools run to their end; tests/perf measures.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/sim/sim.sh"
need ib_send_lat perftest

pair 0 ib_send_lat -n 200
pair 1 ib_send_lat -n 100 -c UC
pair 0 ib_send_lat -n 100 -c UD
pair 1 ib_send_lat -n 100 -e
pair 0 ib_write_lat -n 100
pair 1 ib_write_lat -n 100 -c UC
pair 0 ib_read_lat -n 100
pair 1 ib_atomic_lat -n 100
pair 0 ib_atomic_lat -n 100 -A FETCH_AND_ADD
pair 1 ib_send_bw -n 500
pair 0 ib_send_bw -n 200 -a
pair 1 ib_send_bw -n 500 -c UD
pair 0 ib_send_bw -n 500 -c UC -b
pair 1 ib_send_bw -n 500 -q 4
pair 0 ib_send_bw -n 500 -b
pair 1 ib_send_bw -n 500 -e
pair 0 ib_send_bw -n 500 --use-srq
pair 0 ib_write_bw -n 200 -a
pair 1 ib_write_bw -n 500 -q 4 -b
pair 0 ib_write_bw -n 500 -c UC
pair 1 ib_read_bw -n 200 -a
pair 0 ib_read_bw -n 500 -q 4 -e
pair 1 ib_atomic_bw -n 500
SIM_OPTIONS="--link-layer eth"
pair 0 ib_send_bw -n 200 -x 0
pair 1 ib_write_bw -n 200 -x 0
