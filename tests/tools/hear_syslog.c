/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Preloaded into bfo: writes the messages that the command passes to syslog(3) into the file that HEAR_SYSLOG names, each after its
 * priority. A machine for tests has no log daemon.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void hear(int priority, const char *format, va_list arguments)
{
    const char *name = getenv("HEAR_SYSLOG");
    FILE *file = NULL == name ? NULL : fopen(name, "a");

    if (NULL != file) {
        fprintf(file, "<%d> ", priority);
        vfprintf(file, format, arguments);
        putc('\n', file);
        fclose(file);
    }
}

void syslog(int priority, const char *format, ...);
__attribute__((visibility("default"), format(printf, 2, 3))) void syslog(int priority, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    hear(priority, format, arguments);
    va_end(arguments);
}

/* A compiler with _FORTIFY_SOURCE calls this function instead. */
void __syslog_chk(int priority, int flag, const char *format, ...);
__attribute__((visibility("default"))) void __syslog_chk(int priority, int flag, const char *format, ...)
{
    va_list arguments;

    (void) flag;
    va_start(arguments, format);
    hear(priority, format, arguments);
    va_end(arguments);
}
