#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# In virtual machines: every fault that can be injected has the stated effect on real queue pairs.
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/vm/lib.sh" || exit 1
need ib_write_bw perftest
vm_job jobs/faults.sh
