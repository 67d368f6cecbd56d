#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# What happens to the PML at the edges: BTLs without failover, memory that ends, communicators that end.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_edges
