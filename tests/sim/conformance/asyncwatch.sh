#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# ibv_asyncwatch sees every event that the softrail command causes, each event exactly once and only on its rail.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/sim/sim.sh"
need ibv_asyncwatch ibverbs-utils

cat > "$TEST_TMP/script" <<'SCRIPT'
stdbuf -oL ibv_asyncwatch -d sr1 > "$1/watch" 2>&1 & watch=$!
# until the process is a member
for i in $(seq 100); do
    LD_PRELOAD= "$SOFTRAIL" status --json | grep -q '"pid": '$watch && break
    sleep 0.1
done
export LD_PRELOAD=
for command in "down sr1" "down sr1" "down sr0" "up sr0" "up sr1" "port-error sr1" "gid sr1" "lid sr1" "down sr1 --process 0" \
               "up sr1 --process 0" "gone sr1"; do
    "$SOFTRAIL" $command || exit 1
done
for i in $(seq 50); do
    [ "$(grep -c event_type "$1/watch")" -ge 8 ] && break
    sleep 0.1
done
kill $watch
SCRIPT
export SOFTRAIL
rails -n 2 -- bash "$TEST_TMP/script" "$TEST_TMP" || fail "a softrail command failed"
sed -n 's/.*event_type \([^(]*\)(.*/\1/p' "$TEST_TMP/watch" | sed 's/ *$//' > "$TEST_TMP/events"
for event in PORT_ERR PORT_ACTIVE PORT_ERR GID_CHANGE LID_CHANGE PORT_ERR PORT_ACTIVE DEVICE_FATAL; do
    echo "IBV_EVENT_$event"
done > "$TEST_TMP/expected"
diff "$TEST_TMP/expected" "$TEST_TMP/events" || fail "other events than expected: $(cat "$TEST_TMP/watch")"
