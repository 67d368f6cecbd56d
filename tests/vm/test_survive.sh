#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# In virtual machines: a job over pml bfo and two kernel rails continues when a rail is lost; it waits when both are away, and uses
# both again; and a job on one rail, under bfo, survives 3 s without its path. This test has four faults; "make check-vm-faults" runs
# the whole list, with NetPIPE through each fault.
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/vm/lib.sh" || exit 1
vm_components
vm_job jobs/survive.sh -- 'link down, peer' 'loss 100 %, one way' 'all rails away for 3 s' 'path flap 3 s, one rail'
