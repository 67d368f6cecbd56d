#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# What progress costs. A rail where nothing happens is polled rarely, a busy one always. With btl_openib_blocking_progress a
# process that waits sleeps, a message wakes it at once, and a verified stream outlives lost rails.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
IDLE=$BFO_BUILDDIR/tests/mpi/btl_idle

# Small messages keep away from the far rail sr1; the counters are those of all ranks.
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1)
on_rails "-n 2" 2 --mca btl_openib_test_far_devices sr1 "$IDLE" quiet 1 || { show_log; fail "the quiet rail"; }
rails_carried 1000000 2
skipped() { sed -n "s/.*bfo: $1:1: .* polls skipped \([0-9]*\),.*/\1/p" "$TEST_TMP/log" | awk '{ n += $1 } END { print n + 0 }'; }
busy=$(skipped sr0) idle=$(skipped sr1)
# (on a loaded machine the busy one is idle too, whenever the peer does not run)
[ $((idle - busy)) -gt 100000 ] || { show_log; fail "the busy rail was left out $busy times, the idle one $idle"; }
note "polls left out: busy rail $busy, idle rail $idle"

# waits MPIRUN-ARGUMENTS...: sets used (ms of processor time in 900 ms) and late (us)
waits() {
    on_rails "-n 2" 2 "$@" || { show_log; fail "waiting: $*"; }
    read -r _ used _ _ _ late <<<"$(grep '^processor_ms' "$TEST_TMP/log")"
    [ -n "${late:-}" ] || { show_log; fail "no figures: $*"; }
}
level=
for pml in ob1 bfo; do
    BTL_ARGS=(--mca pml $pml --mca btl openib,self --mca btl_openib_verbose 1)
    waits "$IDLE" wait 0.3
    spinning=$used
    # the message comes in the middle of a sleep of a second: nothing but its completion can end it
    waits --mca btl_openib_blocking_progress 1000 "$IDLE" wait 0.3 $level
    awk "BEGIN { exit !($used * 5 < $spinning) }" || { show_log; fail "$pml: $used ms of processor time asleep, $spinning awake"; }
    [ "$late" -lt 200000 ] || { show_log; fail "$pml: the message came $late us late"; }
    counted 'sleeps [1-9]'
    note "$pml $level: waiting 900 ms costs $spinning ms, with blocking progress $used; a message wakes in $late us"
    level=multiple # bfo with threads
done

# The queue pair of control messages fails with the first request and cannot be brought back: a rail is lost, and service does not spin
# on receives that are flushed as soon as they are posted.
printf 'fatal rail=sr1 op=send payload=0:32\nenomem rail=sr1 op=qp_rtr nth=3-\n' >"$TEST_TMP/plan"
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1 --mca btl_openib_blocking_progress 1000)
on_rails "-n 2 --plan $TEST_TMP/plan --retry-time=100ms" 2 --mca btl_openib_connect_timeout 1 "$IDLE" wait 0.3 || { show_log; fail "no control messages"; }
used=$(sed -n 's/^processor_ms \([0-9.]*\).*/\1/p' "$TEST_TMP/log")
grep -B2 'fatal rail=sr1' "$REPORT" | grep -q '"done": [1-9]' || { show_log; fail "the queue pair of control messages did not fail"; }
awk "BEGIN { exit !(${used:-1e9} * 5 < $spinning) }" || { show_log; fail "waiting beside a broken control queue pair costs $used ms"; }
note "waiting 900 ms beside a broken control queue pair costs $used ms"

BTL_ARGS=(--mca pml ob1 --mca btl openib,self)
run_stream 2 "" 2 --mca btl_openib_blocking_progress 20 --mca btl_openib_use_eager_rdma 1
run_stream 2 "--link-layer=eth" 4 --mca btl_openib_blocking_progress 20 --mca btl_openib_receive_queues S,2048,64,32,16:S,65792,16,8,4
cut_stream "1 0" 3 3 100000 --mca btl_openib_blocking_progress 100
exit 0
