/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The clients of the server of fault events: takes connections and lines of text, hands on published events, and sends lines to
 * subscribers. No client makes the server wait: every buffer has a limit, and a client that reads too slowly loses events. DESIGN.txt
 * section 19.11.
 */
#include "bt_ftb.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { QUEUE = 1 << 16, NAMES = 32, IDLE_SECONDS = 10, REPLY = 768 };

typedef struct {
    int fd;
    bool is_used, is_subscriber;
    bool is_over;   /* no more is read from it; it is closed when its queue is empty */
    bool has_shut;  /* the client sends nothing more */
    double heard;   /* when it sent or took something */
    uint64_t lost;  /* events without room that it was not informed of yet */
    size_t n_names; /* 0: of a subscriber: all */
    size_t n_in, n_out;
    char name[NAMES][BT_FTB_NAME];
    char in[BT_FTB_REQUEST];
    char out[QUEUE];
} client_t;

static client_t client[BT_FTB_CLIENTS];
static client_t *polled[BT_FTB_CLIENTS];

/* ---- out ------------------------------------------------------------------------------------------------------ */

static bool has_room(const client_t *c, size_t n)
{
    return QUEUE - c->n_out >= n;
}

static bool put(client_t *c, const char *word, const char *text)
{
    const size_t n = strlen(word) + strlen(text) + 1;

    if (!has_room(c, n)) {
        return false;
    }
    memcpy(c->out + c->n_out, word, strlen(word));
    memcpy(c->out + c->n_out + strlen(word), text, strlen(text));
    c->out[c->n_out + n - 1] = '\n';
    c->n_out += n;
    return true;
}

/* Queues a reply. There is room, because a line is read only if there is room for its reply. */
static void reply(client_t *c, const char *why)
{
    (void) put(c, NULL == why ? "ok" : "no ", NULL == why ? "" : why);
}

/* Says how many events were lost as soon as there is room, before the next event. */
static bool tell_lost(client_t *c)
{
    char number[32];

    snprintf(number, sizeof(number), "%llu", (unsigned long long) c->lost);
    if (0 != c->lost && put(c, "lost ", number)) {
        c->lost = 0;
    }
    return 0 == c->lost;
}

static bool wants(const client_t *c, const char *name)
{
    for (size_t i = 0; i < c->n_names; ++i) {
        if (0 == strcmp(name, c->name[i])) {
            return true;
        }
    }
    return c->is_subscriber && !c->is_over && 0 == c->n_names;
}

void bt_ftb_clients_tell(const bt_ftb_event_t *e)
{
    char line[BT_TIME + BT_FTB_LINE], when[BT_TIME], text[BT_FTB_LINE];

    bt_ftb_write(e, text);
    snprintf(line, sizeof(line), "%s %s", bt_time(when, bt_wall_ns()), text);
    for (size_t i = 0; i < BT_FTB_CLIENTS; ++i) {
        client_t *c = &client[i];

        if (c->is_used && wants(c, e->name) && (!has_room(c, strlen(line) + REPLY) || !tell_lost(c) || !put(c, "event ", line))) {
            ++c->lost;
        }
    }
}

/* ---- in ------------------------------------------------------------------------------------------------------- */

/* Subscribes to the names. Returns NULL, or why it failed. */
static const char *subscribe(client_t *c, char *names)
{
    char *rest = NULL;
    size_t n = 0;

    for (char *name = strtok_r(names, " ", &rest); NULL != name; name = strtok_r(NULL, " ", &rest)) {
        if (NAMES == n) {
            return "a subscription names at most 32 events";
        }
        if (!bt_ftb_is_name(name)) {
            return "the name of an event is A-Z 0-9 _, at most 63 characters";
        }
        strcpy(c->name[n++], name); /* it is shorter: bt_ftb_is_name() */
    }
    c->n_names = n;
    c->is_subscriber = true;
    return NULL;
}

static void obey(client_t *c, char *line, size_t n, bt_ftb_taker_t take)
{
    static bt_ftb_event_t e;
    const size_t word = strcspn(line, " ");
    char *rest = line + word + strspn(line + word, " ");

    if (strlen(line) == n && 7 == word && 0 == memcmp("publish", line, word)) {
        reply(c, bt_ftb_read(&e, rest) ? take(&e) : e.why);
    } else if (strlen(line) == n && 9 == word && 0 == memcmp("subscribe", line, word)) {
        reply(c, subscribe(c, rest));
    } else {
        reply(c, "a line begins with publish or subscribe: see docs/ftb.md");
        c->is_over = true;
    }
}

/* Obeys the complete lines while there is room for replies. */
static void obey_lines(client_t *c, bt_ftb_taker_t take)
{
    char *end;

    while (!c->is_over && has_room(c, REPLY) && NULL != (end = memchr(c->in, '\n', c->n_in))) {
        const size_t n = (size_t) (end - c->in);

        *end = '\0';
        obey(c, c->in, n, take);
        c->n_in -= n + 1;
        memmove(c->in, end + 1, c->n_in);
    }
    if (!c->is_over && sizeof(c->in) == c->n_in && NULL == memchr(c->in, '\n', c->n_in) && has_room(c, REPLY)) {
        reply(c, "a line has at most 2047 characters");
        c->is_over = true;
    }
}

static void drop(client_t *c)
{
    close(c->fd);
    c->is_used = false;
}

/* Reads from the client. False if the connection is broken. */
static bool take_in(client_t *c)
{
    ssize_t n;

    if (c->is_over || c->has_shut || sizeof(c->in) == c->n_in) {
        return true;
    }
    n = recv(c->fd, c->in + c->n_in, sizeof(c->in) - c->n_in, 0);
    if (0 > n) {
        return EAGAIN == errno || EINTR == errno;
    }
    c->has_shut = 0 == n;
    c->n_in += (size_t) n;
    c->heard = bt_now();
    return true;
}

static bool give_out(client_t *c)
{
    const ssize_t n = 0 == c->n_out ? 0 : send(c->fd, c->out, c->n_out, MSG_NOSIGNAL);

    if (0 > n) {
        return EAGAIN == errno || EINTR == errno;
    }
    if (0 < n) {
        c->n_out -= (size_t) n;
        memmove(c->out, c->out + n, c->n_out);
        c->heard = bt_now();
    }
    return true;
}

/* Is the client done? A client that is silent and subscribes to nothing is, because it takes the place of others. */
static bool is_done(const client_t *c)
{
    return (0 == c->n_out && (c->is_over || (c->has_shut && !c->is_subscriber)))
           || ((c->is_over || !c->is_subscriber) && IDLE_SECONDS < bt_now() - c->heard);
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

size_t bt_ftb_clients_poll(struct pollfd *fds)
{
    size_t n = 0;

    for (size_t i = 0; i < BT_FTB_CLIENTS; ++i) {
        client_t *c = &client[i];

        if (c->is_used) {
            const bool reads = !c->is_over && !c->has_shut && sizeof(c->in) > c->n_in && has_room(c, REPLY);

            fds[n] = (struct pollfd){.fd = c->fd, .events = (short) ((reads ? POLLIN : 0) | (0 != c->n_out ? POLLOUT : 0))};
            polled[n++] = c;
        }
    }
    return n;
}

void bt_ftb_clients_serve(const struct pollfd *fds, size_t n, bt_ftb_taker_t take)
{
    for (size_t i = 0; i < n; ++i) {
        client_t *c = polled[i];
        bool is_well = 0 == (fds[i].revents & (POLLERR | POLLNVAL)) && !(0 != (fds[i].revents & POLLHUP) && c->has_shut);

        is_well = is_well && (0 == (fds[i].revents & (POLLIN | POLLHUP)) || take_in(c));
        if (is_well) {
            obey_lines(c, take);
            is_well = give_out(c);
            (void) (0 != c->lost && has_room(c, REPLY) && tell_lost(c));
        }
        if (!is_well || is_done(c)) {
            drop(c);
        }
    }
}

static client_t *free_place(void)
{
    for (size_t i = 0; i < BT_FTB_CLIENTS; ++i) {
        if (!client[i].is_used) {
            return &client[i];
        }
    }
    return NULL;
}

void bt_ftb_clients_accept(int socket)
{
    static const char stranger[] = "no this server serves its own user and root only\n";
    static const char full[] = "no the server has 64 clients already; try again later\n";

    for (int i = 0; i < BT_FTB_CLIENTS; ++i) {
        const int fd = accept4(socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        const uid_t uid = 0 > fd ? (uid_t) -1 : bt_ftb_peer(fd);
        client_t *c = free_place();

        if (0 > fd) {
            if (EAGAIN != errno && EINTR != errno && ECONNABORTED != errno) {
                bt_sleep_a_while(); /* no descriptor is free, so the connection has to wait */
            }
            return;
        }
        if (NULL == c || (geteuid() != uid && 0 != uid)) {
            (void) send(fd, NULL == c ? full : stranger, NULL == c ? sizeof(full) - 1 : sizeof(stranger) - 1, MSG_NOSIGNAL);
            close(fd);
            continue;
        }
        memset(c, 0, offsetof(client_t, name));
        c->fd = fd;
        c->is_used = true;
        c->heard = bt_now();
    }
}

void bt_ftb_clients_close(void)
{
    for (size_t i = 0; i < BT_FTB_CLIENTS; ++i) {
        if (client[i].is_used) {
            (void) give_out(&client[i]);
            drop(&client[i]);
        }
    }
}
