/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Included before everything else in the file that completes sends: I3 is checked there.
 */
#ifndef IMAGE_CHECKED_H
#define IMAGE_CHECKED_H

#include "image_checks.h"

#include "types/pml_bfo_local.h"

#define bfo_request_finish(request, life) (image_check_sent(req), bfo_request_finish(request, life))

#endif /* IMAGE_CHECKED_H */
