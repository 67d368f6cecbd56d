/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * mpi_ports MODULES [PORTS]: what MPI_T says of each port after ranks 0 and 1 have exchanged a known number of bytes as eager messages,
 * fragments and RDMA. The variables btl_openib_port_* exist under any PML; with PORTS, the variables of the PML bfo must agree with them.
 * DESIGN.txt section 14.9.
 */
#include "mpi_check.h"

enum { ROUNDS = 40, PIECES = 3, PORTS = 64 };
static const int sizes[PIECES] = {64, 60000, 2000000};

static MPI_T_pvar_session session;

typedef struct {
    MPI_T_pvar_handle handle;
    unsigned long long value[PORTS];
} variable_t;

static MPI_T_pvar_handle find(const char *wanted, MPI_Datatype type, int *count)
{
    char name[128], text[512];
    int name_size = sizeof(name), text_size = sizeof(text), verbosity, class, bound_to, readonly, continuous, atomic, index;
    MPI_T_pvar_handle handle;
    MPI_Datatype its_type;
    MPI_T_enum names;
    int n;

    MPI(MPI_T_pvar_get_num(&n));
    for (index = 0; index < n; ++index) {
        name_size = sizeof(name);
        text_size = sizeof(text);
        MPI(MPI_T_pvar_get_info(index, name, &name_size, &verbosity, &class, &its_type, &names, text, &text_size, &bound_to, &readonly, &continuous,
                                &atomic));
        if (0 == strcmp(wanted, name)) {
            break;
        }
    }
    CHECK(index < n);
    CHECK(type == its_type && readonly && continuous && '\0' != text[0] && MPI_T_BIND_NO_OBJECT == bound_to);
    MPI(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, count));
    return handle;
}

static unsigned long long sum_of(const char *name, variable_t *variable)
{
    unsigned long long sum = 0;
    int count = 0;

    if (NULL == variable->handle) {
        variable->handle = find(name, MPI_UNSIGNED_LONG_LONG, &count);
        CHECK(0 < count && count <= PORTS);
    }
    MPI(MPI_T_pvar_read(session, variable->handle, variable->value));
    for (int i = 0; i < PORTS; ++i) {
        sum += variable->value[i];
    }
    return sum;
}

/* Names, separated by commas. */
static void check_names(const char *name, int ports)
{
    MPI_T_pvar_handle handle;
    char *text;
    int count, n = 1;

    handle = find(name, MPI_CHAR, &count);
    CHECK(0 < count && count <= 65536);
    text = calloc(1, (size_t) count + 1);
    CHECK(NULL != text);
    MPI(MPI_T_pvar_read(session, handle, text));
    CHECK(NULL != memchr(text, 0, (size_t) count));
    for (const char *c = text; '\0' != *c; ++c) {
        n += ',' == *c;
    }
    if (0 == rank) {
        printf("%s: %s\n", name, text);
    }
    CHECK(ports == n && 0 == strncmp(text, "sr0:1", 5));
    free(text);
    MPI(MPI_T_pvar_handle_free(session, &handle));
}

static void exchange(void)
{
    for (int i = 0; rank < 2 && i < ROUNDS * PIECES; ++i) {
        const int size = sizes[i % PIECES];
        uint8_t *out = malloc((size_t) size), *in = receive_room((size_t) size);

        CHECK(NULL != out);
        fill(out, (size_t) size, (uint32_t) (i * 2 + rank));
        MPI(MPI_Sendrecv(out, size, MPI_BYTE, 1 - rank, i, in, size, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(is_filled(in, (size_t) size, (uint32_t) (i * 2 + 1 - rank)));
        free(out);
        give_back(in, (size_t) size);
    }
}

static unsigned long long payload(void)
{
    unsigned long long sum = 0;

    for (int i = 0; i < PIECES; ++i) {
        sum += (unsigned long long) ROUNDS * (unsigned) sizes[i];
    }
    return sum;
}

/* All bytes of the messages, and a few percent of headers and control messages. */
static bool fits(unsigned long long bytes)
{
    return payload() <= bytes && bytes <= payload() + payload() / 20;
}

int main(int argc, char **argv)
{
    enum { SENT, RECEIVED, WRITTEN, READ, PML_SENT, PML_RECEIVED, MESSAGES, LOST, N };
    static const char *const names[N] = {
        "btl_openib_port_sent_bytes", "btl_openib_port_received_bytes", "btl_openib_port_written_bytes", "btl_openib_port_read_bytes",
        "pml_bfo_port_sent_bytes",    "pml_bfo_port_received_bytes",    "pml_bfo_port_sent_messages",    "pml_bfo_port_lost"};
    static variable_t variable[N];
    unsigned long long before[N], grown[N];
    const int modules = argc > 1 ? atoi(argv[1]) : 0, ports = argc > 2 ? atoi(argv[2]) : 0;
    const bool has_pml = 0 != ports;
    int provided;

    start(&argc, &argv);
    MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    MPI(MPI_T_pvar_session_create(&session));
    exchange(); /* the first contact is not measured */
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < N; ++i) {
        before[i] = has_pml || i < PML_SENT ? sum_of(names[i], &variable[i]) : 0;
    }
    exchange();
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < N; ++i) {
        grown[i] = has_pml || i < PML_SENT ? sum_of(names[i], &variable[i]) - before[i] : 0;
        if (0 == rank) {
            printf("%s grew by %llu\n", names[i], grown[i]);
        }
    }
    if (rank < 2) { /* a PUT or GET of one side counts as bytes of the other side as well */
        unsigned long long mine[2] = {grown[SENT] + grown[WRITTEN], grown[RECEIVED] + grown[READ]}, theirs[2];

        MPI(MPI_Sendrecv(&grown[WRITTEN], 2, MPI_UNSIGNED_LONG_LONG, 1 - rank, 7, theirs, 2, MPI_UNSIGNED_LONG_LONG, 1 - rank, 7, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE));
        CHECK(fits(mine[0] + theirs[1]) && fits(mine[1] + theirs[0]));
        CHECK(!has_pml || (fits(grown[PML_SENT]) && fits(grown[PML_RECEIVED]) && grown[MESSAGES] >= ROUNDS * PIECES && 0 == grown[LOST]));
    }
    check_names("btl_openib_port_names", modules);
    if (has_pml) {
        check_names("pml_bfo_port_names", ports);
    }
    for (int i = 0; i < N; ++i) {
        if (NULL != variable[i].handle) {
            MPI(MPI_T_pvar_handle_free(session, &variable[i].handle));
        }
    }
    MPI(MPI_T_pvar_session_free(&session));
    MPI(MPI_T_finalize());
    return finish();
}
