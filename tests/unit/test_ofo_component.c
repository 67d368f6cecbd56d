/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The component starts with two ports, and a step of the start fails: nothing that was started remains. Above all no thread remains,
 * because Open MPI may unload the component then. Also whether the component prepares for fork(). This program stands in for the parts
 * that the component starts. DESIGN.txt section 15.
 */
#include "bfo_config.h"

#include "fault/btl_openib_deadline.h"
#include "door/btl_openib_module.h"
#include "door/btl_openib_params.h"
#include "threads/btl_openib_poll.h"
#include "door/btl_openib_port.h"
#include "door/btl_openib_pvars.h"
#include "formats/btl_openib_queues.h"
#include "threads/btl_openib_service.h"
#include "threads/btl_openib_sleep.h"

#include "bfo_ompi.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PORTS = 2 };

static unsigned startable; /* number of threads that can start */
static unsigned threads, ports;
static bool is_published;

/* ---- what the component starts ------------------------------------------------------------------ */

int ofo_params_register(mca_base_component_t *component, mca_btl_base_module_t *defaults)
{
    return OPAL_SUCCESS;
}
void ofo_pvars_register(const mca_base_component_t *component) {}
int ofo_params_check(void)
{
    return OPAL_SUCCESS;
}
void ofo_params_compare_fabrics(void) {}
void ofo_deadline_init(void) {}
int ofo_sleep_create(void)
{
    return OPAL_SUCCESS;
}
int ofo_ports_open(mca_btl_base_module_t *defaults)
{
    for (ports = 0; ports < PORTS; ++ports) {
        OFO.module[ports] = calloc(1, sizeof(ofo_module_t));
    }
    OFO.module_count = ports;
    return OPAL_SUCCESS;
}
int ofo_service_start(ofo_module_t *module)
{
    if (threads == startable) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    ++threads;
    module->has_thread = true;
    return OPAL_SUCCESS;
}
void ofo_modules_free(void)
{
    for (; 0 < ports; --ports) {
        threads -= OFO.module[ports - 1]->has_thread;
        free(OFO.module[ports - 1]);
    }
    OFO.module_count = 0;
}
int ofo_component_progress(void)
{
    return 0;
}
void ofo_module_set_functions(mca_btl_base_module_t *super) {}
/* The modex of Open MPI 4.1 is a table of functions; that of 5.0 calls PMIx. */
#if BFO_OMPI_IS_4
static int put(opal_pmix_scope_t scope, opal_value_t *value)
{
    return is_published ? OPAL_SUCCESS : OPAL_ERR_NOT_AVAILABLE;
}
static void play_modex(void)
{
    opal_pmix.put = put;
}
#else
pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *value)
{
    return is_published ? PMIX_SUCCESS : PMIX_ERR_INIT;
}
static void play_modex(void) {}
#endif

static enum ibv_fork_status kernel; /* as libibverbs reports it */
static int fork_inits, fork_init_status;

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return kernel;
}
int ibv_fork_init(void)
{
    ++fork_inits;
    return fork_init_status;
}

/* ---- tests -------------------------------------------------------------------------------------- */

static mca_btl_base_module_t **begin(unsigned threads_to_be_had, bool published, int *count)
{
    startable = threads_to_be_had;
    is_published = published;
    threads = ports = 0;
    play_modex();
    assert_null(ofo_queues_parse("P,256,12:P,65792,12", &OFO.queues));
    return OFO.super.btl_init(count, false, false);
}

static void init_that_fails_leaves_no_thread(void **state)
{
    for (unsigned i = 0; i < PORTS; ++i) {
        int count = -1;
        assert_null(begin(i, true, &count));
        assert_int_equal(count, 0);
        assert_int_equal(threads, 0);
        assert_int_equal(ports, 0);
    }
}

static void init_that_cannot_publish_leaves_no_port(void **state)
{
    int count = -1;

    assert_null(begin(PORTS, false, &count));
    assert_int_equal(count, 0);
    assert_int_equal(threads, 0);
    assert_int_equal(ports, 0);
}

static void init_that_succeeds_keeps_them(void **state)
{
    int count = -1;
    mca_btl_base_module_t **modules = begin(PORTS, true, &count);

    assert_non_null(modules);
    assert_int_equal(count, PORTS);
    assert_int_equal(threads, PORTS);
    free(modules);
    ofo_modules_free();
}

/* A kernel that copies registered pages at a fork needs no preparation; with preparation the child would lack these pages. */
static void fork_is_prepared_for_where_it_is_wanted_and_needed(void **state)
{
    static const struct {
        int want;
        enum ibv_fork_status kernel;
        int init_status, inits;
        bool begins;
    } row[] = {
        {0, IBV_FORK_DISABLED, 0, 0, true},      {0, IBV_FORK_UNNEEDED, 0, 0, true},      {1, IBV_FORK_DISABLED, 0, 1, true},
        {2, IBV_FORK_DISABLED, 0, 1, true},      {1, IBV_FORK_DISABLED, EINVAL, 1, true}, {2, IBV_FORK_DISABLED, EINVAL, 1, false},
        {1, IBV_FORK_UNNEEDED, EINVAL, 0, true}, {2, IBV_FORK_UNNEEDED, EINVAL, 0, true},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); ++i) {
        mca_btl_base_module_t **modules;
        int count = -1;

        OFO.params.want_fork_support = row[i].want;
        kernel = row[i].kernel;
        fork_init_status = row[i].init_status;
        fork_inits = 0;
        modules = begin(PORTS, true, &count);
        assert_int_equal(fork_inits, row[i].inits);
        assert_int_equal(NULL != modules, row[i].begins);
        free(modules);
        ofo_modules_free();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_that_fails_leaves_no_thread),
        cmocka_unit_test(init_that_cannot_publish_leaves_no_port),
        cmocka_unit_test(init_that_succeeds_keeps_them),
        cmocka_unit_test(fork_is_prepared_for_where_it_is_wanted_and_needed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
