#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Expected to fail: a message that waits for a descriptor has no priority over a later message.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_later older_message_goes_first
