#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Two simulated jobs lose a rail and get it back. Each of their calls of libibverbs and each allocation fails once, in a run for each:
# at most BFO_WORLD_SWEEP calls of a kind (default 40), evenly spread. "make world" fails all.
plan="nodes=2 per_node=1 rails=2 messages=12 biggest=20000 window=8 wildcards=20 probes=20 synchronous=10 strided=10 computes=0
      cleans_cqs=0 fails_for=0 srq=1 last_wqe=1 named=1 rejoin=1 deadline=0 blocking=0 retries=2 timeout=8
      faults=1 horizon=1000 downs=1 silences=0 losses=0 breaks=0 stops=0 drains=0 deaths=0 kills=0 cqs=0 forced=0 persistent=20
      others=20 tagless=50 cancels=5"
for more in "ring=1 put=1 get=1 threads=0 preempt=0" "ring=0 put=1 get=0 threads=1 preempt=100"; do
    # shellcheck disable=SC2086
    bash "$BFO_SRCDIR/tests/world/world.sh" --seed 1 --sweep "${BFO_WORLD_SWEEP:-40}" --jobs "$(nproc)" $plan $more || exit 1
done
