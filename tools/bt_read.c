/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Reads the files of figures. A file is copied and never mapped, so that a user who shortens it does not harm the reader. Then every
 * field is checked. DESIGN.txt section 19.
 */
#include "bt_hosts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS = 50 };

/* ---- checks --------------------------------------------------------------------------------------------- */

/* Terminates a text and makes it harmless for terminals, JSON and Prometheus. */
void bt_clean_text(char *text, size_t size)
{
    bool is_over = false;

    text[size - 1] = '\0';
    for (size_t i = 0; i < size; ++i) {
        is_over = is_over || '\0' == text[i];
        if (is_over) {
            text[i] = '\0';
        } else if (text[i] < 0x20 || text[i] > 0x7e) {
            text[i] = '?';
        }
    }
}
#define CLEAN(text) bt_clean_text(text, sizeof(text))

/* Cuts a time at the end of the year 9999, because later times cannot be printed. */
static void clean_time(uint64_t *wall)
{
    if (*wall / UINT64_C(1000000000) > UINT64_C(253402300799)) {
        *wall = 0;
    }
}

static void check_port(bfo_figures_port_t *port)
{
    CLEAN(port->name);
    CLEAN(port->here);
    CLEAN(port->cause);
    clean_time(&port->since_wall);
    clean_time(&port->lost_wall);
    if (port->state >= BFO_FIGURES_STATES) {
        port->state = BFO_FIGURES_NONE;
    }
    if (port->rails_lost > port->rails) {
        port->rails_lost = port->rails;
    }
}

/* An event whose number does not fit its place was never written, or is being written now. */
static void check_event(bfo_figures_event_t *event, uint64_t place, uint64_t n_events)
{
    const uint64_t first = n_events > BFO_FIGURES_EVENTS ? n_events - BFO_FIGURES_EVENTS + 1 : 1;

    if (event->number < first || event->number > n_events || (event->number - 1) % BFO_FIGURES_EVENTS != place || 0 == event->what
        || event->what >= BFO_FIGURES_WHATS || event->before >= BFO_FIGURES_STATES || event->after >= BFO_FIGURES_STATES) {
        event->number = 0;
    }
    CLEAN(event->here);
    CLEAN(event->there);
    CLEAN(event->host);
    CLEAN(event->cause);
    clean_time(&event->wall);
}

const char *bt_check(bfo_figures_t *f, const char *name)
{
    uint32_t job, rank, pid;

    if (BFO_FIGURES_MAGIC != f->magic) {
        return "it is no file of figures";
    }
    if (BFO_FIGURES_LAYOUT != f->layout || sizeof(*f) != f->size) {
        return "another release of bfo wrote it";
    }
    if (!bfo_figures_parse_name(name, &job, &rank, &pid) || job != f->job || rank != f->rank || pid != f->pid) {
        return "its name and its content disagree";
    }
    CLEAN(f->host);
    CLEAN(f->command);
    CLEAN(f->batch);
    CLEAN(f->version);
    CLEAN(f->reason);
    clean_time(&f->began_wall);
    clean_time(&f->changed_wall);
    if (f->verdict >= BFO_FIGURES_VERDICTS) {
        f->verdict = BFO_FIGURES_NOT_KNOWN;
    }
    if (f->n_ports > BFO_FIGURES_PORTS) {
        f->n_ports = BFO_FIGURES_PORTS;
    }
    if (f->n_modules > BFO_FIGURES_MODULES) {
        f->n_modules = BFO_FIGURES_MODULES;
    }
    for (uint32_t i = 0; i < BFO_FIGURES_PORTS; ++i) {
        check_port(&f->port[i]);
    }
    for (uint64_t i = 0; i < BFO_FIGURES_EVENTS; ++i) {
        check_event(&f->event[i], i, f->n_events);
    }
    return NULL;
}

/* ---- one file --------------------------------------------------------------------------------------------- */

static void refuse(bt_all_t *all, const char *root, unsigned uid, const char *name, const char *why)
{
    if (all->n_refused < BT_MOST_REFUSED) {
        snprintf(all->refused[all->n_refused], sizeof(all->refused[0]), "%.80s/bfo-%u%s%.64s: %s", root, uid, '\0' == name[0] ? "" : "/", name, why);
        bt_clean_text(all->refused[all->n_refused], sizeof(all->refused[0]));
    }
    ++all->n_refused;
}

/* Copies the file; false if it is too short. The sequence is read with the file and once more after it. If these are not the same even
 * number, the file is being written: the copy is tried again, and *is_torn if it does not get better. */
static bool copy(int file, bfo_figures_t *f, bool *is_torn)
{
    const struct timespec a_while = {.tv_nsec = 1000000};
    uint64_t after;

    for (int look = 0; look < LOOKS; ++look) {
        if ((ssize_t) sizeof(*f) != pread(file, f, sizeof(*f), 0)
            || (ssize_t) sizeof(after) != pread(file, &after, sizeof(after), offsetof(bfo_figures_t, sequence))) {
            return false;
        }
        *is_torn = 0 != (f->sequence & 1) || after != f->sequence;
        if (!*is_torn) {
            break;
        }
        nanosleep(&a_while, NULL);
    }
    return true;
}

bool bt_is_job(const bfo_figures_t *f, const char *job)
{
    char name[16], family[16];

    snprintf(family, sizeof(family), "%u", f->job >> 16);
    return NULL == job || 0 == strcmp(job, bt_job_name(name, f->job)) || 0 == strcmp(job, family) || ('\0' != job[0] && 0 == strcmp(job, f->batch));
}

bool bt_add(bt_all_t *all, bt_process_t *process)
{
    if (BT_MOST_PROCESSES == all->n) {
        return false;
    }
    if (0 == (all->n & (all->n - 1))) { /* room for the next power of two */
        bt_process_t **more = realloc(all->process, (0 == all->n ? 1 : 2 * all->n) * sizeof(*more));

        if (NULL == more) {
            return false;
        }
        all->process = more;
    }
    all->process[all->n++] = process;
    return true;
}

/* Reads a process. Returns NULL, or what is wrong with the file. */
static const char *read_process(int file, const char *name, bt_process_t *process)
{
    struct stat st;
    const char *why;

    if (0 != fstat(file, &st) || (off_t) sizeof(process->f) != st.st_size || !copy(file, &process->f, &process->torn)) {
        return "it has not the size of a file of figures";
    }
    why = bt_check(&process->f, name);
    process->alive = NULL == why && bfo_figures_is_alive(file, process->f.pid);
    return why;
}

/* Reads a file. False: no memory. */
static bool read_file(bt_all_t *all, int dir, const char *root, uid_t uid, const char *name, const char *job)
{
    const int file = bfo_figures_open_file(dir, name, uid);
    bt_process_t *process;
    const char *why;

    if (0 > file) {
        if (ENOENT != errno) { /* otherwise its process has ended meanwhile */
            refuse(all, root, uid, name, "it is no plain file of its user");
        }
        return true;
    }
    process = calloc(1, sizeof(*process));
    if (NULL == process) {
        close(file);
        return false;
    }
    process->uid = uid;
    why = read_process(file, name, process);
    close(file);
    if (NULL != why) {
        refuse(all, root, uid, name, why);
    } else if (bt_is_job(&process->f, job)) {
        return bt_add(all, process);
    }
    free(process);
    return true;
}

/* ---- all of them -------------------------------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
    const bt_process_t *x = *(bt_process_t *const *) a, *y = *(bt_process_t *const *) b;

    if (x->uid != y->uid) {
        return x->uid < y->uid ? -1 : 1;
    }
    if (x->f.job != y->f.job) {
        return x->f.job < y->f.job ? -1 : 1;
    }
    if (0 != strcmp(x->f.host, y->f.host)) {
        return strcmp(x->f.host, y->f.host);
    }
    return x->f.rank < y->f.rank ? -1 : x->f.rank > y->f.rank;
}

static void sort(bt_all_t *all)
{
    if (0 != all->n) {
        qsort(all->process, all->n, sizeof(all->process[0]), by_rank);
    }
}

static bool read_dir(bt_all_t *all, const char *root, uid_t uid, const char *job)
{
    const int dir = bfo_figures_dir(root, uid, false);
    DIR *names;
    const struct dirent *entry;
    bool has_memory = true;

    if (0 > dir) {
        if (-ENOENT != dir) {
            refuse(all, root, uid, "", -EPERM == dir ? "it is no private directory of its user" : strerror(-dir));
        }
        return true;
    }
    names = fdopendir(dup(dir));
    while (NULL != names && has_memory && NULL != (entry = readdir(names))) {
        if (BT_MOST_PROCESSES == all->n) {
            refuse(all, root, uid, "", "it holds more files than are read");
            break;
        }
        if ('.' != entry->d_name[0]) {
            has_memory = read_file(all, dir, root, uid, entry->d_name, job);
        }
    }
    if (NULL != names) {
        closedir(names);
    }
    close(dir);
    return has_memory;
}

const char *bt_root_of(const char *root)
{
    const char *env = getenv("BFO_STATUS_DIR");

    return NULL != root ? root : NULL != env && '/' == env[0] ? env : BFO_FIGURES_ROOT;
}

bool bt_for_users(const char *root, bool (*what)(void *context, const char *root, uid_t uid), void *context)
{
    DIR *names = 0 == geteuid() ? opendir(root) : NULL;
    const struct dirent *entry;
    bool goes_on = true;

    if (NULL == names) {
        return what(context, root, geteuid());
    }
    while (goes_on && NULL != (entry = readdir(names))) {
        char again[32];
        unsigned uid;

        if (1 == sscanf(entry->d_name, "bfo-%10u", &uid)) {
            snprintf(again, sizeof(again), "bfo-%u", uid);
            if (0 == strcmp(again, entry->d_name)) {
                goes_on = what(context, root, (uid_t) uid);
            }
        }
    }
    closedir(names);
    return goes_on;
}

typedef struct {
    bt_all_t *all;
    const char *job;
} reading_t;

static bool read_user(void *context, const char *root, uid_t uid)
{
    const reading_t *reading = context;

    return read_dir(reading->all, root, uid, reading->job);
}

bool bt_read(bt_all_t *all, const char *root, const char *job)
{
    reading_t reading = {.all = all, .job = job};
    bool is_done;

    memset(all, 0, sizeof(*all));
    is_done = bt_for_users(bt_root_of(root), read_user, &reading);
    sort(all);
    return is_done;
}

bool bt_read_from(bt_all_t *all, const bt_source_t *source, const char *job)
{
    bool is_done;

    if (NULL == source->hosts) {
        return bt_read(all, source->root, job);
    }
    memset(all, 0, sizeof(*all));
    is_done = bt_hosts_read(all, source, job);
    sort(all);
    return is_done;
}

void bt_free(bt_all_t *all)
{
    for (size_t i = 0; i < all->n; ++i) {
        free(all->process[i]);
    }
    free(all->process);
    memset(all, 0, sizeof(*all));
}

size_t bt_job_size_all_nodes(const bt_all_t *all, size_t at)
{
    size_t end = at;

    while (end < all->n && all->process[end]->uid == all->process[at]->uid && all->process[end]->f.job == all->process[at]->f.job) {
        ++end;
    }
    return end - at;
}

size_t bt_job_size(const bt_all_t *all, size_t at)
{
    const size_t most = bt_job_size_all_nodes(all, at);
    size_t n = 1;

    while (n < most && 0 == strcmp(all->process[at + n]->f.host, all->process[at]->f.host)) {
        ++n;
    }
    return n;
}

void bt_print_refused(const bt_all_t *all)
{
    for (size_t i = 0; i < all->n_refused && i < BT_MOST_REFUSED; ++i) {
        fprintf(stderr, "bfo: not read: %s\n", all->refused[i]);
    }
    if (all->n_refused > BT_MOST_REFUSED) {
        fprintf(stderr, "bfo: and %zu more\n", all->n_refused - BT_MOST_REFUSED);
    }
}

static bool clean_user(void *context, const char *root, uid_t uid)
{
    const int dir = bfo_figures_dir(root, uid, false);

    if (0 <= dir) {
        *(unsigned *) context += bfo_figures_sweep(dir, uid, UINT32_MAX); /* no job has this number */
        close(dir);
    }
    return true;
}

unsigned bt_clean(const char *root)
{
    unsigned removed = 0;

    (void) bt_for_users(bt_root_of(root), clean_user, &removed);
    return removed;
}
