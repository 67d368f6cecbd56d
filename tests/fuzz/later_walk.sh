#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Expected to fail: the end of a fence looks at every request, not only at those of its peer.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_later fence_looks_at_requests_of_its_peer_only
