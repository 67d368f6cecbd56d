#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Messages that restart, and restart messages that are late, odd or find no rail.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_restart
