/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The socket of the server of fault events, in the private directory of a user's figures: makes a listening socket, or a connection.
 * The directory is opened with its own checks first, and the socket's path is relative to it, so that no link can lead elsewhere.
 * DESIGN.txt section 19.11.
 */
#include "bt_ftb.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64, SECONDS = 10 };

/* Says why there is no socket. Returns -1. */
static int fail(const char *root, uid_t uid, const char *why)
{
    fprintf(stderr, "bfo ftb: %s/bfo-%u/" BT_FTB_SOCKET ": %s\n", root, (unsigned) uid, why);
    return -1;
}

static int open_dir(const char *root, uid_t uid, bool make)
{
    const int dir = bfo_figures_dir(root, uid, make);

    if (0 > dir) {
        return fail(root, uid,
                    -EPERM == dir             ? "the directory is no private directory of its user"
                    : -ENOENT == dir && !make ? "no server runs; start 'bfo ftb serve'"
                                              : strerror(-dir));
    }
    return dir;
}

/* A path has room for 107 characters only; this one goes through the open directory. */
static struct sockaddr_un address_in(int dir)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" BT_FTB_SOCKET, dir);
    return address;
}

/* Frees the name of the socket. Returns NULL, or why it is in use. A dead server leaves its socket, but its lock on the directory has
 * ended with it. */
static const char *free_name(int dir)
{
    struct stat st;

    if (0 != flock(dir, LOCK_EX | LOCK_NB)) {
        return EWOULDBLOCK == errno ? "another server runs already" : strerror(errno);
    }
    if (0 != fstatat(dir, BT_FTB_SOCKET, &st, AT_SYMLINK_NOFOLLOW)) {
        return ENOENT == errno ? NULL : strerror(errno);
    }
    if (!S_ISSOCK(st.st_mode)) {
        return "it is no socket; remove it";
    }
    return 0 == unlinkat(dir, BT_FTB_SOCKET, 0) ? NULL : strerror(errno);
}

int bt_ftb_listen(const char *root, int *dir)
{
    const char *why = NULL;
    int listener = -1;

    root = bt_root_of(root);
    *dir = open_dir(root, geteuid(), true);
    if (0 > *dir) {
        return -1;
    }
    why = free_name(*dir);
    if (NULL == why) {
        const struct sockaddr_un address = address_in(*dir);
        const mode_t before = umask(0177);

        listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (0 > listener || 0 != bind(listener, (const struct sockaddr *) &address, sizeof(address)) || 0 != listen(listener, BACKLOG)) {
            why = strerror(errno);
        }
        (void) umask(before);
    }
    if (NULL != why) {
        (void) fail(root, geteuid(), why);
        if (0 <= listener) {
            close(listener);
        }
        close(*dir);
        return -1;
    }
    return listener;
}

uid_t bt_ftb_peer(int connection)
{
    struct ucred who;
    socklen_t size = sizeof(who);

    return 0 == getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &size) && sizeof(who) == size ? who.uid : (uid_t) -1;
}

int bt_ftb_connect(const char *root, uid_t uid)
{
    const struct timeval limit = {.tv_sec = SECONDS};
    struct sockaddr_un address;
    const char *why = NULL;
    int dir, connection;

    root = bt_root_of(root);
    dir = open_dir(root, uid, false);
    if (0 > dir) {
        return -1;
    }
    address = address_in(dir);
    connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (0 > connection) {
        why = strerror(errno);
    } else {
        (void) setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        (void) setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        if (0 != connect(connection, (const struct sockaddr *) &address, sizeof(address))) {
            why = ENOENT == errno || ECONNREFUSED == errno ? "no server runs; start 'bfo ftb serve'" : strerror(errno);
        } else if (uid != bt_ftb_peer(connection) && 0 != bt_ftb_peer(connection)) {
            why = "another user answers there";
        }
    }
    close(dir);
    if (NULL != why) {
        if (0 <= connection) {
            close(connection);
        }
        return fail(root, uid, why);
    }
    return connection;
}

void bt_ftb_wait_for_ever(int connection)
{
    const struct timeval none = {.tv_sec = 0};

    (void) setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
}
