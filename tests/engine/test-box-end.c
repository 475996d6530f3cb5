/* SPDX-License-Identifier: Apache-2.0 */
/* Ends: timeouts and signals, and how far they reach; in every cgroup mode. */
#include "box_fixture.h"

#include <signal.h>
#include <unistd.h>

BOX_TEST_MODES(a_timeout_ends_all_a_process_started_and_nobody_else)
{
    struct box *box = launch_plain();
    uint32_t other = start_ready(box, NULL, "daemon other stay");
    struct process_spec how = {.command.timeout_ms = 300};
    uint32_t id = start_ready(box, &how, "daemon mine stay");
    struct process_exit exit = finish(box, id);
    CHECK_INT(exit.code, 124);
    CHECK_INT(exit.cause, CAUSE_TIMEOUT);
    CHECK_INT(exit.signal, SIGKILL);
    CHECK(strstr(exit.text, "time") != NULL);
    CHECK_STR(processes_in(box), "guest\nother\nend\n");
    struct error err = {0};
    CHECK_OK(box_signal(box, other, SIGKILL, true, &err), err);
    exit = finish(box, other);
    CHECK_INT(exit.code, 137);
    CHECK_INT(exit.cause, CAUSE_EXIT);
    CHECK_STR(processes_in(box), "end\n");
}

BOX_TEST_MODES(a_timeout_ends_what_is_stopped_or_deaf)
{
    struct box *box = launch_plain();
    struct process_spec how = {.command.timeout_ms = 200};
    uint32_t stopped = start(box, &how, "stop");
    uint32_t deaf = start(box, &how, "ignore");
    CHECK_INT(finish(box, stopped).code, 124);
    CHECK_INT(finish(box, deaf).code, 124);
}

BOX_TEST_MODES(a_timeout_in_a_one_shot_box_ends_everything)
{
    struct box_spec spec = plain_spec();
    spec.is_one_shot = true;
    struct box *box = launch(&spec);
    struct process_spec how = {.command.timeout_ms = 300};
    uint32_t id = start_ready(box, &how, "daemon mine stay");
    struct process_exit exit = finish(box, id);
    CHECK_INT(exit.code, 124);
    CHECK_INT(exit.cause, CAUSE_TIMEOUT);
    CHECK_STR(processes_in(box), "end\n");
}

BOX_TEST_MODES(a_timeout_of_a_millisecond_is_kept)
{
    struct box *box = launch_plain();
    for (int i = 0; i < 20; i++) {
        struct process_exit exit =
            run_as(box, &(struct process_spec){.command.timeout_ms = 1}, "ignore");
        CHECK_INT(exit.code, 124);
    }
    CHECK_STR(processes_in(box), "end\n");
}

BOX_TEST_MODES(a_process_that_ends_in_time_has_no_timeout)
{
    struct box *box = launch_plain();
    struct process_exit exit =
        run_as(box, &(struct process_spec){.command.timeout_ms = 50000}, "exit 3");
    CHECK_INT(exit.code, 3);
    CHECK_INT(exit.cause, CAUSE_EXIT);
}

BOX_TEST_MODES(a_timeout_ends_a_fork_bomb)
{
    struct box_spec spec = plain_spec();
    spec.limits.max_processes = 200;
    struct box *box = launch(&spec);
    uint32_t id = start(box, &(struct process_spec){.command.timeout_ms = 500}, "bomb");
    CHECK_INT(finish(box, id).code, 124);
    CHECK_STR(processes_in(box), "end\n");
}

BOX_TEST_MODES(a_signal_reaches_the_group_of_a_process)
{
    struct box *box = launch_plain();
    struct error err = {0};
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    uint32_t id = start_ready(box, NULL, "catch 5");
    for (unsigned i = 0; i < ARRAY_SIZE(signals); i++) {
        char want[32];
        (void)snprintf(want, sizeof want, "got %d\n", signals[i]);
        CHECK_OK(box_signal(box, id, signals[i], false, &err), err);
        await_output(id, want);
    }
    CHECK_INT(finish(box, id).code, 0);
    id = start_ready(box, NULL, "sleep 1000");
    CHECK_OK(box_signal(box, id, SIGTERM, false, &err), err);
    CHECK_INT(finish(box, id).code, 128 + SIGTERM);
}

BOX_TEST_MODES(a_signal_to_the_whole_tree_reaches_other_sessions_and_no_other_process)
{
    struct box *box = launch_plain();
    struct error err = {0};
    uint32_t other = start_ready(box, NULL, "catch 1");
    uint32_t id = start(box, NULL, "tree");
    await_output(id, "child ready\n");
    CHECK_OK(box_signal(box, id, SIGUSR1, true, &err), err);
    await_output(id, "child got 10\n");
    await_output(id, "parent got 10\n");
    CHECK_INT(finish(box, id).code, 0);
    CHECK_STR(output_of(other), "ready\n");
    CHECK_OK(box_signal(box, other, SIGTERM, false, &err), err);
    CHECK_INT(finish(box, other).code, 0);
}

BOX_TEST_MODES(a_signal_to_the_whole_tree_of_a_one_shot_box)
{
    struct box_spec spec = plain_spec();
    struct error err = {0};
    spec.is_one_shot = true;
    struct box *box = launch(&spec);
    uint32_t id = start(box, NULL, "tree");
    await_output(id, "child ready\n");
    CHECK_OK(box_signal(box, id, SIGUSR1, true, &err), err);
    await_output(id, "child got 10\n");
    await_output(id, "parent got 10\n");
    CHECK_INT(finish(box, id).code, 0);
}

BOX_TEST_MODES(sigkill_to_the_whole_tree_cannot_be_escaped)
{
    struct box *box = launch_plain();
    struct error err = {0};
    static const char *const commands[] = {"ignore", "stop", "daemon away stay"};
    for (unsigned i = 0; i < ARRAY_SIZE(commands); i++) {
        uint32_t id = start_ready(box, NULL, commands[i]);
        CHECK_OK(box_signal(box, id, SIGKILL, true, &err), err);
        struct process_exit exit = finish(box, id);
        CHECK_INT(exit.code, 137);
        CHECK_INT(exit.cause, CAUSE_EXIT);
        CHECK_STR(processes_in(box), "end\n");
    }
    // at once, when it may not have entered its leaf yet
    for (int i = 0; i < 30; i++) {
        uint32_t id = start(box, NULL, "ignore");
        CHECK_OK(box_signal(box, id, SIGKILL, true, &err), err);
        CHECK_INT(finish(box, id).code, 137);
    }
    CHECK_STR(processes_in(box), "end\n");
}

BOX_TEST_MODES(what_a_process_left_running_ends_when_it_is_collected)
{
    struct box *box = launch_plain();
    CHECK_INT(finish(box, start_ready(box, NULL, "daemon left")).code, 0);
    CHECK_STR(processes_in(box), "end\n");
}

BOX_TEST_MODES(a_stopped_process_goes_on_when_told)
{
    struct box *box = launch_plain();
    struct error err = {0};
    uint32_t id = start_ready(box, NULL, "stop");
    // until it has stopped, going on means nothing to it
    while (!strstr(output_of(id), "continued")) {
        CHECK_OK(box_signal(box, id, SIGCONT, false, &err), err);
        nap();
    }
    CHECK_INT(finish(box, id).code, 0);
}

BOX_TEST(a_signal_that_is_none_is_refused_and_one_for_nobody_harmless)
{
    struct box *box = launch_plain();
    struct error err = {0};
    CHECK(box_signal(box, 1, 0, false, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK(box_signal(box, 1, 65, false, &err) < 0);
    CHECK_OK(box_signal(box, 4711, SIGKILL, true, &err), err);
    CHECK_OK(box_signal(box, 4711, SIGTERM, true, &err), err);
    CHECK_OK(box_resize(box, 4711, 10, 10, &err), err);
    CHECK_OK(box_collect(box, 4711, &err), err);
    run_well(box, "exit 0");
}

BOX_TEST_MODES(the_end_of_a_box_ends_everything_in_it)
{
    struct box_spec spec = plain_spec();
    spec.limits.max_processes = 100;
    struct box *box = launch(&spec);
    struct error err = {0};
    struct process_exit exit;
    (void)start_ready(box, NULL, "daemon away stay");
    (void)start_ready(box, NULL, "ignore");
    (void)start_ready(box, NULL, "bomb");
    disown(box);
    CHECK_OK(box_end(box, &err), err);
    CHECK(box_wait(box, 1, PATIENCE_MS, &exit, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_GONE);
    CHECK(box_signal(box, 1, SIGTERM, false, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_GONE);
    box_free(box);
}

BOX_TEST(a_box_that_is_only_freed_ends_and_is_swept)
{
    struct error err = {0};
    struct box *box = launch_plain();
    unsigned slot = box_slot(box);
    (void)start_ready(box, NULL, "ignore");
    disown(box);
    box_free(box);
    CHECK_OK(engine_sweep(engine, &err), err);
    struct cgroup *group = NULL;
    char name[16];
    (void)snprintf(name, sizeof name, "%u", slot);
    CHECK(cgroup_open(engine_cgroups(engine), name, &group, &err) < 0);
}

NOTHING_IS_LEFT_TEST
