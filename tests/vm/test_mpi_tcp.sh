#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# In virtual machines: stock Open MPI over tcp between the machines; a rank is killed, and a machine pauses.
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/vm/lib.sh" || exit 1
vm_job jobs/mpi_tcp.sh
