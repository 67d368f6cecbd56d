/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Writes the lines of the log. Any thread. See DESIGN.txt 15.1.
 */
#include "types/btl_openib_log.h"

#include "types/btl_openib_types.h"

#include "bfo_help.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Its lines look like those of opal_output(). That function is of no use here: without MPI threads it takes no lock and frees a string
 * that all threads share, and service logs too. */
void ofo_log(unsigned level, const char *format, ...)
{
    char text[512];
    va_list arguments;
    int used;

    if (level > OFO.params.verbose) {
        return;
    }
    used = snprintf(text, sizeof(text) / 2, "[%s:%05d] ", OPAL_PROC_MY_HOSTNAME, (int) getpid());
    used = used < (int) sizeof(text) / 2 ? used : (int) sizeof(text) / 2 - 1;
    va_start(arguments, format);
    vsnprintf(text + used, sizeof(text) - (size_t) used - 1, format, arguments); /* room for the end of the line */
    va_end(arguments);
    strcat(text, "\n");
    bfo_help_write(text);
}
