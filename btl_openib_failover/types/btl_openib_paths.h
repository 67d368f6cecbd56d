/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The paths on which inquiries run, in memory that all processes of this user on this machine share; without it each process keeps its own.
 * What is read there is evidence of processes that may have died or write anything, and a wrong verdict costs a rail its generation, but no
 * data. Any thread. See DESIGN.txt 10.2, "Paths".
 */
#ifndef BTL_OPENIB_PATHS_H
#define BTL_OPENIB_PATHS_H

#include "formats/btl_openib_path.h"
#include "formats/btl_openib_paths_file.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    OFO_PATHS_OWN = 8,    /* groups */
    OFO_PATHS_LOCK_MS = 5 /* wait for a lock, whose owner needs less than a microsecond unless it has lost its processor or is stopped */
};

/* Of a process. */
typedef struct {
    ofo_paths_file_t *file; /* NULL: the process shares nothing; atomic */
    uint64_t clock;         /* of the processes that share the file; not all containers have the same monotonic clock */
    bool is_alone;          /* a lock of the file was not free, and the process does not use the file any more; atomic */
    ofo_paths_group_t mine[OFO_PATHS_OWN];
} ofo_paths_t;

/* A path whose group is locked. */
typedef struct {
    ofo_path_t *path;
    ofo_paths_group_t *group;
} ofo_paths_found_t;

/* Returns 0 or an error number. */
int ofo_paths_init(ofo_paths_t *paths);
/* No thread uses the paths any more. */
void ofo_paths_fini(ofo_paths_t *paths);
/* From now on the paths are in the file OFO_PATHS_NAME of the user's private directory `dir`. Does nothing if a file is in use. Returns 0, or an
 * error number: the process keeps its own. */
int ofo_paths_share(ofo_paths_t *paths, int dir);

/* Locks the path with this key; an unknown path begins empty. The path keeps its entries until `until` at least. The caller unlocks soon and
 * does not block in between. False: there is no room for the path, or its lock was not free. */
bool ofo_paths_lock(ofo_paths_t *paths, uint64_t key, uint64_t now, uint64_t until, ofo_paths_found_t *found);
void ofo_paths_unlock(const ofo_paths_found_t *found);

#endif /* BTL_OPENIB_PATHS_H */
