/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Facts about the installed Open MPI, our components and its parameters, from the output of ompi_info, which loads the components as
 * a job would. DESIGN.txt section 19.5.
 */
#include "bt_doctor.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_SECONDS = 60, MOST_BYTES = 64 << 20 };

#define COMPONENT_PATH "OMPI_MCA_mca_base_component_path"

const char *bt_info_directories(void)
{
    const char *given = getenv(COMPONENT_PATH);

    return NULL != given ? given : BT_COMPONENTDIR ":SYS_DEFAULT:USER_DEFAULT";
}

/* Runs in the child. The alarm ends an ompi_info that hangs; the limit ends one that writes without end. */
static void run(int out, int err)
{
    const struct rlimit limit = {MOST_BYTES, MOST_BYTES};
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGALRM, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    alarm(MOST_SECONDS);
    if (0 > dup2(out, STDOUT_FILENO) || 0 > dup2(err, STDERR_FILENO) || 0 != setrlimit(RLIMIT_FSIZE, &limit)
        || 0 != setenv(COMPONENT_PATH, bt_info_directories(), 1)) {
        _exit(126);
    }
    execlp("ompi_info", "ompi_info", "--parsable", "--all", (char *) NULL);
    perror("ompi_info");
    _exit(127);
}

/* Reads the whole file as a text, which the caller frees. NULL: no memory. */
static char *text_of(int fd)
{
    struct stat about;
    char *text;
    ssize_t n;

    if (0 != fstat(fd, &about) || NULL == (text = malloc((size_t) about.st_size + 1))) {
        return NULL;
    }
    n = pread(fd, text, (size_t) about.st_size, 0);
    text[0 > n ? 0 : n] = '\0';
    return text;
}

/* Shortens what ompi_info wrote to stderr to its words: one line, without ruled lines. */
static void shorten(char *text)
{
    size_t n = 0;

    for (const char *from = text; '\0' != *from && n < 300; ++from) {
        const char c = '\n' == *from || '\t' == *from ? ' ' : *from;

        if ((' ' != c || (0 < n && ' ' != text[n - 1])) && !('-' == c && ('-' == from[1] || (from > text && '-' == from[-1])))) {
            text[n++] = c;
        }
    }
    text[n] = '\0';
}

bool bt_info_ask(bt_info_t *info)
{
    const int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
    pid_t child = -1;

    *info = (bt_info_t){.text = NULL};
    if (0 <= out && 0 <= err && 0 <= (child = fork())) {
        if (0 == child) {
            run(out, err);
        }
        while (0 > waitpid(child, NULL, 0) && EINTR == errno) {
        }
        info->text = text_of(out);
        info->complaint = text_of(err);
    }
    if (0 <= out) {
        close(out);
    }
    if (0 <= err) {
        close(err);
    }
    if (NULL == info->text || NULL == info->complaint) {
        bt_info_free(info);
        return false;
    }
    shorten(info->complaint);
    bt_doctor_clean(info->complaint);
    return true;
}

void bt_info_free(bt_info_t *info)
{
    free(info->text);
    free(info->complaint);
    *info = (bt_info_t){.text = NULL};
}

const char *bt_info_line(const bt_info_t *info, const char *key, char room[BT_VALUE])
{
    const size_t length = strlen(key);
    const char *at = info->text;
    size_t n;

    while (0 != strncmp(at, key, length)) {
        at = strchr(at, '\n');
        if (NULL == at) {
            return NULL;
        }
        ++at;
    }
    at += length;
    at += '"' == *at;
    n = strcspn(at, "\"\n");
    snprintf(room, BT_VALUE, "%.*s", n < BT_VALUE ? (int) n : BT_VALUE - 1, at);
    bt_doctor_clean(room);
    return room;
}

const char *bt_info_value(const bt_info_t *info, const char *framework, const char *component, const char *name, char room[BT_VALUE])
{
    char key[128];

    snprintf(key, sizeof(key), "mca:%s:%s:param:%s_%s_%s:value:", framework, component, framework, component, name);
    return NULL != bt_info_line(info, key, room) ? room : "";
}

const char *bt_info_btl(const bt_info_t *info, const char *name, char room[BT_VALUE])
{
    return bt_info_value(info, "btl", "openib", name, room);
}

long bt_info_btl_number(const bt_info_t *info, const char *name, long otherwise)
{
    char room[BT_VALUE], *end;
    const char *value = bt_info_btl(info, name, room);
    const long number = strtol(value, &end, 10);

    return end != value && '\0' == *end ? number : otherwise;
}
