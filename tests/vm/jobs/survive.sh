#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1: survive.sh FAULT...: pml bfo over our openib BTL on two kernel rails: a verified stream through each fault,
# and with VM_REAL=yes programs of other authors as well (VM_REAL=only: only these programs): those of VM_PROGRAMS, otherwise
# NetPIPE in integrity mode, and hpcc and ScaLAPACK's LU test for a rail that is lost for good. A row per fault and program. The
# status is 1 if a program does not survive, if a rail was given up for a fault that is not a rail's, if the stream does not use both
# rails again after a fault that is over, or if a fault hit nothing.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"
. "$here/traffic.sh"

# must_keep FAULT: no rail may be given up because of it.
must_keep() { case $1 in 'machine paused 3 s' | 'loss 1 %' | *', 7.5 s' | *', one rail'* | 'no fault') ;; *) false ;; esac; }

# must_lose FAULT: a rail must be lost; otherwise the fault hit nothing.
must_lose() { case $1 in 'link '* | carrier* | 'loss 100'* | 'lost ack'* | address* | *', 1.9 s') ;; *) false ;; esac; }

# must_return FAULT: both rails must be in use again afterwards.
must_return() { case $1 in *', one rail'*) false ;; *flap* | *'away for 3 s' | address* | 'machine paused'*) ;; *) false ;; esac; }

# counters: the sums over all ranks, as vm_traffic or else bfo prints them, without sums of 0.
counters() {
    local by='.*bfo: rank [0-9]* counters:'
    grep -q '^counters of rank' "$log" && by='^counters of rank [0-9]*:'
    sed -n "s/$by//p" "$log" | tr -d , |
        awk '{ for (i = 1; i < NF; i += 2) { if (!($i in sum)) order[++n] = $i; sum[$i] += $(i + 1) } }
             END { want = " errors resends restarts duplicate stale rails_lost peers_lost "
                   for (i = 1; i <= n; i++) if (sum[order[i]] && index(want, " " order[i] " ")) printf "%s%s %d", (k++ ? ", " : ""), order[i], sum[order[i]] }'
}
lost_rails() { grep -c 'A rail was lost:' "$log"; }

# evidence FAULT: sets $felt to what shows that the fault hit the program; returns 1 if nothing does. $dropped, $stall and $killed are set.
evidence() {
    felt=
    [ "$warned" = 0 ] || felt='rail lost'
    ! filtered "$1" || [ "$dropped" = 0 ] || felt="${felt:+$felt, }$dropped packets dropped"
    case $1 in 'machine paused'* | *'away for 3 s') awk "BEGIN { exit !($stall >= 2.5) }" 2>/dev/null && felt="${felt:+$felt, }stood still" ;; esac
    [ "$1" != 'no fault' ] || felt=-
    case $1 in 'peer killed'*) felt=${killed:+rank killed} ;; esac
    must_lose "$1" && [ "$warned" = 0 ] && felt=
    [ -n "$felt" ]
}

# row FAULT PROGRAM GOOD: judges and prints $outcome; if it is not GOOD, prints the end of the log and the rails' counters.
row() {
    warned=$(lost_rails) counted=${counted:-$(counters)}
    evidence "$1" || { felt=nothing; [ "$outcome" = "$3" ] && outcome='hit nothing'; }
    must_keep "$1" && [ "$warned" != 0 ] && [ "$outcome" = "$3" ] && outcome='rail given up'
    [ "$2" = stream ] && must_return "$1" && [ "$in_use" != 2 ] && [ "$outcome" = "$3" ] && outcome='rail not used'
    printf '%-28s| %-10s| %-15s| %6s | %8s | %5s | %-31s| %s\n' "$1" "$2" "$outcome" "$stall" "$warned" "$in_use" "$felt" "${counted:-all 0}"
    counted=
    [ "$outcome" = "$3" ] && return
    bad=$((bad + 1))
    grep -E 'A rail was lost:|The PML bfo cannot|^rank|WRONG' "$log" | tail -n 30 >&2
    rail_counters >&2
}

stream_row() {
    local count_rails=
    must_return "$1" && count_rails=2
    through "$1" "$BFO_VM_OUT/$(echo "stream-$1" | tr -c 'a-z0-9\n' _).log" "${args[@]}"
    stall=$took
    row "$1" stream survived
}

# program NAME [FAULT]: prepares the program in the present folder: sets $command and $process, and defines begun, enough and verified, which
# look at its output. hpcc is ended where it only measures, because on emulated machines its rings of 2 MB take longer than everything else.
LU=$(echo /usr/lib/*/scalapack/openmpi-tests/xdlu)
program() {
    enough() { false; }
    case $1 in
    NetPIPE)
        command=(NPopenmpi -i -n 24 -u 1048576 -o /run/np.out) process=NPopenmpi
        begun() { [ "$(grep -c 'Integrity check passed' "$log")" -ge 12 ]; }
        verified() { [ "$(grep -c 'Integrity check passed' "$log")" -ge 36 ] && ! grep -qi "check failed" "$log"; } ;;
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

# programs_through FAULT: the programs for this fault, unless VM_PROGRAMS names them
programs_through() {
    case $1 in
    'link down'* | carrier* | 'loss 100'* | 'lost ack'*) echo NetPIPE hpcc ScaLAPACK ;;
    *) echo NetPIPE ;;
    esac
}

# arrivals: until it is killed, writes into /run/stall the longest time in us in which no message came to node1 over any rail.
arrivals() {
    local file sum x now at=${EPOCHREALTIME/./} last=-1 longest=0
    echo 0 >/run/stall
    exec 7<> <(:)
    while :; do
        sum=0
        for file in /sys/class/infiniband/rxe*/ports/1/hw_counters/rdma_recvs; do
            read -r x <"$file" && sum=$((sum + x))
        done
        now=${EPOCHREALTIME/./}
        if [ $sum != $last ]; then
            [ $((now - at)) -le $longest ] || { longest=$((now - at)); echo $longest >/run/stall; }
            last=$sum at=$now
        fi
        read -r -t 0.05 <&7
    done
}

# start_program FAULT NAME MPIRUN-ARGUMENTS...: starts the program in the background; returns when it moves data ($job, $log).
start_program() {
    log=$BFO_VM_OUT/$(echo "$2-$1" | tr -c 'A-Za-z0-9\n' _).log
    mkdir -p "$BFO_VM_OUT/$2" && cd "$BFO_VM_OUT/$2" && program "$2" || return 1
    timeout 400 "$MPIRUN" --bind-to none "${@:3}" "${args[@]}" "${command[@]}" >"$log" 2>&1 </dev/null &
    job=$!
    wait_for 100 eval 'begun || ! running'
}

# end_program: ends all processes of the program. Sets $status, and $stopped if the program was still running on both nodes.
end_program() {
    local node alive="pgrep -r R,S,D -x $process >/dev/null"
    status=0 stopped=
    if running; then
        node_run node1 "$alive" && node_run node2 "$alive" && stopped=yes
        kill $job || stopped=
    fi
    wait $job || status=$?
    for node in node1 node2; do
        node_run $node "pkill -KILL -x $process; pkill -KILL -x vm_traffic; pkill -KILL -x orted; true"
    done
}

# real_row FAULT PROGRAM: the fault comes while the program runs, and the program's own verification must pass.
real_row() {
    local rail sampler
    outcome='bad start' stall=- dropped=0 in_use=-
    if start_program "$1" "$2" -np 2 -H node1,node2; then
        rail=$(busy_rail "$1")
        arrivals &
        sampler=$!
        if ! running; then
            outcome='ended too early'
        elif ! inject "$1" "$rail"; then
            outcome='no fault'
        else # the timers take seconds to find out that a rail is lost
            outcome=
            wait_for 300 eval '{ enough && { ! must_lose "$fault" || [ "$(lost_rails)" != 0 ]; }; } || ! running'
        fi
        kill $sampler
        wait $sampler 2>/dev/null
        stall=$(awk '{ printf "%.3f", $1 / 1e6 }' /run/stall)
        dropped=$(swallowed_all)
    fi
    end_program
    [ -n "$stopped" ] && enough && status=0 counted='(ended before it tells)'
    if [ -z "$outcome" ]; then
        outcome="FAILED ($status)"
        [ $status = 0 ] && verified && outcome=verified
    fi
    row "$1" "$2" verified
    heal || echo "(the rails did not heal)"
}

# kill_peer RANK: sets $killed if it is dead.
kill_peer() {
    if kill_rank "$1"; then killed=yes; else echo "(no rank was killed)"; fi
}

# A rank of the other machine is killed under mpirun --enable-recovery: its partner's requests end with MPI_ERR_OTHER,
# and another pair of ranks between the same machines is not affected.
killed_row() {
    local before
    outcome='bad start' stall=- dropped=0 in_use=- killed=
    if start_job "$BFO_VM_OUT/killed.log" "$MPIRUN" --enable-recovery --bind-to none -np 4 --map-by node -H node1:2,node2:2 "${args[@]}" "$VM_TRAFFIC" 100000; then
        kill_peer 3
        wait_for 300 grep -q '^rank 2: peer 3: MPI_ERR_OTHER' "$log"
        before=$(rounds)
        wait_for 120 eval '[ "$(rounds)" -gt '$((before + 4))' ]' && outcome='rest ran on'
        grep -q '^rank 2: peer 3: MPI_ERR_OTHER' "$log" || outcome='no MPI_ERR_OTHER'
        stall=$(sed -n 's/^rank 2: peer 3: .* after \([0-9.]*\) s$/\1/p' "$log")
        pkill -USR2 -x vm_traffic
        wait_for 120 grep -q '^ok: rank 0: .* 0 wrong' "$log" || outcome="no good end"
    fi
    end_killed=$outcome
    outcome=killed
    end_job
    outcome=$end_killed
    row "$1" stream 'rest ran on'
}

# A program that handles no errors cannot continue without its peer: it must end, and bfo must name the peer. (Open MPI 4.1.4 loses its
# own text about MPI_ERR_OTHER, "Out of resource in show_help.c", when a rank of the job was killed before.) The job does not wait for a
# rail, because no other process of the peer's node could say that the peer is dead.
killed_program() {
    local begin
    outcome='bad start' stall=- dropped=0 in_use=- killed=
    if start_program "$1" NetPIPE --enable-recovery --mca pml_bfo_last_rail_timeout 0 -np 2 -H node1,node2; then
        begin=${EPOCHREALTIME/./}
        kill_peer 1
        outcome=hangs
        if wait_for 300 eval '! running'; then
            stall=$(awk "BEGIN { printf \"%.3f\", (${EPOCHREALTIME/./} - $begin) / 1e6 }")
            outcome='peer not named'
            grep -q 'The PML bfo cannot reach a process any more: .* to rank 1 on ' "$log" && outcome='ends, named'
        fi
    fi
    end_program
    verified && outcome='not hit' # mpirun --enable-recovery ends with 0 whatever became of the ranks
    row "$1" NetPIPE 'ends, named'
}

# Ranks that do not need the killed rank: LU runs on a grid of ranks 0 and 1 while rank 3, which waits outside the grid, is killed.
killed_bystander() {
    outcome='bad start' stall=- dropped=0 in_use=- killed=
    if start_program "$1" ScaLAPACK --enable-recovery -np 4 --map-by node -H node1:2,node2:2; then
        local sampler
        arrivals &
        sampler=$!
        kill_peer 3
        outcome='hangs'
        wait_for 150 eval '! running' && outcome=FAILED
        kill $sampler
        wait $sampler 2>/dev/null
        stall=$(awk '{ printf "%.3f", $1 / 1e6 }' /run/stall)
        verified && outcome=verified
    fi
    end_program
    row "$1" ScaLAPACK verified
}

# judged ROW ARGUMENT...: runs a row again, up to four times in all, if it fails while the machines stood still, because timers of a rail
# run in real time. A row that shows wrong data, a crash or a hang is not repeated.
judged() {
    local try before=$bad seen still
    for try in 1 2 3 4; do
        seen=$(stand_stills)
        "$@"
        still=$(stood_still "$seen")
        [ $bad != "$before" ] && [ "$still" -ge 1000 ] && [ $try != 4 ] || return
        ! grep -qE "${VM_GRAVE:?}" "$log" && ! [[ $outcome =~ $VM_GRAVE ]] || return
        echo "retried: 1 (no row: the machines stood still for $still ms)"
        bad=$before
    done
}

[ "${VM_HEADING:-yes}" = no ] ||
    printf '%-28s| %-10s| %-15s| %6s | %8s | %5s | %-31s| %s\n' fault program outcome ' stall' warnings rails 'what shows that it hit' 'counters of all ranks'
for fault in "$@"; do
    case $fault in
    *', ob1') stack 'ob1, our btl openib' ;;
    *) stack 'pml bfo, our btl openib' ;;
    esac
    args+=(--mca pml_bfo_counters 1)
    counted=
    case $fault in
    *', 1.9 s') args+=(--mca btl_openib_ib_timeout 16 --mca btl_openib_deadline 0) ;; # only the adapter judges
    *', 7.5 s') args+=(--mca btl_openib_ib_timeout 18 --mca btl_openib_deadline 0) ;;
    *', one rail'*) args+=(--mca btl_openib_if_include rxe0 --mca btl_openib_ib_timeout 20) ;; # some 30 s
    *) args+=(--mca btl_openib_ib_timeout 17) ;; # 3.8 s, if btl_openib_deadline has not found the silence before
    esac
    if [ "$fault" = 'peer killed' ]; then
        [ "${VM_REAL:-no}" = only ] || judged killed_row "$fault"
        [ "${VM_REAL:-no}" = no ] || { judged killed_program "$fault"; judged killed_bystander "$fault"; }
        continue
    fi
    [ "${VM_REAL:-no}" = only ] || judged stream_row "$fault"
    [ "${VM_REAL:-no}" = no ] || for name in ${VM_PROGRAMS:-$(programs_through "$fault")}; do judged real_row "$fault" "$name"; done
done
finish
