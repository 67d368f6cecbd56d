/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A verbs device: context, protection domain, registration cache. Registration for puts, gets and fragments
 * goes through the cache (grdma). See DESIGN.txt 15.
 */
#include "device/btl_openib_device.h"

#include "types/btl_openib_clock.h"
#include "types/btl_openib_log.h"

#include "bfo_help.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { QUERIES = 3 }; /* a query may fail because there is no memory */

/* The cache calls it for memory that is not registered yet. */
static int cache_register(void *reg_data, void *base, size_t size, mca_rcache_base_registration_t *reg)
{
    ofo_device_t *device = reg_data;
    ofo_reg_t *own = (ofo_reg_t *) reg;
    int access = 0;

    if (reg->access_flags & (MCA_RCACHE_ACCESS_LOCAL_WRITE | MCA_RCACHE_ACCESS_REMOTE_WRITE)) {
        access |= IBV_ACCESS_LOCAL_WRITE;
    }
    if (reg->access_flags & MCA_RCACHE_ACCESS_REMOTE_WRITE) {
        access |= IBV_ACCESS_REMOTE_WRITE;
    }
    if (device->transport->reads_as_writes && (access & IBV_ACCESS_LOCAL_WRITE)) {
        access |= IBV_ACCESS_REMOTE_WRITE;
    }
    if (reg->access_flags & MCA_RCACHE_ACCESS_REMOTE_READ) {
        access |= IBV_ACCESS_REMOTE_READ;
    }
    own->mr = ibv_reg_mr(device->pd, base, size, access);
    if (NULL == own->mr) {
        const int cause = errno;
        ofo_log(2, "%s: %zu bytes cannot be registered (access 0x%x): %s", device->name, size, access, strerror(cause));
        /* For "out of resource" the cache gives up idle registrations and tries again. That does not help against other errors. */
        return ENOMEM == cause || EAGAIN == cause ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_ERROR;
    }
    own->handle.lkey = own->mr->lkey;
    own->handle.rkey = own->mr->rkey;
    return OPAL_SUCCESS;
}

static int cache_deregister(void *reg_data, mca_rcache_base_registration_t *reg)
{
    ofo_reg_t *own = (ofo_reg_t *) reg;

    if (NULL != own->mr && 0 != ibv_dereg_mr(own->mr)) {
        return OPAL_ERROR;
    }
    own->mr = NULL;
    return OPAL_SUCCESS;
}

static bool create_proof_page(ofo_device_t *device)
{
    device->proof = ofo_pages_alloc(OFO_PROOF_SIZE);
    if (NULL == device->proof) {
        return false;
    }
    memset(device->proof, 0, OFO_PROOF_SIZE);
    device->proof_mr = ibv_reg_mr(device->pd, device->proof, OFO_PROOF_SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    return NULL != device->proof_mr;
}

static void destroy_proof_page(ofo_device_t *device)
{
    if (NULL != device->proof_mr) {
        ibv_dereg_mr(device->proof_mr);
    }
    free(device->proof);
}

/* Can memory be locked at all? Registers 256 KiB for a moment. */
static bool memory_can_be_locked(ofo_device_t *device)
{
    enum { PROBE = 256 * 1024 };
    void *memory = NULL;
    struct ibv_mr *mr;

    if (0 != posix_memalign(&memory, 4096, PROBE)) {
        return false;
    }
    mr = ibv_reg_mr(device->pd, memory, PROBE, IBV_ACCESS_LOCAL_WRITE);
    if (NULL != mr) {
        ibv_dereg_mr(mr);
    }
    free(memory);
    return NULL != mr;
}

void *ofo_pages_alloc(size_t size)
{
    enum { PAGE = 4096 };
    void *memory;

    return 0 == posix_memalign(&memory, PAGE, (size + PAGE - 1) / PAGE * PAGE) ? memory : NULL;
}

void ofo_device_say_locked_memory(const ofo_device_t *device)
{
    struct rlimit limit;
    char text[32] = "unlimited", key[128];

    if (0 == getrlimit(RLIMIT_MEMLOCK, &limit) && RLIM_INFINITY != limit.rlim_cur) {
        snprintf(text, sizeof(text), "%llu KiB", (unsigned long long) limit.rlim_cur / 1024);
    }
    snprintf(key, sizeof(key), "no locked memory %s", device->name);
    bfo_help_say_once(key, OFO_HELP_FILE, "no locked memory", device->name, text);
}

static mca_rcache_base_module_t *create_cache(ofo_device_t *device)
{
    static char name[] = "bfo"; /* one for all devices, so that idle registrations of any device give way */
    mca_rcache_base_resources_t resources = {
        .cache_name = name,
        .reg_data = device,
        .sizeof_reg = sizeof(ofo_reg_t),
        .register_mem = cache_register,
        .deregister_mem = cache_deregister,
    };

    return mca_rcache_base_module_create("grdma", device, &resources);
}

/* Makes and destroys one queue pair like those of rails. It shows whether the adapter has reliable connections at all (EFA and usNIC
 * have none), and how many bytes it takes inline. Many adapters refuse a size above their limit instead of reducing it. */
static bool probe_queue_pair(ofo_device_t *device)
{
    struct ibv_cq *cq = ibv_create_cq(device->context, 2, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = NULL;

    if (NULL == cq) {
        return false;
    }
    device->inline_max = OFO.params.ib_max_inline_data;
    do {
        init.cap.max_inline_data = device->inline_max;
        qp = ibv_create_qp(device->pd, &init);
    } while (NULL == qp && EINVAL == errno && 0 != device->inline_max && ((device->inline_max /= 2), true));
    if (NULL != qp) {
        ibv_destroy_qp(qp);
    }
    ibv_destroy_cq(cq);
    return NULL != qp;
}

ofo_device_t *ofo_device_open(struct ibv_device *verbs, const char **why)
{
    ofo_device_t *device = calloc(1, sizeof(*device));

    *why = "out of memory";
    if (NULL == device) {
        return NULL;
    }
    snprintf(device->name, sizeof(device->name), "%s", ibv_get_device_name(verbs));
    device->transport = ofo_transport_of(verbs);
    *why = "the device cannot be opened";
    device->context = ibv_open_device(verbs);
    if (NULL == device->context) {
        goto err_free;
    }
    *why = "the device does not answer a query";
    if (0 != ibv_query_device(device->context, &device->attr)) {
        goto err_close;
    }
    *why = "no protection domain";
    device->pd = ibv_alloc_pd(device->context);
    if (NULL == device->pd) {
        goto err_close;
    }
    *why = "no reliable connections";
    if (!probe_queue_pair(device)) {
        goto err_pd;
    }
    *why = "memory cannot be registered";
    if (!memory_can_be_locked(device)) {
        ofo_device_say_locked_memory(device);
        goto err_pd;
    }
    *why = "no registration cache";
    device->rcache = create_proof_page(device) ? create_cache(device) : NULL;
    if (NULL == device->rcache) {
        goto err_pd;
    }
    /* The thread that reads the events also waits for other things, so it must not block. */
    fcntl(device->context->async_fd, F_SETFL, fcntl(device->context->async_fd, F_GETFL) | O_NONBLOCK);
    *why = NULL;
    return device;

err_pd:
    destroy_proof_page(device);
    ibv_dealloc_pd(device->pd);
err_close:
    ibv_close_device(device->context);
err_free:
    free(device);
    return NULL;
}

void ofo_device_close(ofo_device_t *device)
{
    mca_rcache_base_module_destroy(device->rcache);
    destroy_proof_page(device);
    ibv_dealloc_pd(device->pd);
    ibv_close_device(device->context);
    free(device);
}

bool ofo_device_lived_after(ofo_module_t *module, uint64_t since)
{
    struct ibv_port_attr attr;
    const uint64_t now = ofo_now_ms();
    bool answers = since < module->answered_at; /* many fences end at a time */

    for (int tries = 0; tries < QUERIES && !answers; ++tries) {
        answers = 0 == ibv_query_port(module->device->context, module->port_num, &attr);
        module->answered_at = answers ? now : module->answered_at;
    }
    return answers;
}

mca_btl_base_registration_handle_t *ofo_register_mem(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, void *base, size_t size, uint32_t flags)
{
    mca_rcache_base_module_t *rcache = ((ofo_module_t *) btl)->device->rcache;
    mca_rcache_base_registration_t *reg = NULL;

    if (OPAL_SUCCESS != rcache->rcache_register(rcache, base, size, 0, (int32_t) (flags & MCA_BTL_REG_FLAG_ACCESS_ANY), &reg)) {
        return NULL;
    }
    return &((ofo_reg_t *) reg)->handle;
}

int ofo_deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
    mca_rcache_base_module_t *rcache = ((ofo_module_t *) btl)->device->rcache;
    ofo_reg_t *reg = (ofo_reg_t *) ((uint8_t *) handle - offsetof(ofo_reg_t, handle));

    rcache->rcache_deregister(rcache, &reg->base);
    return OPAL_SUCCESS;
}
