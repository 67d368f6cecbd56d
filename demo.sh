#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# ./demo.sh [SECONDS]             builds bfo, runs an MPI job of two ranks over two software rails (default 10 seconds, at
#                                 least 8), pulls the cable of one rail during the job, plugs it in again, and lets the other
#                                 rail drop everything. Draws the rate of each rail: build/demo.svg, and the states of both rails
#                                 over time, as "bfo events --plot" draws them: build/demo-rails.svg.
# ./demo.sh --compare [SECONDS]   then does the same to Open MPI's own ob1 and openib, to show what happens to them.
#
# BFO_DEMO_BUILD=DIRECTORY        uses the build in DIRECTORY, and installs and builds nothing; the pictures go there.
set -u
top=$(cd "$(dirname "$0")" && pwd)
cd "$top" || exit 1
compare=
if [ "${1:-}" = --compare ]; then
    compare=yes
    shift
fi
seconds=${1:-10}
case $seconds in
'' | *[!0-9]* | [0-7] | 0* | ?????*)
    echo "usage: ./demo.sh [--compare] [SECONDS]   (a whole number from 8 to 9999, not '$seconds')" >&2
    exit 2 ;;
esac

build=${BFO_DEMO_BUILD:-build}
if [ -z "${BFO_DEMO_BUILD:-}" ]; then
    echo "== 1. packages"
    bash contrib/packages.sh build perf || exit $?
    echo "== 2. build"
    bash contrib/build.sh build --disable-assertions || exit 1
elif [ ! -f "$build/tests/env.sh" ]; then
    echo "demo.sh: BFO_DEMO_BUILD names '$build', which is no build of bfo: unset it, and the demo makes one" >&2
    exit 2
fi
. "$build/tests/env.sh" || exit 1

# mpirun refuses root without these variables.
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# From Open MPI 5.0 on mpirun passes the directories of our components to PMIx too, which complains of them; so PMIx gets a directory of its own.
[ -z "$PMIX_COMPONENTDIR" ] || export PMIX_MCA_mca_base_component_path=$PMIX_COMPONENTDIR
case $OMPI_VERSION in 4.*) shared_memory=vader ;; *) shared_memory=sm ;; esac
ours=$BFO_BUILDDIR/pml_bfo/.libs:$BFO_BUILDDIR/btl_openib_failover/.libs:$BFO_OMPI_COMPONENTDIR
softrail=$build/softrail/softrail
out=$(mktemp -d) || exit 1
job=
trap '[ -z "$job" ] || kill "$job" 2>/dev/null; rm -rf "$out"' EXIT

# Prints one line: time in seconds, then the bytes that each rail has carried so far.
sample() {
    $softrail status --json --fabric="demo-$$" 2>/dev/null |
        awk -F'[:,]' '/"tx_bytes"/ { bytes = bytes " " $2 + 0 } /"time_ns"/ { printf "%.3f%s\n", $2 / 1e9, bytes }'
}
# Reads two samples, prints "sr0 123.4 MiB/s sr1 ...".
rates() { awk '{ t[NR] = $1; a[NR] = $2; b[NR] = $3 } END { if (NR == 2 && t[1] > 0 && t[2] > t[1]) {
    d = (t[2] - t[1]) * 1048576; printf "   sr0 %7.1f MiB/s   sr1 %7.1f MiB/s", (a[2] - a[1]) / d, (b[2] - b[1]) / d } }'; }

# The faults, and their times in tenths of the run. The rails are limited to 300 Mbit/s, so that the sum shows a lost rail.
faults=(2 4 7)
label=('sr1 cut' 'sr1 plugged in' 'sr0 silent')
told=("softrail down sr1: the cable of the second rail is pulled, at both ends, in the middle of a message"
      "softrail up sr1: the cable is plugged in again; the rail is used again when it has worked for a second"
      "softrail fault lose rail=sr0 nth=1-: the first rail drops everything, without a port event")
make_fault() {
    case $1 in
    0) $softrail down --fabric="demo-$$" sr1 ;;
    1) $softrail up --fabric="demo-$$" sr1 ;;
    2) $softrail fault --fabric="demo-$$" lose rail=sr0 nth=1- >/dev/null ;;
    esac
}

# longest_pause FROM TO: prints the longest pause in the lines of the log after FROM, up to TO.
longest_pause() { sed -n "$(($1 + 1)),$2p" "$out/log" | sed -n 's/.*longest pause *\([0-9]*\) ms.*/\1/p' | sort -n | tail -n 1; }

# Has the stream printed a line since the last fault? Then the pause of this fault is known.
has_told() { sed -n "$(($(tail -n 1 "$out/faults" | cut -d' ' -f2) + 1)),\$p" "$out/log" | grep -q 'longest pause'; }

# Is the effect of the fault before complete? The other rail is silenced only after the first is in use again: otherwise no rail would be left.
may_go_on() {
    case $next in
    0) ;;
    2) has_told && grep -q '^A rail is back:' "$out/log" ;;
    *) has_told ;;
    esac
}

# The stream ends when mpirun gets SIGUSR1: mpirun is a child of the job, or a child of its child. From Open MPI 5.0 on it calls itself prterun.
end_stream() {
    local pid=$job
    while [ -n "$pid" ]; do
        case $(cat "/proc/$pid/comm" 2>/dev/null) in mpirun | prterun) kill -USR1 "$pid"; return ;; esac
        pid=$(cut -d' ' -f1 "/proc/$pid/task/$pid/children" 2>/dev/null)
    done
}

# run_with_faults MPIRUN-ARGUMENTS...: runs the stream with its faults. On a busy machine it runs longer than asked for, until each fault has had
# its effect. The job's output goes to $out/log and, with the rates of the rails, to the screen; samples go to $out/samples; a line "TIME LINE" for
# each fault goes to $out/faults: its time, and the number of lines of the log at that time. Returns mpirun's status.
run_with_faults() {
    local shown=0 lines last begin= next=0 before= now passed status
    : >"$out/samples"
    : >"$out/log"
    : >"$out/faults"
    timeout -k 5 $((seconds * 5 + 60)) $softrail run -n 2 --name "demo-$$" --rate=300M --retry-time=500ms -- mpirun --oversubscribe -np 2 "$@" \
        "$build/contrib/bfo_stream" -m 100000 -s $((seconds * 5)) >"$out/log" 2>&1 </dev/null &
    job=$!
    while kill -0 $job 2>/dev/null; do
        sleep 0.1
        now=$(sample)
        [ -z "$now" ] || echo "$now" >>"$out/samples"
        [ -n "$before" ] || before=$now
        [ -n "$begin" ] || ! grep -q 'messages verified' "$out/log" || begin=$((${EPOCHREALTIME/[.,]/} - 1000000))
        passed=$((${EPOCHREALTIME/[.,]/} - ${begin:-${EPOCHREALTIME/[.,]/}}))
        if [ -n "$begin" ] && [ $next = 3 ] && [ $passed -ge $((seconds * 1000000)) ] && has_told; then
            next=4
            end_stream
        elif [ -n "$begin" ] && [ $next -lt 3 ] && [ $passed -ge $((seconds * 100000 * faults[next])) ] && may_go_on; then
            echo "$(sample | cut -d' ' -f1) $(wc -l <"$out/log")" >>"$out/faults"
            echo "-- ${told[next]}"
            make_fault $next || echo "demo.sh: there was no job left to have a fault"
            next=$((next + 1))
        fi
        lines=$(wc -l <"$out/log")
        last=$(head -n "$lines" "$out/log" | grep -n 'messages verified' | tail -n 1 | cut -d: -f1)
        while [ "$shown" -lt "$lines" ]; do
            shown=$((shown + 1))
            sed -n "${shown}p" "$out/log" | tr -d '\n'
            if [ "$shown" = "${last:-0}" ]; then
                printf '%s\n%s\n' "$before" "$now" | rates
                before=$now
            fi
            echo
        done
    done
    wait $job
    status=$?
    job=
    sed -n "$((shown + 1)),\$p" "$out/log"
    return $status
}

draw() {
    awk 'NR > 1 && $1 > t { d = ($1 - t) * 1048576; printf "%.3f %.3f %.3f\n", ($1 + t) / 2 - t0, ($2 - a) / d, ($3 - b) / d }
         NR == 1 { t0 = $1 } { t = $1; a = $2; b = $3 }' "$out/samples" >"$build/demo.dat"
    local marks= i=0 t rest
    while read -r t rest; do
        t=$(awk -v t="$t" 'NR == 1 { printf "%.2f", t - $1 }' "$out/samples")
        marks="$marks
set arrow from $t, graph 0 to $t, graph 1 nohead lc rgb 'red' dt 2
set label '${label[i]}' at $t, graph 0.97 offset 0.5,0 tc rgb 'red'"
        i=$((i + 1))
    done <"$out/faults"
    gnuplot <<END || { echo "demo.sh: gnuplot failed" >&2; return 1; }
set terminal svg size 900,420 background rgb 'white'
set output '$build/demo.svg'
set title 'Rails fail and come back in mid-job: what each rail carried'
set xlabel 'seconds'
set ylabel 'MiB/s'
set yrange [0:*]
set key outside below
set grid
$marks
plot '$build/demo.dat' using 1:2 with lines lw 2 title 'rail sr0', '' using 1:3 with lines lw 2 title 'rail sr1', \
     '' using 1:(\$2+\$3) with lines lw 1 dt 3 title 'both'
END
}

echo "== 3. run: two ranks exchange a verified stream over two software rails; each fails once"
echo "   softrail run -n 2 --rate=300M --retry-time=500ms -- mpirun -np 2 --mca pml bfo --mca btl openib,self $build/contrib/bfo_stream -m 100000"
export OMPI_MCA_mca_base_component_path=$ours
mkdir "$out/figures"
"$build/tools/bfo" events --dir "$out/figures" --follow --plot "$build/demo-rails.svg" >"$out/events" 2>&1 &
follower=$!
run_with_faults --mca pml bfo --mca btl openib,self --mca pml_bfo_status_dir "$out/figures"
status=$?
kill "$follower"
wait "$follower" || { cat "$out/events" >&2; echo "demo.sh: bfo events --plot failed" >&2; exit 1; }
if [ "$status" != 0 ] || ! grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$out/log" || [ "$(grep -c '^A rail was lost:' "$out/log")" -lt 2 ] || ! grep -q '^A rail is back:' "$out/log"; then
    echo "demo.sh: the job did not survive as it should (status $status)" >&2
    exit 1
fi
draw || exit 1
echo "== what it did"
echo "Every byte of every message was checked by its receiver: $(grep ' 0 wrong$' "$out/log" | tail -n 1)"
mapfile -t at < <(cut -d' ' -f2 "$out/faults")
at[3]=$(wc -l <"$out/log")
for i in 0 1 2; do
    echo "Longest pause of the stream after '${label[i]}': $(longest_pause "${at[i]}" "${at[i + 1]}") ms"
done
echo "What each rail carried over time: $build/demo.svg (numbers: $build/demo.dat); the state of both: $build/demo-rails.svg"

if [ -n "$compare" ]; then
    echo "== 4. the same with Open MPI's own ob1 and openib over the same rails"
    if [ ! -f "$BFO_OMPI_COMPONENTDIR/mca_btl_openib.so" ]; then
        echo "demo.sh: this Open MPI has no openib BTL of its own ($BFO_OMPI_COMPONENTDIR): nothing to compare with" >&2
        exit 1
    fi
    unset OMPI_MCA_mca_base_component_path
    run_with_faults --mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1 --mca btl_openib_warn_no_device_params_found 0
    status=$?
    echo "== what became of it"
    case $status in
    0) echo "ob1 ended with success: was the rail in use? ($(tail -n 1 "$out/log"))"; exit 1 ;;
    124) echo "ob1 hung; it was stopped $((seconds * 5 + 60)) seconds after its start" ;;
    *) echo "ob1 ended with status $status after $(grep -c 'messages verified' "$out/log") seconds of traffic: the job is lost" ;;
    esac
fi
cat <<END
== what to try next
  . $build/tests/env.sh; export OMPI_MCA_mca_base_component_path=$ours
  your own program:   $softrail run -n 2 -- mpirun -np 2 --mca pml bfo --mca btl openib,self PROGRAM
  what others do:     ./demo.sh --compare
  without rails:      mpirun -np 2 --mca pml bfo --mca btl $shared_memory,self $build/contrib/bfo_stream
  the rails alone:    $softrail run -n 2 -- ibv_devinfo        (package ibverbs-utils)
  all tests:          ./test.sh
  for real use:       make -C $build install, then: PREFIX/bin/bfo run PROGRAM (README.md)
END
