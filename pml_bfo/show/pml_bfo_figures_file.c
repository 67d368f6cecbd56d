/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The memory of the figures: a file that other processes can read, complete before it gets its name; without a file, memory of the
 * process. DESIGN.txt section 19.1.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* program_invocation_short_name */
#endif
#include "types/pml_bfo.h"

#include "show/pml_bfo_figures_file.h"

#include "bfo_file.h"
#include "formats/pml_bfo_life.h"
#include "types/pml_bfo_local.h"
#include "types/pml_bfo_params.h"

#include "opal/util/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static bfo_figures_t without_file;
static bfo_figures_t *figures;  /* NULL: none */
static bfo_steer_t *steer;      /* NULL: none */
static uint64_t seen_with;      /* number of that list just before the file of this process became visible */
static int dir = -1, file = -1; /* the file stays open, because its lock says that this process lives */
static char name[BFO_FIGURES_NAME];

/* The name that the batch system gives the job, because its user and the administrator know it by that name. */
static const char *batch_job(void)
{
    static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "JOB_ID"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        const char *value = getenv(names[i]);

        if (NULL != value && '\0' != value[0]) {
            return value;
        }
    }
    return "";
}

static void fill_parameters(bfo_figures_t *f)
{
    _Static_assert((int) BFO_PARAMETERS_LIVE <= (int) BFO_FIGURES_PARAMETERS, "each has its place");
    f->parameter[BFO_PARAMETER_VERBOSE] = bfo_params.verbose;
    f->parameter[BFO_PARAMETER_COUNTERS] = bfo_params.counters;
    f->parameter[BFO_PARAMETER_WARNINGS_PER_MINUTE] = bfo_params.warnings_per_minute;
    f->parameter[BFO_PARAMETER_LAST_RAIL_TIMEOUT] = bfo_params.last_rail_timeout;
    f->parameter[BFO_PARAMETER_RESEND_BURST] = bfo_params.resend_burst;
}

static void fill(bfo_figures_t *f)
{
    f->layout = BFO_FIGURES_LAYOUT;
    f->size = sizeof(*f);
    f->pid = (uint32_t) getpid();
    f->started = bfo_life_started(f->pid);
    f->job = OPAL_PROC_MY_NAME.jobid;
    f->rank = OPAL_PROC_MY_NAME.vpid;
    f->began_wall = f->changed_wall = bfo_clock_ns(CLOCK_REALTIME);
    f->began_mono = bfo_clock_ns(CLOCK_MONOTONIC);
    snprintf(f->host, sizeof(f->host), "%s", OPAL_PROC_MY_HOSTNAME);
    snprintf(f->command, sizeof(f->command), "%s", program_invocation_short_name);
    snprintf(f->batch, sizeof(f->batch), "%s", batch_job());
    snprintf(f->version, sizeof(f->version), "%s", BFO_VERSION);
    f->event[0] = (bfo_figures_event_t){.number = 1,
                                        .wall = f->began_wall,
                                        .mono = f->began_mono,
                                        .what = BFO_FIGURES_BEGUN,
                                        .before = BFO_FIGURES_NONE,
                                        .after = BFO_FIGURES_UP,
                                        .peer = -1};
    f->n_events = 1;
    fill_parameters(f);
    f->steer_number = seen_with;
    f->magic = BFO_FIGURES_MAGIC;
}

/* Nobody finds the file before it is complete, locked and has its space allocated. A full file system shows here, not as a signal at the
 * first write. Returns 0 or errno. */
static int make(const char *new)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    void *map = MAP_FAILED;
    int rc;

    (void) unlinkat(dir, new, 0); /* left by a dead process with this id */
    file = openat(dir, new, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (0 > file) {
        return errno;
    }
    rc = bfo_file_room(file, sizeof(*figures));
    if (0 == rc && 0 != fcntl(file, F_SETLK, &whole)) {
        rc = errno;
    }
    if (0 == rc) {
        map = mmap(NULL, sizeof(*figures), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        rc = MAP_FAILED == map ? errno : 0;
    }
    if (0 == rc) {
        figures = map;
        fill(figures);
        bfo_figures_make_name(name, figures->job, figures->rank, figures->pid);
        rc = 0 != renameat(dir, new, dir, name) ? errno : 0;
    }
    if (0 != rc) {
        (void) unlinkat(dir, new, 0);
        if (MAP_FAILED != map) {
            munmap(map, sizeof(*figures));
        }
    }
    return rc;
}

static void give_up(void)
{
    if (NULL != steer) {
        munmap(steer, sizeof(*steer));
        steer = NULL;
    }
    if (0 <= file) {
        close(file);
    }
    if (0 <= dir) {
        close(dir);
    }
    file = dir = -1;
}

/* Without the list the job goes on, but the command bfo cannot take a port out of service for it. */
static void map_steer(void)
{
    const int fd = bfo_figures_open_steer(dir, geteuid());
    void *map = 0 > fd ? MAP_FAILED : mmap(NULL, sizeof(*steer), PROT_READ, MAP_SHARED, fd, 0);

    steer = MAP_FAILED == map ? NULL : map;
    seen_with = NULL == steer ? 0 : __atomic_load_n(&steer->sequence, __ATOMIC_ACQUIRE);
    if (NULL == steer && 0 < bfo_params.verbose) {
        opal_output(0, "bfo: rank %u cannot be steered by the command bfo: %s", OPAL_PROC_MY_NAME.vpid, strerror(0 > fd ? -fd : errno));
    }
    if (0 <= fd) {
        close(fd);
    }
}

const bfo_steer_t *bfo_figures_steer(uint64_t *number)
{
    *number = seen_with;
    return steer;
}

int bfo_figures_directory(void)
{
    return dir;
}

static bfo_figures_t *keep_to_ourselves(void)
{
    memset(&without_file, 0, sizeof(without_file));
    fill(&without_file);
    return figures = &without_file;
}

bfo_figures_t *bfo_figures_file_open(void)
{
    char new[BFO_FIGURES_NAME];
    int rc;

    if (NULL == bfo_params.status_dir || 0 == strcmp(BFO_FIGURES_OFF, bfo_params.status_dir)) {
        return keep_to_ourselves();
    }
    snprintf(new, sizeof(new), ".new.%u", (unsigned) getpid());
    dir = bfo_figures_dir(bfo_params.status_dir, geteuid(), true);
    rc = 0 > dir ? -dir : 0;
    if (0 == rc) {
        (void) bfo_figures_sweep(dir, geteuid(), OPAL_PROC_MY_NAME.jobid);
        map_steer(); /* before the command bfo can see this process and wait for it to obey */
        rc = make(new);
    }
    if (0 == rc) {
        return figures;
    }
    give_up();
    if (0 < bfo_params.verbose) {
        opal_output(0, "bfo: rank %u keeps no figures for the command bfo in %s/bfo-%u: %s", OPAL_PROC_MY_NAME.vpid, bfo_params.status_dir,
                    (unsigned) geteuid(), strerror(rc));
    }
    return keep_to_ourselves();
}

void bfo_figures_file_close(bool unmap)
{
    if (0 <= file && figures->pid == (uint32_t) getpid()) { /* otherwise this is a forked child, and the file is its parent's */
        (void) unlinkat(dir, name, 0);
    }
    if (unmap && &without_file != figures) {
        munmap(figures, sizeof(*figures));
    }
    figures = NULL;
    give_up();
}
