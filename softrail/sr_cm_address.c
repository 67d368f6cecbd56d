/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which address belongs to which rail, and the sockets of listeners in the fabric's directory. 127.42.N.x is on rail N,
 * any other address of this machine on rail 0; loopback and wildcard addresses belong to no rail. DESIGN.txt 16.
 */
#include "sr_cm.h"
#include "sr_device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

socklen_t sr_cm_address_length(const struct sockaddr *address)
{
    return AF_INET6 == address->sa_family ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

in_port_t *sr_cm_port(struct sockaddr *address)
{
    return AF_INET6 == address->sa_family ? &((struct sockaddr_in6 *) address)->sin6_port : &((struct sockaddr_in *) address)->sin_port;
}

/* Is it an address of this machine? The kernel binds only to its own addresses. */
static bool is_local(const struct sockaddr *address)
{
    struct sockaddr_storage copy = {0};
    int fd = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok;

    memcpy(&copy, address, sr_cm_address_length(address));
    *sr_cm_port((struct sockaddr *) &copy) = 0;
    ok = 0 <= fd && 0 == bind(fd, (struct sockaddr *) &copy, sr_cm_address_length(address));
    if (0 <= fd) {
        close(fd);
    }
    return ok;
}

int sr_cm_rail_of(const struct sockaddr *address, int *rail)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *) address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *) address;
    uint32_t host;

    *rail = 0;
    if (AF_INET6 == address->sa_family) {
        if (IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr) || IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)) {
            *rail = -1;
            return 0;
        }
        return is_local(address) ? 0 : EADDRNOTAVAIL;
    }
    if (AF_INET != address->sa_family) {
        return EAFNOSUPPORT;
    }
    host = ntohl(v4->sin_addr.s_addr);
    if (INADDR_ANY == host) {
        *rail = -1;
        return 0;
    }
    *rail = (int) (host >> 8 & 0xff);
    if (0x7f2a == host >> 16) {
        return (unsigned) *rail < sr.fabric.shm->rails ? 0 : EADDRNOTAVAIL;
    }
    if ((unsigned) *rail < sr.fabric.shm->rails && sr_host_address((unsigned) *rail, 0) >> 16 == host >> 16) {
        return 0; /* after a change of the GIDs */
    }
    if (IN_LOOPBACKNET == host >> 24) {
        *rail = -1;
        return 0;
    }
    *rail = 0;
    return is_local(address) ? 0 : EADDRNOTAVAIL;
}

int sr_cm_take_rail(struct sr_cm_id *id, int rail)
{
    struct ibv_pd *pd = NULL;
    struct ibv_context *context = sr_cm_device(rail, &pd);

    if (NULL == context || NULL == pd || atomic_load(&sr.fabric.shm->rail[rail].gone)) {
        return ENODEV;
    }
    id->rdma.verbs = context;
    id->rdma.pd = pd;
    id->rail = rail;
    id->rdma.port_num = 1;
    sr_cm_watch_device(id);
    return 0;
}

bool sr_cm_rail_is_up(unsigned rail, unsigned slot)
{
    return rail < sr.fabric.shm->rails && slot < SR_MAX_PROCS && sr_rail_is_up(sr.fabric.shm, rail, slot);
}

bool sr_cm_rail_carries(unsigned rail, unsigned slot)
{
    const struct sr_fabric_shm *shm = sr.fabric.shm;

    return rail < shm->rails && slot < SR_MAX_PROCS && sr_rail_carries(shm, rail, slot) && sr_rail_carries(shm, rail, sr.slot);
}

/* Binds or connects to the socket of that name. A path by the directory's descriptor is short enough for sun_path. */
static int at_socket(const char *name, int (*act)(int, const struct sockaddr *, socklen_t), int fd)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int dir = open(sr.fabric.path, O_PATH | O_DIRECTORY | O_CLOEXEC), rc, error;

    if (0 > dir) {
        return errno;
    }
    snprintf(un.sun_path, sizeof(un.sun_path), "/proc/self/fd/%d/%s", dir, name);
    rc = act(fd, (struct sockaddr *) &un, sizeof(un));
    error = 0 == rc ? 0 : errno;
    close(dir);
    return error;
}

static void make_name(char name[32], enum rdma_port_space ps, in_port_t port, int rail)
{
    snprintf(name, 32, "cm-%x-%u-%d", (unsigned) ps, ntohs(port), rail);
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Binds the identifier's socket to the name. A socket whose owner died refuses connections; it is replaced. Locks: the fabric lock held. */
static int bind_name(struct sr_cm_id *id, const char *name)
{
    int rc = at_socket(name, bind, id->fd), probe;
    char path[SR_PATH_MAX + 40];

    if (EADDRINUSE == rc && 0 <= (probe = new_socket())) {
        if (ECONNREFUSED == at_socket(name, connect, probe)) {
            snprintf(path, sizeof(path), "%s/%s", sr.fabric.path, name);
            unlink(path);
            rc = at_socket(name, bind, id->fd);
        }
        close(probe);
    }
    return rc;
}

int sr_cm_listen(struct sr_cm_id *id, int backlog)
{
    in_port_t *port = sr_cm_port(&id->rdma.route.addr.src_addr);
    bool any = 0 == *port;
    int rc = EADDRINUSE;

    id->fd = new_socket();
    if (0 > id->fd) {
        return errno;
    }
    sr_fabric_lock(&sr.fabric); /* held from bind to listen, otherwise another process takes the socket for that of a dead one */
    for (unsigned i = 0; EADDRINUSE == rc && i < (any ? 4096u : 1u); ++i) {
        char name[32];
        if (any) {
            *port = htons((uint16_t) (32768 + (sr.slot * 131 + i) % 28000));
        }
        make_name(name, id->rdma.ps, *port, id->rail);
        rc = bind_name(id, name);
        if (0 == rc) {
            memcpy(id->name, name, sizeof(name));
            rc = 0 == listen(id->fd, 0 < backlog ? backlog : 128) ? 0 : errno;
        }
    }
    sr_fabric_unlock(&sr.fabric);
    if (0 != rc) {
        close(id->fd);
        id->fd = -1;
    }
    return rc;
}

int sr_cm_call(enum rdma_port_space ps, in_port_t port, unsigned rail)
{
    char name[32];
    int fd = new_socket(), rc = 0 > fd ? errno : ENOENT;

    for (int i = 0; 0 <= fd && (ENOENT == rc || ECONNREFUSED == rc) && i < 2; ++i) {
        make_name(name, ps, port, 0 == i ? (int) rail : -1);
        rc = at_socket(name, connect, fd);
    }
    if (0 != rc && 0 <= fd) {
        close(fd);
    }
    errno = rc;
    return 0 == rc ? fd : -1;
}
