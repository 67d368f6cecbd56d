/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The file of paths: memory that all processes of this user on this machine share. Any of them may die, be stopped, or write anything at
 * any time. Only C and POSIX, no Open MPI header. See DESIGN.txt 10.2, "Paths".
 */
#ifndef BTL_OPENIB_PATHS_FILE_H
#define BTL_OPENIB_PATHS_FILE_H

#include "formats/btl_openib_path.h"

#include <pthread.h>

enum {
    OFO_PATHS_GROUPS = 512, /* of the file */
    OFO_PATHS_IN_GROUP = 8
};

#define OFO_PATHS_NAME ".paths"
#define OFO_PATHS_MAGIC UINT64_C(0x53485441504f4642) /* "BFOPATHS", first character in the lowest byte */
#define OFO_PATHS_LAYOUT 1u

/* Paths that one lock guards. The kernel frees the lock if its owner dies. */
typedef struct {
    pthread_mutex_t lock;
    ofo_path_t path[OFO_PATHS_IN_GROUP] __attribute__((aligned(64)));
} ofo_paths_group_t;

typedef struct {
    uint64_t magic;
    uint32_t layout, size;
} ofo_paths_head_t;

typedef struct {
    ofo_paths_head_t head;
    ofo_paths_group_t group[OFO_PATHS_GROUPS] __attribute__((aligned(64)));
} ofo_paths_file_t;

/* Makes the locks of groups that are all zero. Returns 0 or an error number. */
int ofo_paths_format(ofo_paths_group_t *group, unsigned count);
/* Maps the file OFO_PATHS_NAME of the user's private directory `dir`, after making it if it does not exist. NULL: errno says why; EPERM if it
 * is not a file of that user with exactly one link, EPROTO if it has another layout. */
ofo_paths_file_t *ofo_paths_map(int dir);
void ofo_paths_unmap(ofo_paths_file_t *file);
/* Tells the monotonic clock of this process, which is that of its time namespace, from those of others. */
uint64_t ofo_paths_clock(void);

#endif /* BTL_OPENIB_PATHS_FILE_H */
