/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The file of paths is made and mapped here. It stays when its processes end, because others of the same user may come. See DESIGN.txt 10.2,
 * "Paths".
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* renameat2 */
#endif
#include "formats/btl_openib_paths_file.h"

#include "bfo_file.h"

#include <sys/mman.h>

int ofo_paths_format(ofo_paths_group_t *group, unsigned count)
{
    pthread_mutexattr_t attr;
    int rc = pthread_mutexattr_init(&attr);

    if (0 != rc) {
        return rc;
    }
    rc = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    rc = 0 == rc ? pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) : rc;
    for (unsigned i = 0; 0 == rc && i < count; ++i) {
        rc = pthread_mutex_init(&group[i].lock, &attr);
    }
    pthread_mutexattr_destroy(&attr);
    return rc;
}

static ofo_paths_file_t *map_whole(int fd)
{
    void *map = mmap(NULL, sizeof(ofo_paths_file_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return MAP_FAILED == map ? NULL : map;
}

static int fill(int fd, uid_t uid)
{
    ofo_paths_file_t *file;
    int rc = bfo_file_room(fd, sizeof(*file));

    if (0 != rc) {
        return rc;
    }
    file = map_whole(fd);
    if (NULL == file) {
        return errno;
    }
    file->head = (ofo_paths_head_t){.magic = OFO_PATHS_MAGIC, .layout = OFO_PATHS_LAYOUT, .size = sizeof(*file)};
    rc = ofo_paths_format(file->group, OFO_PATHS_GROUPS);
    ofo_paths_unmap(file);
    return rc;
}

static bool is_ours(int fd)
{
    ofo_paths_head_t head;
    struct stat st;

    return 0 == fstat(fd, &st) && (off_t) sizeof(ofo_paths_file_t) == st.st_size && (ssize_t) sizeof(head) == pread(fd, &head, sizeof(head), 0)
           && OFO_PATHS_MAGIC == head.magic && OFO_PATHS_LAYOUT == head.layout && sizeof(ofo_paths_file_t) == head.size;
}

ofo_paths_file_t *ofo_paths_map(int dir)
{
    const int fd = bfo_file_open(dir, OFO_PATHS_NAME, fill, geteuid());
    ofo_paths_file_t *file = NULL;

    if (0 > fd) {
        errno = -fd;
        return NULL;
    }
    if (is_ours(fd)) {
        file = map_whole(fd);
    } else {
        errno = EPROTO;
    }
    close(fd);
    return file;
}

void ofo_paths_unmap(ofo_paths_file_t *file)
{
    munmap(file, sizeof(*file));
}

uint64_t ofo_paths_clock(void)
{
    struct stat st;

    return 0 == stat("/proc/self/ns/time", &st) ? (uint64_t) st.st_ino : 0;
}
