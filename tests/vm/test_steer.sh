#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# In two virtual machines: the command bfo shows and steers one job on both while a rail is cut, comes back, is drained and released.
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/vm/lib.sh" || exit 1
need tmux tmux
need perl perl
vm_components
vm_job jobs/steer.sh
