/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups for real: freezing, killing, removing, and what was left by others. */
#include "cgroup_fixture.h"
#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

TEST_MODES(a_flat_box_freezes_whole_and_thaws)
{
    struct error err;
    autoptr(cgroup) group = make("b1", &no_limits, true);

    start_outside_counter();
    (void)start(group, count_up, &shared->counts[0]);
    CHECK(counts_on(&shared->counts[0], 1000));
    CHECK_OK(cgroup_freeze(group, &err), err);
    CHECK(stands_still(&shared->counts[0]));
    CHECK_OK(cgroup_thaw(group, &err), err);
    CHECK(counts_on(&shared->counts[0], 1000));
}

TEST_MODES(freezing_leaves_pid_1_running)
{
    struct error err;
    struct cgroup_leaf leaf;
    autoptr(cgroup) group = make("b1", &no_limits, false);

    start_outside_counter();
    CHECK_OK(cgroup_freeze(group, &err), err); // an empty one, too
    CHECK_OK(cgroup_thaw(group, &err), err);
    CHECK_OK(cgroup_leaf_create(group, "p1", &leaf, &err), err);
    (void)start(group, count_up, &shared->counts[0]);
    (void)start_in(group, &leaf, count_up, &shared->counts[1]);
    cgroup_leaf_close(&leaf);
    CHECK(counts_on(&shared->counts[1], 1000));
    CHECK_OK(cgroup_freeze(group, &err), err);
    CHECK(stands_still(&shared->counts[1]));
    CHECK(counts_on(&shared->counts[0], 1000));
    CHECK_OK(cgroup_thaw(group, &err), err);
    CHECK(counts_on(&shared->counts[1], 1000));
}

/* Double-forked, in sessions of their own, deaf to SIGTERM. Each holds what it inherited. */
static void scatter(void *ready)
{
    (void)signal(SIGTERM, SIG_IGN);
    for (int i = 0; i < 3; i++) {
        if (fork() > 0)
            continue;
        (void)setsid();
        if (fork() > 0)
            _exit(0);
        atomic_fetch_add((atomic_ullong *)ready, 1);
        for (;;)
            (void)pause();
    }
    atomic_fetch_add((atomic_ullong *)ready, 1);
    for (;;)
        (void)pause();
}

/* A pipe whose other end only processes in boxes hold: it ends when the last of them is gone. */
struct witness {
    int read_fd;
    int write_fd;
};

static struct witness witness_open(void)
{
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    return (struct witness){ends[0], ends[1]};
}

static bool all_gone(struct witness *witness)
{
    struct pollfd end = {.fd = witness->read_fd, .events = POLLIN};
    closep(&witness->write_fd);
    bool is_over = poll(&end, 1, PATIENCE_MS) == 1 && end.revents & POLLHUP;
    closep(&witness->read_fd);
    return is_over;
}

static bool has_scattered(atomic_ullong *ready)
{
    for (int64_t end = deadline(); (int64_t)clock_monotonic_ms() < end; nap()) {
        if (atomic_load(ready) == 4)
            return true;
    }
    return false;
}

TEST_MODES(killing_a_box_reaches_every_descendant)
{
    struct cgroup_usage usage;
    struct error err;
    struct cgroup_leaf leaf;
    autoptr(cgroup) group = make("b1", &no_limits, false);
    struct witness witness = witness_open();

    CHECK_OK(cgroup_leaf_create(group, "p1", &leaf, &err), err);
    (void)start_in(group, &leaf, scatter, &shared->counts[0]);
    (void)start(group, scatter, &shared->counts[1]);
    cgroup_leaf_close(&leaf);
    CHECK(has_scattered(&shared->counts[0]) && has_scattered(&shared->counts[1]));
    CHECK_OK(cgroup_kill(group, &err), err);
    CHECK(all_gone(&witness));
    while (waitpid(-1, NULL, 0) > 0) // the dead count until they are reaped
        ;
    CHECK_OK(cgroup_usage(group, &usage, &err), err);
    CHECK_INT(usage.procs, 0);
    CHECK_OK(cgroup_kill(group, &err), err); // nobody there
    CHECK_OK(cgroup_remove(group, &err), err);
    CHECK(!box_exists("b1"));
}

static void bomb(void *count)
{
    (void)signal(SIGCHLD, SIG_IGN);
    for (;;) {
        if (fork() == 0)
            atomic_fetch_add((atomic_ullong *)count, 1);
    }
}

TEST_MODES(a_fork_bomb_does_not_outrun_the_kill)
{
    struct limits limits = {.max_processes = 60};
    struct error err;
    autoptr(cgroup) group = make("b1", &limits, true);
    struct witness witness = witness_open();

    (void)start(group, bomb, &shared->counts[0]);
    CHECK(counts_on(&shared->counts[0], 50));
    CHECK_OK(cgroup_remove(group, &err), err);
    CHECK(all_gone(&witness));
    CHECK(!box_exists("b1"));
}

TEST_MODES(removing_a_leaf_kills_what_is_in_it_and_nothing_else)
{
    struct error err;
    struct cgroup_leaf leaf, other;
    autoptr(cgroup) group = make("b1", &no_limits, false);

    CHECK_OK(cgroup_leaf_create(group, "p1", &leaf, &err), err);
    CHECK_OK(cgroup_leaf_create(group, "p2", &other, &err), err);
    (void)start_in(group, &other, count_up, &shared->counts[1]);
    struct witness witness = witness_open();
    (void)start_in(group, &leaf, scatter, &shared->counts[0]);
    cgroup_leaf_close(&leaf);
    cgroup_leaf_close(&other);
    CHECK(has_scattered(&shared->counts[0]));
    CHECK_OK(cgroup_leaf_remove(group, "p1", &err), err);
    CHECK(all_gone(&witness));
    CHECK(counts_on(&shared->counts[1], 1000));
    CHECK_OK(cgroup_leaf_remove(group, "p1", &err), err); // missing is fine
    CHECK(cgroup_leaf_create(group, "p2", &leaf, &err) < 0 && error_is(&err, ERROR_CONFLICT));
    CHECK_OK(cgroup_leaf_remove(group, "p2", &err), err);
}

TEST_MODES(a_leafs_kill_handles_kill_it)
{
    struct error err;
    struct cgroup_leaf leaf;
    autoptr(cgroup) group = make("b1", &no_limits, false);

    CHECK_OK(cgroup_leaf_create(group, "p1", &leaf, &err), err);
    pid_t pid = start_in(group, &leaf, count_up, &shared->counts[0]);
    CHECK(counts_on(&shared->counts[0], 1));
    if (leaf.kill_fd >= 0) {
        CHECK(write(leaf.kill_fd, "1", 1) == 1);
    } else {
        char text[64] = "";
        CHECK(write(leaf.freezer_fd, "FROZEN", 6) == 6);
        CHECK(pread(leaf.procs_fd, text, sizeof text - 1, 0) > 0);
        CHECK_INT(atoi(text), pid);
        CHECK(kill(pid, SIGKILL) == 0);
        CHECK(write(leaf.freezer_fd, "THAWED", 6) == 6);
    }
    int status = status_of(pid);
    CHECK(WIFSIGNALED(status));
    cgroup_leaf_close(&leaf);
}

TEST_MODES(a_frozen_box_can_be_killed)
{
    struct error err;
    struct cgroup_leaf leaf;
    autoptr(cgroup) group = make("b1", &no_limits, false);
    struct witness witness = witness_open();

    CHECK_OK(cgroup_leaf_create(group, "p1", &leaf, &err), err);
    (void)start_in(group, &leaf, scatter, &shared->counts[0]);
    cgroup_leaf_close(&leaf);
    CHECK(has_scattered(&shared->counts[0]));
    CHECK_OK(cgroup_freeze(group, &err), err);
    CHECK_OK(cgroup_kill(group, &err), err);
    CHECK(all_gone(&witness));
    CHECK_OK(cgroup_remove(group, &err), err);
    CHECK(!box_exists("b1"));
}

TEST_MODES(a_leaf_of_a_frozen_box_can_be_killed_while_the_rest_stays_frozen)
{
    struct error err;
    struct cgroup_leaf leaf, other;
    autoptr(cgroup) group = make("b1", &no_limits, false);

    start_outside_counter();
    CHECK_OK(cgroup_leaf_create(group, "p1", &leaf, &err), err);
    CHECK_OK(cgroup_leaf_create(group, "p2", &other, &err), err);
    (void)start_in(group, &other, count_up, &shared->counts[1]);
    struct witness witness = witness_open();
    (void)start_in(group, &leaf, scatter, &shared->counts[0]);
    cgroup_leaf_close(&leaf);
    cgroup_leaf_close(&other);
    CHECK(has_scattered(&shared->counts[0]) && counts_on(&shared->counts[1], 1));
    CHECK_OK(cgroup_freeze(group, &err), err);
    CHECK_OK(cgroup_leaf_remove(group, "p1", &err), err);
    CHECK(all_gone(&witness));
    CHECK(stands_still(&shared->counts[1]));
}

TEST_MODES(a_box_made_over_leftovers_starts_clean)
{
    struct limits limits = {.max_processes = 3};
    struct cgroup_usage usage;
    struct error err;
    struct witness witness = witness_open();

    for (int is_flat = 0; is_flat < 2; is_flat++) {
        autoptr(cgroup) old = make("b1", &limits, is_flat);
        (void)start(old, count_up, &shared->counts[0]);
        CHECK(counts_on(&shared->counts[0], 1));
    }
    autoptr(cgroup) group = make("b1", &no_limits, false);
    CHECK(all_gone(&witness));
    while (waitpid(-1, NULL, 0) > 0) // the dead count until they are reaped
        ;
    CHECK_OK(cgroup_usage(group, &usage, &err), err);
    CHECK_INT(usage.procs, 0);
    check_knob(CONTROLLER_PIDS, "b1/pids.max", "max");
}

static bool owns_b2(const char *name, void *asked)
{
    ++*(int *)asked;
    return strcmp(name, "b2") == 0;
}

TEST_MODES(a_sweep_ends_what_nobody_owns)
{
    struct error err;
    int asked = 0;
    autoptr(cgroup) group = make("b2", &no_limits, true);
    (void)start(group, count_up, &shared->counts[0]);
    struct witness witness = witness_open();
    autoptr(cgroup) lost = make("b1", &no_limits, false);
    (void)start(lost, count_up, &shared->counts[1]);
    CHECK(counts_on(&shared->counts[1], 1)); // it is in there
    CHECK(mkdirat(root->trees[root->n_trees - 1].fd, "b3", 0755) == 0);

    CHECK_OK(cgroup_sweep(root, owns_b2, &asked, &err), err);
    CHECK_INT(asked, 3);
    CHECK(all_gone(&witness));
    CHECK(!box_exists("b1") && !box_exists("b3") && box_exists("b2"));
    CHECK(counts_on(&shared->counts[0], 1000));
    CHECK(cgroup_root_remove(root, &err) < 0 && error_is(&err, ERROR_CONFLICT));
}

TEST_MODES(a_group_is_found_again_after_a_restart)
{
    struct error err;
    autoptr(cgroup) group = make("b1", &no_limits, false);
    autoptr(cgroup) again = NULL;
    autoptr(cgroup) none = NULL;

    (void)start(group, count_up, &shared->counts[0]);
    CHECK(counts_on(&shared->counts[0], 1));
    CHECK_OK(cgroup_open(root, "b1", &again, &err), err);
    CHECK(!again->is_flat);
    if (root->mode != CGROUP_V1)
        CHECK_INT(again->owner, OWNER);
    CHECK_INT(cgroup_entry(again)->n_tasks, 0);
    CHECK_OK(cgroup_remove(again, &err), err);
    CHECK(cgroup_open(root, "b1", &none, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK(none == NULL);
}
