#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# What the user can get wrong: one message names the mistake, then the job uses fewer rails or ends cleanly. It never
# crashes and never hangs.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components btl

# Statuses 124 and 137 mean that the job hung. ob1 ends a job with 255 when it loses its transport.
in_time() { [ "$1" != 124 ] && [ "$1" != 137 ]; }
crashed() { grep -E 'signal 1?1|Segmentation|Aborted|core dumped' "$TEST_TMP/log"; }

# job_says TEXT OPTIONS ARGUMENTS...: the job ends in time, without a crash, and says TEXT once.
job_says() {
    local text=$1 options=$2 rc count
    shift 2
    ends_refused "$text" "$TEST_TMP/log" on_rails "$options" 2 "$@" "$STREAM" -s 1
    rc=$?
    in_time $rc || { show_log; fail "'$text': ended with $rc"; }
    crashed && fail "'$text': crashed"
    count=$(tr '\n' ' ' <"$TEST_TMP/log" | grep -oE "$text" | wc -l)
    [ "$count" -ge 1 ] || { show_log; fail "'$text' was not said"; }
    note "$text (exit $rc)"
    return $rc
}

job_says 'No port of this machine matches' "-n 2" --mca btl_openib_if_include nosuch && fail "ran without a port"
job_says 'names a device that this machine does not have' "-n 2" --mca btl_openib_if_include nosuch,sr1 || fail "one rail was left"
job_says 'btl_openib_if_exclude has a value' "-n 2" --mca btl_openib_if_include sr0 --mca btl_openib_if_exclude sr1 && fail "accepted"
job_says 'btl_openib_receive_queues has a value' "-n 2" --mca btl_openib_receive_queues P,1 && fail "accepted"
job_says 'btl_openib_ib_timeout has a value' "-n 2" --mca btl_openib_ib_timeout 99 && fail "accepted"
job_says 'btl_openib_gid_index has a value' "-n 2" --mca btl_openib_gid_index 256 && fail "accepted"
for list in sr0:1 sr0:1= =east sr0:1=east,,sr1:1=west; do
    job_says 'btl_openib_fabrics has a value' "-n 2" --mca btl_openib_fabrics $list && fail "accepted: $list"
done
job_says 'names a port that the BTL openib does not use here: *sr1:2=west ' "-n 2" --mca btl_openib_fabrics sr0:1=east,sr1:2=west,sr7:1=east || fail "a port that is not there ended the job"
job_says 'The port sr0:1 has no such partition key' "-n 2" --mca btl_openib_pkey 0x1234 && fail "ran without a port"
tr '\n' ' ' <"$TEST_TMP/log" | grep -q 'The port sr1:1 has no such partition key' || { show_log; fail "the second port's text is hidden by the first's"; }
job_says 'btl_openib_mtu is accepted and not used' "-n 2" --mca btl_openib_mtu 3 || fail "an old parameter ended the job"

# rank_1_with NAME=VALUE "softrail options" TEXT: the second of two ranks has this parameter, and the job prints TEXT; sets rc.
rank_1_with() {
    # shellcheck disable=SC2016
    ends_refused "$3" "$TEST_TMP/log" \
        on_rails "$2" 2 bash -c '[ "$OMPI_COMM_WORLD_RANK" = 1 ] && export "OMPI_MCA_$1"; shift; exec "$@"' one "$1" "$STREAM" -s 1
    rc=$?
    in_time $rc || { show_log; fail "rank 1 with $1: ended with $rc"; }
    crashed && fail "rank 1 with $1: crashed"
    told "$3"
}

# told TEXT: the last job printed TEXT.
told() {
    tr '\n' ' ' <"$TEST_TMP/log" | grep -q "$1" || { show_log; fail "'$1' was not said"; }
    note "$1 (exit $rc)"
}

rank_1_with btl_openib_max_btls=1 "-n 2" 'the other ports stay idle'
[ $rc = 0 ] || { show_log; fail "ranks with different numbers of rails ended with $rc"; }
rails_carried 1000000 1

rank_1_with btl_openib_test_record_version=2 "-n 2" 'do not understand each other'
[ $rc != 0 ] || fail "a peer of another version was used"

rank_1_with btl_openib_receive_queues=P,65792,16 "-n 2" 'have different receive queues'
[ $rc != 0 ] || fail "different receive queues were used"

# The names of the rails would differ: the processes refuse each other, because the hashes of their lists differ. Under ob1 a rail that does
# not connect ends the job after 12 times the connect timeout.
OMPI_MCA_btl_openib_connect_timeout=1 rank_1_with btl_openib_rail_map=sr0:1-sr1:1 "-n 2 --default-prefix" 'computed different lists of rails'
[ $rc != 0 ] || fail "different rail maps were used"

# The status of mpirun when a job ends in MPI_Init, and when it ends in its first message.
case $OMPI_VERSION in
4.*) in_init=1 in_job=255 ;;
*) in_init=14 in_job=14 ;;
esac
# Too little memory that can be locked.
(ulimit -l 64 && job_says 'cannot lock memory' "-n 2 --memlock")
[ $? = $in_init ] || fail "no locked memory: not told, or the job ran"
# Enough for the ports, too little for the queues of a connection.
(ulimit -l 2000 && job_says 'cannot lock memory' "-n 2 --memlock" --mca btl_openib_receive_queues P,2048,64,32,16:P,12544,12:P,65792,4)
[ $? = $in_job ] || fail "locked memory for ports only: not told, or the job ran"

# All ports down before the start.
first down sr0 sr1
on_rails "-n 2" 2 "$STREAM" -s 1
rc=$?
{ [ $rc != 0 ] && in_time $rc; } || { show_log; fail "no active port: ended with $rc"; }
told 'may use is active'
