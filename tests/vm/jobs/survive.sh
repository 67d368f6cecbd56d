#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1: survive.sh FAULT...: pml bfo over our openib BTL on two kernel rails, a verified stream through each
# fault, and with VM_REAL=yes programs nobody here wrote through it too (VM_REAL=only: those alone): those of VM_PROGRAMS,
# NetPIPE in integrity mode, hpcc, ScaLAPACK's LU test. A row per fault; 1 if one is not survived, or a rail was given up
# by a fault that is none of a rail ("kept" below).
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"
. "$here/traffic.sh"
stack 'pml bfo, our btl openib'

# must_keep FAULT: no rail may be given up by it.
must_keep() { case $1 in 'machine paused 3 s' | 'loss 1 %' | 'path flap 0.4 s' | 'no fault') ;; *) false ;; esac; }

# must_lose FAULT: a rail is lost by it, or it hit nothing.
must_lose() { case $1 in 'link down'* | carrier* | 'loss 100'* | 'lost ack'*) ;; *) false ;; esac; }

# counters: the sums of both ranks that are not 0.
counters() {
    sed -n 's/^counters of rank [0-9]*://p' "$log" |
        awk '{ for (i = 1; i < NF; i += 2) { if (!($i in sum)) order[++n] = $i; sum[$i] += $(i + 1) } }
             END { for (i = 1; i <= n; i++) if (sum[order[i]]) printf "%s%s %d", (k++ ? ", " : ""), order[i], sum[order[i]] }'
}
lost_rails() { grep -c '^A rail was lost:' "$log"; }

stream_row() {
    through "$1" "$BFO_VM_OUT/$(echo "stream-$1" | tr -c 'a-z0-9\n' _).log" "${args[@]}"
    warned=$(lost_rails)
    [ "$outcome" = survived ] || bad=$((bad + 1))
    must_lose "$1" && [ "$warned" = 0 ] && { outcome='hit nothing' bad=$((bad + 1)); }
    must_keep "$1" && [ "$warned" != 0 ] && { outcome='rail given up' bad=$((bad + 1)); }
    stream=$outcome stall=$took counted=$(counters)
    [ "$outcome" = survived ] || { grep -v '^round' "$log" | tail -n 8 >&2; tail -n 1 "$log" >&2; }
}

# program NAME: prepares it in the present folder: $command, its $process; begun, enough and verified ask its output. hpcc is
# ended where it only measures: on emulated machines its rings of 2 MB take longer than all the rest.
LU=$(echo /usr/lib/*/scalapack/openmpi-tests/xdlu)
program() {
    enough() { false; }
    case $1 in
    NetPIPE)
        command=(NPopenmpi -i -n 12 -u 1048576 -o /run/np.out) process=NPopenmpi
        begun() { [ "$(grep -c 'Integrity check passed' "$log")" -ge 12 ]; }
        verified() { [ "$(grep -c 'Integrity check passed' "$log")" -ge 36 ] && ! grep -qi fail "$log"; } ;;
    hpcc)
        command=(hpcc) process=hpcc
        rm -f hpccoutf.txt
        sed 's/^2            Ps/1            Ps/; s/^1000         Ns/200          Ns/' /usr/share/doc/hpcc/examples/_hpccinf.txt >hpccinf.txt
        begun() { grep -q '^Begin of' hpccoutf.txt 2>/dev/null; }
        enough() { grep -q '^Begin of LatencyBandwidth' hpccoutf.txt; }
        verified() {
            [ "$(grep -c 'Found 0 errors' hpccoutf.txt)" -ge 4 ] && grep -q '^End of MPIFFT' hpccoutf.txt &&
                grep -q '^ *0 tests completed and failed residual' hpccoutf.txt &&
                ! grep -qE 'Found [1-9][0-9]* errors|[1-9][0-9]* tests completed and failed|FAILED' hpccoutf.txt
        } ;;
    ScaLAPACK)
        command=("$LU") process=xdlu
        awk '/number of process grids/ { print "1 number of process grids"; one = 1; next } /values of P/ && one { print "1 values of P"; next }
            /values of Q/ && one { print "2 values of Q"; next } { print }' "${LU%/*}/LU.dat" >LU.dat
        begun() { [ "$(grep -c 'PASSED' "$log")" -ge 3 ]; }
        verified() { grep -q 'END OF TESTS' "$log" && grep -q '^ *0 tests completed and failed residual' "$log"; } ;;
    *) echo "no such program: $1" >&2; return 1 ;;
    esac
}

# programs_through FAULT: unless the caller says which
programs_through() {
    case $1 in
    'link down'* | 'loss 100 %, one way' | 'lost ack'*) echo NetPIPE hpcc ScaLAPACK ;;
    *) echo NetPIPE ;;
    esac
}

# felt FAULT: the rail is lost, if it has to be; the timers take seconds to say so.
felt() { ! must_lose "$1" || [ "$(lost_rails)" != 0 ]; }

# real_row FAULT PROGRAM: one nobody here wrote: the fault comes while it runs, and its own verification has to pass.
real_row() {
    local status=0 begin rail outcome=-
    log=$BFO_VM_OUT/$(echo "$2-$1" | tr -c 'A-Za-z0-9\n' _).log
    mkdir -p "$BFO_VM_OUT/$2" && cd "$BFO_VM_OUT/$2" && program "$2" || { bad=$((bad + 1)); return; }
    begin=$SECONDS
    timeout 700 "$MPIRUN" --bind-to none -np 2 -H node1,node2 "${args[@]}" "${command[@]}" >"$log" 2>&1 </dev/null &
    job=$!
    wait_for 100 eval 'begun || ! running'
    rail=$(busy_rail)
    if running; then
        inject "$1" "$rail" || outcome='no fault'
    else
        outcome='ended too early'
    fi
    wait_for 700 eval '{ enough && felt "$fault"; } || ! running'
    running && kill $job
    wait $job || status=$?
    enough && status=0
    must_lose "$1" && [ "$outcome" = - ] && [ "$(lost_rails)" = 0 ] && outcome='hit nothing'
    if [ "$outcome" = - ] && [ $status = 0 ] && verified; then
        outcome="ok, $((SECONDS - begin)) s"
    else
        [ "$outcome" = - ] && outcome="FAILED ($status)"
        bad=$((bad + 1))
        tail -n 5 "$log" >&2
    fi
    real="${real:+$real; }$2 $outcome"
    for n in node1 node2; do node_run $n "pkill -KILL -x $process; pkill -KILL -x orted; true"; done
    heal || echo "(the rails did not heal)"
}

# A rank of the other machine is killed under mpirun --enable-recovery: its partner's requests end with MPI_ERR_OTHER,
# and another pair of ranks, between the same machines, does not notice.
killed_row() {
    local n before
    stream='bad start' stall=- warned=- counted=
    if start_job "$BFO_VM_OUT/killed.log" "$MPIRUN" --enable-recovery --bind-to none -np 4 --map-by node -H node1:2,node2:2 "${args[@]}" "$VM_TRAFFIC" 100000; then
        kill_rank 3 || echo "(no rank was killed)"
        wait_for 60 grep -q '^rank 2: peer 3: MPI_ERR_OTHER' "$log"
        before=$(rounds)
        wait_for 10 eval '[ "$(rounds)" -gt '$((before + 4))' ]' && stream='the rest ran on'
        grep -q '^rank 2: peer 3: MPI_ERR_OTHER' "$log" || stream='no MPI_ERR_OTHER'
        stall=$(sed -n 's/^rank 2: peer 3: .* after \([0-9.]*\) s$/\1/p' "$log")
        pkill -USR2 -x vm_traffic
        wait_for 30 grep -q '^ok: rank 0: .* 0 wrong' "$log" || stream="no good end"
        warned=$(lost_rails) counted=$(counters)
    fi
    [ "$stream" = 'the rest ran on' ] || { bad=$((bad + 1)); grep -v '^round' "$log" | tail -n 12 >&2; }
    outcome=killed
    end_job
}

[ "${VM_HEADING:-yes}" = no ] ||
    printf '%-22s| %-13s| %7s | %-8s| %-50s| %s\n' fault stream 'stall s' warnings 'counters of both ranks' 'verified by themselves'
for fault in "$@"; do
    stream=- stall=- warned=- counted=- real=
    if [ "$fault" = 'peer killed' ]; then
        killed_row
    else
        [ "${VM_REAL:-no}" = only ] || stream_row "$fault"
        [ "${VM_REAL:-no}" = no ] || for name in ${VM_PROGRAMS:-$(programs_through "$fault")}; do real_row "$fault" "$name"; done
    fi
    printf '%-22s| %-13s| %7s | %-8s| %-50s| %s\n' "$fault" "$stream" "$stall" "$warned" "${counted:-all 0}" "${real:--}"
done
finish
