#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Expected to fail: a message waits for the rail that was chosen, though another has room.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_later rail_with_room_is_taken
