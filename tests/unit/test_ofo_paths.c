/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What rails know of their path: the arithmetic, the table with its locks, and the file that processes share, which may die or be stopped
 * at any time. Time is played here, but for the wait for a lock. DESIGN.txt 10.2, "Paths".
 */
#include "types/btl_openib_clock.h"
#include "types/btl_openib_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- arithmetic --------------------------------------------------------------------------------- */

/* Of this process (1), and of two others of this machine. */
static const ofo_path_rail_t a = {1, 101, 0}, b = {1, 102, 0}, c = {1, 103, 0}, d = {2, 104, 0}, e = {3, 105, 0}, d_to_a = {2, 101, 0};

enum { LONG = 1000 };

static ofo_path_result_t tells_me(const ofo_path_t *path, uint64_t since)
{
    return ofo_path_tells(path, 1, since, 200);
}

static void two_silent_rails_speak_for_the_path_and_one_does_not(void **state)
{
    ofo_path_t path = {0};

    assert_int_equal(tells_me(&path, 100), OFO_PATH_ASK);
    ofo_path_lead(&path, &a, 100, 100, LONG);
    assert_int_equal(tells_me(&path, 100), OFO_PATH_ASK);
    ofo_path_lead(&path, &b, 100, 100, LONG);
    assert_int_equal(tells_me(&path, 100), OFO_PATH_WAIT);
    ofo_path_hear(&path, &a, OFO_PATH_COUNTS, 0);
    ofo_path_hear(&path, &c, OFO_PATH_COUNTS, 0); /* does not lead */
    assert_int_equal(tells_me(&path, 100), OFO_PATH_WAIT);
    ofo_path_hear(&path, &b, OFO_PATH_COUNTS, 0);
    assert_int_equal(tells_me(&path, 100), OFO_PATH_AGAINST);
    ofo_path_hear(&path, &a, OFO_PATH_SWALLOWED, 150);
    ofo_path_hear(&path, &c, OFO_PATH_SWALLOWED, 150);
    assert_int_equal(tells_me(&path, 100), OFO_PATH_AGAINST);
    ofo_path_hear(&path, &b, OFO_PATH_SWALLOWED, 160);
    assert_int_equal(tells_me(&path, 100), OFO_PATH_SILENT);
}

/* The two led since 100, and found their rails silent. */
static ofo_path_t found_silent(const ofo_path_rail_t *one, const ofo_path_rail_t *two)
{
    ofo_path_t path = {0};

    ofo_path_lead(&path, one, 100, 100, LONG);
    ofo_path_lead(&path, two, 100, 100, LONG);
    ofo_path_hear(&path, one, OFO_PATH_SWALLOWED, 150);
    ofo_path_hear(&path, two, OFO_PATH_SWALLOWED, 160);
    ofo_path_hear(&path, one, OFO_PATH_LEAVES, 0);
    ofo_path_hear(&path, two, OFO_PATH_LEAVES, 0);
    return path;
}

static void silence_of_before_says_nothing_of_later_work(void **state)
{
    ofo_path_t path = found_silent(&a, &b);

    assert_int_equal(tells_me(&path, 150), OFO_PATH_SILENT);
    assert_int_equal(tells_me(&path, 151), OFO_PATH_ASK);
    ofo_path_lead(&path, &c, 151, 170, LONG); /* takes the place of a; b's is still of use */
    assert_int_equal(tells_me(&path, 151), OFO_PATH_WAIT);
    assert_int_equal(tells_me(&path, 161), OFO_PATH_ASK);
}

static void silence_of_the_future_says_nothing(void **state)
{
    const ofo_path_t path = found_silent(&a, &b);

    assert_int_equal(ofo_path_tells(&path, 1, 100, 160), OFO_PATH_SILENT);
    assert_int_equal(ofo_path_tells(&path, 1, 100, 159), OFO_PATH_ASK);
}

static void one_rail_never_has_both_places(void **state)
{
    ofo_path_t path = {0};

    ofo_path_lead(&path, &b, 100, 100, LONG);
    ofo_path_lead(&path, &a, 100, 100, LONG); /* the second place */
    ofo_path_hear(&path, &b, OFO_PATH_LEAVES, 0);
    ofo_path_hear(&path, &a, OFO_PATH_SWALLOWED, 150);
    ofo_path_lead(&path, &a, 160, 170, LONG);
    assert_int_equal(tells_me(&path, 140), OFO_PATH_ASK);
}

static void two_that_ask_the_same_process_do_not_both_lead(void **state)
{
    ofo_path_t path = {0};

    ofo_path_lead(&path, &a, 100, 100, LONG);
    ofo_path_lead(&path, &d_to_a, 100, 100, LONG);
    assert_int_equal(tells_me(&path, 100), OFO_PATH_ASK);
    ofo_path_lead(&path, &b, 100, 100, LONG);
    assert_int_equal(tells_me(&path, 100), OFO_PATH_WAIT);
}

static void answer_over_the_path_speaks_against_all_that_was_found(void **state)
{
    ofo_path_t path = found_silent(&a, &b);

    ofo_path_hear(&path, &c, OFO_PATH_ANSWERED, 170);
    assert_int_equal(tells_me(&path, 120), OFO_PATH_ASK);
}

static void leader_that_is_late_leads_no_longer(void **state)
{
    ofo_path_t path = {0};

    ofo_path_lead(&path, &a, 100, 100, 199);
    ofo_path_lead(&path, &b, 100, 100, 200);
    assert_int_equal(tells_me(&path, 100), OFO_PATH_ASK);
    ofo_path_hear(&path, &a, OFO_PATH_GOES_ON, 300);
    assert_int_equal(tells_me(&path, 100), OFO_PATH_WAIT);
    ofo_path_lead(&path, &c, 100, 250, LONG); /* b's place */
    assert_int_equal(ofo_path_tells(&path, 1, 100, 300), OFO_PATH_WAIT);
}

static void two_rails_of_one_other_process_are_not_enough(void **state)
{
    ofo_path_t path = found_silent(&a, &b);

    assert_int_equal(ofo_path_tells(&path, 1, 100, 200), OFO_PATH_SILENT);
    assert_int_equal(ofo_path_tells(&path, 2, 100, 200), OFO_PATH_ASK);
    ofo_path_lead(&path, &d_to_a, 100, 200, LONG); /* a asks that process */
    assert_int_equal(ofo_path_tells(&path, 1, 100, 200), OFO_PATH_SILENT);
    ofo_path_lead(&path, &d, 100, 200, LONG); /* instead of b */
    assert_int_equal(ofo_path_tells(&path, 2, 100, 200), OFO_PATH_WAIT);
    assert_int_equal(ofo_path_tells(&path, 1, 100, 200), OFO_PATH_WAIT);
    ofo_path_lead(&path, &e, 100, 200, LONG); /* no place for a third process */
    ofo_path_hear(&path, &d, OFO_PATH_SWALLOWED, 190);
    assert_int_equal(ofo_path_tells(&path, 3, 100, 200), OFO_PATH_SILENT);
}

static void second_lane_to_the_same_process_does_not_lead_too(void **state)
{
    static const ofo_path_rail_t a_lane = {1, 101, 1};
    ofo_path_t path = {0};

    ofo_path_lead(&path, &a, 100, 100, LONG);
    ofo_path_lead(&path, &a_lane, 100, 100, LONG);
    assert_int_equal(tells_me(&path, 100), OFO_PATH_ASK);
    ofo_path_hear(&path, &a_lane, OFO_PATH_LEAVES, 0); /* a still leads */
    ofo_path_lead(&path, &b, 100, 100, LONG);
    assert_int_equal(tells_me(&path, 100), OFO_PATH_WAIT);
}

/* ---- the table ---------------------------------------------------------------------------------- */

static ofo_paths_t paths;

static bool knows(ofo_paths_t *of, uint64_t key, uint64_t now, uint64_t until, uint64_t answered)
{
    ofo_paths_found_t found;
    bool known;

    assert_true(ofo_paths_lock(of, key, now, until, &found));
    known = answered == found.path->answered;
    found.path->answered = answered;
    ofo_paths_unlock(&found);
    return known;
}

static void table_keeps_what_it_knows_until_its_time(void **state)
{
    ofo_paths_found_t found;

    assert_int_equal(ofo_paths_init(&paths), 0);
    for (unsigned i = 1; i <= OFO_PATHS_IN_GROUP; ++i) {
        assert_false(knows(&paths, i * OFO_PATHS_OWN, 10, 100 * i, i));
    }
    assert_false(ofo_paths_lock(&paths, 99 * OFO_PATHS_OWN, 100, 200, &found)); /* no room */
    assert_false(knows(&paths, 99 * OFO_PATHS_OWN + 1, 100, 200, 99));          /* another group */
    assert_true(knows(&paths, OFO_PATHS_OWN, 100, 150, 1));
    assert_true(knows(&paths, OFO_PATHS_OWN, 150, 150, 1));
    assert_false(knows(&paths, OFO_PATHS_OWN, 151, 160, 1));
    assert_false(knows(&paths, 99 * OFO_PATHS_OWN, 201, 210, 1)); /* instead of the first two */
    for (unsigned i = 3; i <= OFO_PATHS_IN_GROUP; ++i) {
        assert_true(knows(&paths, i * OFO_PATHS_OWN, 210, 0, i));
    }
    ofo_paths_fini(&paths);
}

static void own_lock_that_is_not_free_is_given_up(void **state)
{
    ofo_paths_found_t held, second;

    assert_int_equal(ofo_paths_init(&paths), 0);
    assert_true(ofo_paths_lock(&paths, 5, 10, 100, &held));
    assert_false(ofo_paths_lock(&paths, 5, 10, 100, &second)); /* waits OFO_PATHS_LOCK_MS */
    ofo_paths_unlock(&held);
    assert_true(ofo_paths_lock(&paths, 5, 10, 100, &second));
    ofo_paths_unlock(&second);
    ofo_paths_fini(&paths);
}

/* ---- the file ----------------------------------------------------------------------------------- */

static char where[64];
static int dir;
static ofo_paths_t other;

static int make_dir(void **state)
{
    snprintf(where, sizeof(where), "/tmp/test_ofo_paths.XXXXXX");
    assert_non_null(mkdtemp(where));
    dir = open(where, O_RDONLY | O_DIRECTORY);
    assert_true(0 <= dir);
    assert_int_equal(ofo_paths_init(&paths), 0);
    assert_int_equal(ofo_paths_init(&other), 0);
    return 0;
}

static int remove_dir(void **state)
{
    ofo_paths_fini(&paths);
    ofo_paths_fini(&other);
    unlinkat(dir, OFO_PATHS_NAME, 0);
    close(dir);
    assert_int_equal(rmdir(where), 0); /* nothing else is left */
    return 0;
}

static void share(void)
{
    assert_int_equal(ofo_paths_share(&paths, dir), 0);
    assert_int_equal(ofo_paths_share(&paths, dir), 0);
    assert_int_equal(ofo_paths_share(&other, dir), 0);
    assert_ptr_not_equal(paths.file, other.file);
}

static void processes_share_what_they_know(void **state)
{
    pid_t child;
    int status;

    share();
    assert_false(knows(&paths, 5, 10, 100, 7));
    assert_true(knows(&other, 5, 10, 100, 7));
    child = fork();
    if (0 == child) {
        _exit(knows(&other, 5, 10, 100, 7) && !knows(&other, 6, 10, 100, 8) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(knows(&paths, 6, 10, 100, 8));
}

/* A child holds the lock of the path 5, and says so. */
static pid_t child_that_holds_a_lock(void)
{
    ofo_paths_found_t found;
    int said[2];
    char byte;
    pid_t child;

    assert_int_equal(pipe(said), 0);
    child = fork();
    if (0 == child) {
        byte = ofo_paths_lock(&other, 5, 10, 100, &found) ? 'y' : 'n';
        if (1 != write(said[1], &byte, 1)) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    assert_int_equal(read(said[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    close(said[0]);
    close(said[1]);
    return child;
}

static void kill_child(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void lock_of_a_dead_process_is_free_and_its_group_begins_empty(void **state)
{
    share();
    assert_false(knows(&paths, 5, 10, 100, 7));
    assert_false(knows(&paths, 6, 10, 100, 8));
    kill_child(child_that_holds_a_lock());
    assert_false(knows(&paths, 5, 10, 100, 7));
    assert_true(knows(&other, 5, 10, 100, 7));
    assert_true(knows(&other, 6, 10, 100, 8)); /* in another group */
    assert_false(paths.is_alone);
}

static void process_that_is_stopped_with_a_lock_leaves_the_others_alone(void **state)
{
    const uint64_t began = ofo_now_ms();
    pid_t child;

    share();
    child = child_that_holds_a_lock();
    assert_false(knows(&paths, 5, 10, 100, 7));
    assert_true(paths.is_alone);
    assert_true(ofo_now_ms() > began);
    assert_true(knows(&paths, 5, 10, 100, 7));
    assert_false(knows(&paths, 6, 10, 100, 8)); /* the whole file */
    assert_false(knows(&other, 6, 10, 100, 8));
    kill_child(child);
}

static void damaged_lock_leaves_a_process_alone(void **state)
{
    share();
    memset(&paths.file->group[5].lock, 0xff, sizeof(paths.file->group[5].lock));
    assert_false(knows(&paths, 5, 10, 100, 7));
    assert_true(paths.is_alone);
    assert_true(knows(&paths, 5, 10, 100, 7));
}

static void make_file(const void *bytes, size_t size, mode_t mode)
{
    const int fd = openat(dir, OFO_PATHS_NAME, O_WRONLY | O_CREAT | O_EXCL, mode);

    assert_true(0 <= fd);
    assert_int_equal(write(fd, bytes, size), size);
    close(fd);
}

static void file_of_another_layout_or_kind_is_not_used(void **state)
{
    static ofo_paths_file_t file;

    file.head = (ofo_paths_head_t){.magic = OFO_PATHS_MAGIC, .layout = OFO_PATHS_LAYOUT + 1, .size = sizeof(file)};
    make_file(&file, sizeof(file), 0600);
    assert_int_equal(ofo_paths_share(&paths, dir), EPROTO);
    assert_null(paths.file);
    unlinkat(dir, OFO_PATHS_NAME, 0);
    file.head = (ofo_paths_head_t){.magic = OFO_PATHS_MAGIC + 1, .layout = OFO_PATHS_LAYOUT, .size = sizeof(file)};
    make_file(&file, sizeof(file), 0600);
    assert_int_equal(ofo_paths_share(&paths, dir), EPROTO);
    unlinkat(dir, OFO_PATHS_NAME, 0);
    file.head = (ofo_paths_head_t){.magic = OFO_PATHS_MAGIC, .layout = OFO_PATHS_LAYOUT, .size = sizeof(file) - 1};
    make_file(&file, sizeof(file), 0600);
    assert_int_equal(ofo_paths_share(&paths, dir), EPROTO);
    assert_int_equal(linkat(dir, OFO_PATHS_NAME, dir, "second", 0), 0);
    assert_int_equal(ofo_paths_share(&paths, dir), EPERM);
    unlinkat(dir, "second", 0);
    unlinkat(dir, OFO_PATHS_NAME, 0);
    make_file("short", 5, 0600);
    assert_int_equal(ofo_paths_share(&paths, dir), EPROTO);
    unlinkat(dir, OFO_PATHS_NAME, 0);
    assert_int_equal(mkfifoat(dir, OFO_PATHS_NAME, 0600), 0);
    assert_int_equal(ofo_paths_share(&paths, dir), EPERM);
    unlinkat(dir, OFO_PATHS_NAME, 0);
    assert_int_equal(symlinkat("/dev/null", dir, OFO_PATHS_NAME), 0);
    assert_int_equal(ofo_paths_share(&paths, dir), EPERM);
    unlinkat(dir, OFO_PATHS_NAME, 0);
    assert_int_equal(ofo_paths_share(&paths, -1), EBADF);
    assert_false(knows(&paths, 5, 10, 100, 7)); /* its own */
    assert_int_equal(ofo_paths_share(&paths, dir), 0);
    assert_false(knows(&paths, 5, 10, 100, 7));
}

static bool no_memory;

void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t from);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t from);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t from)
{
    if (no_memory) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(at, size, prot, flags, fd, from);
}

static void file_that_finds_no_room_is_not_used(void **state)
{
    struct rlimit most, small;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &most), 0);
    small = most;
    small.rlim_cur = 4096;
    assert_true(SIG_ERR != signal(SIGXFSZ, SIG_IGN));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(ofo_paths_share(&paths, dir), EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &most), 0);
    no_memory = true;
    assert_int_equal(ofo_paths_share(&paths, dir), ENOMEM); /* when it is made */
    no_memory = false;
    assert_int_equal(ofo_paths_share(&paths, dir), 0);
    no_memory = true;
    assert_int_equal(ofo_paths_share(&other, dir), ENOMEM); /* when it is there */
    no_memory = false;
    assert_null(other.file);
    assert_false(knows(&paths, 5, 10, 100, 7));
    assert_false(knows(&other, 5, 10, 100, 7)); /* its own */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_silent_rails_speak_for_the_path_and_one_does_not),
        cmocka_unit_test(silence_of_before_says_nothing_of_later_work),
        cmocka_unit_test(silence_of_the_future_says_nothing),
        cmocka_unit_test(one_rail_never_has_both_places),
        cmocka_unit_test(two_that_ask_the_same_process_do_not_both_lead),
        cmocka_unit_test(answer_over_the_path_speaks_against_all_that_was_found),
        cmocka_unit_test(leader_that_is_late_leads_no_longer),
        cmocka_unit_test(two_rails_of_one_other_process_are_not_enough),
        cmocka_unit_test(table_keeps_what_it_knows_until_its_time),
        cmocka_unit_test_setup_teardown(processes_share_what_they_know, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(lock_of_a_dead_process_is_free_and_its_group_begins_empty, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(process_that_is_stopped_with_a_lock_leaves_the_others_alone, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(damaged_lock_leaves_a_process_alone, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(file_of_another_layout_or_kind_is_not_used, make_dir, remove_dir),
        cmocka_unit_test(second_lane_to_the_same_process_does_not_lead_too),
        cmocka_unit_test(own_lock_that_is_not_free_is_given_up),
        cmocka_unit_test_setup_teardown(file_that_finds_no_room_is_not_used, make_dir, remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
