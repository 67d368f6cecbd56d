/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo ftb serve: one loop over the clients and the files of figures. Events that clients publish and changes of the figures become
 * events for all subscribers. DESIGN.txt section 19.11.
 */
#include "bt_ftb.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 200 }; /* as in bfo events --follow */

static volatile sig_atomic_t is_over;
static const char *its_root;

static void on_signal(int number)
{
    is_over = 1;
}

static const char *take(bt_ftb_event_t *e)
{
    const char *why = 0 == strcmp(BT_FTB_SPACE, e->space) ? "only the server throws events into the space " BT_FTB_SPACE : bt_ftb_obey(e, its_root);

    if (NULL == why) {
        bt_ftb_clients_tell(e);
    }
    return why;
}

/* False: no memory. */
static bool look(void)
{
    bt_all_t all;
    const bool has_memory = bt_read(&all, its_root, NULL);

    if (has_memory) {
        bt_ftb_throw(&all, bt_ftb_clients_tell);
        bt_ftb_answer(&all, bt_ftb_clients_tell);
    } else {
        fputs("bfo ftb: no memory\n", stderr);
    }
    bt_free(&all);
    return has_memory;
}

static int serve(int listener)
{
    struct pollfd fds[1 + BT_FTB_CLIENTS];
    double next = 0;

    while (0 == is_over) {
        const double now = bt_now();
        size_t n;

        if (now >= next) {
            if (!look()) {
                return BT_TROUBLE;
            }
            next = bt_now() + LOOK_MS / 1e3;
        }
        fds[0] = (struct pollfd){.fd = listener, .events = POLLIN};
        n = bt_ftb_clients_poll(fds + 1);
        if (0 > poll(fds, 1 + n, now >= next ? 0 : 1 + (int) ((next - now) * 1e3))) {
            if (EINTR != errno) {
                perror("bfo ftb: poll");
                return BT_TROUBLE;
            }
            continue;
        }
        bt_ftb_clients_serve(fds + 1, n, take);
        if (0 != fds[0].revents) {
            bt_ftb_clients_accept(listener);
        }
    }
    return BT_WELL;
}

static void say_ready(bool json)
{
    const char *root = bt_root_of(its_root);
    char path[512];

    snprintf(path, sizeof(path), "%.400s/bfo-%u/" BT_FTB_SOCKET, root, (unsigned) geteuid());
    if (json) {
        bt_print_json(json_pack("{s:s, s:b}", "socket", path, "ready", true), true);
    } else {
        printf("bfo ftb: ready at %s\n", path);
    }
    fflush(stdout);
}

int bt_ftb_serve(const char *root, bool json)
{
    const struct sigaction action = {.sa_handler = on_signal};
    int dir, status;
    const int listener = bt_ftb_listen(root, &dir);

    if (0 > listener) {
        return BT_TROUBLE;
    }
    its_root = root;
    (void) sigaction(SIGINT, &action, NULL);
    (void) sigaction(SIGTERM, &action, NULL);
    say_ready(json);
    status = serve(listener);
    bt_ftb_clients_close();
    (void) unlinkat(dir, BT_FTB_SOCKET, 0); /* it is ours, because we hold the lock on the directory */
    close(listener);
    close(dir);
    return status;
}
