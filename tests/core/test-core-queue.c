/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/queue.c, and of cancelling in every state: with real boxes. */
#include "core_fixture.h"

#include <pthread.h>
#include <time.h>

static void pause_ms(long ms)
{
    (void)nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

/* Any number of commands at once. */
static void make_wide_sandbox(char id[ID_TEXT])
{
    const struct sandbox_request request = {
        .mode = SANDBOX_INTERACTIVE, .usual.directory = "/workspace", .idle_timeout_ms = 0};
    autoclear(sandbox_info) made = {0};
    struct error err = {0};

    CHECK_OK(sandbox_create(core, &actor, &request, &made, NULL, &err), err);
    (void)snprintf(id, ID_TEXT, "%s", made.id);
}

static void enqueue(const char *sandbox, const char *script, struct execution_info *out)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const struct execution_request request = {.command.argv = argv, .command.timeout_ms = 60000};
    struct error err = {0};

    CHECK_OK(execution_enqueue(core->executions, &actor, sandbox, &request, out, &err), err);
    CHECK_INT(out->state, EXECUTION_QUEUED);
    CHECK_INT(out->started_at, 0);
}

static void cancel(const char *id, const char *reason, struct execution_info *out)
{
    struct error err = {0};

    CHECK_OK(execution_cancel(core->executions, &actor, id, reason, out, &err), err);
    CHECK(out->stop_at > 0);
}

static void await_running(const char *id)
{
    for (;;) {
        autoclear(execution_info) now = {0};
        struct error err = {0};
        CHECK_OK(execution_get(core->executions, &actor, id, NULL, &now, &err), err);
        if (now.state != EXECUTION_QUEUED)
            return;
        pause_ms(5);
    }
}

#define WAIT "until [ -e go ]; do sleep 0.02; done; "

static void release(const char *sandbox)
{
    autoclear(execution_info) made = {0};
    autoclear(execution_info) ended = {0};

    start_in(sandbox, EXECUTION_COMMAND, "touch go", &made);
    await_execution(made.id, &ended);
}

CORE_TEST(commands_wait_for_their_turn_and_all_come_to_it)
{
    struct execution_info waiting[8] = {0};
    char sandbox[ID_TEXT];
    struct core_health health;

    make_wide_sandbox(sandbox);
    for (int i = 0; i < 8; i++)
        enqueue(sandbox, WAIT "echo done", &waiting[i]);
    await_running(waiting[0].id);
    await_running(waiting[1].id);
    do {
        core_health(core, &health);
    } while (health.commands < 2); // they are seen a moment before they are counted
    CHECK_INT(health.commands, 2);
    CHECK_INT(health.queued, 6);
    release(sandbox);
    for (int i = 0; i < 8; i++) {
        autoclear(execution_info) ended = {0};
        await_execution(waiting[i].id, &ended);
        CHECK_INT(ended.state, EXECUTION_COMPLETED);
        CHECK(ended.started_at >= ended.created_at);
        CHECK_STR(content_of(ended.stdout_stream), "done\n");
        execution_info_clear(&waiting[i]);
    }
    core_health(core, &health);
    CHECK_INT(health.queued, 0);
}

CORE_TEST(a_restart_loses_none_that_wait)
{
    struct execution_info waiting[5] = {0};
    autoclear(execution_info) cancelled = {0};
    char sandbox[ID_TEXT];

    make_wide_sandbox(sandbox);
    for (int i = 0; i < 5; i++)
        enqueue(sandbox, WAIT "echo done", &waiting[i]);
    await_running(waiting[0].id);
    await_running(waiting[1].id);
    cancel(waiting[3].id, "no", &cancelled);
    CHECK_INT(cancelled.state, EXECUTION_CANCELLED);
    reopen_core();
    release(sandbox);
    for (int i = 0; i < 5; i++) {
        autoclear(execution_info) ended = {0};
        await_execution(waiting[i].id, &ended);
        CHECK_INT(ended.state, i == 3 ? EXECUTION_CANCELLED : EXECUTION_COMPLETED);
        CHECK_INT(ended.started_at > 0, i != 3);
        execution_info_clear(&waiting[i]);
    }
}

/* Its place in the box may have been made ahead, or used by a start that was never recorded. */
CORE_TEST(one_that_waited_starts_after_a_restart_whatever_is_left_in_its_box)
{
    autoclear(execution_info) first = {0}, ended = {0}, waiting = {0}, again = {0}, last = {0},
                              next = {0};
    struct execution_info blockers[2] = {0};
    char sandbox[ID_TEXT], other[ID_TEXT];

    make_wide_sandbox(sandbox);
    make_wide_sandbox(other);
    start_in(sandbox, EXECUTION_COMMAND, "true", &first);
    await_execution(first.id, &ended);
    for (int i = 0; i < 2; i++) {
        enqueue(other, WAIT "true", &blockers[i]);
        await_running(blockers[i].id);
    }
    enqueue(sandbox, "echo done", &waiting);
    reopen_core();
    release(other);
    await_execution(waiting.id, &again);
    CHECK_INT(again.state, EXECUTION_COMPLETED);
    CHECK_STR(again.error ? again.error : "", "");
    CHECK(again.number > waiting.number);
    reopen_core(); // nobody gets its number a second time
    start_in(sandbox, EXECUTION_COMMAND, "true", &next);
    await_execution(next.id, &last);
    CHECK_INT(last.state, EXECUTION_COMPLETED);
    CHECK(last.number > again.number);
    for (int i = 0; i < 2; i++)
        execution_info_clear(&blockers[i]);
}

CORE_TEST(a_command_that_waits_for_a_sandbox_that_ends_is_cancelled)
{
    struct execution_info waiting[4] = {0};
    char sandbox[ID_TEXT];
    struct error err = {0};

    make_wide_sandbox(sandbox);
    for (int i = 0; i < 4; i++)
        enqueue(sandbox, "sleep 60", &waiting[i]);
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, sandbox, &err), err);
    for (int i = 0; i < 4; i++) {
        autoclear(execution_info) ended = {0};
        await_execution(waiting[i].id, &ended);
        CHECK_INT(ended.state, EXECUTION_CANCELLED);
        execution_info_clear(&waiting[i]);
    }
}

CORE_TEST(what_may_not_run_is_recorded_and_never_started)
{
    const char *const argv[] = {"touch", "ran", NULL};
    const struct execution_request request = {.command.argv = argv, .refused = "not here"};
    autoclear(execution_info) at_once = {0}, later = {0}, ended = {0}, look = {0}, looked = {0};
    char sandbox[ID_TEXT];
    struct error err = {0};

    make_wide_sandbox(sandbox);
    CHECK_OK(execution_start(core->executions, &actor, sandbox, &request, &at_once, &err), err);
    CHECK_INT(at_once.state, EXECUTION_FAILED);
    CHECK_STR(at_once.error, "not here");
    CHECK_OK(execution_enqueue(core->executions, &actor, sandbox, &request, &later, &err), err);
    await_execution(later.id, &ended);
    CHECK_INT(ended.state, EXECUTION_FAILED);
    CHECK_STR(ended.error, "not here");
    CHECK(ended.started_at > 0 && !ended.stdout_stream);
    start_in(sandbox, EXECUTION_COMMAND, "ls ran", &look);
    await_execution(look.id, &looked);
    CHECK(looked.exit.code != 0);
}

CORE_TEST(one_that_has_ended_gets_a_mark_and_stays_as_it_is)
{
    autoclear(execution_info) made = {0}, ended = {0}, marked = {0}, again = {0}, stored = {0};
    char sandbox[ID_TEXT];
    struct error err = {0};

    make_wide_sandbox(sandbox);
    start_in(sandbox, EXECUTION_COMMAND, "exit 3", &made);
    await_execution(made.id, &ended);
    cancel(made.id, "late", &marked);
    CHECK_INT(marked.state, EXECUTION_COMPLETED);
    CHECK_INT(marked.exit.code, 3);
    CHECK_INT(marked.ended_at, ended.ended_at);
    CHECK_STR(marked.stop_reason, "late");
    cancel(made.id, NULL, &again);
    CHECK_STR(again.stop_reason, "late");
    CHECK_INT(again.stop_at, marked.stop_at);
    reopen_core();
    CHECK_OK(execution_get(core->executions, &actor, made.id, NULL, &stored, &err), err);
    CHECK_STR(stored.stop_reason, "late");
    CHECK_INT(stored.exit.code, 3);
}

CORE_TEST(one_that_waits_can_be_stopped)
{
    struct execution_info waiting[3] = {0};
    autoclear(execution_info) stopped = {0};
    char sandbox[ID_TEXT];
    struct error err = {0};

    make_wide_sandbox(sandbox);
    for (int i = 0; i < 3; i++)
        enqueue(sandbox, WAIT "echo done", &waiting[i]);
    CHECK_OK(
        execution_stop(core->executions, &actor, waiting[2].id, NULL, false, "no", &stopped, &err),
        err);
    CHECK_INT(stopped.state, EXECUTION_CANCELLED);
    CHECK_STR(stopped.stop_reason, "no");
    release(sandbox);
    for (int i = 0; i < 3; i++) {
        autoclear(execution_info) ended = {0};
        await_execution(waiting[i].id, &ended);
        CHECK_INT(ended.state, i == 2 ? EXECUTION_CANCELLED : EXECUTION_COMPLETED);
        execution_info_clear(&waiting[i]);
    }
}

/* However it meets the start. */
CORE_TEST(a_cancel_is_never_lost)
{
    char sandbox[ID_TEXT];

    make_wide_sandbox(sandbox);
    for (int i = 0; i < 100; i++) {
        autoclear(execution_info) made = {0}, asked = {0}, ended = {0};
        enqueue(sandbox, "sleep 60 & sleep 60", &made);
        if (i % 3 == 1)
            pause_ms(1);
        cancel(made.id, NULL, &asked);
        await_execution(made.id, &ended);
        CHECK_INT(ended.state, EXECUTION_CANCELLED);
    }
}

struct storm {
    const char *sandbox;
    pthread_t thread;
};

static void *run_storm(void *data)
{
    struct storm *storm = data;

    for (int i = 0; i < 15; i++) {
        autoclear(execution_info) made = {0}, asked = {0}, ended = {0};
        enqueue(storm->sandbox, i % 2 ? "sleep 60" : "echo hi", &made);
        if (i % 2)
            cancel(made.id, "storm", &asked);
        await_execution(made.id, &ended);
        CHECK_INT(ended.state, i % 2 ? EXECUTION_CANCELLED : EXECUTION_COMPLETED);
    }
    return NULL;
}

CORE_TEST(many_at_once)
{
    struct storm storms[6];
    char sandboxes[3][ID_TEXT];
    struct core_health health;

    for (int i = 0; i < 3; i++)
        make_wide_sandbox(sandboxes[i]);
    for (int i = 0; i < 6; i++) {
        storms[i].sandbox = sandboxes[i % 3];
        CHECK_INT(pthread_create(&storms[i].thread, NULL, run_storm, &storms[i]), 0);
    }
    for (int i = 0; i < 6; i++)
        (void)pthread_join(storms[i].thread, NULL);
    core_health(core, &health);
    CHECK_INT(health.queued, 0);
}

CORE_TEST(a_sandbox_ends_when_its_time_is_up_and_its_last_command_has_ended)
{
    const char *const argv[] = {"sh", "-c", "sleep 2; echo done", NULL};
    const struct execution_request command = {.command.argv = argv};
    const struct sandbox_request request = {.mode = SANDBOX_INTERACTIVE,
                                            .usual.directory = "/workspace",
                                            .idle_timeout_ms = 0,
                                            .expires_at = 1,
                                            .command = &command};
    autoclear(sandbox_info) made = {0}, over = {0};
    autoclear(execution_info) started = {0}, ended = {0};
    struct error err = {0};

    CHECK_OK(sandbox_create(core, &actor, &request, &made, &started, &err), err);
    await_execution(started.id, &ended);
    CHECK_INT(ended.state, EXECUTION_COMPLETED);
    await_state(made.id, SANDBOX_ENDED);
    CHECK_OK(sandbox_get(core->sandboxes, &actor, made.id, false, &over, &err), err);
    CHECK_STR(over.reason, "expired");
}
