#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# In virtual machines: bfo check with contrib/cut_link.pl, over RoCE v2 rails of the kernel.
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/vm/lib.sh" || exit 1
vm_components
vm_job jobs/check.sh
