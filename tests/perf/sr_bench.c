/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Figures of the bare machine, with which softrail is compared, and the memory of softrail:
 *   sr_bench ring CPU CPU     half round trip of a shared-memory ring ping-pong of 8 bytes, ns (median)
 *   sr_bench cma CPU          process_vm_writev of 1 MiB into another process, MiB/s: peak and average
 *   sr_bench qps PROCS PEERS  memory per RC queue pair, bytes; below softrail run with two rails
 */
#include <dirent.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 32
#define ROUNDS 20000
#define MIB (1 << 20)

struct slot {
    _Alignas(64) _Atomic uint32_t seq;
    uint64_t payload;
};

struct rings {
    struct slot there[SLOTS], back[SLOTS];
};

static void pin(const char *cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((unsigned) atoi(cpu), &set);
    if (0 != sched_setaffinity(0, sizeof(set), &set)) {
        perror("sched_setaffinity");
        exit(1);
    }
}

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

static void put(struct slot *ring, uint32_t n, uint64_t value)
{
    ring[n % SLOTS].payload = value;
    atomic_store_explicit(&ring[n % SLOTS].seq, n + 1, memory_order_release);
}

static uint64_t get(struct slot *ring, uint32_t n)
{
    while (n + 1 != atomic_load_explicit(&ring[n % SLOTS].seq, memory_order_acquire)) {
    }
    return ring[n % SLOTS].payload;
}

static void ring(const char *here, const char *there)
{
    struct rings *r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    static double took[ROUNDS];
    pid_t child = fork();

    if (0 == child) {
        pin(there);
        for (uint32_t i = 0; i < ROUNDS; ++i) {
            put(r->back, i, get(r->there, i));
        }
        _exit(0);
    }
    pin(here);
    for (uint32_t i = 0; i < ROUNDS; ++i) {
        double begin = now();
        put(r->there, i, i);
        get(r->back, i);
        took[i] = (now() - begin) / 2;
    }
    waitpid(child, NULL, 0);
    qsort(took, ROUNDS, sizeof(took[0]), by_value);
    printf("%.0f\n", took[ROUNDS / 2]);
}

static void cma(const char *cpu)
{
    char *target = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), *mine = malloc(MIB);
    struct iovec local = {mine, MIB}, remote;
    int ready[2], count = 500;
    double begin, last, least = 1e9;
    pid_t child;

    memset(mine, 1, MIB);
    if (0 != pipe(ready)) {
        exit(1);
    }
    child = fork();
    if (0 == child) {
        char *memory = malloc(MIB);
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        memset(memory, 0, MIB);
        memcpy(target, &memory, sizeof(memory));
        if (1 != write(ready[1], "x", 1)) {
            _exit(1);
        }
        pause();
    }
    if (1 != read(ready[0], mine, 1)) {
        exit(1);
    }
    memcpy(&remote.iov_base, target, sizeof(remote.iov_base));
    remote.iov_len = MIB;
    pin(cpu);
    process_vm_writev(child, &local, 1, &remote, 1, 0);
    begin = last = now();
    for (int i = 0; i < count; ++i) {
        double at;
        if (MIB != process_vm_writev(child, &local, 1, &remote, 1, 0)) {
            perror("process_vm_writev");
            exit(1);
        }
        at = now();
        least = at - last < least ? at - last : least;
        last = at;
    }
    printf("%.0f %.0f\n", 1e9 / least, count / ((last - begin) / 1e9));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* ---- memory of queue pairs ---------------------------------------------------------------------- */

static long private_kib(void)
{
    char line[256];
    long sum = 0, value;
    FILE *in = fopen("/proc/self/smaps_rollup", "r");

    while (NULL != in && NULL != fgets(line, sizeof(line), in)) {
        if (1 == sscanf(line, "Private_Dirty: %ld", &value)) {
            sum += value;
        }
    }
    if (NULL != in) {
        fclose(in);
    }
    return sum;
}

/* Queue pairs with the depths that MPI libraries ask for; both directions and inline data. */
static void make_queue_pairs(int peers)
{
    for (int rail = 0; rail < 2; ++rail) {
        struct ibv_device **list = ibv_get_device_list(NULL);
        struct ibv_context *context = ibv_open_device(list[rail]);
        struct ibv_pd *pd = ibv_alloc_pd(context);
        struct ibv_cq *cq = ibv_create_cq(context, 1024, NULL, NULL, 0);
        struct ibv_qp_init_attr init = {
            .send_cq = cq,
            .recv_cq = cq,
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = 256, .max_recv_wr = 256, .max_send_sge = 4, .max_recv_sge = 1, .max_inline_data = 128}};
        for (int i = 0; i < peers; ++i) {
            if (NULL == ibv_create_qp(pd, &init)) {
                perror("ibv_create_qp");
                exit(1);
            }
        }
    }
}

/* Bytes of the fabric in /dev/shm, touched or not. */
static double fabric_bytes(void)
{
    char path[512];
    const char *fabric = getenv("SOFTRAIL_FABRIC");
    DIR *dir = NULL == fabric ? NULL : opendir(fabric);
    struct dirent *entry;
    struct stat st;
    double sum = 0;

    while (NULL != dir && NULL != (entry = readdir(dir))) {
        snprintf(path, sizeof(path), "%.200s/%.255s", fabric, entry->d_name);
        if (0 == lstat(path, &st) && S_ISREG(st.st_mode)) {
            sum += (double) st.st_blocks * 512;
        }
    }
    if (NULL != dir) {
        closedir(dir);
    }
    return sum;
}

static void qps(int procs, int peers)
{
    long before, after;
    double sum = 0;
    pid_t *children = calloc((size_t) procs, sizeof(*children));

    for (int i = 0; i < procs; ++i) {
        int up[2];
        if (0 != pipe(up)) {
            exit(1);
        }
        children[i] = fork();
        if (0 == children[i]) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            make_queue_pairs(0);
            before = private_kib();
            make_queue_pairs(peers);
            after = private_kib() - before;
            if (sizeof(after) != write(up[1], &after, sizeof(after))) {
                _exit(1);
            }
            pause(); /* all queue pairs exist at the same time */
        }
        close(up[1]);
        if (sizeof(after) != read(up[0], &after, sizeof(after))) {
            exit(1);
        }
        close(up[0]);
        sum += (double) after * 1024;
    }
    sum += fabric_bytes();
    for (int i = 0; i < procs; ++i) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    free(children);
    printf("%.0f\n", sum / procs / peers / 2);
}

int main(int argc, char **argv)
{
    if (4 == argc && 0 == strcmp(argv[1], "ring")) {
        ring(argv[2], argv[3]);
    } else if (3 == argc && 0 == strcmp(argv[1], "cma")) {
        cma(argv[2]);
    } else if (4 == argc && 0 == strcmp(argv[1], "qps")) {
        qps(atoi(argv[2]), atoi(argv[3]));
    } else {
        fputs("usage: sr_bench ring CPU CPU | cma CPU | qps PROCS PEERS\n", stderr);
        return 2;
    }
    return 0;
}
