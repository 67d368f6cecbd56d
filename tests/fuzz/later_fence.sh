#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Expected to fail: the end of any fence of a rail ends the wait for a newer one.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_later old_fence_ends_no_newer
