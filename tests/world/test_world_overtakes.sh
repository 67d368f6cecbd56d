#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A message of the restart (NOTIFY) overtakes the bring-down of the rail that it names: a switch holds WRITEs for longer than the adapter repeats them,
# and loses all datagrams meanwhile. The message is sent again over the other rail, and its memory is given back, before the WRITEs arrive.
# Therefore NOTIFY itself has to take the rail down; otherwise 16 of these seeds failed when this test was written.
. "$BFO_SRCDIR/tests/lib.sh"
plan="nodes=2 per_node=1 crowd=0 rails=2 put=1 get=0 rejoin=1 named=1 retries=1 timeout=6 window=1 messages=100 biggest=65536 faults=1 horizon=500 holds=1
      downs=0 silences=0 hush=0 losses=0 breaks=0 stops=0 drains=0 deaths=0 kills=0 cqs=0 fails=0 rounds=0 computes=0 threads=0"
# shellcheck disable=SC2086
bash "$BFO_SRCDIR/tests/world/world.sh" --seeds "${BFO_WORLD_OVERTAKES:-400}" --jobs 2 $plan || fail 'a job fails'
