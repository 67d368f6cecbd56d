#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# In virtual machines: every fault that can be injected does to real queue pairs what it says.
. "$BFO_SRCDIR/tests/vm/lib.sh"
need ib_write_bw perftest
vm_job jobs/faults.sh
