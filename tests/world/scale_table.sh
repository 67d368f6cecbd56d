#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# scale_table.sh PREFIX: reads the figures of large jobs (scale.sh) and writes PREFIX.txt, a table for each number of rails, and PREFIX.svg where gnuplot
# is installed. The column "exponent" is the slope between the smallest and the largest job of a row: how the figure of a process grows with the number
# of its peers; 1 is linear.
set -u
prefix=${1:?scale_table.sh PREFIX}
data=$(mktemp -d) figures=$data/all
trap 'rm -rf "$data"' EXIT
grep -E '^(scale|star) ' >"$figures"
{
    echo "Large simulated jobs: tests/world/scale.sh, all times are virtual. Figures of a process, but \"in all\"; exponents over the number of its peers."
    awk '{ print $1, $3 }' "$figures" | sort -u | while read -r kind rails; do
        awk -v kind="$kind" -v rails="$rails" '
            NR == FNR { if ($1 == kind && $3 == rails) { v[$4, $5, $2] = $6; if (!($2 in seen)) { seen[$2] = 1; size[++n] = $2 } } next }
            FNR == 1 {
                for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (size[j] < size[i]) { t = size[i]; size[i] = size[j]; size[j] = t }
                printf "\n%-46s", (kind == "star" ? "one process and its peers, " : "") rails " rails, processes:"
                for (i = 1; i <= n; i++) printf "%10s", size[i]
                printf "%10s\n", "exponent"
            }
            {
                split($0, word, "|"); split(word[1], key, " ")
                printf "%-46s", word[2]
                first = last = 0
                for (i = 1; i <= n; i++) {
                    value = v[key[1], key[2], size[i]]
                    if (value + 0 > 0) { if (!first) first = i; last = i }
                    printf "%10s", value == "" ? "-" : sprintf(value < 10 && value != int(value) ? "%.2f" : "%.0f", value)
                }
                if (last > first && first) {
                    a = v[key[1], key[2], size[first]]; b = v[key[1], key[2], size[last]]
                    printf "%10.2f", log(b / a) / log((size[last] - 1) / (size[first] - 1))
                } else printf "%10s", "-"
                print ""
            }' "$figures" - <<'ROWS'
sizes queue_pairs|queue pairs at the end
sizes init_KiB|KiB after MPI_Init
sizes contact_KiB|KiB more after the first contact
sizes end_KiB|KiB more at the end
contact round_ms|contact: ms until all have all messages
contact control|contact: control messages
contact control_peak_of_one|contact: most of one process in 1 s
contact control_peak|contact: most in 1 s, in all
contact sends_beyond|contact: SENDs beyond the application's
healthy control|three rounds: control messages
healthy round_ms|three rounds: ms of the longest
healthy sends_beyond|three rounds: SENDs beyond
leaf rails_lost|leaf: rails lost and back
leaf flows_ms|leaf: ms until all traffic flows
leaf back_ms|leaf: ms until all rails are back (2,000 away)
leaf control|leaf: control messages
leaf control_peak_of_one|leaf: most of one process in 1 s
leaf control_peak|leaf: most in 1 s, in all
leaf control_unheard|leaf: control messages without a buffer
leaf sends_beyond|leaf: SENDs beyond
spine rails_lost|spine, 3 flaps: rails lost and back
spine flows_ms|spine: ms until all traffic flows
spine back_ms|spine: ms until all are back (6,100 for flaps)
spine control|spine: control messages
spine PROBE|spine: of them questions
spine control_peak_of_one|spine: most of one process in 1 s
spine control_peak|spine: most in 1 s, in all
spine control_unheard|spine: control messages without a buffer
spine sends_beyond|spine: SENDs beyond
silent soft|silent: soft verdicts
silent flows_ms|silent: ms until all traffic flows
silent back_ms|silent: ms until all are back (1,000 silent)
silent control|silent: control messages
silent control_peak_of_one|silent: most of one process in 1 s
silent control_peak|silent: most in 1 s, in all
silent control_unheard|silent: control messages without a buffer
silent sends_beyond|silent: SENDs beyond
port rails_lost|port of one machine dies: rails lost
port flows_ms|port: ms until all traffic flows
port back_ms|port: ms until all processes know
port control|port: control messages
port control_peak_of_one|port: most of one process in 1 s
port sends_beyond|port: SENDs beyond
idle keepalives|25 s idle: keepalive WRITEs
idle control|25 s idle: control messages
idle inquiries|25 s idle: inquiries
ROWS
    done
} >"$prefix.txt"
echo "written: $prefix.txt"
command -v gnuplot >/dev/null 2>&1 || { echo "no plot: gnuplot is missing (Debian package: gnuplot-nox)"; exit 0; }
awk -v dir="$data" '$6 > 0 { print $2, $6 >(dir "/" $3 "-" $1 "-" $4 "-" $5) }' "$figures"
# lines PHASE FIGURE NAME: a line for each number of rails, dashed for one process and its peers
lines() {
    local file
    for file in $(ls "$data" | grep -e "-$1-$2\$" | sort -n); do
        case $file in
        *-star-*) echo "'< sort -n $data/$file' with linespoints dashtype 2 title '$3, one process', \\" ;;
        *) echo "'< sort -n $data/$file' with linespoints title '$3, ${file%%-*} rails', \\" ;;
        esac
    done
}
gnuplot <<PLOT && echo "written: $prefix.svg"
set terminal svg size 1000,900
set output "$prefix.svg"
set grid
set key left top
set logscale xy
set xlabel "processes"
set multiplot layout 2,2
set title "a process: queue pairs, and KiB more than after MPI_Init"
plot \
$(lines sizes queue_pairs "queue pairs")
$(lines sizes end_KiB KiB)
NaN notitle
set title "a process: control messages in its busiest second"
plot \
$(lines contact control_peak_of_one contact)
$(lines leaf control_peak_of_one leaf)
$(lines spine control_peak_of_one spine)
$(lines silent control_peak_of_one silent)
NaN notitle
set title "a process: control messages of a phase"
plot \
$(lines contact control contact)
$(lines leaf control leaf)
$(lines spine control "spine, 3 flaps")
$(lines silent control silent)
$(lines port control port)
NaN notitle
set title "ms until all traffic flows"
plot \
$(lines contact round_ms contact)
$(lines leaf flows_ms leaf)
$(lines spine flows_ms spine)
$(lines silent flows_ms silent)
$(lines port flows_ms port)
NaN notitle
PLOT
