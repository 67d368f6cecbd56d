/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * How a peer is made: service makes it from its record alone, and Open MPI's entry is added later. No letter of a port can come
 * between the look at the port and the entry of the peer in the table. DESIGN.txt sections 15.1 and 15.2.
 */
#include "bfo_config.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_log.h"
#include "rail/btl_openib_lost.h"
#include "types/btl_openib_mail.h"
#include "rail/btl_openib_peer.h"
#include "qp/btl_openib_qpset.h"
#include "formats/btl_openib_queues.h"
#include "rail/btl_openib_rail.h"
#include "rail/btl_openib_spared.h"
#include "formats/btl_openib_wire.h"

#include "bfo_help.h"
#include "bfo_ompi.h"
#include "opal/runtime/opal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <string.h>

#include <cmocka.h>

enum { PEER = 7, INCARNATION = 99 };

ofo_component_t mca_btl_openib_component;

/* ---- Open MPI ----------------------------------------------------------------------------------- */

static unsigned asked; /* how often Open MPI's entry was asked for */

static opal_proc_t *look_up(const opal_process_name_t name)
{
    ++asked;
    return NULL;
}

static uint8_t their_ports;
static bool is_late; /* their first port was down when they started */
static enum { RIGHT, NO_RECORD, NO_BYTES, OTHER_VERSION, CUT_SHORT, OTHER_QUEUES, OTHER_CPC, UNSHARED } record_is;

enum { RECORD_ROOM = 4096 };

static size_t their_record(void *bytes)
{
    ofo_record_t record = OFO.record;
    size_t size;

    record.incarnation = INCARNATION;
    record.nports = their_ports;
    record.port[1] = record.port[0];
    record.port[1].name[0] = 'O';
    record.port[0].is_late = is_late;
    record.queue[0].count += OTHER_QUEUES == record_is;
    record.port[0].cpc = OTHER_CPC == record_is ? OFO_CPC_RDMACM : record.port[0].cpc;
    if (UNSHARED == record_is) {
        ofo_queues_publish(&OFO.queues, false, &record);
    }
    size = ofo_record_pack(&record, bytes, RECORD_ROOM);
    ((uint8_t *) bytes)[0] += OTHER_VERSION == record_is;
    return CUT_SHORT == record_is ? size - 1 : size;
}

/* The modex of Open MPI 4.1 is a table of functions; that of 5.0 calls PMIx. */
#if BFO_OMPI_IS_4
static int modex(const opal_process_name_t *proc, const char *key, opal_list_t *info, opal_value_t **value)
{
    if (NO_RECORD == record_is) {
        return OPAL_ERR_NOT_FOUND;
    }
    *value = OBJ_NEW(opal_value_t);
    (*value)->type = OPAL_BYTE_OBJECT;
    (*value)->data.bo.bytes = NO_BYTES == record_is ? NULL : malloc(RECORD_ROOM);
    (*value)->data.bo.size = NO_BYTES == record_is ? 0 : (int32_t) their_record((*value)->data.bo.bytes);
    return OPAL_SUCCESS;
}
static void play_modex(void)
{
    opal_pmix.get = modex;
}
#else
pmix_status_t PMIx_Get(const pmix_proc_t *proc, const char key[], const pmix_info_t info[], size_t ninfo, pmix_value_t **value)
{
    *value = NULL;
    if (NO_RECORD == record_is) {
        return PMIX_ERR_NOT_FOUND;
    }
    PMIX_VALUE_CREATE(*value, 1);
    (*value)->type = PMIX_BYTE_OBJECT;
    (*value)->data.bo.bytes = NO_BYTES == record_is ? NULL : malloc(RECORD_ROOM);
    (*value)->data.bo.size = NO_BYTES == record_is ? 0 : their_record((*value)->data.bo.bytes);
    return PMIX_SUCCESS;
}
static void play_modex(void)
{
    opal_pmix_setup_nspace_tracker(); /* Open MPI maps its job number to PMIx's name */
}
#endif

static const char *topic = "(doubtful pair)";
static unsigned texts; /* how often a text of this topic was written */

/* The program has no help texts, therefore the text that is written names the topic. */
ssize_t write(int fd, const void *bytes, size_t size)
{
    texts += STDERR_FILENO == fd && NULL != memmem(bytes, size, topic, strlen(topic));
    return syscall(SYS_write, fd, bytes, size);
}

static bool is_short; /* there is no memory for endpoints */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return is_short && sizeof(ofo_endpoint_t) == size ? NULL : __real_calloc(count, size);
}

/* ---- functions that the room calls -------------------------------------------------------------- */

static unsigned looks;
static bool is_unguarded; /* true: a port's letter could have been handled during a look at the port */

bool ofo_rail_is_spared(const ofo_endpoint_t *ep)
{
    ++looks;
    if (EBUSY != pthread_mutex_trylock(&OFO.peers_lock)) {
        is_unguarded = true;
        pthread_mutex_unlock(&OFO.peers_lock);
    }
    return false;
}
void ofo_rail_init(ofo_endpoint_t *ep) {}
bool ofo_qpset_destroy(ofo_qpset_t *qps)
{
    return true;
}
int ibv_destroy_ah(struct ibv_ah *ah)
{
    return 0;
}
void ofo_tell_service(ofo_endpoint_t *ep, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps) {}
static unsigned told;
void ofo_tell_progress(ofo_module_t *module, ofo_mail_kind_t kind, ofo_endpoint_t *ep, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps)
{
    ++told;
}
void ofo_log(unsigned level, const char *format, ...) {}

/* ---- tests -------------------------------------------------------------------------------------- */

static ofo_module_t module;
static const opal_process_name_t name = {.jobid = 1, .vpid = PEER};

static int begin(void **state)
{
    static const ofo_cpc_t cpc = {.type = OFO_CPC_UD};
    ofo_port_t *port = &OFO.record.port[0];

    play_modex();
    opal_proc_for_name = look_up;
    OFO.cpc = &cpc;
    OFO.self.jobid = 1;
    OFO.record = (ofo_record_t){.version = OFO_RECORD_VERSION, .incarnation = 1, .nqp = 1, .nports = 1};
    *port = (ofo_port_t){
        .name = "one:1", .subnet = {.type = OFO_NET_IB, .prefix_len = 64, .key = {0xfe}}, .guid = {1}, .mtu = 3, .lanes = 1, .rate = 1000};
    assert_null(ofo_queues_parse("P,256,12", &OFO.queues));
    OFO.record.queue[0] = (ofo_queue_shape_t){.type = 'P', .size = OFO.queues.queue[0].size, .count = OFO.queues.queue[0].count};
    OFO.plain = OFO.queues;
    module = (ofo_module_t){.port_up = true};
    OFO.module[0] = &module;
    OFO.module_count = 1;
    pthread_mutex_init(&OFO.peers_lock, NULL);
    OBJ_CONSTRUCT(&OFO.peers, opal_hash_table_t);
    asked = looks = told = texts = 0;
    topic = "(doubtful pair)";
    record_is = RIGHT;
    OFO.params.rail_map = NULL;
    OFO.no_srq = false;
    their_ports = 1;
    is_unguarded = is_late = is_short = false;
    return opal_hash_table_init(&OFO.peers, 16);
}

static int end(void **state)
{
    ofo_peers_free();
    OBJ_DESTRUCT(&OFO.peers);
    pthread_mutex_destroy(&OFO.peers_lock);
    return 0;
}

/* Runs first, because a process tells of ports without a partner once. */
static void peer_without_ports_has_no_rails(void **state)
{
    topic = "(peer without ports)";
    their_ports = 0;
    assert_null(ofo_peer_get(&name, NULL));
    assert_int_equal(texts, 1);
}

static void peer_of_service_comes_from_its_record_alone(void **state)
{
    opal_proc_t process;
    ofo_peer_t *peer = ofo_peer_get(&name, NULL);

    assert_non_null(peer);
    assert_int_equal(asked, 0);
    assert_null(peer->proc);
    assert_int_equal(peer->incarnation, INCARNATION);
    assert_int_equal(peer->rail_count, 1);
    OFO_STORE(peer->closing, true);
    assert_ptr_equal(ofo_peer_get(&name, &process), peer); /* progress has read the letter */
    assert_ptr_equal(peer->proc, &process);
    assert_true(OFO_LOAD(peer->closing)); /* a late letter brings no peer back */
}

static void port_is_looked_at_where_its_letter_waits(void **state)
{
    ofo_peer_t *peer;

    module.port_up = false;
    peer = ofo_peer_get(&name, NULL);
    assert_non_null(peer);
    assert_int_equal(looks, 1);
    assert_false(is_unguarded);
    assert_true(peer->rail[0]->dead_port);
    assert_int_equal(peer->rail[0]->gate, OFO_GATE_REFUSING);
}

/* A rail of a port that was down when the peer started does not begin with messages that wait for the port. */
static void port_that_was_down_at_the_peer_is_not_used_at_first(void **state)
{
    ofo_peer_t *peer = ofo_peer_get(&name, NULL);
    const opal_process_name_t other = {.jobid = 1, .vpid = PEER + 1};

    assert_int_equal(peer->rail[0]->gate, OFO_GATE_CLOSED);
    assert_int_equal(looks, 0);
    is_late = true;
    peer = ofo_peer_get(&other, NULL);
    assert_int_equal(peer->rail[0]->gate, OFO_GATE_REFUSING);
    assert_true(peer->rail[0]->dead_port);
    assert_int_equal(looks, 1);
    assert_false(is_unguarded);
}

static void give_default_prefix(void)
{
    static const uint8_t fe80[8] = {0xfe, 0x80};
    ofo_port_t *port = &OFO.record.port[0];

    memcpy(port->gid, fe80, sizeof(fe80));
    memcpy(port->subnet.key, fe80, sizeof(fe80));
}

/* Only its name tells the second port from the first one. */
static void add_port(void)
{
    static ofo_module_t second = {.port_index = 1, .port_up = true};

    OFO.record.port[1] = OFO.record.port[0];
    OFO.record.port[1].name[0] = 'O';
    OFO.record.nports = 2;
    OFO.module[1] = &second;
    OFO.module_count = 2;
}

static void pair_is_doubtful_where_either_host_has_two_ports(void **state)
{
    ofo_peer_t *peer = NULL;

    give_default_prefix();
    add_port();
    for (uint8_t own = 1; own <= 2; ++own) {
        OFO.record.nports = own;
        OFO.module_count = own;
        for (their_ports = 1; their_ports <= 2; ++their_ports) {
            opal_process_name_t of = {.jobid = 1, .vpid = (uint32_t) (PEER + 2 * own + their_ports)};
            peer = ofo_peer_get(&of, NULL);
            assert_non_null(peer);
            texts = 0;
            ofo_peer_doubt_pair(peer->rail[0]);
            assert_int_equal(texts, 2 == own || 2 == their_ports);
        }
    }
    OFO.record.port[0].subnet.type = OFO.record.port[1].subnet.type = OFO_NET_IPV6; /* networks with IP addresses have no default prefix */
    texts = 0;
    ofo_peer_doubt_pair(peer->rail[0]);
    assert_int_equal(texts, 0);
}

/* The key is more than the port's name; otherwise another text about the port would suppress this text. */
static void doubt_is_said_once_whatever_else_was_said(void **state)
{
    char dir[] = "/tmp/ofo-peer-XXXXXX", job[64], command[64];
    ofo_peer_t *peer;

    give_default_prefix();
    assert_non_null(mkdtemp(dir));
    snprintf(job, sizeof(job), "%s/job", dir);
    opal_process_info.job_session_dir = job;
    their_ports = 2;
    peer = ofo_peer_get(&name, NULL);
    assert_non_null(peer);
    assert_true(bfo_help_is_first_on_node(bfo_help_mark("one:1", true)));
    ofo_peer_doubt_pair(peer->rail[0]);
    assert_false(bfo_help_is_first_on_node(bfo_help_mark("doubtful pair one:1", true)));
    opal_process_info.job_session_dir = NULL;
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

/* It gets a text, unless it has no record: a process may have no BTL of bfo. */
static void process_with_an_unfit_record_is_remembered_without_rails(void **state)
{
    static const char *const topics[] = {[NO_RECORD] = "(",
                                         [NO_BYTES] = "(",
                                         [OTHER_VERSION] = "(other version)",
                                         [CUT_SHORT] = "(bad record)",
                                         [OTHER_QUEUES] = "(queues differ)",
                                         [OTHER_CPC] = "(cpc differs)"};

    for (record_is = NO_RECORD; record_is <= OTHER_CPC; ++record_is) {
        const opal_process_name_t of = {.jobid = 1, .vpid = (uint32_t) (PEER + 10 + record_is)};
        topic = topics[record_is];
        texts = 0;
        assert_null(ofo_peer_get(&of, NULL));
        assert_non_null(ofo_peer_find(of.jobid, of.vpid));
        assert_null(ofo_peer_get(&of, NULL));
        assert_int_equal(texts, NO_BYTES < record_is);
    }
}

static void bad_map_makes_no_rails_and_an_empty_map_is_none(void **state)
{
    static char bad[] = "nonsense", empty[] = "";
    const opal_process_name_t other = {.jobid = 1, .vpid = PEER + 1};
    ofo_peer_t *peer;

    topic = "(bad parameter)";
    OFO.params.rail_map = bad;
    assert_null(ofo_peer_get(&name, NULL));
    assert_int_equal(texts, 1);
    OFO.params.rail_map = empty;
    add_port();
    their_ports = 2;
    peer = ofo_peer_get(&other, NULL);
    assert_non_null(peer);
    assert_int_equal(texts, 1);
    assert_int_not_equal(peer->rail[0]->choices, 0); /* a map would leave none */
}

static void peer_without_memory_for_its_rails_has_none(void **state)
{
    is_short = true;
    assert_null(ofo_peer_get(&name, NULL));
    assert_int_equal(told, 0);
}

/* The device of the peer has no shared queues, therefore both use plain ones. */
static void peer_without_shared_queues_gets_plain_ones(void **state)
{
    const opal_process_name_t other = {.jobid = 1, .vpid = PEER + 1};
    ofo_peer_t *peer;

    OFO.queues.queue[0].type = 'S';
    ofo_queues_publish(&OFO.queues, true, &OFO.record);
    peer = ofo_peer_get(&other, NULL);
    assert_non_null(peer);
    assert_ptr_equal(peer->queues, &OFO.queues);
    record_is = UNSHARED;
    peer = ofo_peer_get(&name, NULL);
    assert_non_null(peer);
    assert_ptr_equal(peer->queues, &OFO.plain);
}

static void pml_hears_nothing_of_a_peer_without_rails(void **state)
{
    static ofo_peer_t nobody;

    told = 0;
    assert_true(ofo_peer_declare(&nobody, "test", true));
    assert_false(ofo_peer_declare(&nobody, "test", true));
    assert_int_equal(told, 0);
}

static void operations_that_wait_are_dropped_at_the_end(void **state)
{
    static opal_list_item_t first, second;
    ofo_peer_t *peer = ofo_peer_get(&name, NULL);

    assert_non_null(peer);
    OBJ_CONSTRUCT(&first, opal_list_item_t);
    OBJ_CONSTRUCT(&second, opal_list_item_t);
    opal_list_append(&peer->rail[0]->pending_rdma, &first);
    opal_list_append(&peer->rail[0]->pending_rdma, &second);
    assert_ptr_equal(second.opal_list_prev, &first);
    ofo_peers_free();
    assert_ptr_not_equal(second.opal_list_prev, &first); /* the two are in no list any more */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(peer_without_ports_has_no_rails),
        TEST(peer_of_service_comes_from_its_record_alone),
        TEST(port_is_looked_at_where_its_letter_waits),
        TEST(port_that_was_down_at_the_peer_is_not_used_at_first),
        TEST(pair_is_doubtful_where_either_host_has_two_ports),
        TEST(doubt_is_said_once_whatever_else_was_said),
        TEST(process_with_an_unfit_record_is_remembered_without_rails),
        TEST(bad_map_makes_no_rails_and_an_empty_map_is_none),
        TEST(peer_without_memory_for_its_rails_has_none),
        TEST(peer_without_shared_queues_gets_plain_ones),
        TEST(pml_hears_nothing_of_a_peer_without_rails),
        TEST(operations_that_wait_are_dropped_at_the_end),
    };
    int rc;

    opal_init_util(NULL, NULL);
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    opal_finalize_util();
    return rc;
}
