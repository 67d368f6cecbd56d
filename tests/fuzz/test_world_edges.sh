#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Edge cases of the PML: BTLs without failover, memory of a device, rails without room.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_edges
