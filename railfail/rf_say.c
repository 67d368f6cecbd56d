/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Lines for railfail, which begin with "RF ". A process that has found something wrong, or got an error from MPI, prints a line and
 * sleeps before it ends, because mpirun ends all other processes as soon as one has failed.
 */
#include "rf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { GRACE = 5, WRONG_STATUS = 8, ERROR_STATUS = 9, SKIP_STATUS = 10 };

static void say(const char *what, const char *format, va_list arguments)
{
    char line[1000];
    int n = snprintf(line, sizeof line, "RF %s", what);

    n += vsnprintf(line + n, sizeof line - (size_t) n - 1, format, arguments);
    n = n > (int) sizeof line - 2 ? (int) sizeof line - 2 : n;
    line[n] = '\n';
    if (0 > write(STDOUT_FILENO, line, (size_t) n + 1)) {
        _exit(ERROR_STATUS); /* nobody reads the output any more */
    }
}

void rf_say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say("", format, arguments);
    va_end(arguments);
}

void rf_say_wrong(const char *format, ...)
{
    char what[40];
    va_list arguments;

    snprintf(what, sizeof what, "wrong %d ", rf_rank);
    va_start(arguments, format);
    say(what, format, arguments);
    va_end(arguments);
    sleep(GRACE);
    _exit(WRONG_STATUS);
}

void rf_skip(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say("skip ", format, arguments);
    va_end(arguments);
    sleep(GRACE);
    _exit(SKIP_STATUS);
}

void rf_error(const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;

    MPI_Error_string(code, text, &length);
    for (char *c = text; '\0' != *c; ++c) {
        *c = '\n' == *c ? ' ' : *c;
    }
    rf_say("error %d %s: %s", rf_rank, call, text);
    sleep(GRACE);
    _exit(ERROR_STATUS);
}

void rf_waitall(int n, MPI_Request *requests)
{
    MPI_Status status[4 * RF_WINDOW];
    int code;

    if (n > 4 * RF_WINDOW) {
        abort();
    }
    code = MPI_Waitall(n, requests, status);
    for (int i = 0; MPI_ERR_IN_STATUS == code && i < n; ++i) {
        if (MPI_SUCCESS != status[i].MPI_ERROR && MPI_ERR_PENDING != status[i].MPI_ERROR) {
            rf_error("MPI_Waitall", status[i].MPI_ERROR);
        }
    }
    if (MPI_SUCCESS != code) {
        rf_error("MPI_Waitall", code);
    }
}

void *rf_memory(size_t bytes)
{
    void *memory = calloc(1, bytes + RF_GUARD);

    if (NULL == memory) {
        rf_say("skip no memory for %zu bytes", bytes);
        _exit(SKIP_STATUS);
    }
    return memory;
}

bool rf_is_due(rf_wrong_t wrong, uint64_t number)
{
    return 0 == rf_rank && wrong == rf_wrong && number == rf_wrong_at;
}
