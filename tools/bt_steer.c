/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The file with a user's wishes for his jobs on this node. It is locked, read, checked and written here, for bfo drain, bfo release and
 * bfo set. DESIGN.txt section 19.6.
 */
#include "bt.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_SECONDS = 86400 };

static char said[512];

/* ---- waiting --------------------------------------------------------------------------------------------- */

double bt_take_wait(struct argp_state *state, const char *arg)
{
    char *rest;
    const double seconds = strtod(arg, &rest);

    if (rest == arg || '\0' != *rest || !(seconds >= 0 && seconds <= MOST_SECONDS)) {
        argp_error(state, "--wait is a number of seconds, 0 to %d, not '%s'", MOST_SECONDS, ' ' == arg[0] ? arg + 1 : arg);
    }
    return seconds;
}

/* ---- the file -------------------------------------------------------------------------------------------- */

/* Locks the file. The number of tries is limited, because a user may hold the lock of his own file forever. Returns 0 or errno. */
static int lock(int file, unsigned tries)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    for (unsigned i = 0; i < tries; ++i) {
        if (0 != i) {
            bt_sleep_a_while();
        }
        if (0 == fcntl(file, F_SETLK, &whole)) {
            return 0;
        }
        if (EAGAIN != errno && EACCES != errno) {
            return errno;
        }
    }
    return EBUSY;
}

static void clean_list(bfo_steer_t *list)
{
    list->n_out = list->n_out <= BFO_STEER_PORTS ? list->n_out : 0;
    list->n_wishes = list->n_wishes <= BFO_STEER_WISHES ? list->n_wishes : 0;
    list->forced &= (1u << list->n_out) - 1;
    for (uint32_t i = 0; i < BFO_STEER_PORTS; ++i) {
        bt_clean_text(list->out[i], sizeof(list->out[i]));
    }
}

void bt_steer_say(const char *root, uid_t uid, const char *why)
{
    snprintf(said, sizeof(said), "what user %u asks of his jobs, %.256s/bfo-%u/" BFO_STEER_NAME ": %.128s", (unsigned) uid, root, (unsigned) uid,
             why);
    fprintf(stderr, "bfo: %s\n", said);
}

const char *bt_steer_said(void)
{
    return said;
}

int bt_steer_open(const char *root, uid_t uid, bool make, unsigned tries, bfo_steer_t *list)
{
    const int dir = bfo_figures_dir(root, uid, make);
    int file = 0 > dir ? dir : bfo_figures_open_steer(dir, uid), rc = 0 > file ? -file : lock(file, tries);

    if (0 == rc && (ssize_t) sizeof(*list) != pread(file, list, sizeof(*list), 0)) {
        rc = EIO;
    }
    if (0 == rc) {
        clean_list(list);
    } else if (-ENOENT != dir) { /* otherwise no job of this user has run here */
        bt_steer_say(root, uid,
                     EPERM == rc    ? "it is not a private file of its user"
                     : EBUSY == rc  ? "another process holds its lock"
                     : EPROTO == rc ? "another release of bfo made it; remove it when no job of the user runs"
                                    : strerror(rc));
    }
    if (0 != rc && 0 <= file) {
        close(file);
    }
    if (0 <= dir) {
        close(dir);
    }
    return 0 == rc ? file : -ENOENT == dir ? -ENOENT : -EIO;
}

static bool is_living_job(const bt_all_t *all, uid_t uid, uint32_t job)
{
    for (size_t i = 0; i < all->n; ++i) {
        if (all->process[i]->alive && all->process[i]->uid == uid && all->process[i]->f.job == job) {
            return true;
        }
    }
    return false;
}

/* Removes the wishes of dead jobs, because another job may get the number of a dead one and must not obey its wishes. */
static void forget_dead_jobs(const char *root, uid_t uid, bfo_steer_t *list)
{
    bt_all_t all;

    if (0 == list->n_wishes || !bt_read(&all, root, NULL)) {
        return; /* without memory they stay; that is safe, because processes obey no wish that is older than they are */
    }
    for (uint32_t i = 0; i < list->n_wishes;) {
        if (is_living_job(&all, uid, list->wish[i].job)) {
            ++i;
        } else {
            list->wish[i] = list->wish[--list->n_wishes];
            memset(&list->wish[list->n_wishes], 0, sizeof(list->wish[0]));
        }
    }
    bt_free(&all);
}

/* Adds a wish, which gets its number when the list is written. Returns NULL, or why there is no room. */
static const char *add_wish(bfo_steer_t *list, const bfo_steer_wish_t *wish)
{
    uint32_t i = 0;

    while (i < list->n_wishes && (wish->job != list->wish[i].job || wish->parameter != list->wish[i].parameter)) {
        ++i;
    }
    if (BFO_STEER_WISHES == i) {
        return "it holds the wishes of many jobs and has no room for another; wait until one of these jobs has ended";
    }
    list->wish[i] = *wish;
    list->n_wishes += i == list->n_wishes;
    return NULL;
}

/* Writes the file and does not map it, because its user may shorten it at any moment. */
const char *bt_steer_write(int file, const char *root, uid_t uid, bfo_steer_t *list, bfo_steer_wish_t *wish)
{
    const uint64_t odd = list->sequence | 1, even = odd + 1;
    const size_t head = offsetof(bfo_steer_t, n_out);
    const char *why = NULL;

    forget_dead_jobs(root, uid, list);
    if (NULL != wish) {
        wish->number = even;
        why = add_wish(list, wish);
    }
    if (NULL == why
        && ((ssize_t) sizeof(odd) != pwrite(file, &odd, sizeof(odd), offsetof(bfo_steer_t, sequence))
            || (ssize_t) (sizeof(*list) - head) != pwrite(file, (const char *) list + head, sizeof(*list) - head, (off_t) head)
            || (ssize_t) sizeof(even) != pwrite(file, &even, sizeof(even), offsetof(bfo_steer_t, sequence)))) {
        why = "it cannot be written";
    }
    return why;
}
