#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The verified stream over our BTL and stock ob1: ranks, rails, link layers, receive queues. Counters must move.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components btl

listed=$("$OMPI_INFO" | grep 'MCA btl: openib') || fail "ompi_info does not list our openib"
grep -q "Component v$BFO_VERSION)" <<<"$listed" || fail "ompi_info lists another openib: $listed"

run_stream 2 "" 2
run_stream 2 "--link-layer=eth" 4
run_stream 1 "" 2
run_stream 4 "" 2
run_stream 2 "" 2 --mca btl_openib_receive_queues P,65792,4
# ob1 stripes the messages that it writes, and reads each message over one rail; the user chooses between the two.
run_stream 2 "" 2 --mca btl_openib_verbose 1
counted ' gets [1-9]'
run_stream 2 "" 2 --mca btl_openib_verbose 1 --mca btl_openib_flags send,put
counted ' puts [1-9][0-9]* .*gets 0 '
run_stream 1 "" 2 --mca btl_openib_lanes 2 --mca btl_openib_ib_max_inline_data 0
