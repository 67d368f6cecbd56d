#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The PML with ports that were never in use, and with waits whose limit the user changes.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_figures
