#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The PML's receive dispatch: kept inputs, then new inputs.
exec bash "$BFO_SRCDIR/tests/fuzz/fuzz.sh" dispatch 15
