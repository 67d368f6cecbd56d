/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Lines about a port that goes down again and again: one line for each loss and node, whichever process notices the loss first. This
 * program stands in for the BTL and the texts, and forks the processes. DESIGN.txt section 14.9.
 */
#include "bfo_config.h"

#include "types/pml_bfo.h"

#include "types/pml_bfo_local.h"
#include "types/pml_bfo_params.h"
#include "formats/pml_bfo_stats.h"
#include "show/pml_bfo_tell.h"

#include "bfo_help.h"

#include "opal/util/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

bfo_t bfo;
bfo_params_t bfo_params = {.warnings_per_minute = 100};

/* ---- the texts ------------------------------------------------------------------------------------- */

static unsigned lines;

/* The program has no help texts, therefore the text that is written names the topic. */
ssize_t write(int fd, const void *bytes, size_t size)
{
    lines += STDERR_FILENO == fd && NULL != memmem(bytes, size, "(rail-lost)", sizeof("(rail-lost)") - 1);
    return syscall(SYS_write, fd, bytes, size);
}
const char *bfo_stat_name(bfo_stat_t index)
{
    return "";
}

/* ---- the BTL --------------------------------------------------------------------------------------- */

static struct {
    mca_btl_base_module_t super;
    bfo_btl_ext_t ext;
} btls[8], *btl = btls; /* each test takes a port about which there was no line yet */
static uint32_t downs;  /* of the port, in events that the BTL has read */
static bool is_up;      /* according to these events */

static void name_ports(mca_btl_base_module_t *module, opal_proc_t *proc, bfo_btl_ports_t *ports)
{
    *ports = (bfo_btl_ports_t){.here = "w0:1", .downs = downs, .is_up = is_up};
}

static bool port_is_up(mca_btl_base_module_t *module)
{
    return false;
}

static bfo_peer_t *peer;

static void begin(void)
{
    static mca_btl_base_component_t component;
    static ompi_proc_t proc;

    snprintf(component.btl_version.mca_component_name, sizeof(component.btl_version.mca_component_name), BFO_BTL_EXT_COMPONENT);
    ++btl;
    btl->super.btl_component = &component;
    btl->ext = (bfo_btl_ext_t){.magic = BFO_BTL_EXT_MAGIC,
                               .version = BFO_BTL_EXT_VERSION,
                               .size = sizeof(bfo_btl_ext_t),
                               .port_is_up = port_is_up,
                               .name_ports = name_ports,
                               .port = "w0:1"};
    peer = calloc(1, sizeof(*peer) + sizeof(peer->rails[0]));
    assert_non_null(peer);
    peer->proc = &proc;
    peer->n_rails = 1;
    peer->ready = true;
    peer->rails[0].btl = &btl->super;
    peer->rails[0].ext = &btl->ext;
    bfo.peers = peer;
    lines = downs = 0;
    is_up = true;
}

static void end(void)
{
    bfo.peers = NULL;
    free(peer);
}

/* The port goes down; the BTL reports it. */
static void down(void)
{
    ++downs;
    is_up = false;
    peer->up_mask = peer->send_mask = 1;
    bfo_tell_port_lost(&btl->super, "the port is down", true);
    peer->up_mask = peer->send_mask = 0;
}

static void up(void)
{
    is_up = true;
}

/* ---- tests ----------------------------------------------------------------------------------------- */

static void every_loss_of_a_port_is_said_once(void **state)
{
    begin();
    for (unsigned i = 1; i <= 3; ++i) {
        down();
        assert_int_equal(lines, i);
        bfo_tell_port_lost(&btl->super, "the port is down", true); /* reported for another rail of the port */
        assert_int_equal(lines, i);
        up();
    }
    end();
}

/* An error completion comes before the port event that explains it. */
static void loss_that_is_known_before_its_event_is_said_once(void **state)
{
    begin();
    for (unsigned i = 1; i <= 3; ++i) {
        bfo_tell_rail_lost(peer, 0, "an error", false);
        bfo_tell_rails(NULL);
        assert_int_equal(lines, i);
        down();
        assert_int_equal(lines, i);
        up();
    }
    end();
}

static void later_loss_that_takes_no_rail_is_not_said(void **state)
{
    begin();
    down();
    for (downs = 2; downs < 5; ++downs) {
        bfo_tell_port_lost(&btl->super, "the port is down", true);
        assert_int_equal(lines, 1);
    }
    end();
}

/* The port goes down once for each bit of `losses`; the process loses a rail where the bit is set. Returns its number of lines. */
static unsigned lines_of_a_process(unsigned losses)
{
    pid_t pid = fork();
    int status;

    if (0 == pid) {
        begin();
        for (unsigned i = 0; i < 3; ++i, up()) {
            if (losses >> i & 1) {
                down();
            } else {
                ++downs;
            }
        }
        _exit((int) lines);
    }
    assert_int_equal(pid, waitpid(pid, &status, 0));
    assert_true(WIFEXITED(status));
    return (unsigned) WEXITSTATUS(status);
}

/* The first process writes the line of the first loss, at which the second process loses no rail. */
static void processes_of_a_node_number_losses_alike(void **state)
{
    char dir[] = "/tmp/bfo-tell-XXXXXX", job[64], command[64];

    assert_non_null(mkdtemp(dir));
    snprintf(job, sizeof(job), "%s/job", dir);
    opal_process_info.job_session_dir = job;
    assert_int_equal(lines_of_a_process(1), 1);
    assert_int_equal(lines_of_a_process(2), 1);
    assert_int_equal(lines_of_a_process(7), 1); /* of the third loss, because other processes wrote the first two */
    opal_process_info.job_session_dir = NULL;
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

/* Does a mark lie in the job's directory if the parent of that directory has this mode? */
static bool lies_in_job_directory(mode_t mode)
{
    char dir[] = "/tmp/bfo-tell-XXXXXX", job[64], path[PATH_MAX], command[64];
    bool is_inside;

    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, mode), 0);
    snprintf(job, sizeof(job), "%s/job", dir);
    assert_int_equal(mkdir(job, 0700), 0);
    opal_process_info.job_session_dir = job;
    assert_true(bfo_help_is_first_on_node(7));
    assert_false(bfo_help_is_first_on_node(7));
    assert_true(bfo_help_node_file("said-0000000000000007", path, sizeof(path)));
    assert_int_equal(access(path, F_OK), 0);
    is_inside = 0 == strncmp(path, job, strlen(job)) && '/' == path[strlen(job)];
    opal_process_info.job_session_dir = NULL;
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
    return is_inside;
}

/* Nobody would remove marks that lie outside the job's directory. */
static void marks_do_not_stay_in_tmp(void **state)
{
    assert_false(lies_in_job_directory(0700));
    assert_false(lies_in_job_directory(0755));
    assert_true(lies_in_job_directory(01777));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_loss_of_a_port_is_said_once),         cmocka_unit_test(loss_that_is_known_before_its_event_is_said_once),
        cmocka_unit_test(later_loss_that_takes_no_rail_is_not_said), cmocka_unit_test(marks_do_not_stay_in_tmp),
        cmocka_unit_test(processes_of_a_node_number_losses_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
