/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Included before everything else in the file that asks for the last epoch: the plan says which one it is.
 */
#ifndef IMAGE_EPOCHS_H
#define IMAGE_EPOCHS_H

#include "tables/pml_bfo_failover_se.h"

uint32_t image_epoch_last(void);

#undef BFO_EPOCH_LAST
#define BFO_EPOCH_LAST image_epoch_last()

#endif /* IMAGE_EPOCHS_H */
