#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The PML with a peer to which no rail is left.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_wait
