/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * mpi_pmix DIR [LISTENER]: ranks exchange verified messages until DIR has a file "end". Meanwhile rank LISTENER (all ranks if none is named)
 * has a PMIx handler for the code of bfo's events, and prints a line for each event. DESIGN.txt section 19.13.
 */
#include "mpi_check.h"

#include <pmix.h>
#include <unistd.h>

enum { CODE = -6056, LONG = 200000 };

static uint8_t out[LONG], in[LONG];

static void add_value(char *line, size_t room, const pmix_info_t *info)
{
    const size_t at = strlen(line);

    switch (info->value.type) {
    case PMIX_STRING:
        snprintf(line + at, room - at, " %s=%s", info->key, info->value.data.string);
        break;
    case PMIX_UINT32:
        snprintf(line + at, room - at, " %s=%u", info->key, info->value.data.uint32);
        break;
    case PMIX_UINT64:
        snprintf(line + at, room - at, " %s=%llu", info->key, (unsigned long long) info->value.data.uint64);
        break;
    default:
        snprintf(line + at, room - at, " %s has the type %d", info->key, info->value.type);
    }
}

/* Context: a thread of PMIx. */
static void hear(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t *info, size_t n_info, pmix_info_t *results,
                 size_t n_results, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    char line[1024];

    snprintf(line, sizeof(line), "rank %d heard %d of rank %u:", rank, status, source->rank);
    for (size_t i = 0; i < n_info; ++i) {
        if (0 == strncmp("bfo.", info[i].key, 4)) {
            add_value(line, sizeof(line), &info[i]);
        }
    }
    printf("%s\n", line);
    fflush(stdout);
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void listen_to_events(void)
{
    pmix_proc_t own;
    pmix_status_t code = CODE;
    int handler;

    CHECK(PMIX_SUCCESS == PMIx_Init(&own, NULL, 0));
    handler = PMIx_Register_event_handler(&code, 1, NULL, 0, hear, NULL, NULL);
    CHECK(0 <= handler);
}

int main(int argc, char **argv)
{
    unsigned message = 0;
    char end[512];
    int is_over = 0;
    bool listens;

    CHECK(2 <= argc);
    start(&argc, &argv);
    listens = 2 == argc || atoi(argv[2]) == rank;
    if (listens) {
        listen_to_events();
    }
    snprintf(end, sizeof(end), "%s/end", argv[1]);
    for (; !is_over; ++message) {
        const size_t size = 0 == message % 3 ? 64 : LONG;

        fill(out, size, message);
        MPI(MPI_Sendrecv(out, (int) size, MPI_BYTE, neighbour(), 1, in, LONG, MPI_BYTE, neighbour(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(is_filled(in, size, message));
        if (0 == message % 20) {
            is_over = 0 == access(end, F_OK);
            MPI(MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD));
        }
        if (20 == message) {
            printf("rank %d is ready\n", rank);
            fflush(stdout);
        }
    }
    if (listens) {
        CHECK(PMIX_SUCCESS == PMIx_Finalize(NULL, 0));
    }
    return finish();
}
