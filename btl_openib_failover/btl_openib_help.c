/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Messages for the user, from the texts in help-btl-openib-bfo.txt. Open MPI 4.1 sends such texts to mpirun and
 * can lose one on the way, so they are written here, to stderr, and once per node: processes of a job share a
 * directory on a node, and the first that leaves a mark there speaks. Texts that differ in numbers only count as
 * one. See DESIGN.txt 15.
 */
#include "btl_openib.h"

#include "opal/util/show_help.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t hash_without_numbers(const char *text)
{
    uint64_t hash = OFO_FNV_START;

    for (; '\0' != *text; ++text) {
        if (!isdigit((unsigned char) *text)) {
            hash = ofo_fnv1a(hash, text, 1);
        }
    }
    return hash;
}

/* Also true if the mark cannot be left: better twice than not at all. */
static bool is_first_of_node(const char *text)
{
    char path[1024];
    int fd;

    if (NULL == opal_process_info.job_session_dir) {
        return true;
    }
    snprintf(path, sizeof(path), "%s/bfo-said-%016llx", opal_process_info.job_session_dir,
             (unsigned long long) hash_without_numbers(text));
    fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (0 > fd) {
        return EEXIST != errno;
    }
    close(fd);
    return true;
}

void ofo_show_help(const char *file, const char *topic, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, topic);
    text = opal_show_help_vstring(file, topic, true, arguments);
    va_end(arguments);
    if (NULL != text && is_first_of_node(text)) {
        ssize_t rc = write(STDERR_FILENO, text, strlen(text));
        (void) rc;
    }
    free(text);
}
