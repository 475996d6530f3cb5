/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of bytes between the loop and who takes a body (src/net/body.c). */
#include "net/body_impl.h"
#include "test.h"

static struct loop *loop;
static int n_resumed;

static void on_resume(void *connection)
{
    (void)connection;
    n_resumed++;
}

static void stop(void *data)
{
    (void)data;
    loop_stop(loop);
}

/* Whatever was posted until now. */
static void run_posted(void)
{
    loop_post(loop, stop, NULL);
    loop_run(loop);
}

TEST(who_stopped_is_told_of_room_although_more_came_after_some_was_taken)
{
    static char piece[BODY_BUFFER], taken[BODY_BUFFER];
    struct error err = {0};

    CHECK_OK(loop_new(&loop, &err), err);
    struct body *body = body_new(loop, on_resume, &loop);
    CHECK(!body_put(body, piece, sizeof piece)); // the connection stops
    CHECK_INT(body_read(body, taken, sizeof taken, 0, &err), sizeof taken);
    CHECK(body_put(body, "rest", 4)); // of the same reading
    run_posted();
    CHECK_INT(n_resumed, 1);
    CHECK_INT(body_read(body, taken, sizeof taken, 0, &err), 4);
    run_posted();
    CHECK_INT(n_resumed, 1);
    body_end(body, ERROR_NONE, NULL);
    body_free(body);
    run_posted();
    loop_free(loop);
}
