/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A process dies while it holds a lock that it shares with others. The others take the lock from the dead process, but never from
 * a living process. Linked with the library's core; run this program under softrail run.
 */
#include "sr_objects.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts a child that takes the lock, and then dies or stays. */
static pid_t holder(uint64_t offset, bool dies, int *ready)
{
    uint32_t owner = sr.word;
    int fds[2];
    pid_t child;

    assert_int_equal(0, pipe(fds));
    child = fork();
    if (0 == child) {
        struct sr_peer *peer;
        if (0 != sr_join() || NULL == (peer = sr_peer_get(owner))) {
            _exit(1);
        }
        sr_lock(sr_peer_at(peer, offset, sizeof(struct sr_lock)));
        if (1 != write(fds[1], "x", 1)) {
            _exit(1);
        }
        if (!dies) {
            pause();
        }
        kill(getpid(), SIGKILL);
    }
    *ready = fds[0];
    return child;
}

static void lock_of_a_dead_process_is_taken(void **state)
{
    uint64_t offset, begin;
    struct sr_lock *lock;
    char byte;
    int ready;
    pid_t child;

    assert_int_equal(0, sr_join());
    offset = sr_arena_alloc(64);
    lock = sr_at(offset);
    for (int i = 0; i < 20; ++i) {
        child = holder(offset, true, &ready);
        assert_int_equal(1, read(ready, &byte, 1));
        assert_int_equal(child, waitpid(child, NULL, 0));
        assert_int_not_equal(0, lock->word);
        begin = sr_now();
        sr_lock(lock);
        assert_true(sr_now() - begin < UINT64_C(1000000000));
        assert_int_equal(sr.word, lock->word);
        sr_unlock(lock);
        close(ready);
    }
}

static void *unlock_later(void *arg)
{
    pid_t child = *(pid_t *) arg;

    usleep(100000);
    kill(child, SIGKILL); /* from now on others may take the lock */
    return NULL;
}

static void lock_of_a_live_process_is_waited_for(void **state)
{
    uint64_t offset, begin;
    pthread_t thread;
    char byte;
    int ready;
    pid_t child;

    assert_int_equal(0, sr_join());
    offset = sr_arena_alloc(64);
    child = holder(offset, false, &ready);
    assert_int_equal(1, read(ready, &byte, 1));
    assert_int_equal(0, pthread_create(&thread, NULL, unlock_later, &child));
    begin = sr_now();
    sr_lock(sr_at(offset));
    assert_true(sr_now() - begin > UINT64_C(90000000));
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_int_equal(child, waitpid(child, NULL, 0));
    sr_unlock(sr_at(offset));
    close(ready);
}

static void slot_of_the_dead_is_a_new_incarnation(void **state)
{
    char byte;
    int ready;
    pid_t child;
    uint32_t word;
    uint64_t offset;
    struct sr_lock *lock;

    assert_int_equal(0, sr_join());
    offset = sr_arena_alloc(64);
    lock = sr_at(offset);
    child = holder(offset, true, &ready);
    assert_int_equal(1, read(ready, &byte, 1));
    assert_int_equal(child, waitpid(child, NULL, 0));
    close(ready);
    word = lock->word;
    atomic_store(&lock->word, 0);
    child = holder(offset, false, &ready); /* the child gets the same slot */
    assert_int_equal(1, read(ready, &byte, 1));
    assert_int_equal(sr_word_slot(word), sr_word_slot(lock->word));
    assert_int_not_equal(word, lock->word);
    assert_false(sr_fabric_word_is_alive(&sr.fabric, word));
    assert_true(sr_fabric_word_is_alive(&sr.fabric, lock->word));
    assert_null(sr_peer_get(word));
    kill(child, SIGKILL);
    assert_int_equal(child, waitpid(child, NULL, 0));
    close(ready);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lock_of_a_dead_process_is_taken),
        cmocka_unit_test(lock_of_a_live_process_is_waited_for),
        cmocka_unit_test(slot_of_the_dead_is_a_new_incarnation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
