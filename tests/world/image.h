/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Included before everything else in each file of an image: the world's names for time, threads, descriptors and what Open MPI
 * keeps once per process. The sources of the PML and of the BTL do not change.
 */
#ifndef WORLD_IMAGE_H
#define WORLD_IMAGE_H

/* The headers first, because their declarations keep the real names. */
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "world_calls.h"

/* The calls that can fail are functions, so that a line of the sources has here the branches that it has elsewhere (tests/coverage). */
static inline int image_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *argument)
{
    return world_call_fails(CALL_thread, 0) ? EAGAIN : world_thread_create(thread, attr, main, argument);
}

/* A lock whose owner is dead is not free here. */
static inline int image_mutex_consistent(pthread_mutex_t *mutex)
{
    return 0;
}

static inline int image_eventfd(unsigned value, int flags)
{
    return world_call_fails(CALL_eventfd, 0) ? -1 : world_eventfd(value, flags);
}

static inline void *image_malloc(const char *file, size_t size)
{
    return world_memory_ends(file) ? NULL : malloc(size);
}

static inline void *image_calloc(const char *file, size_t count, size_t size)
{
    return world_memory_ends(file) ? NULL : calloc(count, size);
}

static inline void *image_realloc(const char *file, void *old, size_t size)
{
    return world_memory_ends(file) ? NULL : realloc(old, size);
}

static inline char *image_strdup(const char *file, const char *text)
{
    return world_memory_ends(file) ? NULL : strdup(text);
}

static inline int image_memalign(const char *file, void **place, size_t align, size_t size)
{
    return world_memory_ends(file) ? ENOMEM : posix_memalign(place, align, size);
}

#define clock_gettime world_clock_gettime
#define time(t) world_time(t)
#define usleep world_usleep
#define nanosleep world_nanosleep
#define sched_yield world_sched_yield
#define pthread_create image_thread_create
#define pthread_join world_thread_join
#define pthread_mutex_init world_mutex_init
#define pthread_mutex_destroy world_mutex_destroy
#define pthread_mutex_lock world_mutex_lock
#define pthread_mutex_trylock world_mutex_trylock
#define pthread_mutex_unlock world_mutex_unlock
#define pthread_mutex_consistent image_mutex_consistent
#define poll(fds, n, timeout) world_poll(fds, n, timeout)
#define eventfd image_eventfd
#define read world_read
#define write world_write
#define close world_close
#define fcntl world_fcntl
#define getrandom world_getrandom
#define getpid() ((pid_t) world_rank() + 1)

/* Memory may be short. */
#define malloc(size) image_malloc(__FILE__, size)
#define calloc(count, size) image_calloc(__FILE__, count, size)
#define realloc(old, size) image_realloc(__FILE__, old, size)
#define strdup(text) image_strdup(__FILE__, text)
#define posix_memalign(place, align, size) image_memalign(__FILE__, place, align, size)

/* Texts for people are lines of the trace. */
#define BFO_HELP_HEARD(text) world_says("%s", text)

/* Files of the machine do not exist. */
#define fopen(path, mode) ((FILE *) NULL)
#define getifaddrs image_getifaddrs
#define freeifaddrs(list) ((void) (list))
int image_getifaddrs(struct ifaddrs **list);

/* A thread has no memory of its own; the scheduler exchanges the variable. */
#define __thread
#define tls_model(model) unused

/* Other threads run between any two atomic operations. */
#define __atomic_load_n(place, order) (world_point(), __atomic_load_n(place, order))
#define __atomic_store_n(place, value, order) (world_point(), __atomic_store_n(place, value, order))
#define __atomic_exchange_n(place, value, order) (world_point(), __atomic_exchange_n(place, value, order))
#define __atomic_add_fetch(place, value, order) (world_point(), __atomic_add_fetch(place, value, order))
#define __atomic_fetch_add(place, value, order) (world_point(), __atomic_fetch_add(place, value, order))
#define __atomic_compare_exchange_n(place, old, value, weak, good, bad) \
    (world_point(), __atomic_compare_exchange_n(place, old, value, weak, good, bad))

/* Open MPI's variables and functions of which each process has its own. */
#define opal_output image_output
#define opal_progress image_progress
#define opal_progress_register image_progress_register
#define opal_progress_register_lp image_progress_register
#define opal_progress_unregister image_progress_unregister
#define opal_uses_threads image_uses_threads
#define opal_proc_local_get image_proc_local_get
#define opal_proc_for_name image_proc_for_name
#define ompi_proc_for_name image_ompi_proc_for_name
#define opal_get_proc_hostname image_proc_hostname
#define opal_process_info image_process_info
#define opal_pmix image_pmix
#define opal_sync_event_base image_event_base
#define opal_leave_pinned image_leave_pinned
#define opal_mem_hooks_support_level image_no_memory_hooks
#define opal_hwloc_base_get_topology image_no_topology
#define mca_bml image_bml
#define mca_bml_lock image_bml_lock
#define mca_bml_base_init image_bml_init
#define mca_base_framework_open image_framework
#define mca_base_framework_close image_framework_ends
#define mca_btl_base_active_message_trigger image_triggers
#define mca_btl_base_modules_initialized image_btl_modules
#define mca_btl_base_param_register image_btl_parameters
#define mca_base_component_var_register image_parameter
#define mca_base_component_pvar_register image_pvar
#define mca_base_var_find image_var_find
#define mca_base_var_get_value image_var_value
#define mca_base_var_register_synonym image_var_synonym
#define mca_pml_base_send_requests image_send_requests
#define mca_pml_base_recv_requests image_recv_requests
#define mca_pml_base_pml_check_selected image_pml_is_selected
#define mca_rcache_base_module_create image_rcache_create
#define mca_rcache_base_module_destroy image_rcache_destroy
#define mca_mpool_base_module_lookup image_mpool
#define ompi_mpi_comm_self image_comm_self
#define ompi_mpi_comm_world image_comm_world
#define ompi_attr_create_keyval image_attr_key
#define ompi_attr_set_c image_attr_set
#define ompi_sync_wait_mt image_sync_wait
#define ompi_errhandler_invoke image_errhandler

#endif /* WORLD_IMAGE_H */
