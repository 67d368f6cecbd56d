#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# What progress costs. The BTL polls a rail without traffic rarely, and a busy rail always. With btl_openib_blocking_progress a
# process that waits sleeps, a message wakes it at once, and a verified stream outlives lost rails. While both ranks are outside MPI no rail
# carries a packet, also after a rail was silent and came back.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
IDLE=$BFO_BUILDDIR/tests/mpi/btl_idle

# Small messages do not use the far rail sr1; the counters are sums over all ranks. A pass that takes a message takes it from the
# busy rail, and leaves the idle rail out seven times of eight: however slow the machine is, each ping counts for both ranks.
PINGS=20000
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1)
on_rails "-n 2" 2 --mca btl_openib_test_far_devices sr1 "$IDLE" quiet $PINGS || { show_log; fail "the quiet rail"; }
rails_carried 1000000 2
skipped() { sed -n "s/.*bfo: $1:1: .* polls skipped \([0-9]*\),.*/\1/p" "$TEST_TMP/log" | awk '{ n += $1 } END { print n + 0 }'; }
busy=$(skipped sr0) idle=$(skipped sr1)
# (On a loaded machine the busy rail is idle as well, whenever the peer does not run.)
[ $((idle - busy)) -gt $PINGS ] || { show_log; fail "the busy rail was left out $busy times, the idle one $idle"; }
note "polls left out: busy rail $busy, idle rail $idle"

# waits MPIRUN-ARGUMENTS...: sets used (ms of processor time in 900 ms or more) and late (us)
waits() {
    on_rails "-n 2" 2 "$@" || { show_log; fail "waiting: $*"; }
    read -r _ used _ _ _ late <<<"$(grep '^processor_ms' "$TEST_TMP/log")"
    [ -n "${late:-}" ] || { show_log; fail "no figures: $*"; }
}
# is_asleep WHAT: the process has used less than 100 ms of processor time. A process that sleeps uses 0.3 to 1 ms, a process that polls
# about 600 to 900 ms where nothing else runs. (No test compares with a process that polls, because it yields to programs that compute.)
is_asleep() { awk "BEGIN { exit !(${used:-1e9} < 100) }" || { show_log; fail "$1 costs $used ms of processor time"; }; }
level=
for pml in ob1 bfo; do
    BTL_ARGS=(--mca pml $pml --mca btl openib,self --mca btl_openib_verbose 1)
    # the message comes during a sleep that only its completion can end: without the completion the job hangs
    waits --mca btl_openib_blocking_progress 1000 "$IDLE" sleep 0.3 "$TEST_TMP/sleeps-$pml" $level
    is_asleep "$pml: waiting with blocking progress"
    counted 'sleeps [1-9]'
    note "$pml $level: waiting 900 ms with blocking progress costs $used ms; a message wakes in $late us"
    level=multiple # bfo with threads
done

# Questions about slow rails and about the silent rail, the proof and the probation of the rail that came back: all of them end.
counters() { "$SOFTRAIL" status --json --fabric "$FABRIC" | grep -E '"([rt]x_(messages|bytes)|retries)":' | tr -d ' \n'; }
# rest SECONDS: the counters do not change for so long. Sets seen.
rest() {
    seen=$(counters)
    sleep "$1"
    [ -n "$seen" ] && [ "$(counters)" = "$seen" ]
}
act() { "$SOFTRAIL" "$1" --fabric "$FABRIC" 1 || { show_log; fail "rail 1: $1"; }; }
both() { await "$LOG" "$1" 2 || { show_log; fail "not said by both ranks: $1"; }; }
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1 --mca pml_bfo_verbose 1)
begin_stream "-n 2 --rate=200M --retry-time=600s" 2 --mca btl_openib_rejoin_after 100 "$IDLE" outside "$TEST_TMP/outside"
wait_until "have_moved 3000000 2"
act silent
both 'rail 1 generation 0 (.*) lost: '
act up
both 'rail 1 generation [1-9].* carries short messages again'
touch "$TEST_TMP/outside"
both '^rank . is outside MPI'
for try in $(seq 30); do
    ! rest 1 || break
done
rest 3 || { show_log; fail "packets while nobody waits: $seen, then $(counters)"; }
touch "$TEST_TMP/outside.2"
passes "outside MPI" '^rank . is back'
note "no packet while both ranks are outside MPI, after $try s"

# The queue pair of control messages fails with the first request and cannot be made usable again: a rail is lost, and service does not
# spin on receives that are flushed as soon as they are posted.
printf 'fatal rail=sr0 op=send payload=0:32\nenomem rail=sr0 op=qp_rtr nth=3-\n' >"$TEST_TMP/plan"
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1 --mca btl_openib_blocking_progress 1000)
on_rails "-n 2 --plan $TEST_TMP/plan --retry-time=100ms" 2 --mca btl_openib_connect_timeout 1 "$IDLE" wait 0.3 || { show_log; fail "no control messages"; }
used=$(sed -n 's/^processor_ms \([0-9.]*\).*/\1/p' "$TEST_TMP/log")
grep -B2 'fatal rail=sr0' "$REPORT" | grep -q '"done": [1-9]' || { show_log; fail "the queue pair of control messages did not fail"; }
is_asleep "waiting with a broken control queue pair"
note "waiting 900 ms with a broken control queue pair costs $used ms"

BTL_ARGS=(--mca pml ob1 --mca btl openib,self)
run_stream 2 "" 2 --mca btl_openib_blocking_progress 20 --mca btl_openib_use_eager_rdma 1
run_stream 2 "--link-layer=eth" 4 --mca btl_openib_blocking_progress 20 --mca btl_openib_receive_queues S,2048,64,32,16:S,65792,16,8,4
cut_stream "1 0" 3 3 100000 --mca btl_openib_blocking_progress 100
exit 0
