/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Paths are found by their key in one of many groups, each under a lock of its own. A process that cannot have a lock of the file stops using
 * the file. See DESIGN.txt 10.2, "Paths".
 */
#include "types/btl_openib_paths.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

int ofo_paths_init(ofo_paths_t *paths)
{
    memset(paths, 0, sizeof(*paths));
    return ofo_paths_format(paths->mine, OFO_PATHS_OWN);
}

void ofo_paths_fini(ofo_paths_t *paths)
{
    for (unsigned i = 0; i < OFO_PATHS_OWN; ++i) {
        pthread_mutex_destroy(&paths->mine[i].lock);
    }
    if (NULL != paths->file) {
        ofo_paths_unmap(paths->file);
        paths->file = NULL;
    }
}

int ofo_paths_share(ofo_paths_t *paths, int dir)
{
    ofo_paths_file_t *file;

    if (NULL != OFO_LOAD(paths->file)) {
        return 0;
    }
    paths->clock = ofo_paths_clock();
    file = ofo_paths_map(dir);
    OFO_STORE(paths->file, file);
    return NULL == file ? errno : 0;
}

/* What the owner was writing when it died may be half a leader, so the group begins empty. */
static bool lock(ofo_paths_group_t *group)
{
    const uint64_t until = ofo_now_ms() + OFO_PATHS_LOCK_MS;
    int rc;

    while (EBUSY == (rc = pthread_mutex_trylock(&group->lock))) {
        if (ofo_now_ms() >= until) {
            return false;
        }
        sched_yield();
    }
    if (EOWNERDEAD == rc) {
        memset(group->path, 0, sizeof(group->path));
        rc = pthread_mutex_consistent(&group->lock);
    }
    return 0 == rc;
}

static ofo_paths_group_t *lock_group(ofo_paths_t *paths, uint64_t key)
{
    ofo_paths_file_t *file = OFO_LOAD(paths->is_alone) ? NULL : OFO_LOAD(paths->file);

    if (NULL != file) {
        if (lock(&file->group[key % OFO_PATHS_GROUPS])) {
            return &file->group[key % OFO_PATHS_GROUPS];
        }
        OFO_STORE(paths->is_alone, true);
    }
    return lock(&paths->mine[key % OFO_PATHS_OWN]) ? &paths->mine[key % OFO_PATHS_OWN] : NULL;
}

static ofo_path_t *find(ofo_paths_group_t *group, uint64_t key, uint64_t now)
{
    ofo_path_t *empty = NULL;

    for (unsigned i = 0; i < OFO_PATHS_IN_GROUP; ++i) {
        ofo_path_t *path = &group->path[i];

        if (now > path->until) {
            empty = path;
        } else if (key == path->key) {
            return path;
        }
    }
    if (NULL != empty) {
        *empty = (ofo_path_t){.key = key};
    }
    return empty;
}

bool ofo_paths_lock(ofo_paths_t *paths, uint64_t key, uint64_t now, uint64_t until, ofo_paths_found_t *found)
{
    ofo_paths_group_t *group = lock_group(paths, key);

    if (NULL == group) {
        return false;
    }
    *found = (ofo_paths_found_t){.path = find(group, key, now), .group = group};
    if (NULL == found->path) {
        ofo_paths_unlock(found);
        return false;
    }
    found->path->until = until > found->path->until ? until : found->path->until;
    return true;
}

void ofo_paths_unlock(const ofo_paths_found_t *found)
{
    pthread_mutex_unlock(&found->group->lock);
}
