#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# In three virtual machines: our openib BTL on RoCE v2 rails of the kernel, under stock ob1 and under pml bfo.
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/vm/lib.sh" || exit 1
vm_components
vm_job jobs/openib.sh --nodes 3
