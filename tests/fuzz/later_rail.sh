#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Expected to fail: the loss of the last rail declares the peer at once.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_later last_rail_is_waited_for
