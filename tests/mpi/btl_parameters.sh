#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Every parameter of the BTL: its effect, as the provider or the rails show it, or the notice that it is not used. The test
# fails if no test of the BTL sets a parameter.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components btl
export OMPI_MCA_btl_openib_verbose=2
TRY=("$BFO_BUILDDIR/tests/mpi/btl_check" everybody)

# run "softrail options" MPIRUN-ARGUMENTS...: two ranks exchange messages; sets rc
run() {
    local options=$1
    shift
    on_rails "$options" 2 "$@" "${TRY[@]}"
    rc=$?
}
# run_until COMMAND "softrail options" mpirun-arguments...: a verified stream of messages up to $MOST bytes
run_until() { stream_until "$1" "$2" 2 "${@:3}" "$STREAM" -s 600 -m "$MOST"; }
bytes() { rail_counter "$REPORT" "$1" tx_bytes; }

# Columns: NAME VALUE (and further parameters), options of softrail, what the log must show (after a minus: must not show), exit status 0 or any other
while IFS='|' read -r name value options expected status; do
    [ -n "$name" ] || continue
    # shellcheck disable=SC2086
    run "$options" --mca "btl_openib_$name" $value
    { [ "$status" = 0 ] && [ $rc != 0 ]; } && { show_log; fail "$name=$value: the job ended with $rc"; }
    { [ "$status" != 0 ] && [ $rc = 0 ]; } && { show_log; fail "$name=$value was accepted"; }
    if [ "${expected#-}" = "$expected" ]; then
        has_said "$expected" || { show_log; fail "$name=$value: not seen: $expected"; }
    else
        has_said "${expected#-}" && { show_log; fail "$name=$value: seen: ${expected#-}"; }
    fi
    note "$name=$value: ${expected}"
done <<'TABLE'
if_include|sr1|-n 2|-sr0:1: infiniband|0
if_include|sr1:1|-n 2|sr1:1: infiniband|0
if_exclude|sr1|-n 2|-sr1:1: infiniband|0
ipaddr_include|fe80::/10|-n 2 --link-layer=eth|sr0:1: ethernet|0
ipaddr_include|10.0.0.0/8|-n 2 --link-layer=eth|No port of this machine matches|1
ipaddr_exclude|fe80::/10|-n 2 --link-layer=eth|-sr0:1: ethernet|1
device_type|infiniband|-n 2|sr0:1: infiniband|0
device_type|ib|-n 2|sr0:1: infiniband|0
device_type|iwarp|-n 2|No port of this machine matches|1
device_type|token-ring|-n 2|btl_openib_device_type has a value|1
max_btls|1|-n 2|-sr1:1: infiniband|0
lanes|2|-n 1|rail 1: sr0:1 - sr0:1|0
lanes|5|-n 1|btl_openib_lanes has a value|1
rail_map|sr0:1-sr0:1|-n 2|rail 0: sr0:1 - sr0:1|0
rail_map|sr0:1-sr0:1|-n 2|-rail 1: sr1:1|0
gid_index|0|-n 2 --link-layer=eth|gid index 0|0
gid_index|7|-n 2 --link-layer=eth|has no GID that can be used|1
gid_prefix_len|48|-n 2 --link-layer=eth|ethernet, gid index 0, prefix 48|0
cpc_include|udcm|-n 2|REQ\(0\) of rail|0
cpc_include|pigeon,udcm|-n 2|REQ\(0\) of rail|0
cpc_include|pigeon,rdmacm|-n 2|cannot make connections by rdmacm|1
cpc_include|pigeon|-n 2|btl_openib_cpc_include has a value|1
cpc_include|rdmacm|-n 2|cause: it needs an IP address as GID, and a port of Ethernet|1
cpc_exclude|udcm|-n 2|cannot make connections by rdmacm|1
ib_timeout|18|-n 1|queue pair .* timeout 18,|0
ib_timeout|0|-n 1|queue pair .* timeout 20,|0
ib_retry_count|5|-n 1|queue pair .* retries 5,|0
ib_rnr_retry|3|-n 1|queue pair .* rnr retries 3,|0
ib_min_rnr_timer|20|-n 1|queue pair .* rnr timer 20,|0
ib_service_level|4|-n 1|queue pair .* sl 4,|0
ib_traffic_class|32|-n 1 --link-layer=eth|queue pair .* class 32,|0
ib_traffic_class|256|-n 1|btl_openib_ib_traffic_class has a value|1
ib_pkey_index|0|-n 1|queue pair .* pkey 0,|0
ib_pkey_index|3|-n 1|has no such partition key|1
pkey|32767|-n 1|pkey index 0|0
pkey|4660|-n 1|has no such partition key|1
ib_mtu|3|-n 1|queue pair .* mtu 3,|0
ib_max_inline_data|64|-n 1|queue pair .* inline 64,|0
max_inline_data|32|-n 1|queue pair .* inline 32,|0
ib_max_rdma_dst_ops|4|-n 1|queue pair .* reads 4,|0
cq_size|6000|-n 1|completion queue of 6000 entries|0
deadline|20|-n 1|btl_openib_deadline has a value|1
soft_deadline|7|-n 1|btl_openib_soft_deadline has a value|1
completion_interval|0|-n 1|btl_openib_completion_interval has a value|1
rd_num|8|-n 1|queue pair .* sends 23,|0
want_fork_support|0|-n 1|fork\(\) is not prepared for|0
want_fork_support|1|-n 1|fork\(\) is prepared for|0
want_fork_support|2|-n 1|fork\(\) is prepared for|0
warn_nonexistent_if|1 --mca btl_openib_if_include sr0,pigeon|-n 1|a device that this machine does not have|0
warn_nonexistent_if|0 --mca btl_openib_if_include sr0,pigeon|-n 1|-a device that this machine does not have|0
allow_ib|0|-n 1|No port of this machine matches|1
test_far_devices|sr1|-n 2|sr1:1: infiniband, .* far|0
test_far_devices|sr1|-n 2|sr1:1: .* latency 5|0
verbose|1|-n 1|-queue pair|0
free_list_num|1000|-n 1|fragments of 256 bytes: 1[0-9][0-9][0-9] to begin with|0
free_list_inc|3|-n 1|fragments of 256 bytes: .* with, 3 at a time|0
TABLE

# The BTL does not use a device that cannot make queue pairs, nor a port that gets none; it prints the reason.
echo "enomem op=create_qp" >"$TEST_TMP/plan"
run "-n 1 --plan=$TEST_TMP/plan"
{ [ $rc != 0 ] && has_said 'devices seen: 1; reason: no reliable connections'; } || { show_log; fail "no queue pairs: exit $rc"; }
echo "enomem op=create_qp nth=2-" >"$TEST_TMP/plan" # the first queue pair shows that the device has such queue pairs
on_rails "-n 1 --plan=$TEST_TMP/plan" 1 "${TRY[@]}"
{ has_said 'sr0:1 could not be prepared' && has_said 'cause: Cannot allocate memory'; } || { show_log; fail "no queue pairs for the port"; }
note "no queue pairs: the reason is given"

# Both sides of a rail use the same path MTU, even if only one side limits it.
# shellcheck disable=SC2016
TRY=(bash -c '[ "$OMPI_COMM_WORLD_RANK" = 1 ] && export OMPI_MCA_btl_openib_ib_mtu=3; exec "$0" everybody' "$BFO_BUILDDIR/tests/mpi/btl_check")
run "-n 1"
{ [ $rc = 0 ] && [ "$(grep -c 'queue pair .* mtu 3,' "$TEST_TMP/log")" = 6 ]; } || { show_log; fail "ib_mtu=3 of rank 1 alone: exit $rc"; }
note "ib_mtu=3 of rank 1 alone: on both sides"

# Far ports carry no small messages, unless locality is ignored; long messages use every port. (With the PML bfo, because ob1 reads a
# long message over one rail.)
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self)
MOVED="has_said 'messages verified' && [ \$(all_bytes) -ge \$((MOST * 5 + 2000000)) ]"
all_bytes() { have_moved 0 2 && echo $(($(rail_counter "$TEST_TMP/status" 0 tx_bytes) + $(rail_counter "$TEST_TMP/status" 1 tx_bytes))) || echo 0; }
MOST=1000
run_until "$MOVED" "-n 2" --mca btl_openib_test_far_devices sr1
near=$(bytes 0) far=$(bytes 1)
[ "$far" -lt $((near / 50)) ] || fail "a far rail carried $far bytes of small messages, the near one $near"
run_until "$MOVED" "-n 2" --mca btl_openib_test_far_devices sr1 --mca btl_openib_ignore_locality 1
near=$(bytes 0) far=$(bytes 1)
[ "$far" -gt $((near / 4)) ] || fail "with ignore_locality the far rail carried $far bytes, the near one $near"
MOST=4000000
run_until "$MOVED" "-n 2" --mca btl_openib_test_far_devices sr1
near=$(bytes 0) far=$(bytes 1)
[ "$far" -gt $((near / 4)) ] || fail "a far rail carried $far bytes of long messages, the near one $near"
note "locality: small messages go near, long ones everywhere ($near and $far bytes)"

# A slow port counts as a far port: its latency grows by one for each doubling of the rate up to the fastest. In either order.
for slow in 1 0; do
    MOST=1000
    run_until "$MOVED" "-n 2 --rate sr$slow=2500M --rate sr$((1 - slow))=10G"
    has_said "sr$slow:1: lane 0, 2500 Mbit/s, latency 6" || { show_log; fail "the latency of a port of 2500 Mbit/s beside one of 10000"; }
    has_said "sr$((1 - slow)):1: lane 0, 10000 Mbit/s, latency 4" || { show_log; fail "the latency of a port of 10000 Mbit/s"; }
    near=$(bytes $((1 - slow))) far=$(bytes $slow)
    [ "$far" -lt $((near / 50)) ] || fail "a slow rail carried $far bytes of small messages, the fast one $near"
    MOST=4000000
    run_until "$MOVED" "-n 2 --rate sr$slow=2500M --rate sr$((1 - slow))=10G"
    near=$(bytes $((1 - slow))) far=$(bytes $slow)
    [ "$far" -gt $((near / 10)) ] || fail "a slow rail carried $far bytes of long messages, the fast one $near"
done
note "rails of 10000 and 2500 Mbit/s: small messages go by the fast one, long ones by both ($near and $far bytes)"

use_components btl
BTL_ARGS=(--mca pml ob1 --mca btl openib,self)

# Parameters of the BTL base, tested with one message of 3,000,000 bytes under ob1. Columns: NAME VALUE, further parameters, what the log
# must show with the parameter and must not show without it. Three parameters have no row: atomic_flags (the BTL has no atomics),
# get_alignment and put_alignment (memory may begin anywhere, and ob1 does not ask). The length of ob1's header differs between releases,
# and therefore the number of bytes that are left to put.
TRY=("$BFO_BUILDDIR/tests/mpi/btl_check" single)
BTL_ARGS=(--mca pml ob1)
export OMPI_MCA_btl=openib,self
declare -A without
while IFS='|' read -r name value others expected; do
    # shellcheck disable=SC2086
    if [ -z "${without[. $others]:-}" ]; then
        run "-n 1" $others
        [ $rc = 0 ] || { show_log; fail "$others: exit $rc"; }
        without[. $others]=$(cat "$TEST_TMP/log")
    fi
    grep -qE -- "$expected" <<<"${without[. $others]}" && fail "$name: seen without it: $expected"
    # shellcheck disable=SC2086
    run "-n 1" $others --mca "btl_openib_$name" "$value"
    { [ $rc = 0 ] && has_said "$expected"; } || { show_log; fail "$name=$value $others: exit $rc, expected: $expected"; }
    note "$name=$value: $expected"
done <<TABLE
flags|send||sends 47, .* gets 0 
eager_limit|4000000|--mca btl_openib_receive_queues P,256,12:P,4194304,4|sends 0, immediate 2, .* gets 0 
max_send_size|8192|--mca btl_openib_flags send|sends 368, 
rndv_eager_limit|4096|--mca btl_openib_flags send,put --mca mpi_leave_pinned 0|puts 2 \(1947328 bytes\)
rdma_pipeline_send_length|500000|--mca btl_openib_flags send,put --mca mpi_leave_pinned 0|puts 3 \(24877[0-9]+ bytes\)
rdma_pipeline_frag_size|100000|--mca btl_openib_flags send,put --mca mpi_leave_pinned 0|puts 20 \(1939[0-9]+ bytes\)
min_rdma_pipeline_size|4000000|--mca btl_openib_flags send,put --mca mpi_leave_pinned 0|puts 3 \(3000000 bytes\)
get_limit|100000||gets 30 \(3000000 bytes\)
put_limit|100000|--mca btl_openib_flags send,put|puts 30 \(3000000 bytes\)
latency|7||latency 7$
bandwidth|1234|| 1234 Mbit/s
exclusivity|100000|--mca btl openib,$SHARED_MEMORY,self|gets 1 \(3000000 bytes\)
TABLE
unset OMPI_MCA_btl
BTL_ARGS=(--mca pml ob1 --mca btl openib,self)

# A put longer than a part is split: more messages for the same bytes.
TRY=("$STREAM" -s 1 -m 4000000)
run "-n 1" --mca btl_openib_max_hw_msg_size 8192
[ $rc = 0 ] || { show_log; fail "max_hw_msg_size=8192: exit $rc"; }
size=$(($(bytes 0) / $(rail_counter "$REPORT" 0 tx_messages)))
[ "$size" -lt 9000 ] || fail "max_hw_msg_size=8192: messages of $size bytes"
note "max_hw_msg_size=8192: messages of $size bytes"

# A shared queue that may not grow.
run "-n 1" --mca btl_openib_receive_queues S,65792,64,60,16,4,2 --mca btl_openib_enable_srq_resize 0
has_said 'shared queue 0 grows to' && { show_log; fail "a shared queue grew with enable_srq_resize=0"; }
note "enable_srq_resize=0: no growth"

# Small messages that wait are not coalesced.
TRY=("$STREAM" -s 1 -m 1000)
run "-n 1" --mca btl_openib_use_message_coalescing 0
has_said 'coalesced [1-9]' && { show_log; fail "messages travelled together with use_message_coalescing=0"; }
note "use_message_coalescing=0: none travel together"

# The limit on fragments of one size: 12 of the smallest size fill a page, and each of the other four sizes has two. Without the limit the
# same stream takes more. (Open MPI adds whole pages.)
FEW=(--mca btl_openib_free_list_num 2 --mca btl_openib_free_list_inc 2)
TRY=("$STREAM" -s 1 -m 200)
run "-n 1" "${FEW[@]}"
{ [ $rc = 0 ] && ! has_said 'fragments 20, '; } || { show_log; fail "free_list_max=-1: exit $rc, no more than 20 fragments"; }
run "-n 1" "${FEW[@]}" --mca btl_openib_free_list_max 12
{ [ $rc = 0 ] && [ "$(grep -c 'fragments 20, ' "$TEST_TMP/log")" = 2 ]; } || { show_log; fail "free_list_max=12: exit $rc"; }
note "free_list_max=12: not more than 20 fragments"
TRY=("$STREAM" -s 1 -m 1000)

# Each message asks for a completion, or one message of several does; with a limit on fragments every message does.
run "-n 1" --mca btl_openib_completion_interval 1
has_said 'silent [1-9]' && { show_log; fail "silent messages with completion_interval=1"; }
run "-n 1" --mca btl_openib_free_list_max 1000
has_said 'silent [1-9]' && { show_log; fail "silent messages with free_list_max=1000"; }
run "-n 1" --mca btl_openib_completion_interval 4
has_said 'silent [1-9]' || { show_log; fail "no silent message with completion_interval=4"; }
note "completion_interval=4: messages that ask for no completion"

# A rail that never connects is given up in time.
MOST=1000
echo "lose rail=sr1 op=send payload=0:32" >"$TEST_TMP/plan"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self)
run_until "has_said 'did not connect in 1 s'" "-n 2 --plan $TEST_TMP/plan" --mca btl_openib_connect_timeout 1
has_said 'did not connect in 1 s' || { show_log; fail "connect_timeout=1: not given up"; }
note "connect_timeout=1: given up"

# Where giving up would end the job, the BTL waits longer: requests are lost for three seconds.
echo "lose op=send payload=0:32 nth=1-10" >"$TEST_TMP/plan"
BTL_ARGS=(--mca pml ob1 --mca btl openib,self)
TRY=("$STREAM" -s 1 -m 1000)
run "-n 1 --plan $TEST_TMP/plan" --mca btl_openib_connect_timeout 1
[ $rc = 0 ] || { show_log; fail "connect_timeout=1 under ob1: exit $rc"; }
note "connect_timeout=1 under ob1: connected late"
# It also waits longer when the requests arrive and the proof of the rail is slow, either the proof of the first side or of the second side,
# which begins its proof when RTU arrives.
echo "delay op=write time=2s nth=1-6" >"$TEST_TMP/plan"
run "-n 1 --retry-time=30s --plan $TEST_TMP/plan" --mca btl_openib_connect_timeout 1
[ $rc = 0 ] || { show_log; fail "connect_timeout=1 under ob1, a slow proof: exit $rc"; }
note "connect_timeout=1 under ob1: proved late"
BTL_ARGS=(--mca pml bfo --mca btl openib,self)

# The BTL destroys the queue pairs of a dead rail after the time-wait; many bring-downs at once take turns.
echo "lose rail=sr1 op=send op=write nth=300 $NO_DATAGRAM" >"$TEST_TMP/plan"
run_until "has_said 'destroyed after 1 s'" "-n 2 --retry-time=100ms --plan $TEST_TMP/plan" --mca btl_openib_time_wait 1
has_said 'destroyed after 1 s' || { show_log; fail "time_wait=1: not destroyed"; }
note "time_wait=1: destroyed"
# A queue pair that cannot be destroyed keeps its resources, and the BTL tries again.
# (The first queue pair of each rank only tried whether the device has reliable connections.)
printf 'lose rail=sr1 op=send op=write nth=300 %s\nenomem op=destroy_qp rail=sr1 nth=3-4\n' "$NO_DATAGRAM" >"$TEST_TMP/plan"
run_until "has_said 'cannot be destroyed' && has_said 'destroyed after 1 s' 2" "-n 2 --retry-time=100ms --plan $TEST_TMP/plan" \
    --mca btl_openib_time_wait 1
has_said 'a queue pair of gen 0 cannot be destroyed' || { show_log; fail "a queue pair that cannot be destroyed was forgotten"; }
has_said 'destroyed after 1 s' || { show_log; fail "a queue pair that could not be destroyed was not tried again"; }
note "a queue pair that cannot be destroyed: tried again"
# All pairs are connected when the port goes down: the first process that notices must inform three peers.
TRY=("$BFO_BUILDDIR/tests/mpi/btl_check" crowd)
echo "down rail=sr1 op=send op=write nth=500" >"$TEST_TMP/plan"
on_rails "-n 2 --retry-time=100ms --plan $TEST_TMP/plan" 4 --mca btl_openib_ctl_rate 1 "${TRY[@]}"
has_said 'bring-down of rail 1 to . waits [0-9]+ ms for its turn' || { show_log; fail "ctl_rate=1: no turns"; }
note "ctl_rate=1: bring-downs take turns"
use_components btl

# Parameters that other versions of the BTL have and this one does not use are accepted, each with a notice.
all=$("$OMPI_INFO" --param btl openib --level 9 --parsable)
ignored=$(sed -n 's/.*param:btl_openib_\([a-z_0-9]*\):help:Accepted and not used.*/\1/p' <<<"$all")
[ "$(wc -w <<<"$ignored")" -gt 20 ] || fail "only these parameters are known and not used: $ignored"
arguments=()
for name in $ignored; do
    arguments+=(--mca "btl_openib_$name" 1)
done
BTL_ARGS=(--mca pml ob1 --mca btl openib,self)
# One silent rank prints them: mpirun passes what a process prints on in pieces of 4,096 bytes, and could cut a notice in two.
TRY=("$BFO_BUILDDIR/tests/mpi/btl_check" everybody)
on_rails "-n 1" 1 "${arguments[@]}" --mca btl_openib_verbose 0 "${TRY[@]}" || { show_log; fail "parameters that are not used ended the job"; }
for name in $ignored; do
    has_said "btl_openib_$name is accepted and not used" || fail "no notice about $name"
done
note "$(wc -w <<<"$ignored") parameters accepted with a notice"

# A row above or a test sets each parameter. (accelerator_... of Open MPI 5.0 concern memory of devices, which does not exist here.)
for name in $(sed -n 's/.*param:btl_openib_\([a-z_0-9]*\):value:.*/\1/p' <<<"$all"); do
    case " $(tr '\n' ' ' <<<"$ignored") atomic_flags get_alignment put_alignment " in
    *[[:space:]]"$name"[[:space:]]*) continue ;;
    esac
    [ "${name#accelerator_}" = "$name" ] || continue
    grep -qE -- "^$name\||(--mca |OMPI_MCA_|rank_1_with )btl_openib_$name[ =]" "$BFO_SRCDIR"/tests/mpi/{btl_*,test_pml_alive,test_pml_rejoin,test_pml_silence}.sh || fail "no test sets the parameter $name"
done
exit 0
