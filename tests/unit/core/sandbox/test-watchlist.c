/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/sandbox/watchlist.c: what nobody uses is not looked at. */
#include "core/sandbox/watchlist.h"

#include "../core_rig.h"
#include "core/sandbox/registry.h"

static void free_none(struct sandbox *sandbox)
{
    (void)sandbox;
}

static const struct execution_ops ops = {.free_all = free_none};
static struct sandboxes room;
static struct loop *loop;
static unsigned n_looks;
static int64_t next; // what `deadline` tells

static void begin(void)
{
    struct error err = {0};

    CHECK_OK(loop_new(&loop, &err), err);
    gauge_histories_free(room.histories); // of the test before, whose sandboxes are gone by now
    room = (struct sandboxes){
        .execution_ops = &ops, .registry = registry_new(), .histories = gauge_histories_new()};
    room.watchlist = watchlist_new(loop);
    n_looks = 0;
    next = INT64_MAX;
}

static void end(void)
{
    watchlist_empty(room.watchlist, room.registry);
    registry_free(room.registry);
    watchlist_free(room.watchlist);
    loop_free(loop);
}

static struct sandbox *add(const char *id)
{
    struct sandbox_record record = fixture_sandbox(id);
    struct sandbox *sandbox = sandbox_new(&room, &record);
    struct error err = {0};

    CHECK_OK(registry_add(room.registry, sandbox, NULL, 10, 0, &err), err);
    return sandbox;
}

static void look(struct sandbox *sandbox, int64_t now)
{
    (void)sandbox;
    (void)now;
    n_looks++;
}

static int64_t deadline(struct sandbox *sandbox)
{
    (void)sandbox;
    return next;
}

static unsigned looks(void)
{
    n_looks = 0;
    watchlist_look(room.watchlist, 1000, look, deadline);
    return n_looks;
}

TEST(what_was_looked_at_once_is_left_alone_until_something_happens)
{
    begin();
    autoptr(sandbox) one = add("s1");
    autoptr(sandbox) two = add("s2");

    CHECK_INT(looks(), 2);
    CHECK_INT(looks(), 0);
    sandbox_touch(one);
    sandbox_touch(one);
    CHECK_INT(looks(), 1);
    CHECK_INT(looks(), 0);
    CHECK_INT(one->refs, 2); // ours and the registry's
    CHECK_INT(two->refs, 2);
    end();
}

TEST(what_has_something_to_do_is_looked_at_every_time)
{
    begin();
    autoptr(sandbox) one = add("s1");

    next = 0;
    CHECK_INT(looks(), 1);
    CHECK_INT(looks(), 1);
    next = INT64_MAX;
    CHECK_INT(looks(), 1);
    CHECK_INT(looks(), 0);
    end();
}

static void stop(void *data)
{
    (void)data;
    loop_stop(loop);
}

TEST(a_deadline_brings_it_back)
{
    struct loop_timer after = {0};

    begin();
    autoptr(sandbox) one = add("s1");
    next = 1005; // 5 ms from the time of the look
    CHECK_INT(looks(), 1);
    CHECK_INT(looks(), 0);
    CHECK(one->deadline.place != 0);
    CHECK_INT(one->refs, 3);
    loop_timer_init(&after, loop, stop, NULL);
    loop_timer_set(&after, 50);
    loop_run(loop);
    CHECK(one->is_watched_closely);
    CHECK_INT(looks(), 1);
    end();
}

TEST(what_is_over_goes_with_its_timer)
{
    begin();
    autoptr(sandbox) one = add("s1");

    next = 1000 + 3600 * 1000;
    CHECK_INT(looks(), 1);
    CHECK_INT(one->refs, 3);
    registry_end(room.registry, one, true);
    CHECK_INT(looks(), 0);
    CHECK_INT(one->refs, 1);
    CHECK_INT(one->deadline.place, 0);
    sandbox_touch(one); // by somebody who has not heard of it yet
    CHECK_INT(looks(), 0);
    CHECK_INT(one->refs, 1);
    end();
}
