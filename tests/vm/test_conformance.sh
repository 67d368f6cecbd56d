#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# In virtual machines: the programs of ibverbs-utils, perftest and librdmacm pass on every rail.
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/vm/lib.sh" || exit 1
need ibv_rc_pingpong ibverbs-utils
need ib_send_bw perftest
need rping rdmacm-utils
vm_job jobs/conformance.sh
