/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Preloaded into a job, this library does to one message what a wrong PML would do; the program gets no error. BFO_WRONG is
 * "flipped N" (a bit of the last byte), "lost N", "doubled N" or "swapped N" for the N-th MPI_Send or MPI_Isend of rank 0. A swapped message is sent
 * after the next message with the same communicator, receiver and tag. Receives are MPI_Recv and MPI_Irecv of rank 0. "late N": the
 * library writes to the buffer of the N-th receive again, six receives later. "before N", "after N": it writes the byte before the
 * buffer of the N-th receive, or the byte after it. test_oracles.sh checks which programs notice. The library writes an error that MPI finds in
 * MPI_COMM_WORLD, or in a communicator made of it, to stderr and ends the job, because mpirun sometimes loses the text of
 * MPI_ERRORS_ARE_FATAL.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAIN, FLIPPED, LOST, DOUBLED, SWAPPED };

typedef struct {
    const void *data;
    int count, to, tag;
    MPI_Datatype type;
    MPI_Comm comm;
} message_t;

static message_t held; /* the swapped message, until the next message to the same receiver */

/* Is it the turn of the n-th message? */
static bool is_now(const char *way, unsigned long n)
{
    const char *text = getenv("BFO_WRONG");
    char is[16] = "";
    unsigned long at = 0;
    int rank;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (0 != rank || NULL == text || 2 != sscanf(text, "%15s %lu", is, &at) || at != n || 0 != strcmp(way, is)) {
        return false;
    }
    fprintf(stderr, "wrong_mpi: message %lu of rank 0 is %s\n", at, way);
    return true;
}

/* Returns what happens to this message. */
static int fate(void)
{
    static unsigned long sent;

    ++sent;
    return is_now("flipped", sent)   ? FLIPPED
           : is_now("lost", sent)    ? LOST
           : is_now("doubled", sent) ? DOUBLED
           : is_now("swapped", sent) ? SWAPPED
                                     : PLAIN;
}

/* A copy of the message in new memory that is never freed. */
static message_t copy_of(message_t m)
{
    int room = 0, length = 0;
    char *packed;

    PMPI_Pack_size(m.count, m.type, m.comm, &room);
    packed = malloc((size_t) room + 1);
    if (NULL == packed || MPI_SUCCESS != PMPI_Pack(m.data, m.count, m.type, packed, room, &length, m.comm)) {
        fprintf(stderr, "wrong_mpi: a message cannot be copied\n");
        abort();
    }
    return (message_t){packed, length, m.to, m.tag, MPI_PACKED, m.comm};
}

static message_t flipped(message_t m)
{
    message_t wrong = copy_of(m);

    ((char *) wrong.data)[wrong.count - 1] ^= 1;
    return wrong;
}

static void send_on_its_own(message_t m)
{
    MPI_Request request;

    PMPI_Isend(m.data, m.count, m.type, m.to, m.tag, m.comm, &request);
    PMPI_Request_free(&request);
}

static int send(message_t m, MPI_Request *request)
{
    int what = fate(), error;

    if (LOST == what || SWAPPED == what) {
        held = SWAPPED == what ? copy_of(m) : held;
        return PMPI_Isend(m.data, 0, m.type, MPI_PROC_NULL, m.tag, m.comm, request);
    }
    if (FLIPPED == what) {
        m = flipped(m);
    }
    if (DOUBLED == what) {
        send_on_its_own(copy_of(m));
    }
    error = PMPI_Isend(m.data, m.count, m.type, m.to, m.tag, m.comm, request);
    if (NULL != held.data && held.to == m.to && held.tag == m.tag && held.comm == m.comm) {
        send_on_its_own(held);
        held.data = NULL;
    }
    return error;
}

static void tell_error(MPI_Comm *comm, int *error, ...)
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length;

    (void) comm;
    PMPI_Error_string(*error, text, &length);
    fprintf(stderr, "wrong_mpi: MPI says %s\n", text);
    PMPI_Abort(MPI_COMM_WORLD, 4);
}

static int begun(int error)
{
    MPI_Errhandler handler;

    if (MPI_SUCCESS == error && MPI_SUCCESS == (error = PMPI_Comm_create_errhandler(tell_error, &handler))) {
        error = PMPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
        PMPI_Errhandler_free(&handler);
    }
    return error;
}

__attribute__((visibility("default"))) int MPI_Init(int *argc, char ***argv)
{
    return begun(PMPI_Init(argc, argv));
}

__attribute__((visibility("default"))) int MPI_Init_thread(int *argc, char ***argv, int wanted, int *provided)
{
    return begun(PMPI_Init_thread(argc, argv, wanted, provided));
}

__attribute__((visibility("default"))) int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                                                     MPI_Request *request)
{
    return send((message_t){data, count, to, tag, type, comm}, request);
}

__attribute__((visibility("default"))) int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    MPI_Request request;
    int error = send((message_t){data, count, to, tag, type, comm}, &request);

    return MPI_SUCCESS != error ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Before a receive of rank 0 is posted. */
static void spoil(unsigned char *buffer, int count, MPI_Datatype type)
{
    static unsigned long posted, marked;
    static unsigned char *late;
    MPI_Aint lower, extent;

    ++posted;
    if (is_now("late", posted)) {
        late = buffer;
        marked = posted;
    } else if (is_now("before", posted)) {
        ++buffer[-1];
    } else if (is_now("after", posted)) {
        PMPI_Type_get_extent(type, &lower, &extent);
        ++buffer[count * extent];
    }
    if (NULL != late && posted == marked + 6) {
        ++*late;
    }
}

__attribute__((visibility("default"))) int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    spoil(data, count, type);
    return PMPI_Irecv(data, count, type, from, tag, comm, request);
}

__attribute__((visibility("default"))) int MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    spoil(data, count, type);
    return PMPI_Recv(data, count, type, from, tag, comm, status);
}
