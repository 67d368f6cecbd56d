#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# limit.sh TEST [ARGUMENT...]: runs a test under a time limit so long that only a test that hangs reaches it: BFO_TEST_LIMIT seconds, or 900.
# The test and its processes get SIGTERM, and ten seconds later SIGKILL; the log then names the limit. The log's last line says how long the
# test took.
set -u
limit=${BFO_TEST_LIMIT:-900}
timeout -v -k 10 "$limit" "$@"
status=$?
[ $status != 124 ] && [ $status != 137 ] || echo "FAIL: $1 was ended by a signal, status $status; its time limit is $limit s (BFO_TEST_LIMIT)"
echo "took: $SECONDS s"
exit $status
