/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The differences between the releases of Open MPI that bfo can be built for, 4.1, 5.0 and 6.0. Only this file tests the
 * release; the others include it and use its names (tests/docs/one_file_asks_for_the_release.sh). DESIGN.txt section 18.2.
 */
#ifndef BFO_OMPI_H
#define BFO_OMPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal_config.h"

#define BFO_OMPI_IS_4 (5 > OPAL_MAJOR_VERSION)
#define BFO_OMPI_IS_BEFORE_6 (6 > OPAL_MAJOR_VERSION)

#include "opal/mca/btl/btl.h"
#include "opal/runtime/opal.h"
#include "opal/util/proc.h"

/* ---- headers that moved ------------------------------------------------------------------------------ */

#if BFO_OMPI_IS_4
#include "opal/mca/event/event.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/threads/mutex.h"
#include "opal/threads/thread_usage.h"
#else
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/mutex.h"
#include "opal/mca/threads/thread_usage.h"
#include "opal/util/event.h"
#endif

/* ---- the release itself ------------------------------------------------------------------------------- */

/* Structures of Open MPI change within a series, and Open MPI compares only the version of its component interface. Therefore a
 * component must call bfo_ompi_is_the_one_built_for() before it touches anything else. */
#define BFO_OMPI_BUILT_FOR OPAL_IDENT_STRING
static inline const char *bfo_ompi_running(void)
{
    return opal_version_string;
}
static inline bool bfo_ompi_is_the_one_built_for(void)
{
    return 0 == strcmp(BFO_OMPI_BUILT_FOR, bfo_ompi_running());
}

/* ---- versions of the interfaces ------------------------------------------------------------------------ */

#if BFO_OMPI_IS_4
#define BFO_PML_BASE_VERSION MCA_PML_BASE_VERSION_2_0_0
#define BFO_BTL_BASE_VERSION MCA_BTL_BASE_VERSION_3_1_0
#else
#define BFO_PML_BASE_VERSION MCA_PML_BASE_VERSION_2_1_0
#define BFO_BTL_BASE_VERSION MCA_BTL_BASE_VERSION_3_3_0
#endif

/* The unit of a window's displacements, as one-sided components get it. */
#if BFO_OMPI_IS_BEFORE_6
#define BFO_OSC_BASE_VERSION OMPI_OSC_BASE_VERSION_3_0_0
typedef int bfo_ompi_displacement_t;
#else
#define BFO_OSC_BASE_VERSION OMPI_OSC_BASE_VERSION_4_0_0
typedef ptrdiff_t bfo_ompi_displacement_t;
#endif

/* Can processes of a job die (ULFM)? */
#if BFO_OMPI_IS_4
#define BFO_OMPI_HAS_ULFM 0
#else
#define BFO_OMPI_HAS_ULFM OPAL_ENABLE_FT_MPI
#endif

/* Does this job survive the death of a process (mpirun --with-ft ulfm)? For files that include ompi/runtime/params.h. And its error codes. */
#if BFO_OMPI_HAS_ULFM
#define BFO_OMPI_ULFM_IS_ON ompi_ftmpi_enabled
#define BFO_OMPI_ERR_PROC_FAILED MPI_ERR_PROC_FAILED
#define BFO_OMPI_ERR_REVOKED MPI_ERR_REVOKED
#else
#define BFO_OMPI_ULFM_IS_ON false
#define BFO_OMPI_ERR_PROC_FAILED MPI_ERR_OTHER
#define BFO_OMPI_ERR_REVOKED MPI_ERR_OTHER
#endif

/* Each failed process of a communicator leads to a call of pml_revoke_comm. Otherwise only the first one does. */
#define BFO_OMPI_REVOKES_FOR_EACH_FAILURE BFO_OMPI_IS_BEFORE_6

/* Modules have a function for checkpoint and restart. */
#define BFO_OMPI_HAS_FT_EVENT BFO_OMPI_IS_4

/* MPI_Start calls no error handler when the PML returns an error. */
#define BFO_OMPI_START_TELLS_NOBODY BFO_OMPI_IS_4

/* Calls of the runtime can be replaced (opal_pmix.fence, opal_pmix.connect). */
#define BFO_OMPI_HAS_RUNTIME_HOOKS BFO_OMPI_IS_4

/* Of Open MPI's one-sided components only osc/pt2pt uses the PML. In releases with osc/pt2pt, osc/rdma uses a BTL only if the BTL has atomic
 * operations. Without osc/pt2pt, osc/rdma builds its atomic operations from messages of any BTL. */
#define BFO_OMPI_HAS_OSC_PT2PT BFO_OMPI_IS_4

/* The BTL for processes of one node. */
#if BFO_OMPI_IS_4
#define BFO_OMPI_SHARED_MEMORY_BTL "vader"
#else
#define BFO_OMPI_SHARED_MEMORY_BTL "sm"
#endif

/* ---- the modex ---------------------------------------------------------------------------------------- */

#if BFO_OMPI_IS_4
#define BFO_MODEX_GLOBAL OPAL_PMIX_GLOBAL
#define BFO_OMPI_NODEID OPAL_PMIX_NODEID
#define BFO_OMPI_UINT32 OPAL_UINT32
#else
#define BFO_MODEX_GLOBAL PMIX_GLOBAL
#define BFO_OMPI_NODEID PMIX_NODEID
#define BFO_OMPI_UINT32 PMIX_UINT32
#endif

/* Number of this node according to the runtime; 0 also if the runtime does not say. */
static inline uint32_t bfo_ompi_node(void)
{
    uint32_t number = 0, *place = &number;
    int rc;

    OPAL_MODEX_RECV_VALUE_OPTIONAL(rc, BFO_OMPI_NODEID, &OPAL_PROC_MY_NAME, &place, BFO_OMPI_UINT32);
    return OPAL_SUCCESS == rc ? number : 0;
}

/* ---- what a BTL hands up --------------------------------------------------------------------------------
 * BFO_ARRIVAL_ARGS declares the parameters of a receive callback, among them `btl` and `des`. In its body BFO_ARRIVAL_TAG is the tag, and
 * BFO_ARRIVAL_PASS passes the parameters to another callback. BFO_ARRIVAL_ENDPOINT(des) is the sender's endpoint, NULL if the BTL does not say it. */
#if BFO_OMPI_IS_4
typedef mca_btl_base_descriptor_t bfo_arrival_t;
#define BFO_ARRIVAL_ARGS mca_btl_base_module_t *btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t *des, void *cbdata
#define BFO_ARRIVAL_TAG tag
#define BFO_ARRIVAL_PASS btl, tag, des, cbdata
#define BFO_ARRIVAL_ENDPOINT(des) NULL
#else
typedef mca_btl_base_receive_descriptor_t bfo_arrival_t;
#define BFO_ARRIVAL_ARGS mca_btl_base_module_t *btl, const mca_btl_base_receive_descriptor_t *des
#define BFO_ARRIVAL_TAG des->tag
#define BFO_ARRIVAL_PASS btl, des
#define BFO_ARRIVAL_ENDPOINT(des) ((des)->endpoint)
#endif

/* `des` has exactly one segment. */
static inline void bfo_arrival_init(bfo_arrival_t *des, mca_btl_base_segment_t *segment)
{
#if BFO_OMPI_IS_4
    OBJ_CONSTRUCT(des, mca_btl_base_descriptor_t);
    des->order = MCA_BTL_NO_ORDER;
#else
    memset(des, 0, sizeof(*des));
#endif
    des->des_segments = segment;
    des->des_segment_count = 1;
}

/* Calls the function registered for `tag`. Since 5.0 that function can answer over the endpoint. */
static inline void bfo_arrival_hand_up(const mca_btl_active_message_callback_t *callback, mca_btl_base_module_t *btl,
                                       struct mca_btl_base_endpoint_t *from, bfo_arrival_t *des, mca_btl_base_tag_t tag)
{
#if BFO_OMPI_IS_4
    callback->cbfunc(btl, tag, des, callback->cbdata);
#else
    des->endpoint = from;
    des->tag = tag;
    des->cbdata = callback->cbdata;
    callback->cbfunc(btl, des);
#endif
}

/* error_cb() with this flag reports no loss: memory of a device can be reached from now on. */
#if BFO_OMPI_IS_4
#define BFO_BTL_ERROR_FLAGS_IPC MCA_BTL_ERROR_FLAGS_ADD_CUDA_IPC
#else
#define BFO_BTL_ERROR_FLAGS_IPC MCA_BTL_ERROR_FLAGS_ADD_ACCELERATOR_IPC
#endif

/* ---- memory of a device --------------------------------------------------------------------------------
 * BFO_OMPI_DEVICE_MEMORY: can buffers be in it? BFO_OMPI_IS_ON_DEVICE(): is the buffer of a prepared convertor in it? */
#if BFO_OMPI_IS_4
#define BFO_OMPI_DEVICE_MEMORY OPAL_CUDA_SUPPORT
#define BFO_OMPI_IS_ON_DEVICE(convertor) (0 != ((convertor)->flags & (CONVERTOR_CUDA | CONVERTOR_CUDA_UNIFIED)))
#else
#include "opal/mca/accelerator/base/base.h"
#define BFO_OMPI_DEVICE_MEMORY bfo_ompi_has_devices()
#define BFO_OMPI_IS_ON_DEVICE(convertor) (0 != opal_convertor_on_device(convertor))
/* On machines without an accelerator Open MPI selects the component "null". */
static inline bool bfo_ompi_has_devices(void)
{
    return 0 != memcmp("null", opal_accelerator_base_selected_component.base_version.mca_component_name, sizeof("null"));
}
#endif

/* ---- names ------------------------------------------------------------------------------------------- */

/* The host of a process, copied into `room` and truncated to it; NULL if it is not known. */
#define BFO_OMPI_HOST_ROOM 256
static inline const char *bfo_ompi_host_of(opal_proc_t *proc, char room[BFO_OMPI_HOST_ROOM])
{
    const char *host = opal_get_proc_hostname(proc);

    if (NULL != host) {
        snprintf(room, BFO_OMPI_HOST_ROOM, "%s", host);
    }
#if !BFO_OMPI_IS_4
    free((char *) host);
#endif
    return NULL == host ? NULL : room;
}

/* ---- events of PMIx --------------------------------------------------------------------------------------- */

#define BFO_OMPI_HAS_PMIX_EVENTS BFO_OMPI_IS_4

#if BFO_OMPI_HAS_PMIX_EVENTS
static inline bool bfo_ompi_can_notify(void)
{
    return NULL != opal_pmix.notify_event;
}

static inline opal_value_t *bfo_ompi_note_add(opal_list_t *note, const char *key, opal_data_type_t type)
{
    opal_value_t *value = OBJ_NEW(opal_value_t);

    value->key = strdup(key);
    value->type = type;
    opal_list_append(note, &value->super);
    return value;
}
static inline void bfo_ompi_note_text(opal_list_t *note, const char *key, const char *text)
{
    bfo_ompi_note_add(note, key, OPAL_STRING)->data.string = strdup(text);
}
static inline void bfo_ompi_note_u32(opal_list_t *note, const char *key, uint32_t number)
{
    bfo_ompi_note_add(note, key, OPAL_UINT32)->data.uint32 = number;
}
static inline void bfo_ompi_note_u64(opal_list_t *note, const char *key, uint64_t number)
{
    bfo_ompi_note_add(note, key, OPAL_UINT64)->data.uint64 = number;
}

static inline void bfo_ompi_note_free(opal_list_t *note)
{
    OPAL_LIST_RELEASE(note);
}

/* Notifies the processes of this node that have a handler for the code, without waiting. Ownership of the note passes on: done(status, note),
 * which may run in a thread of PMIx, frees it. The range is "local", because mpirun of Open MPI 4.1 hangs with the wider ranges. The event
 * never goes to default handlers, because Open MPI's default handler ends the job. */
static inline void bfo_ompi_notify(int code, opal_list_t *note, opal_pmix_op_cbfunc_t done)
{
    int rc;

    bfo_ompi_note_add(note, OPAL_PMIX_EVENT_NON_DEFAULT, OPAL_BOOL)->data.flag = true;
    rc = opal_pmix.notify_event(code, &OPAL_PROC_MY_NAME, OPAL_PMIX_RANGE_LOCAL, note, done, note);
    if (OPAL_SUCCESS != rc) { /* then PMIx does not call `done` */
        done(OPAL_OPERATION_SUCCEEDED == rc ? OPAL_SUCCESS : rc, note);
    }
}
#endif

/* ---- communicators: for files that include ompi/communicator/communicator.h ------------------------------ */

/* The context id of a communicator, the same in all its processes. */
#if BFO_OMPI_IS_4
#define BFO_OMPI_CTX_OF(comm) ((comm)->c_contextid)
#else
#define BFO_OMPI_CTX_OF(comm) ((comm)->c_index)
#endif

/* The parameters, after the flag, of a function that copies an attribute. */
#if BFO_OMPI_IS_4
#define BFO_OMPI_COPY_ATTR_REST , MPI_Comm other
#else
#define BFO_OMPI_COPY_ATTR_REST
#endif

/* Since 5.0 the function that describes an enumerator has a parameter for the form of the text. */
#if BFO_OMPI_IS_4
#define BFO_OMPI_ENUM_DUMP_ARGS mca_base_var_enum_t *self, char **text
#else
#define BFO_OMPI_ENUM_DUMP_ARGS mca_base_var_enum_t *self, char **text, mca_base_var_enum_dump_type_t form
#endif

#endif /* BFO_OMPI_H */
