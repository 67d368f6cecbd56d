#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# What the PML does with a port that is taken out of service, and given back.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_drain
