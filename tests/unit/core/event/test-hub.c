/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/hub.c: who is told, who is not any more, and many of them. */
#include "core/event/hub.h"

#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#define MANY 10000

static void count(void *data)
{
    atomic_fetch_add((atomic_int *)data, 1);
}

TEST(news_reaches_all_who_watch_the_id_and_nobody_else)
{
    autoptr(hub) hub = hub_new();
    atomic_int first = 0, second = 0, other = 0;
    autoptr(watch) one = hub_watch(hub, "a", count, &first);
    autoptr(watch) two = hub_watch(hub, "a", count, &second);
    autoptr(watch) three = hub_watch(hub, "b", count, &other);

    hub_announce(hub, "a");
    hub_announce(hub, "a");
    hub_announce(hub, "nobody");
    CHECK_INT(first, 2);
    CHECK_INT(second, 2);
    CHECK_INT(other, 0);
}

TEST(a_watch_that_was_freed_is_not_told_and_the_others_are)
{
    autoptr(hub) hub = hub_new();
    atomic_int counts[3] = {0};
    struct watch *watches[3];

    for (int gone = 0; gone < 3; gone++) {
        for (int i = 0; i < 3; i++) {
            counts[i] = 0;
            watches[i] = hub_watch(hub, "a", count, &counts[i]);
        }
        watch_free(watches[gone]);
        hub_announce(hub, "a");
        for (int i = 0; i < 3; i++) {
            CHECK_INT(counts[i], i != gone);
            watch_free(i == gone ? NULL : watches[i]);
        }
    }
    hub_announce(hub, "a");
    CHECK_INT(counts[0], 1);
}

struct slow {
    struct hub *hub;
    sem_t execution;
    atomic_bool is_done;
};

static void be_slow(void *data)
{
    struct slow *slow = data;

    (void)sem_post(&slow->execution);
    for (int i = 0; i < 1000; i++)
        (void)sched_yield();
    slow->is_done = true;
}

static void *tell_slow(void *data)
{
    hub_announce(((struct slow *)data)->hub, "a");
    return NULL;
}

TEST(freeing_a_watch_waits_until_it_is_not_running)
{
    autoptr(hub) hub = hub_new();
    struct slow slow = {.hub = hub};
    pthread_t thread;

    CHECK(sem_init(&slow.execution, 0, 0) == 0);
    struct watch *watch = hub_watch(hub, "a", be_slow, &slow);
    CHECK(pthread_create(&thread, NULL, tell_slow, &slow) == 0);
    (void)sem_wait(&slow.execution);
    watch_free(watch);
    CHECK(slow.is_done);
    (void)pthread_join(thread, NULL);
}

TEST(ten_thousand_watch_one_id)
{
    static struct watch *watches[MANY];
    autoptr(hub) hub = hub_new();
    atomic_int told = 0;

    for (int i = 0; i < MANY; i++)
        watches[i] = hub_watch(hub, "a", count, &told);
    hub_announce(hub, "a");
    CHECK_INT(told, MANY);
    for (int i = 0; i < MANY; i += 2)
        watch_free(watches[i]);
    hub_announce(hub, "a");
    CHECK_INT(told, MANY + MANY / 2);
    for (int i = 1; i < MANY; i += 2)
        watch_free(watches[i]);
}

TEST(ten_thousand_ids_are_watched)
{
    static struct watch *watches[MANY];
    static atomic_int told[MANY];
    autoptr(hub) hub = hub_new();
    char id[32];

    for (int i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "id%d", i);
        watches[i] = hub_watch(hub, id, count, &told[i]);
    }
    for (int i = 0; i < MANY; i += 3) {
        (void)snprintf(id, sizeof id, "id%d", i);
        hub_announce(hub, id);
    }
    for (int i = 0; i < MANY; i++) {
        CHECK_INT(told[i], i % 3 == 0);
        watch_free(watches[i]);
    }
}

#define THREADS 4
#define ROUNDS 5000

static void *come_and_go(void *data)
{
    struct hub *hub = data;
    static const char *const ids[] = {"a", "b", "c"};

    for (int i = 0; i < ROUNDS; i++) {
        atomic_int told = 0;
        struct watch *watch = hub_watch(hub, ids[i % 3], count, &told);
        hub_announce(hub, ids[i % 3]);
        watch_free(watch);
        if (told < 1) // others may tell as well
            return hub;
    }
    return NULL;
}

TEST(threads_watch_tell_and_leave_at_once)
{
    autoptr(hub) hub = hub_new();
    pthread_t threads[THREADS];
    void *failed;

    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, come_and_go, hub) == 0);
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], &failed);
        CHECK(!failed);
    }
}
