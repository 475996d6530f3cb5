/* SPDX-License-Identifier: Apache-2.0 */
/* The core as a whole: sandboxes, commands, ends, and what survives a restart. */
#include "core_fixture.h"

#include "base/strings.h"
#include "core/execution/executions.h"
#include "core/sandbox/mailbox.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandbox_object.h"
#include "core/sandbox/sandboxes.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

CORE_TEST(a_one_shot_sandbox_ends_with_its_command)
{
    autoclear(sandbox_info) sandbox = {0};
    autoclear(execution_info) first = {0};
    autoclear(execution_info) end = {0};

    run_once("echo out; echo err >&2; exit 7", &sandbox, &first);
    CHECK_INT(first.state, EXECUTION_RUNNING);
    await_execution(first.id, &end);
    CHECK_INT(end.state, EXECUTION_COMPLETED);
    CHECK_INT(end.exit.code, 7);
    CHECK_STR(content_of(end.stdout_stream), "out\n");
    CHECK_STR(content_of(end.stderr_stream), "err\n");
    await_state(sandbox.id, SANDBOX_ENDED);
    struct sandbox_status status;
    struct error err = {0};
    CHECK_OK(sandbox_status(core->sandboxes, &actor, sandbox.id, &status, &err), err);
    CHECK_INT(status.exit_code, 7);
}

static void wait_for(struct sandbox *sandbox, void *data)
{
    (void)sandbox;
    (void)sem_wait(data);
}

static bool is_exit_noted(struct sandbox *sandbox, const char *id)
{
    autolock(&sandbox->record_lock);
    struct execution *execution = sandbox->executions;
    while (execution && strcmp(execution->id, id) != 0)
        execution = execution->next;
    return execution && execution->is_exit_noted;
}

CORE_TEST(a_one_shot_that_has_failed_keeps_its_exit_when_its_sandbox_is_ended)
{
    static sem_t may_go_on;
    autoclear(sandbox_info) made = {0};
    autoclear(execution_info) first = {0}, job = {0}, end = {0};
    struct error err = {0};

    run_once("while [ ! -e go ]; do sleep 0.02; done; exit 7", &made, &first);
    autoptr(sandbox) sandbox = registry_find(core->sandboxes->registry, made.id);
    (void)sem_init(&may_go_on, 0, 0);
    mailbox_post(sandbox, wait_for, &may_go_on); // whoever records the end comes after this
    start_in(made.id, EXECUTION_JOB, "touch go", &job);
    for (int left = 60000; !is_exit_noted(sandbox, first.id) && left; left--)
        (void)usleep(1000);
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, made.id, &err), err);
    (void)sem_post(&may_go_on);
    await_execution(first.id, &end);
    CHECK_INT(end.state, EXECUTION_COMPLETED);
    CHECK_INT(end.exit.cause, EXECUTION_EXITED);
    CHECK_INT(end.exit.code, 7);
}

CORE_TEST(executions_follow_each_other_and_two_at_once_are_refused)
{
    char id[ID_TEXT];
    autoclear(execution_info) first = {0};
    autoclear(execution_info) end = {0};
    autoclear(execution_info) second = {0};
    autoclear(execution_info) refused = {0};
    autoclear(execution_info) job = {0};
    struct error err = {0};
    const char *argv[] = {"true", NULL};
    struct execution_request request = {.command.argv = argv};

    make_sandbox(id);
    start_in(id, EXECUTION_COMMAND, "echo $HOME; pwd; while [ ! -e go ]; do sleep 0.02; done",
             &first);
    CHECK(execution_start(core->executions, &actor, id, &request, &refused, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_INT(err.reason, ERROR_BUSY);
    start_in(id, EXECUTION_JOB, "touch go", &job);
    await_execution(first.id, &end);
    CHECK_STR(content_of(end.stdout_stream), "/home/me\n/home/me\n");
    await_state(id, SANDBOX_IDLE);
    execution_info_clear(&end);
    start_in(id, EXECUTION_COMMAND, "echo again", &second);
    await_execution(second.id, &end);
    CHECK_STR(content_of(end.stdout_stream), "again\n");
}

CORE_TEST(jobs_run_beside_executions_and_are_stopped)
{
    char id[ID_TEXT];
    autoclear(execution_info) job = {0};
    autoclear(execution_info) other = {0};
    autoclear(execution_info) stopped = {0};
    autoclear(execution_info) end = {0};
    struct error err = {0};
    const enum execution_kind kind = EXECUTION_JOB;

    make_sandbox(id);
    start_in(id, EXECUTION_JOB, "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done", &job);
    start_in(id, EXECUTION_COMMAND, "echo beside", &other);
    await_execution(other.id, &end);
    CHECK_STR(content_of(end.stdout_stream), "beside\n");
    execution_info_clear(&end);
    CHECK_OK(
        execution_stop(core->executions, &actor, job.id, &kind, false, "asked", &stopped, &err),
        err);
    await_execution(job.id, &end);
    CHECK_INT(end.state, EXECUTION_CANCELLED);
}

CORE_TEST(deleting_ends_everything_in_it)
{
    char id[ID_TEXT];
    autoclear(execution_info) first = {0};
    autoclear(execution_info) end = {0};
    autoclear(sandbox_info) gone = {0};
    struct error err = {0};

    make_sandbox(id);
    start_in(id, EXECUTION_COMMAND, "echo begun; sleep 600", &first);
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, id, &err), err);
    await_execution(first.id, &end);
    CHECK_INT(end.state, EXECUTION_CANCELLED);
    CHECK_INT(end.exit.code, 137);
    (void)content_of(end.stdout_stream); // complete
    CHECK(sandbox_get(core->sandboxes, &actor, id, false, &gone, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK(sandbox_delete(core->sandboxes, &actor, id, &err) < 0);
    CHECK_OK(sandbox_get(core->sandboxes, &actor, id, true, &gone, &err), err);
    CHECK_INT(gone.state, SANDBOX_DELETED);
}

CORE_TEST(an_idle_sandbox_ends_and_says_why)
{
    struct sandbox_request request = {
        .idle_timeout_ms = 300, .home = "/h", .usual.directory = "/h"};
    autoclear(sandbox_info) made = {0};
    autoclear(sandbox_info) ended = {0};
    struct error err = {0};

    CHECK_OK(sandbox_create(core, &actor, &request, &made, NULL, &err), err);
    await_state(made.id, SANDBOX_ENDED);
    CHECK_OK(sandbox_get(core->sandboxes, &actor, made.id, false, &ended, &err), err);
    CHECK_STR(ended.reason, "idle");
    struct event_filter filter = {.sandbox_id = made.id, .page = {.limit = 10}};
    autoclear(event_infos) events = {0};
    CHECK_OK(event_list(core->sandboxes, &actor, &filter, &events, &err), err);
    CHECK_STR(events.items[0].type, EVENT_CREATE);
    CHECK_STR(events.items[events.count - 1].type, EVENT_TERMINATED);
    CHECK_STR(events.items[events.count - 1].reason, "idle");
}

CORE_TEST(commands_go_on_while_the_server_restarts)
{
    char id[ID_TEXT];
    autoclear(execution_info) first = {0};
    autoclear(execution_info) job = {0};
    autoclear(execution_info) again = {0};
    autoclear(execution_info) end = {0};

    make_sandbox(id);
    start_in(id, EXECUTION_COMMAND, "for i in 1 2 3 4 5; do echo $i; sleep 0.1; done; exit 3",
             &first);
    start_in(id, EXECUTION_JOB, "echo job; while :; do sleep 0.05; done", &job);
    reopen_core();
    await_execution(first.id, &end);
    CHECK_INT(end.exit.code, 3);
    CHECK_STR(content_of(end.stdout_stream), "1\n2\n3\n4\n5\n");
    await_state(id, SANDBOX_IDLE);
    execution_info_clear(&end);
    struct error err = {0};
    CHECK_OK(execution_get(core->executions, &actor, job.id, NULL, &end, &err), err);
    CHECK_INT(end.state, EXECUTION_RUNNING);
    execution_info_clear(&end);
    start_in(id, EXECUTION_COMMAND, "exit 5",
             &again); // what the earlier server made ahead does not stand in the way
    await_execution(again.id, &end);
    CHECK_INT(end.exit.code, 5);
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, id, &err), err);
}

static void *hammer(void *data)
{
    unsigned *ended = data;
    for (int i = 0; i < 12; i++) {
        autoclear(sandbox_info) sandbox = {0};
        autoclear(execution_info) first = {0};
        autoclear(execution_info) end = {0};
        run_once("echo x", &sandbox, &first);
        await_execution(first.id, &end);
        if (end.exit.code == 0 &&
            strcmp(end.state == EXECUTION_COMPLETED ? "ok" : "bad", "ok") == 0)
            (*ended)++;
    }
    return NULL;
}

CORE_TEST(many_threads_run_and_nothing_is_lost)
{
    pthread_t threads[6];
    unsigned ended[6] = {0};

    for (int i = 0; i < 6; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, hammer, &ended[i]), 0);
    for (int i = 0; i < 6; i++)
        (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < 6; i++)
        CHECK_INT(ended[i], 12);
}

CORE_TEST(a_paused_sandbox_stands_still_and_goes_on)
{
    char id[ID_TEXT];
    autoclear(execution_info) job = {0};
    autoclear(execution_info) other = {0};
    autoclear(execution_info) end = {0};
    autoclear(sandbox_info) paused = {0};
    struct error err = {0};
    const char *argv[] = {"true", NULL};
    struct execution_request request = {.command.argv = argv};
    bool was_paused = false;

    make_sandbox(id);
    start_in(id, EXECUTION_COMMAND,
             "i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i > count; done; echo done", &job);
    CHECK_OK(sandbox_pause(core->sandboxes, &actor, id, &paused, &err), err);
    CHECK_INT(paused.state, SANDBOX_PAUSED);
    CHECK(paused.paused_at > 0);
    sandbox_info_clear(&paused);
    CHECK(sandbox_pause(core->sandboxes, &actor, id, &paused, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    reopen_core(); // frozen processes outlive the server
    await_state(id, SANDBOX_PAUSED);
    CHECK_OK(sandbox_resume(core->sandboxes, &actor, id, &err), err);
    await_state(id, SANDBOX_RUNNING);
    start_in(id, EXECUTION_JOB, "touch stop", &other);
    await_execution(job.id, &end);
    CHECK_STR(content_of(end.stdout_stream), "done\n");
    await_state(id, SANDBOX_IDLE);
    CHECK_OK(sandbox_pause(core->sandboxes, &actor, id, &paused, &err), err);
    execution_info_clear(&other);
    CHECK_OK(
        execution_start_awake(core->executions, &actor, id, &request, &other, &was_paused, &err),
        err);
    CHECK(was_paused);
}
