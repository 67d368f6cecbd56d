#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The shortest runs of the models, with the present tables. They fail if a changed .def breaks the protocol.
exec "${BFO_MODEL_SRCDIR:-$(dirname "$0")}/run.sh" smoke
