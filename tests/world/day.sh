#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# day.sh [-s SEED] [-m MINUTES] [-o OPTION] [FORM...]: days of simulated jobs (day.c), 24 hours of their time unless MINUTES says less; all forms, or
# those named: healthy flaps silences returns short. The parameters of bfo have their defaults, but in the form
# "short", which is "returns" with a shorter btl_openib_ib_timeout. Prints a table of figures for each form. The status is 1 if a
# figure is above its bound. All times are virtual, so the machine's load changes nothing. OPTION is one of world.sh's, such as --replay.
. "$BFO_SRCDIR/tests/lib.sh"
seed=1 minutes=1440 option=
while getopts s:m:o: letter; do
    case $letter in
    s) seed=$OPTARG ;;
    m) minutes=$OPTARG ;;
    o) option=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
# Nothing but the day is drawn from the seed.
job="nodes=2 per_node=2 crowd=0 rails=2 threads=0 preempt=0 latency=2 mtu=4096 srq=1 last_wqe=1 flushes_late=0 cleans_cqs=0 fails=0 kills=0 rejoin=1
     polls=32 minutes=$minutes"
bad=0
for form in ${*:-healthy flaps silences returns short}; do
    case $form in
    healthy) plan="day=1 jitter=100 lost=1 late=100 crowded=30 event_delay=0" ;;
    flaps) plan="day=2 jitter=20 event_delay=200000" ;;
    silences) plan="day=3 jitter=5 event_delay=0" ;;
    returns) plan="day=4 jitter=5 event_delay=1000" ;;
    short) plan="day=4 jitter=5 event_delay=1000 repeat=15" ;;
    *) fail "there is no form '$form'; the forms are: healthy flaps silences returns short" ;;
    esac
    # shellcheck disable=SC2086
    bash "$BFO_SRCDIR/tests/world/world.sh" --seed "$seed" $option $job $plan || bad=1
done
[ $bad = 0 ] || fail "a figure of a day is above its bound"
exit 0
