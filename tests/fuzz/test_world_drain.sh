#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The PML with a port that the user takes out of service and gives back.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_drain
