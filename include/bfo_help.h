/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Messages for the user, from any thread. The texts are in the directory help/ next to the component, wherever that was installed or
 * moved to (in a build tree help/ is a link to the sources). This header reads a text and writes it to stderr, once per node.
 * It does not use Open MPI's reader of such texts: that has one state for the whole process, and two threads that use it at once crash;
 * besides, Open MPI 4.1 sends texts to mpirun and can lose one. The processes of a job share directories on a node; the first
 * process that creates the mark of a text prints it. bfo_help_say() takes texts that differ only in digits (process names, counts) for
 * the same text; a text that must not be suppressed by another goes through bfo_help_say_once() with its own key. DESIGN.txt section 18.
 */
#ifndef BFO_HELP_H
#define BFO_HELP_H

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "opal_config.h"
#include "opal/util/proc.h"

/* The lines of `topic` in a file of help texts: those after the line "[topic]" and before the next such line, without comments (#).
 * NULL: the file has no such lines. The caller frees the result. */
static inline char *bfo_help_lines_of(const char *path, const char *topic)
{
    FILE *file = fopen(path, "re");
    char *lines = NULL, *line = NULL;
    size_t size = 0, room = 0, length = strlen(topic);
    bool is_here = false;

    if (NULL == file) {
        return NULL;
    }
    FILE *into = open_memstream(&lines, &size);
    while (NULL != into && 0 < getline(&line, &room, file)) {
        if ('[' == line[0]) {
            is_here = 0 == strncmp(line + 1, topic, length) && ']' == line[1 + length];
        } else if (is_here && '#' != line[0]) {
            fputs(line, into);
        }
    }
    free(line);
    fclose(file);
    if (NULL != into) {
        fclose(into);
    }
    if (0 == size) {
        free(lines);
        lines = NULL;
    }
    return lines;
}

/* The text of `topic` in `file` with its arguments, between two rules if `is_framed`. NULL: no memory. The caller frees the result. */
static inline char *bfo_help_text(const char *file, const char *topic, bool is_framed, va_list arguments)
{
#define BFO_HELP_RULE "--------------------------------------------------------------------------\n"
    static const char here = 0; /* lies in the component */
    char path[PATH_MAX], *lines = NULL, *said = NULL, *text = NULL;
    Dl_info info = {.dli_fname = NULL};

    snprintf(path, sizeof(path), "%s", file);
    if (0 != dladdr(&here, &info) && NULL != info.dli_fname && NULL != strrchr(info.dli_fname, '/')) {
        int length = (int) (strrchr(info.dli_fname, '/') - info.dli_fname);
        if ((int) sizeof(path) > snprintf(path, sizeof(path), "%.*s/help/%s", length, info.dli_fname, file)) {
            lines = bfo_help_lines_of(path, topic);
        }
    }
    if (0 > (NULL != lines ? vasprintf(&said, lines, arguments)
                           : asprintf(&said, "bfo has something to say (%s), but %s does not have the text: install bfo again.\n", topic, path))) {
        said = NULL;
    }
    free(lines);
    if (NULL == said || !is_framed) {
        return said;
    }
    if (0 > asprintf(&text, BFO_HELP_RULE "%s" BFO_HELP_RULE, said)) {
        text = NULL;
    }
    free(said);
    return text;
}

/* FNV-1a of the text, with or without its digits. */
static inline uint64_t bfo_help_mark(const char *text, bool digits)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; '\0' != *text; ++text) {
        if (digits || !isdigit((unsigned char) *text)) {
            hash = (hash ^ (unsigned char) *text) * UINT64_C(0x100000001b3);
        }
    }
    return hash;
}

/* Name of a file that the processes of this job on this node share; false: there is none. The file is next to the job's session
 * directory and not in it, because the first process that gives up removes that directory. But the parent of a directory that a batch system
 * provides may be writable for everyone (/tmp), and nobody would remove the file there: then the file is in the job's directory, which the
 * batch system removes. */
static inline bool bfo_help_node_file(const char *kind, char *path, size_t size)
{
    const char *job = opal_process_info.job_session_dir;
    const char *name = NULL == job ? NULL : strrchr(job, '/');
    struct stat parent;

    if (NULL == name || (int) size <= snprintf(path, size, "%.*s/", (int) (name - job), job)) {
        return false;
    }
    if (0 == stat(path, &parent) && 0 != (parent.st_mode & S_IWOTH)) {
        return (int) size > snprintf(path, size, "%s/bfo-%s", job, kind);
    }
    return (int) size > snprintf(path, size, "%.*s/bfo-%s-%s", (int) (name - job), job, kind, name + 1);
}

/* Is this the first process of the job on this node to leave the mark? Also true if the mark cannot be left, because a text printed twice
 * is better than none. */
static inline bool bfo_help_is_first_on_node(uint64_t mark)
{
    char path[PATH_MAX], kind[32];

    snprintf(kind, sizeof(kind), "said-%016" PRIx64, mark);
    if (!bfo_help_node_file(kind, path, sizeof(path))) {
        return true;
    }
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (0 > fd) {
        return EEXIST != errno;
    }
    close(fd);
    return true;
}

/* Writes to stderr, in one piece if the kernel takes it so. Context: any thread. */
static inline void bfo_help_write(const char *text)
{
    while (0 > write(STDERR_FILENO, text, strlen(text)) && EINTR == errno) {
    }
}

/* The time now, as 2026-11-23T14:50:00+0000. */
#define BFO_HELP_WHEN 32
static inline const char *bfo_help_when(char room[BFO_HELP_WHEN])
{
    const time_t now = time(NULL);
    struct tm here;

    return NULL != localtime_r(&now, &here) && 0 != strftime(room, BFO_HELP_WHEN, "%Y-%m-%dT%H:%M:%S%z", &here) ? room : "unknown time";
}

/* Writes the text, once per node and mark, after a line with host and time. */
static inline void bfo_help_write_once(const char *text, uint64_t mark)
{
    char when[BFO_HELP_WHEN], *placed;

    if (!bfo_help_is_first_on_node(mark)) {
        return;
    }
    if (0 > asprintf(&placed, "bfo on %s, %s:\n%s", OPAL_PROC_MY_HOSTNAME, bfo_help_when(when), text)) {
        bfo_help_write(text);
        return;
    }
    bfo_help_write(placed);
    free(placed);
}

/* Prints the text of `topic` in `file` (a help text of bfo) with its arguments, once per node. */
static inline void bfo_help_say(const char *file, const char *topic, ...)
{
    va_list arguments;

    va_start(arguments, topic);
    char *text = bfo_help_text(file, topic, true, arguments);
    va_end(arguments);
    if (NULL != text) {
        bfo_help_write_once(text, bfo_help_mark(text, false));
    }
    free(text);
}

/* As bfo_help_say(), but once per node and `key`. */
static inline void bfo_help_say_once(const char *key, const char *file, const char *topic, ...)
{
    va_list arguments;

    va_start(arguments, topic);
    char *text = bfo_help_text(file, topic, true, arguments);
    va_end(arguments);
    if (NULL != text) {
        bfo_help_write_once(text, bfo_help_mark(key, true));
    }
    free(text);
}

/* Is this the first process of the job on this node according to mpirun, or was it started without mpirun? Calls no function of Open MPI. */
static inline bool bfo_help_is_first_rank(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_LOCAL_RANK");

    return NULL == rank || 0 == strcmp("0", rank);
}

/* Prints the line of `topic`, without a frame, at each call. */
static inline void bfo_help_line(const char *file, const char *topic, ...)
{
    va_list arguments;

    va_start(arguments, topic);
    char *text = bfo_help_text(file, topic, false, arguments);
    va_end(arguments);
    if (NULL != text) {
        bfo_help_write(text);
    }
    free(text);
}

#endif /* BFO_HELP_H */
