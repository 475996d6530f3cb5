/* SPDX-License-Identifier: Apache-2.0 */
/* Locks: one order, released with their block. */
#include "base/lock.h"

#include "base/clock.h"
#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct two {
    struct lock outer, inner;
};

static void two_init(struct two *two)
{
    lock_init(&two->outer, LOCK_SANDBOX_RECORD);
    lock_init(&two->inner, LOCK_SANDBOX);
}

/* Whether the child that does this aborts. */
static bool aborts(void (*fn)(struct two *two), struct two *two)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        (void)fclose(stderr);
        (void)signal(SIGABRT, SIG_DFL);
        fn(two);
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void take_backwards(struct two *two)
{
    autolock(&two->inner);
    autolock(&two->outer);
}

static void take_twice(struct two *two)
{
    autolock(&two->inner);
    (void)lock_take(&two->inner);
}

static void release_unheld(struct two *two)
{
    lock_release(&two->inner);
}

static void wait_unheld(struct two *two)
{
    struct lock_condition condition;

    lock_condition_init(&condition);
    (void)lock_condition_wait(&condition, &two->inner, 1);
}

TEST(a_lock_is_released_with_its_block)
{
    struct two two;

    two_init(&two);
    {
        autolock(&two.outer);
        autolock(&two.inner);
        CHECK(lock_is_mine(&two.outer) && lock_is_mine(&two.inner));
    }
    CHECK(!lock_is_mine(&two.outer) && !lock_is_mine(&two.inner));
    CHECK(pthread_mutex_trylock(&two.inner.mutex) == 0);
    (void)pthread_mutex_unlock(&two.inner.mutex);
}

TEST(taking_locks_out_of_order_or_twice_ends_the_program)
{
    struct two two;

    two_init(&two);
    CHECK(aborts(take_backwards, &two));
    CHECK(aborts(take_twice, &two));
    CHECK(aborts(release_unheld, &two));
    CHECK(aborts(wait_unheld, &two));
}

TEST(a_try_needs_no_order_and_does_not_wait)
{
    struct two two;

    two_init(&two);
    autolock(&two.inner);
    {
        autolock_try(got, &two.outer);
        CHECK(got == &two.outer);
        autolock_try(again, &two.outer);
        CHECK(again == NULL);
    }
    CHECK(!lock_is_mine(&two.outer));
}

TEST(a_wait_ends_at_its_monotonic_deadline)
{
    struct lock_condition condition;
    struct two two;

    two_init(&two);
    lock_condition_init(&condition);
    autolock(&two.inner);
    uint64_t until = clock_monotonic_ms() + 20;
    CHECK(!lock_condition_wait(&condition, &two.inner, until));
    CHECK(clock_monotonic_ms() >= until);
    CHECK(lock_is_mine(&two.inner));
    lock_condition_clear(&condition);
}
