/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/base/thread.c. */
#include "base/thread.h"
#include "test.h"

#include <pthread.h>
#include <sys/prctl.h>

struct seen {
    bool is_loop;
    char name[16];
};

static void *look(void *data)
{
    struct seen *seen = data;

    seen->is_loop = thread_is_loop();
    thread_set_name("a-name-longer-than-fits");
    (void)prctl(PR_GET_NAME, seen->name, 0, 0, 0);
    return NULL;
}

TEST(a_mark_is_of_its_thread_alone)
{
    struct seen seen = {.is_loop = true};
    pthread_t other;

    CHECK(!thread_is_loop());
    thread_mark_loop(true);
    CHECK(pthread_create(&other, NULL, look, &seen) == 0);
    (void)pthread_join(other, NULL);
    CHECK(thread_is_loop() && !seen.is_loop);
    thread_mark_loop(false);
    CHECK(!thread_is_loop());
    CHECK_STR(seen.name, "a-name-longer-t");
}
