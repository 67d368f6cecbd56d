/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Preloaded into the ranks of a job, this library gives their Open MPI the version string of another release.
 */
extern const char opal_version_string[];
__attribute__((visibility("default"))) const char opal_version_string[] = "0.0.1";
