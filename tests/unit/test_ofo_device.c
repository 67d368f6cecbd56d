/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The answer to the registration cache when memory cannot be registered: "no resources" only where giving up idle registrations would
 * help, because after this answer the cache gives all of them up and asks again. This program stands in for verbs. DESIGN.txt section 15.4.
 */
#include "bfo_config.h"

#include "device/btl_openib_device.h"
#include "types/btl_openib_clock.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_transport.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

ofo_component_t mca_btl_openib_component;

/* ---- verbs and Open MPI ------------------------------------------------------------------------- */

static int refusal; /* errno of a registration; 0: it succeeds */
static mca_rcache_base_resources_t told;

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    errno = refusal;
    return 0 == refusal ? calloc(1, sizeof(struct ibv_mr)) : NULL;
}
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    return ibv_reg_mr(pd, addr, length, (int) access);
}
int ibv_dereg_mr(struct ibv_mr *mr)
{
    free(mr);
    return 0;
}
mca_rcache_base_module_t *mca_rcache_base_module_create(const char *name, void *user_data, mca_rcache_base_resources_t *resources)
{
    static mca_rcache_base_module_t cache;

    told = *resources;
    return &cache;
}
int mca_rcache_base_module_destroy(mca_rcache_base_module_t *module)
{
    return 0;
}
struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    static struct ibv_context context;

    context.async_fd = -1;
    return &context;
}
int ibv_close_device(struct ibv_context *context)
{
    return 0;
}
const char *ibv_get_device_name(struct ibv_device *device)
{
    return "played";
}
int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    return 0;
}
struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    static struct ibv_pd pd;

    return &pd;
}
int ibv_dealloc_pd(struct ibv_pd *pd)
{
    return 0;
}
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
    static struct ibv_cq cq;

    return &cq;
}
int ibv_destroy_cq(struct ibv_cq *cq)
{
    return 0;
}
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    static struct ibv_qp qp;

    return &qp;
}
int ibv_destroy_qp(struct ibv_qp *qp)
{
    return 0;
}
void ofo_log(unsigned level, const char *format, ...) {}

static uint64_t now = 100;
static unsigned queries, fails; /* the first `fails` queries fail */

uint64_t ofo_now_ms(void)
{
    return now;
}
#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    return ++queries <= fails ? EIO : 0;
}

/* ---- tests -------------------------------------------------------------------------------------- */

static void idle_registrations_go_only_where_that_helps(void **state)
{
    static const struct {
        int refusal, told;
    } row[] = {
        {0, OPAL_SUCCESS},   {ENOMEM, OPAL_ERR_OUT_OF_RESOURCE}, {EAGAIN, OPAL_ERR_OUT_OF_RESOURCE}, {EFAULT, OPAL_ERROR}, {EACCES, OPAL_ERROR},
        {EINVAL, OPAL_ERROR}};
    struct ibv_device verbs = {.transport_type = IBV_TRANSPORT_IB};
    const char *why = "";
    ofo_device_t *device;

    refusal = 0;
    device = ofo_device_open(&verbs, &why);
    assert_non_null(device);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); ++i) {
        ofo_reg_t reg = {.mr = NULL};

        refusal = row[i].refusal;
        assert_int_equal(told.register_mem(told.reg_data, &reg, sizeof(reg), &reg.base), row[i].told);
        assert_int_equal(NULL == reg.mr, OPAL_SUCCESS != row[i].told);
        if (NULL != reg.mr) {
            assert_int_equal(told.deregister_mem(told.reg_data, &reg.base), OPAL_SUCCESS);
        }
    }
    ofo_device_close(device);
}

static void type_chooses_the_transport(void **state)
{
    struct ibv_device verbs[2] = {{.transport_type = IBV_TRANSPORT_IB}, {.transport_type = IBV_TRANSPORT_IWARP}};
    static const struct {
        const char *type;
        bool wanted[2];
    } row[] = {{"all", {true, true}}, {"infiniband", {true, false}}, {"ib", {true, false}}, {"iwarp", {false, true}}, {"", {false, false}}};

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); ++i) {
        for (int v = 0; v < 2; ++v) {
            assert_int_equal(ofo_transport_is_wanted(ofo_transport_of(&verbs[v]), row[i].type), row[i].wanted[v]);
        }
    }
}

static bool lived_after(ofo_module_t *module, uint64_t since, unsigned failing, unsigned asked)
{
    bool lived;

    queries = 0;
    fails = failing;
    lived = ofo_device_lived_after(module, since);
    assert_int_equal(queries, asked);
    return lived;
}

static void only_an_answer_to_a_later_query_shows_that_an_adapter_lives(void **state)
{
    struct ibv_context context = {.num_comp_vectors = 1};
    ofo_device_t device = {.context = &context};
    ofo_module_t module = {.device = &device, .port_num = 1};

    assert_false(lived_after(&module, now, 99, 3));
    assert_true(lived_after(&module, now, 2, 3));
    assert_true(lived_after(&module, now, 0, 1)); /* the last query may have been answered before this time */
    assert_true(lived_after(&module, now - 1, 0, 0));
    now += 10;
    assert_true(lived_after(&module, now - 11, 0, 0));
    assert_false(lived_after(&module, now - 5, 99, 3));
    assert_true(lived_after(&module, now - 11, 0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(idle_registrations_go_only_where_that_helps), cmocka_unit_test(type_chooses_the_transport),
                                       cmocka_unit_test(only_an_answer_to_a_later_query_shows_that_an_adapter_lives)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
