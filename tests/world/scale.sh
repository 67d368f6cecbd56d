#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# scale.sh [-s SEED] [-p PER_NODE] [-o OPTION] SIZE:RAILS...: large jobs (scale.c) with so many rails; the parameters of bfo have their defaults. SIZE is a
# number of processes that all talk to all, PER_NODE (4) of them on each machine, or 1+PEERS: one process whose peers have no image (peers.c). Prints
# the figures of each job, a line for each. All times are virtual, so the machine's load changes nothing. The status is 1 if a job fails.
# OPTION is one of world.sh's, such as --replay.
. "$BFO_SRCDIR/tests/lib.sh"
seed=1 per_node=4 option=
while getopts s:p:o: letter; do
    case $letter in
    s) seed=$OPTARG ;;
    p) per_node=$OPTARG ;;
    o) option=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
# Nothing but the job is drawn from the seed. The image without what a debugger needs is a seventh as large.
job="scale=1 crowd=0 threads=0 preempt=0 latency=2 jitter=5 mtu=4096 event_delay=20000 srq=1 last_wqe=1 flushes_late=0 cleans_cqs=0
     fails=0 kills=0 rejoin=1 lids=1 polls=256 pause=200"
image=${BFO_WORLD_INTO:-$BFO_BUILDDIR/tests/world/made}/lean.so
bad=0
for size in "${@:-8:2}"; do
    processes=${size%:*} rails=${size#*:}
    case $processes in
    1+*) peers=${processes#1+} layout="per_node=1 nodes=$((1 + (peers + 15) / 16)) peers=$peers" ;;
    *) layout="per_node=$per_node nodes=$((processes / per_node))" ;;
    esac
    # shellcheck disable=SC2086
    bash "$BFO_SRCDIR/tests/world/world.sh" --image "$image" --seed "$seed" $option $job $layout rails="$rails" || bad=1
done
[ $bad = 0 ] || fail "a large job fails"
exit 0
