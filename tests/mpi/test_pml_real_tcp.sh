#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Programs of other authors, over bfo with tcp,self.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/real.sh"
use_components pml
run_real_programs --mca pml bfo --mca btl tcp,self --mca pml_bfo_warn_no_failover 0
exit 0
