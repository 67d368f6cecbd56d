#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The tables of DESIGN.txt 7.1, 7.2, 10.2 and 10.3 name the same rows as the .def files, in the same order.
# Lines that DESIGN.txt marks (ULFM) are not read as rows.
set -u
top=$(cd "${BFO_MODEL_SRCDIR:-$(dirname "$0")}/../.." && pwd)
bad=0

# of_def FILE: prints the names of the file's rows, each once; of_design FROM TO: the names in the lines between two headings
of_def() { sed -nE 's/^ROW(_ZERO|_NEXT)?\(([A-Za-z0-9]+),.*/\2/p' "$top/$1" | awk '!seen[$1]++'; }
of_design() {
    awk -v from="$1" -v to="$2" 'index($0, from) == 1 {on = 1} index($0, to) == 1 {on = 0} on' "$top/DESIGN.txt" | grep -v '(ULFM)' |
        sed -E 's/^Q2, D1 .*/Q2 \nD1 /' | sed -nE 's/^([MSRCLQD][0-9X]+[a-z]?) .*/\1/p' | awk '!seen[$1]++'
}
compare() {
    if [ "$(of_def "$1" | grep -c .)" -lt 10 ]; then
        echo "FAIL: no rows found in $1"
        bad=1
    elif ! diff <(of_def "$1") <(of_design "$2" "$3"); then
        echo "FAIL: $1 and DESIGN.txt $2 differ (left: table, right: document)"
        bad=1
    fi
}
compare pml_bfo/tables/pml_bfo_failover_send.def "7.1 Sender" "7.2 Receiver"
compare pml_bfo/tables/pml_bfo_failover_recv.def "7.2 Receiver" "7.3 Engine"
compare btl_openib_failover/tables/btl_openib_rail.def "10.2 States" "10.3 Fence"
compare btl_openib_failover/tables/btl_openib_drain.def "10.3 Fence" "10.4 Loss"
exit $bad
