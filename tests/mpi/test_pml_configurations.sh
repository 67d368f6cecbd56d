#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The MPI programs over our BTL on software rails in eight configurations: every pair of values of rails, link layer,
# receive queues, eager rings and PML occurs. Every rail must carry data, and queues and rings must be as configured.
# Connections are made by datagrams, because rdmacm needs the rails of a kernel (tests/vm/jobs/openib_programs.sh).
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl

CONFIGURATIONS="1 ib peer 0 bfo
1 eth shared 1 ob1
2 ib peer 1 ob1
2 eth shared 0 bfo
3 ib shared 0 ob1
3 eth peer 1 bfo
4 ib shared 1 bfo
4 eth peer 0 ob1"
peer=P,2048,64,32,16:P,12544,12,6,4:P,65792,4,2,2
shared=S,2048,64,32,16:S,12544,32,16,8:S,65792,16,8,4
# ob1 itself fails, over vader and tcp as well, at mpi_sizes and mpi_modes (it writes past the end of a receive that is too short)
# and at mpi_types (it crashes on strided types).
ob1="mpi_match mpi_comms mpi_threads mpi_life"
bfo="$ob1 mpi_sizes mpi_modes mpi_types"

awk '{ for (i = 1; i <= NF; ++i) { values[i, $i]; for (j = i + 1; j <= NF; ++j) pairs[i, j, $i, $j] } }
    END { for (p in pairs) { split(p, x, SUBSEP); ++found[x[1], x[2]] }
          for (v in values) { split(v, x, SUBSEP); ++of[x[1]] }
          for (i = 1; i <= 5; ++i) for (j = i + 1; j <= 5; ++j) if (found[i, j] != of[i] * of[j]) exit 1
          exit !(of[1] == 4 && of[2] * of[3] * of[4] * of[5] == 16) }' <<<"$CONFIGURATIONS" ||
    fail "some pair of values is in no configuration"

# configuration RAILS LINK QUEUES RING PML
configuration() {
    local rails=$1 layer=infiniband queues=$3 receives="4 12 64 " ring=$4 pml=$5 program rail used unused log=$TEST_TMP/log
    local arguments=(--mca pml "$pml" --mca btl openib,self --mca btl_openib_verbose 2 --mca btl_openib_receive_queues "${!queues}"
        --mca btl_openib_use_eager_rdma "$ring" --mca btl_openib_eager_rdma_threshold 1)
    [ "$2" = ib ] || layer=ethernet
    [ "$queues" = peer ] || receives="0 "
    note "$*"
    PML_PREFIX=("$SOFTRAIL" run -n "$rails" --link-layer="$2" --report "$REPORT" --)
    : >"$log"
    for program in ${!pml}; do
        run_program "$program" 2 "${arguments[@]}"
        # shellcheck disable=SC2046
        rails_moved "$REPORT" $(seq 0 $((rails - 1)))
        cat "$TEST_TMP/$program.log" >>"$log"
    done
    [ "$(receives)" = "$receives" ] || { show_log; fail "$*: the queue pairs have $(receives)receives"; }
    for ((rail = 0; rail < rails; ++rail)); do
        grep -q "sr$rail:1: $layer," "$log" || { show_log; fail "$*: rail $rail is not $layer"; }
        used=$(grep -cE "bfo: sr$rail:1: .*ring [1-9][0-9]* out [1-9]" "$log")
        unused=$(grep -cE "bfo: sr$rail:1: .*ring 0 out 0 in" "$log")
        case $ring in
        0) [ "$used" = 0 ] && [ "$unused" -gt 0 ] || { show_log; fail "$*: rail $rail used a ring"; } ;;
        1) [ "$used" -gt 0 ] || { show_log; fail "$*: rail $rail used no ring"; } ;;
        esac
    done
}
while read -r values; do
    # shellcheck disable=SC2086
    configuration $values
done <<<"$CONFIGURATIONS"
exit 0
