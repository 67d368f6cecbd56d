/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Shared by the programs of cases that read the file of figures and write the list of the user (DESIGN.txt section 19); each includes
 * this file once. Two rails with failover, over the ports a:1 and b:1, reach rank 1.
 */
#ifndef WORLD_FIGURES_H
#define WORLD_FIGURES_H

#include "world_case.h"

#include "bfo_figures.h"
#include "show/pml_bfo_figures.h"

#include "ompi/communicator/communicator.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

void fuzz_progress(void);

static bfo_steer_t *steer;           /* as the command bfo writes it */
static const bfo_figures_t *figures; /* as the command bfo sees it */

static void *map(int dir, const char *name, size_t size)
{
    const int fd = openat(dir, name, O_RDWR);
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    must(0 <= fd && MAP_FAILED != at, "a file cannot be mapped");
    close(fd);
    return at;
}

static void map_both(const char *root)
{
    const int fd = bfo_figures_dir(root, geteuid(), false);
    DIR *names = fdopendir(fd);
    const struct dirent *entry;

    must(NULL != names, "there is no directory");
    while (NULL != (entry = readdir(names))) {
        uint32_t job, rank, pid;

        if (bfo_figures_parse_name(entry->d_name, &job, &rank, &pid)) {
            figures = map(fd, entry->d_name, sizeof(*figures));
        }
    }
    steer = map(fd, BFO_STEER_NAME, sizeof(*steer));
    closedir(names);
    must(NULL != figures, "there is no file of figures");
}

static inline void life_begins_without_peer(void)
{
    static char root[] = "/tmp/world-figures-XXXXXX";

    must(NULL != mkdtemp(root), "no directory");
    ompi_mpi_comm_world.comm.c_local_group = world_comm[0]->c_local_group;
    bfo_params.status_dir = root;
    bfo_params.rejoin = true;
    world_btl[0].ext.port = "a:1";
    world_btl[1].ext.port = "b:1";
    bfo_figures_open();
    map_both(root);
    world_begin();
}

static inline bfo_peer_t *life_begins(void)
{
    life_begins_without_peer();
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    return peer_of_rank(1);
}

static inline void life_ends(void)
{
    char command[200];

    bfo_figures_close();
    snprintf(command, sizeof(command), "rm -r %s", bfo_params.status_dir);
    must(0 == system(command), "the directory stays");
}

static inline void take_out(const char *port, bool by_force)
{
    steer->sequence += 1;
    steer->n_out = NULL == port ? 0 : 1;
    steer->forced = by_force;
    snprintf(steer->out[0], sizeof(steer->out[0]), "%s", NULL == port ? "" : port);
    steer->sequence += 1;
    fuzz_progress();
}

/* The user wants this process to use another value of a parameter, as `bfo set` does. */
static inline void wish(uint32_t parameter, int64_t value)
{
    steer->sequence += 1;
    steer->wish[steer->n_wishes++] = (bfo_steer_wish_t){
        .job = OPAL_PROC_MY_NAME.jobid, .parameter = parameter, .value = value, .number = steer->sequence + 1};
    steer->sequence += 1;
}

/* The user takes this port out of service; NULL: no port. */
static inline void out(const char *port)
{
    take_out(port, false);
}

static inline bfo_figures_port_t port_of(const char *port)
{
    for (uint32_t i = 0; i < figures->n_ports; ++i) {
        if (0 == strcmp(port, figures->port[i].name)) {
            return figures->port[i];
        }
    }
    return (bfo_figures_port_t){.state = BFO_FIGURES_NONE};
}

static inline uint32_t state_of(const char *port)
{
    return port_of(port).state;
}

#endif /* WORLD_FIGURES_H */
