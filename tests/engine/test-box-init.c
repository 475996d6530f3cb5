/* SPDX-License-Identifier: Apache-2.0 */
/* PID 1 under attack from its own guests: it cannot be killed, stopped, read, starved or tricked into waiting. */
#include "base/auto.h"
#include "box_fixture.h"
#include "engine/files.h"

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

BOX_TEST(no_signal_from_inside_reaches_PID_1)
{
    struct box *box = launch_plain();
    for (int i = 0; i < 5; i++)
        run_well(box, "kill-init");
    CHECK_INT(run_as(box, &(struct process_spec){.command.user = "kim"}, "kill-init").code, 0);
    run_well(box, "echo still here");
}

BOX_TEST(nothing_of_PID_1_can_be_read_or_taken)
{
    struct box *box = launch_plain();
    run_well(box, "spy-init");
    CHECK_STR(last_output(), "worked: \n");
    CHECK_INT(run_as(box, &(struct process_spec){.command.user = "kim"}, "spy-init").code, 0);
    CHECK_STR(last_output(), "worked: \n");
    run_well(box, "echo still here");
}

BOX_TEST(what_PID_1_is_about_to_start_is_as_closed_as_itself)
{
    struct box *box = launch_plain();
    struct error err = {0};
    uint32_t spy = start_ready(box, NULL, "spy-newborn");
    for (int i = 0; i < (is_in_vm() ? 50 : 300); i++)
        CHECK_INT(run(box, "exit 0").code, 0);
    CHECK_OK(box_signal(box, spy, SIGKILL, true, &err), err);
    CHECK_INT(finish(box, spy).code, 137);
    unsigned caught = 0;
    for (const char *at = output_of(spy); (at = strstr(at, "worked: ")); caught++) {
        at += 8;
        CHECK(*at == '\n');
    }
    printf("# %u were caught before they executed\n", caught);
}

BOX_TEST(stopping_every_newborn_stalls_nobody_else)
{
    struct box *box = launch_plain();
    struct error err = {0};
    int count = is_in_vm() ? 30 : 200;
    uint32_t ids[200];
    uint32_t storm = start_ready(box, NULL, "stop-storm");
    for (int i = 0; i < count; i++)
        ids[i] =
            start(box, i % 2 ? NULL : &(struct process_spec){.command.user = "kim"}, "echo hello");
    CHECK_OK(box_signal(box, storm, SIGKILL, true, &err), err);
    CHECK_INT(finish(box, storm).code, 137);
    for (int i = 0; i < count; i++) {
        CHECK_OK(box_signal(box, ids[i], SIGCONT, true, &err), err);
        CHECK_INT(finish(box, ids[i]).code, 0);
        CHECK_STR(output_of(ids[i]), "hello\n");
    }
    run_well(box, "await /proc/1/oom_score_adj 0");
}

BOX_TEST(ten_thousand_orphans_are_reaped)
{
    struct box_spec spec = plain_spec();
    struct cgroup_usage usage;
    struct error err = {0};
    spec.limits.max_processes = 500;
    struct box *box = launch(&spec);
    uint32_t id = start(box, NULL, is_in_vm() ? "orphans 500" : "orphans 10000");
    for (int i = 0; i < 20; i++)
        (void)run(box, "exit 0"); // may meet the process limit, and must be answered
    CHECK_INT(finish(box, id).code, 0);
    AWAIT(box_usage(box, &usage, &err) == 0 && usage.procs == 1);
    CHECK_STR(processes_in(box), "end\n");
}

static int spawn_bare(struct box *box, uint32_t id, struct error *err)
{
    const char *const argv[] = {"guest", "exit", "0", NULL};
    struct process_spec spec = {
        .id = id, .command.argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    return box_spawn(box, &spec, NULL, err);
}

BOX_TEST(processes_that_nobody_collects_are_bounded)
{
    enum { MOST = 4096 };
    struct box *box = launch_plain();
    struct box_event event;
    struct error err = {0};
    unsigned refused = 0;
    if (is_in_vm())
        SKIP("takes long there");
    for (uint32_t i = 1; i <= MOST + 10; i++) {
        CHECK_OK(spawn_bare(box, i, &err), err);
        do
            CHECK_OK(box_next(box, &event, PATIENCE_MS, &err), err);
        while (event.kind != BOX_EVENT_EXIT);
        CHECK_INT(event.exit.id, i);
        if (event.exit.cause == CAUSE_NOT_RUN) {
            CHECK(strstr(event.exit.text, "not collected") != NULL);
            refused++;
        }
    }
    CHECK_INT(refused, 10);
    for (uint32_t i = 1; i <= MOST + 10; i++)
        CHECK_OK(box_collect(box, i, &err), err);
    CHECK_OK(spawn_bare(box, 9000, &err), err);
    CHECK_INT(finish(box, 9000).code, 0);
}

static int count_files_of(pid_t pid)
{
    char path[40];
    int count = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    autodir dir = opendir(path);
    while (dir && readdir(dir))
        count++;
    return count;
}

/* It keeps the ends of their outputs while they live. */
BOX_TEST(files_of_processes_that_were_collected_are_closed)
{
    struct box *box = launch_plain();
    struct error err = {0};
    autofd both = memfd_create("spool", MFD_CLOEXEC);
    const struct process_spec one = {.stdout_fd = both, .stderr_fd = both};
    const struct process_spec nowhere = {.command.directory = "/etc/passwd"};
    const struct process_spec nobody = {.command.user = "nobody-of-this-name"};

    run_well(box, "exit 0"); // what it keeps for all of them is there
    CHECK_OK(spawn_bare(box, 9000, &err), err);
    CHECK_INT(finish(box, 9000).code, 0);
    int before = count_files_of(box_pid(box));
    CHECK(before > 3);
    for (int i = 0; i < 10; i++) {
        run_well(box, "both one two");
        CHECK_INT(run_as(box, &one, "both one two").code, 0);
        CHECK_INT(run(box, "linger").code, 3);
        CHECK_INT(run_as(box, &nowhere, "exit 0").cause, CAUSE_NOT_RUN);
        CHECK_INT(run_as(box, &nobody, "exit 0").cause, CAUSE_NOT_RUN);
        CHECK_INT(run(box, "exit 1").code, 1);
        CHECK_OK(spawn_bare(box, 9001, &err), err);
        CHECK_INT(finish(box, 9001).code, 0);
    }
    AWAIT(count_files_of(box_pid(box)) <= before);
}

/* Finding a user means reading files that a guest may have changed. */
BOX_TEST(user_files_that_are_traps_stall_nobody)
{
    struct box *box = launch_plain();
    struct error err = {0};
    int conv = -1;
    run_well(box, "mkfifo /etc/passwd");
    run_well(box, "mkfifo /etc/group");
    struct process_exit exit = run_as(box, &(struct process_spec){.command.user = "kim"}, "exit 0");
    CHECK_INT(exit.code, 126);
    CHECK_INT(run_as(box, &(struct process_spec){.command.user = "1000", .command.directory = "/"},
                     "exit 5")
                  .code,
              5);
    CHECK_OK(box_files(box, "kim", NULL, &conv, &err), err);
    CHECK(files_mkdir(conv, "/tmp/x", 0755, 0, &err) < 0);
    (void)close(conv);
    run_well(box, "unlink /etc/passwd");
    run_well(box, "fill /etc/passwd 40");
    CHECK_INT(run_as(box, &(struct process_spec){.command.user = "kim"}, "exit 0").code, 126);
    run_well(box, "echo still here");
}

BOX_TEST(conversations_about_files_are_bounded_and_come_back)
{
    struct box *box = launch_plain();
    struct error err = {0};
    int convs[100];
    unsigned served = 0;
    for (int i = 0; i < 100; i++) {
        CHECK_OK(box_files(box, NULL, "/", &convs[i], &err), err);
        served += files_mkdir(convs[i], "/tmp/x", 0755, 0, &err) == 0;
    }
    CHECK_INT(served, 64);
    for (int i = 0; i < 100; i++)
        (void)close(convs[i]);
    run_well(box, "echo still here");
    for (int i = 0; i < 100; i++) {
        CHECK_OK(box_files(box, NULL, "/", &convs[0], &err), err);
        int64_t end = now_ms() + PATIENCE_MS; // threads end a moment after their sockets
        while (files_mkdir(convs[0], "/tmp/x", 0755, 0, &err) < 0 && now_ms() < end) {
            (void)close(convs[0]);
            nap();
            CHECK_OK(box_files(box, NULL, "/", &convs[0], &err), err);
        }
        (void)close(convs[0]);
    }
}

BOX_TEST(an_idle_box_uses_no_CPU)
{
    struct box *box = launch_plain();
    struct error err = {0};
    struct cgroup_usage before;
    struct cgroup_usage after;
    uint32_t id = start_ready(box, NULL, "sleep 1000");
    (void)run(box, "lines 1000");
    struct process_spec how = {.command.timeout_ms = 1000000};
    uint32_t timed = start_ready(box, &how, "sleep 1000");
    int64_t pause = now_ms() + 200;
    while (now_ms() < pause)
        nap();
    CHECK_OK(box_usage(box, &before, &err), err);
    pause = now_ms() + 1000;
    while (now_ms() < pause)
        nap();
    CHECK_OK(box_usage(box, &after, &err), err);
    CHECK(after.cpu_usec - before.cpu_usec < 100000);
    CHECK_OK(box_signal(box, id, SIGKILL, true, &err), err);
    CHECK_OK(box_signal(box, timed, SIGKILL, true, &err), err);
    CHECK_INT(finish(box, timed).code, 137);
}

NOTHING_IS_LEFT_TEST
