#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# What the user can get wrong: one message that names the culprit, then fewer rails or a clean end; never a
# crash, never a hang.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components btl
MPI_TIMEOUT=40
# The texts lie in the source tree as long as nothing is installed.

crashed() { grep -E 'signal 1?1|Segmentation|Aborted|core dumped' "$TEST_TMP/log"; }

# says TEXT OPTIONS ARGUMENTS...: the job ends in time, without a crash, and says TEXT once.
says() {
    local text=$1 options=$2 rc count
    shift 2
    on_rails "$options" 2 "$@" "$STREAM" -s 1
    rc=$?
    [ $rc -lt 124 ] || { show_log; fail "'$text': ended with $rc"; }
    crashed && fail "'$text': crashed"
    count=$(tr '\n' ' ' <"$TEST_TMP/log" | grep -oE "$text" | wc -l)
    [ "$count" -ge 1 ] || { show_log; fail "'$text' was not said"; }
    note "$text (exit $rc)"
    return $rc
}

says 'No port of this machine matches' "-n 2" --mca btl_openib_if_include nosuch && fail "ran without a port"
says 'names a device that this machine does not have' "-n 2" --mca btl_openib_if_include nosuch,sr1 || fail "one rail was left"
says 'btl_openib_if_exclude has a value' "-n 2" --mca btl_openib_if_include sr0 --mca btl_openib_if_exclude sr1 && fail "accepted"
says 'btl_openib_receive_queues has a value' "-n 2" --mca btl_openib_receive_queues P,1 && fail "accepted"
says 'btl_openib_ib_timeout has a value' "-n 2" --mca btl_openib_ib_timeout 99 && fail "accepted"
says 'btl_openib_mtu is accepted and not used' "-n 2" --mca btl_openib_mtu 3 || fail "an old parameter ended the job"

# Ranks with different numbers of rails: fewer rails.
on_rails "-n 2" 1 "$STREAM" -s 1 : --oversubscribe --bind-to none -np 1 "${BTL_ARGS[@]}" --mca btl_openib_max_btls 1 "$STREAM" -s 1
[ $? -lt 124 ] || { show_log; fail "different numbers of rails hang"; }
