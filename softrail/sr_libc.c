/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Some programs (UCX) ask by stat() and access() whether /dev/infiniband/uverbsN is there before they use a device. For
 * the devices of the fabric the answer is yes; all other paths go to the C library. Other programs (libfabric) look for
 * the network interfaces of the devices. Therefore getifaddrs() lists one for each rail, with its address for librdmacm.
 * DESIGN.txt 16.
 */
#include "sr_device.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SR_PUBLIC __attribute__((visibility("default")))
static const char uverbs[] = "/dev/infiniband/uverbs";

/* glibc declares the path as never NULL. A caller that passes NULL gets EFAULT from the kernel. */
__attribute__((noinline)) static bool sr_is_path(const char *path)
{
    return NULL != path && '/' == path[0];
}

static bool is_ours(const char *path)
{
    const char *digit = path + sizeof(uverbs) - 1;

    return NULL != getenv(SR_ENV_FABRIC) && 0 == strncmp(path, uverbs, sizeof(uverbs) - 1) && '0' <= *digit && '0' + SR_MAX_RAILS > *digit
           && '\0' == digit[1] && 0 == sr_attach() && (unsigned) (*digit - '0') < sr.fabric.shm->rails;
}

SR_PUBLIC int access(const char *path, int mode)
{
    if (sr_is_path(path) && is_ours(path)) {
        return 0 == (mode & X_OK) ? 0 : (errno = EACCES, -1);
    }
    return faccessat(AT_FDCWD, path, mode, 0);
}

SR_PUBLIC int stat(const char *restrict path, struct stat *restrict st)
{
    if (sr_is_path(path) && is_ours(path)) {
        memset(st, 0, sizeof(*st));
        st->st_mode = S_IFCHR | 0600;
        st->st_nlink = 1;
        st->st_uid = geteuid();
        st->st_rdev = makedev(231, 192 + (unsigned) (path[sizeof(uverbs) - 1] - '0'));
        return 0;
    }
    return fstatat(AT_FDCWD, path, st, 0);
}

/* ---- network interfaces ------------------------------------------------------------------------- */

struct sr_interface {
    struct ifaddrs ifa;
    struct sockaddr_in address, mask, broadcast;
    char name[IFNAMSIZ];
};

/* The rails come first in the list. ifa_data of the first one points here, so that freeifaddrs() recognizes our lists. */
static char our_list;

static void describe(struct sr_interface *interface, unsigned rail)
{
    uint32_t host = sr_host_address(rail, 0 != (sr.fabric.shm->flags & SR_FABRIC_IPV4_GIDS) && sr.joined ? sr.slot : 0);

    snprintf(interface->name, sizeof(interface->name), "sr%u", rail);
    interface->address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
    interface->mask = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xffffff00)};
    interface->broadcast = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(host | 0xff)};
    interface->ifa = (struct ifaddrs){.ifa_name = interface->name,
                                      .ifa_flags = IFF_UP | IFF_BROADCAST,
                                      .ifa_addr = (struct sockaddr *) &interface->address,
                                      .ifa_netmask = (struct sockaddr *) &interface->mask,
                                      .ifa_ifu.ifu_broadaddr = (struct sockaddr *) &interface->broadcast};
    if (sr_rail_is_up(sr.fabric.shm, rail, sr.joined ? sr.slot : 0)) {
        interface->ifa.ifa_flags |= IFF_RUNNING;
    }
}

/* Puts an interface per rail in front of the list. Returns the list as it was if there is no memory. */
static struct ifaddrs *with_rails(struct ifaddrs *all)
{
    const struct sr_fabric_shm *shm = sr.fabric.shm;
    struct sr_interface *list = calloc(shm->rails, sizeof(*list));
    unsigned count = 0;

    for (unsigned rail = 0; NULL != list && rail < shm->rails; ++rail) {
        if (!atomic_load(&shm->rail[rail].gone)) {
            describe(&list[count], rail);
            list[count].ifa.ifa_next = all;
            if (0 < count) {
                list[count - 1].ifa.ifa_next = &list[count].ifa;
            }
            ++count;
        }
    }
    if (0 == count) {
        free(list);
        return all;
    }
    list[0].ifa.ifa_data = &our_list;
    return &list[0].ifa;
}

SR_PUBLIC int getifaddrs(struct ifaddrs **list)
{
    static int (*real)(struct ifaddrs **);
    int rc;

    if (NULL == real) {
        *(void **) &real = dlsym(RTLD_NEXT, "getifaddrs");
    }
    rc = real(list);
    if (0 == rc && NULL != getenv(SR_ENV_FABRIC) && 0 == sr_attach()) {
        *list = with_rails(*list);
    }
    return rc;
}

SR_PUBLIC void freeifaddrs(struct ifaddrs *list)
{
    static void (*real)(struct ifaddrs *);
    struct ifaddrs *rest = list;
    char *end;

    if (NULL == real) {
        *(void **) &real = dlsym(RTLD_NEXT, "freeifaddrs");
    }
    if (NULL != list && &our_list == list->ifa_data) {
        end = (char *) list + sr.fabric.shm->rails * sizeof(struct sr_interface);
        while (NULL != rest && (char *) list <= (char *) rest && end > (char *) rest) {
            rest = rest->ifa_next;
        }
        free(list);
    }
    real(rest);
}
