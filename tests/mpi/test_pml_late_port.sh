#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A port that is down when the job starts: if btl_openib_if_include names the port, the job starts without its rail, says so, and uses the
# rail after the cable was plugged in. A port that is not named is left out. A job without any active port ends with a message, although
# its ports are named.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1 --mca btl_openib_rejoin_after 50)
log=$TEST_TMP/log

# The cables of $CUT are pulled before mpirun starts.
real=$MPIRUN
cat >"$TEST_TMP/mpirun" <<END
#!/bin/bash
for rail in \$CUT; do
    "$SOFTRAIL" down --fabric "$FABRIC" \$rail || exit 99
done
exec "$real" "\$@"
END
chmod +x "$TEST_TMP/mpirun"
MPIRUN=$TEST_TMP/mpirun
give_up() { tail -n 40 "$log"; fail "$1"; }

export CUT=sr1
begin_stream "-n 2" 2 --mca btl_openib_if_include sr0,sr1:1 "$STREAM" -s 600 -m 300000
wait_until "have_moved 100000 1 && has_said 'messages verified'"
has_said 'The port sr1:1 is down. The job starts without it' || give_up "not said that the port is down"
has_said ' rail 1: sr1:1 - sr1:1' 2 || give_up "the port that is down makes no rail"
"$SOFTRAIL" up --fabric "$FABRIC" sr1 || give_up "sr1 cannot be plugged in"
wait_until "have_moved 1000000 2"
end_stream
verified "the port came up while the job ran"
rails_carried 1000000 2
has_said 'A rail is back: .*rail 1 from sr1:1' || give_up "not said that the rail is used now"

for include in "" "--mca btl_openib_if_include sr0"; do
    # shellcheck disable=SC2086
    begin_stream "-n 2" 2 $include "$STREAM" -s 600 -m 300000
    wait_until "have_moved 100000 1 && has_said 'messages verified'"
    end_stream
    verified "the port is not named (${include:-no list})"
    ! has_said ' rail 1: ' || give_up "a port that nobody named was taken in"
done

CUT="sr0 sr1"
! timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run -n 2 --name "$FABRIC" -- "$TEST_TMP/mpirun" --oversubscribe -np 2 \
    "${BTL_ARGS[@]}" --mca btl_openib_if_include sr0,sr1 "$STREAM" -s 600 >"$log" 2>&1 </dev/null || give_up "a job ran without any port"
has_said 'None of the 2 port.* that the BTL openib may use is active' || give_up "no message that names the reason"
exit 0
