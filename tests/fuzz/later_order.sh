#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Expected to fail: what waits for a descriptor has no priority over what comes later.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_later older_message_goes_first
