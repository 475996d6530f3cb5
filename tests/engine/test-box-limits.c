/* SPDX-License-Identifier: Apache-2.0 */
/* Limits: what happens at each, and that the box goes on afterwards; in every cgroup mode. */
#include "base/fd.h"
#include "box_fixture.h"
#include "engine/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB (1ull << 20)

static struct box *launch_limited(struct limits limits)
{
    struct box_spec spec = plain_spec();
    spec.limits = limits;
    return launch(&spec);
}

static struct cgroup_usage usage_of(struct box *box)
{
    struct cgroup_usage usage;
    struct error err = {0};
    CHECK_OK(box_usage(box, &usage, &err), err);
    return usage;
}

static void check_memory_end(struct process_exit exit)
{
    CHECK_INT(exit.code, 137);
    CHECK_INT(exit.cause, CAUSE_MEMORY);
    CHECK_STR(exit.text, "the memory limit was reached");
}

BOX_TEST_MODES(a_process_past_the_memory_limit_is_killed_and_told_and_the_box_goes_on)
{
    struct box *box = launch_limited((struct limits){.memory_bytes = 32 * MIB});
    for (int i = 0; i < 3; i++) {
        check_memory_end(run(box, "eat 100"));
        CHECK_INT(usage_of(box).oom_kills, i + 1);
        run_well(box, "echo still here");
    }
    CHECK(usage_of(box).memory_peak_bytes <= 33 * MIB);
}

BOX_TEST_MODES(a_one_shot_box_tells_the_memory_limit_too)
{
    struct box_spec spec = plain_spec();
    spec.limits.memory_bytes = 32 * MIB;
    spec.is_one_shot = true;
    check_memory_end(run(launch(&spec), "eat 100"));
}

BOX_TEST_MODES(two_processes_killed_for_memory_are_both_told)
{
    struct box *box = launch_limited((struct limits){.memory_bytes = 32 * MIB});
    uint32_t ids[4];
    for (int i = 0; i < 4; i++)
        ids[i] = start(box, NULL, "eat 100");
    for (int i = 0; i < 4; i++)
        check_memory_end(finish(box, ids[i]));
}

BOX_TEST_MODES(who_fails_or_is_killed_for_other_reasons_is_not_told_of_memory)
{
    struct box *box = launch_limited((struct limits){.memory_bytes = 32 * MIB});
    struct error err = {0};
    uint32_t bystander = start_ready(box, NULL, "catch 9");
    CHECK_INT(run(box, "feed 100").code, 0);
    CHECK_STR(last_output(), "child ended by signal 9\n");
    struct process_exit exit = run(box, "exit 1");
    CHECK_INT(exit.cause, CAUSE_EXIT);
    CHECK_INT(exit.code, 1);
    CHECK_OK(box_signal(box, bystander, SIGKILL, false, &err), err);
    exit = finish(box, bystander);
    CHECK_INT(exit.cause, CAUSE_EXIT);
    CHECK_INT(exit.code, 137);
}

BOX_TEST_MODES(files_in_dev_shm_count_as_memory_and_cannot_fill_it_for_good)
{
    struct box *box = launch_limited((struct limits){.memory_bytes = 64 * MIB});
    uint64_t before = usage_of(box).memory_bytes;
    run_well(box, "fill /dev/shm/a 16");
    CHECK(usage_of(box).memory_bytes >= before + 15 * MIB);
    CHECK_INT(run(box, "fill /dev/shm/b 100").code, 0);
    CHECK(strstr(last_output(), " 28\n") != NULL); // ENOSPC
    run_well(box, "eat 20");
    run_well(box, "unlink /dev/shm/b");
}

BOX_TEST_MODES(page_cache_kills_nobody)
{
    struct box *box = launch_limited((struct limits){.memory_bytes = 32 * MIB});
    run_well(box, "fill /root/big 100");
    CHECK_STR(last_output(), "104857600 0\n");
    run_well(box, "digest /root/big");
    CHECK_STR(last_output(), "104857600\n");
    CHECK_INT(usage_of(box).oom_kills, 0);
}

BOX_TEST_MODES(PID_1_survives_a_fork_bomb_that_eats_memory)
{
    struct box *box =
        launch_limited((struct limits){.memory_bytes = 64 * MIB, .max_processes = 300});
    struct error err = {0};
    uint32_t id = start(box, NULL, "bomb 512");
    AWAIT(usage_of(box).oom_kills > (is_in_vm() ? 3 : 20));
    CHECK_OK(box_signal(box, id, SIGKILL, true, &err), err);
    (void)finish(box, id);
    // the kernel gives back what the dead had only when it is not busy: until then the next is killed too
    AWAIT(run(box, "echo still here").code == 0);
    CHECK_STR(last_output(), "still here\n");
    AWAIT(strcmp(processes_in(box), "end\n") == 0); // on version 1 they die outside of their leaf
}

/* System V memory stays without a process that could be killed for it: the box has ended itself, and itself only. */
BOX_TEST_MODES(memory_that_nobody_holds_ends_no_other_box)
{
    struct box *box = launch_limited((struct limits){.memory_bytes = 64 * MIB});
    struct box *other = launch_plain();
    struct process_exit exit;
    struct error err = {0};
    (void)run(box, "share 200");
    const char *const argv[] = {"guest", "exit", "0", NULL};
    struct process_spec spec = {
        .id = next_id(), .command.argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    if (box_spawn(box, &spec, NULL, &err) < 0 ||
        box_wait(box, spec.id, PATIENCE_MS, &exit, &err) < 0)
        CHECK_INT(error_kind(&err), ERROR_GONE);
    end(box);
    run_well(other, "echo still here");
}

BOX_TEST_MODES(forks_stop_at_the_limit_and_are_counted)
{
    struct box *box = launch_limited((struct limits){.max_processes = 30});
    struct error err = {0};
    int count = 0;
    int code = 0;
    uint32_t id = start(box, NULL, "fork-all stay");
    await_output(id, "\n");
    CHECK_INT(sscanf(output_of(id), "%d %d", &count, &code), 2);
    CHECK_INT(code, EAGAIN);
    CHECK(count >= 20 && count <= 30);
    CHECK_INT(usage_of(box).procs, 30);
    CHECK(usage_of(box).procs_refused > 0);
    struct process_exit exit = run(box, "exit 0");
    CHECK_INT(exit.cause, CAUSE_NOT_RUN);
    CHECK(strstr(exit.text, "process limit") != NULL);
    CHECK_OK(box_signal(box, id, SIGKILL, true, &err), err);
    CHECK_INT(finish(box, id).code, 137);
    run_well(box, "exit 0");
}

BOX_TEST_MODES(a_fork_bomb_ends_with_its_leaf)
{
    struct box *box = launch_limited((struct limits){.max_processes = 100});
    struct error err = {0};
    uint32_t id = start_ready(box, NULL, "bomb");
    AWAIT(usage_of(box).procs_refused > 100);
    CHECK_OK(box_signal(box, id, SIGKILL, true, &err), err);
    CHECK_INT(finish(box, id).code, 137);
    run_well(box, "exit 0");
    AWAIT(strcmp(processes_in(box), "end\n") == 0); // on version 1 they die outside of their leaf
}

BOX_TEST_MODES(a_busy_process_is_slowed_down_and_that_is_counted)
{
    // So little that it has used it up before another process's turn comes, however many there are.
    struct box *box = launch_limited((struct limits){.cpu_millicores = 20});
    run_well(box, "spin 40");
    struct cgroup_usage usage = usage_of(box);
    CHECK(usage.cpu_usec >= 30000);
    CHECK(usage.throttled_usec > 0);
}

BOX_TEST_MODES(usage_is_plausible)
{
    struct box *box = launch_plain();
    struct cgroup_usage idle = usage_of(box);
    CHECK_INT(idle.procs, 1);
    CHECK(idle.memory_bytes < 16 * MIB);
    CHECK_INT(idle.oom_kills, 0);
    uint32_t id = start(box, NULL, "eat 50 stay");
    await_output(id, "ate\n");
    struct cgroup_usage busy = usage_of(box);
    CHECK_INT(busy.procs, 2);
    CHECK(busy.memory_bytes >= idle.memory_bytes + 45 * MIB);
    CHECK(busy.memory_bytes < 100 * MIB);
    CHECK(busy.memory_peak_bytes >= busy.memory_bytes);
    CHECK(busy.cpu_usec > idle.cpu_usec);
}

BOX_TEST_MODES(limits_of_a_living_box_change)
{
    struct box *box = launch_limited((struct limits){.memory_bytes = 32 * MIB});
    struct limits more = {.memory_bytes = 256 * MIB, .disk_bytes = 64 * MIB, .max_processes = 10};
    struct error err = {0};
    check_memory_end(run(box, "eat 100"));
    CHECK_OK(box_set_limits(box, &more, &err), err);
    run_well(box, "eat 100");
    CHECK_INT(run(box, "fork-all").code, 0);
    CHECK(strstr(last_output(), " 11\n") != NULL); // EAGAIN
}

/* Each within its own limit, they take what none could take alone. */
BOX_TEST_MODES(many_boxes_together_stay_below_the_limit_of_all)
{
    const struct cgroup_share share = {.memory_bytes = 96 * MIB, .max_processes = 60};
    struct error err = {0};
    struct box *boxes[3];
    uint32_t ids[3];
    unsigned n_killed = 0;
    uint64_t used = 0;

    CHECK_OK(cgroup_root_share(engine_cgroups(engine), &share, &err), err);
    for (int i = 0; i < 3; i++) {
        boxes[i] = launch_limited((struct limits){.memory_bytes = 64 * MIB, .max_processes = 50});
        ids[i] = start(boxes[i], NULL, "eat 48 stay");
    }
    for (int i = 0; i < 3; i++)
        AWAIT(strstr(output_of(ids[i]), "ate\n") || usage_of(boxes[i]).oom_kills > 0);
    for (int i = 0; i < 3; i++) {
        n_killed += usage_of(boxes[i]).oom_kills > 0;
        used += usage_of(boxes[i]).memory_bytes;
    }
    CHECK(n_killed >= 1);
    CHECK(used <= (uint64_t)share.memory_bytes);
    for (int i = 0; i < 3; i++) {
        (void)box_signal(boxes[i], ids[i], SIGKILL, true, &err);
        (void)finish(boxes[i], ids[i]);
        run_well(boxes[i], "echo still here");
    }
    uint32_t forks[2];
    for (int i = 0; i < 2; i++) {
        forks[i] = start(boxes[i], NULL, "fork-all stay");
        await_output(forks[i], "\n");
    }
    CHECK(usage_of(boxes[0]).procs + usage_of(boxes[1]).procs <= 60);
    CHECK(strstr(output_of(forks[1]), " 11\n") != NULL); // EAGAIN
}

/* What the kernel spares a server for must not come down to its guests: they could have others killed in their place. */
BOX_TEST(a_guest_of_a_spared_server_cannot_have_itself_spared)
{
    struct error err = {0};
    struct box *box = NULL;

    if (fd_write_knob(AT_FDCWD, "/proc/self/oom_score_adj", "-500", &err) < 0)
        SKIP("oom_score_adj cannot be lowered here");
    struct engine *server = open_engine(&(struct engine_options){.is_long_lived = true});
    struct box_spec spec = plain_spec();
    CHECK_OK(box_launch(server, &spec, &box, &err), err);
    CHECK_OK(fd_write_knob(AT_FDCWD, "/proc/self/oom_score_adj", "0", &err), err);
    run_well(box, "write /proc/self/oom_score_adj 600");
    run_well(box, "write /proc/self/oom_score_adj 0");
    CHECK(run(box, "write /proc/self/oom_score_adj -1").code != 0);
    CHECK_OK(box_end(box, &err), err);
    box_free(box);
    close_engine(server);
}

BOX_TEST(open_files_stop_at_the_limit_and_PID_1_is_not_bound_by_it)
{
    struct box_spec spec = plain_spec();
    spec.max_files = 16;
    struct box *box = launch(&spec);
    run_well(box, "open-many");
    CHECK_STR(last_output(), "16 24\n"); // EMFILE
    uint32_t ids[40];
    for (int i = 0; i < 40; i++)
        ids[i] = start_ready(box, NULL, "catch 1");
    for (int i = 0; i < 40; i++) {
        struct error err = {0};
        CHECK_OK(box_signal(box, ids[i], SIGTERM, false, &err), err);
        CHECK_INT(finish(box, ids[i]).code, 0);
    }
    run_well(launch_plain(), "open-many");
    CHECK_STR(last_output(), "4096 24\n");
}

static bool is_full(const char *said, uint64_t limit)
{
    unsigned long long wrote = 0;
    int code = 0;
    CHECK_INT(sscanf(said, "%llu %d", &wrote, &code), 2);
    return (code == ENOSPC || code == EDQUOT) && wrote <= limit && wrote >= limit / 2;
}

BOX_TEST(the_disk_is_full_at_its_limit_and_usable_again_after_a_file_goes)
{
    struct box_spec spec = plain_spec();
    spec.limits.disk_bytes = 32 * MIB;
    struct box *box = launch(&spec);
    run_well(box, "fill /root/a 200");
    CHECK(is_full(last_output(), 32 * MIB));
    (void)run(box, "fill /tmp/b 20"); // making the file may fail already
    CHECK(!strstr(last_output(), "20971520"));
    run_well(box, "unlink /root/a");
    (void)run(box, "unlink /tmp/b");
    // what was freed comes back with a commit
    AWAIT(run(box, "fill /root/c 8").code == 0 && strcmp(last_output(), "8388608 0\n") == 0);
}

BOX_TEST(a_deleted_file_that_is_open_counts_until_it_is_closed)
{
    struct box_spec spec = plain_spec();
    struct error err = {0};
    spec.limits.disk_bytes = 32 * MIB;
    struct box *box = launch(&spec);
    uint32_t id = start(box, NULL, "fill /root/a 200 deleted");
    await_output(id, "\n");
    CHECK(is_full(output_of(id), 32 * MIB));
    (void)run(box, "fill /root/b 20");
    CHECK(!strstr(last_output(), "20971520"));
    CHECK_OK(box_signal(box, id, SIGKILL, true, &err), err);
    CHECK_INT(finish(box, id).code, 137);
    (void)run(box, "unlink /root/b");
    AWAIT(run(box, "fill /root/c 8").code == 0 && strcmp(last_output(), "8388608 0\n") == 0);
}

BOX_TEST(files_stop_at_the_limit_of_inodes_where_these_are_counted)
{
    struct box_spec spec = plain_spec();
    if (!volume_counts_inodes(engine_volume(engine)))
        SKIP("this volume does not count inodes");
    spec.limits.disk_bytes = 64 * MIB;
    spec.max_inodes = 200;
    struct box *box = launch(&spec);
    run_well(box, "make-files /root/f 1000");
    int count = 0;
    int code = 0;
    CHECK_INT(sscanf(last_output(), "%d %d", &count, &code), 2);
    CHECK(code == ENOSPC || code == EDQUOT);
    if (count < 180 || count > 220) // what overlay itself takes is allowed for
        test_fail(__FILE__, __LINE__, "%d files where 200 fit", count);
}

NOTHING_IS_LEFT_TEST

/* Of /proc/self/stat, behind the name. */
static int nice_in(const char *stat)
{
    int nice = 99;
    const char *at = strrchr(stat, ')');
    CHECK(at != NULL);
    CHECK_INT(
        sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %d", &nice),
        1);
    return nice;
}

/* Else what a client asks of PID 1 would wait its turn among all processes of the guest. */
BOX_TEST_MODES(PID_1_ranks_above_its_guests_and_they_as_usual)
{
    struct box *box = launch_limited((struct limits){.cpu_millicores = 100});
    CHECK_INT(getpriority(PRIO_PROCESS, (id_t)box->pid), -20);
    run_well(box, "cat /proc/self/stat");
    CHECK_INT(nice_in(last_output()), getpriority(PRIO_PROCESS, 0));
}

BOX_TEST_MODES(the_limit_of_the_CPU_alone_is_changed_and_set_back)
{
    struct limits limits = {.cpu_millicores = 50, .memory_bytes = 64 * MIB};
    struct box *box = launch_limited(limits);
    struct error err = {0};
    uint32_t id = start(box, NULL, "spin 600000");
    uint64_t before = usage_of(box).cpu_usec;

    CHECK_OK(box_set_cpu(box, 0, &err), err);
    AWAIT(usage_of(box).cpu_usec > before + 500000); // 10 s of its own limit
    CHECK_OK(box_set_cpu(box, limits.cpu_millicores, &err), err);
    uint64_t throttled = usage_of(box).throttled_usec;
    AWAIT(usage_of(box).throttled_usec > throttled);
    CHECK_OK(box_signal(box, id, SIGKILL, true, &err), err);
    (void)finish(box, id);
}
