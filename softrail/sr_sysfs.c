/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The sysfs tree of a fabric. Programs such as Open MPI look there before they use verbs. It consists of plain files
 * below FABRIC/sysfs, which are made with the fabric. DESIGN.txt 16.
 */
#include "sr_fabric.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tree {
    char path[2 * SR_PATH_MAX];
    int rc;
};

__attribute__((format(printf, 2, 3))) static void make_dir(struct tree *tree, const char *format, ...)
{
    char path[2 * SR_PATH_MAX + SR_PATH_MAX], tail[SR_PATH_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(tail, sizeof(tail), format, args);
    va_end(args);
    snprintf(path, sizeof(path), "%s/%s", tree->path, tail);
    for (char *slash = path + strlen(tree->path); NULL != slash; slash = strchr(slash + 1, '/')) {
        char kept = *slash;
        *slash = '\0';
        if (0 != mkdir(path, 0700) && EEXIST != errno && 0 == tree->rc) {
            tree->rc = errno;
        }
        *slash = kept;
    }
    if (0 != mkdir(path, 0700) && EEXIST != errno && 0 == tree->rc) {
        tree->rc = errno;
    }
}

static void put_file(struct tree *tree, const char *dir, const char *file, const char *text)
{
    char path[3 * SR_PATH_MAX];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s/%s", tree->path, dir, file);
    out = fopen(path, "we");
    if (NULL == out || 0 > fprintf(out, "%s\n", text)) {
        tree->rc = 0 != tree->rc ? tree->rc : errno;
    }
    if (NULL != out) {
        fclose(out);
    }
}

static void guid_text(uint64_t guid, char text[24])
{
    snprintf(text, 24, "%04x:%04x:%04x:%04x", (unsigned) (guid >> 48), (unsigned) (guid >> 32 & 0xffff), (unsigned) (guid >> 16 & 0xffff),
             (unsigned) (guid & 0xffff));
}

static void make_device(struct tree *tree, const struct sr_fabric_shm *shm, unsigned rail)
{
    char dir[64], text[64];

    snprintf(dir, sizeof(dir), "class/infiniband/sr%u", rail);
    make_dir(tree, "%s/ports/1/gids", dir);
    make_dir(tree, "%s/ports/1/pkeys", dir);
    make_dir(tree, "%s/ports/1/gid_attrs/types", dir);
    make_dir(tree, "%s/device", dir);
    guid_text(shm->rail[rail].guid, text);
    put_file(tree, dir, "node_guid", text);
    put_file(tree, dir, "sys_image_guid", text);
    put_file(tree, dir, "node_type", "1: CA");
    put_file(tree, dir, "fw_ver", "softrail");
    snprintf(text, sizeof(text), "softrail%u", rail);
    put_file(tree, dir, "node_desc", text);
    snprintf(dir, sizeof(dir), "class/infiniband/sr%u/device", rail);
    put_file(tree, dir, "numa_node", "-1");
    put_file(tree, dir, "vendor", "0x5352");
    put_file(tree, dir, "device", "0x0001");
    snprintf(dir, sizeof(dir), "class/infiniband/sr%u/ports/1", rail);
    put_file(tree, dir, "link_layer", IBV_LINK_LAYER_ETHERNET == shm->link_layer ? "Ethernet" : "InfiniBand");
    if (UINT64_C(400000000000) < shm->rail[rail].rate) { /* the speed in the port's attributes ends with NDR */
        put_file(tree, dir, "rate", "800 Gb/sec (4X XDR)");
    }
    for (unsigned i = 0; i < shm->habits.pkey_count; ++i) {
        char file[32];
        snprintf(file, sizeof(file), "pkeys/%u", i);
        snprintf(text, sizeof(text), "0x%04x", shm->habits.pkeys[i]);
        put_file(tree, dir, file, text);
    }
    put_file(tree, dir, "gid_attrs/types/0", IBV_LINK_LAYER_ETHERNET == shm->link_layer ? "RoCE v2" : "IB/RoCE v1");
    if (0 != shm->habits.traffic_class) {
        snprintf(dir, sizeof(dir), "class/infiniband/sr%u/tc/1", rail);
        make_dir(tree, "%s", dir);
        snprintf(text, sizeof(text), "Global tclass=%u", shm->habits.traffic_class);
        put_file(tree, dir, "traffic_class", text);
    }
    snprintf(dir, sizeof(dir), "class/infiniband_verbs/uverbs%u", rail);
    make_dir(tree, "%s", dir);
    snprintf(text, sizeof(text), "sr%u", rail);
    put_file(tree, dir, "ibdev", text);
    put_file(tree, dir, "abi_version", "1");
}

int sr_sysfs_create(const char *fabric_path, const struct sr_fabric_shm *shm)
{
    struct tree tree = {.rc = 0};

    snprintf(tree.path, sizeof(tree.path), "%s/sysfs", fabric_path);
    make_dir(&tree, "class/infiniband_verbs");
    put_file(&tree, "class/infiniband_verbs", "abi_version", "6");
    for (unsigned rail = 0; rail < shm->rails; ++rail) {
        make_device(&tree, shm, rail);
    }
    return tree.rc;
}
