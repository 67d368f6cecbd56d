#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The PML with a rail that was lost and comes back with a new generation.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_rejoin
