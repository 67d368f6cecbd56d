#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Receive queues of every kind under the verified stream: per peer, shared, mixed; a shared queue grows at its limit
# event; rails are cut over shared queues that several peers use. Devices without shared queues, on both sides and on one.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
QUEUES=--mca\ btl_openib_receive_queues

# shellcheck disable=SC2086
{
run_stream 2 "" 2 $QUEUES S,2048,64,32,16:S,12544,32,16,8:S,65792,16,8,4
run_stream 2 "--link-layer=eth" 4 $QUEUES P,512,32:S,4096,64:S,65792,16
run_stream 1 "" 4 $QUEUES S,65792,64,60,16,4,2 --mca btl_openib_verbose 1
grep -q 'shared queue 0 grows to' "$TEST_TMP/log" || { show_log; fail "a shared queue of 4 buffers did not grow under 3 peers"; }
run_stream 2 "" 2 $QUEUES P,2048,64,32,16:P,12544,12,6,4:P,65792,4,2,2
cut_stream 0 2 2 100000 $QUEUES S,2048,64,32,16:S,12544,32,16,8:S,65792,16,8,4
cut_stream "1 0 3" 4 3 1500 $QUEUES S,65792,16,8,4
cut_stream 1 2 4 1000000 $QUEUES P,512,32:S,2048,64,32,16:S,65792,16,8,4
cut_stream 0 2 2 100000 $QUEUES P,2048,64,32,16:P,12544,12,6,4:P,65792,4,2,2
}

# Without shared queues the job runs with what the user asked for, or with the default, and every peer gets queues of its own.
run_stream 2 --no-srq 3 --mca btl_openib_verbose 2
[ "$(receives)" = "4 12 " ] || { show_log; fail "without shared queues the queue pairs have $(receives)receives"; }
SOFTRAIL_NO_SRQ=1 cut_stream 1 2 3 100000
# One side has shared queues, the other has not: both know this, and use none between them; the other ranks use shared queues.
STREAM_ON=$STREAM
cat >"$TEST_TMP/rank1" <<EOT
#!/bin/bash
[ "\$OMPI_COMM_WORLD_RANK" = 1 ] && export SOFTRAIL_NO_SRQ=1
exec $STREAM_ON "\$@"
EOT
chmod +x "$TEST_TMP/rank1"
STREAM=$TEST_TMP/rank1
run_stream 2 "" 4 --mca btl_openib_verbose 2
[ "$(receives)" = "0 4 12 " ] || { show_log; fail "with shared queues on some sides the queue pairs have $(receives)receives"; }
cut_stream 0 2 4 100000
