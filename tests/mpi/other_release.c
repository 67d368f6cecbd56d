/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Preloaded into the ranks of a job, it makes their Open MPI one of another release, as far as its version string says.
 */
extern const char opal_version_string[];
__attribute__((visibility("default"))) const char opal_version_string[] = "0.0.1";
