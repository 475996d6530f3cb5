/* SPDX-License-Identifier: Apache-2.0 */
/* Version 1 control groups: limits and usage, and freezing and killing by the freezer; see
 * cgroup_impl.h. */
#include "engine/cgroup_impl.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define FREEZE_PATIENCE_MS                                                                         \
    100 // for one round of killing: a process may sit where it cannot be frozen

#define V1_SOCKET_SHARE 4 // of the memory limit, and on top of it
#define V1_SOCKETS_LEAST ((uint64_t)4 << 20)

/* The limit stays as it was; with swap counted, that of both together was taken away and comes back. */
static int refuse_memory(struct cgroup_root *root, const char *box, uint64_t bytes,
                         struct error *err)
{
    int fd = root->knobs[CONTROLLER_MEMORY];
    struct error ignored;
    uint64_t before = 0;

    if (root->has_swap_limit &&
        knob_read_number(fd, box, "memory.limit_in_bytes", &before, &ignored) == 0)
        (void)knob_write_number(fd, box, "memory.memsw.limit_in_bytes", before, &ignored);
    return err->sys == EBUSY ? cgroup_refuse_memory(bytes, err) : -1;
}

/*
 * memory+swap may never be below memory, so it goes out of the way first and comes back last.
 * Equal means no swap.
 */
static int set_memory(struct cgroup_root *root, const char *box, uint64_t bytes, bool is_fresh,
                      struct error *err)
{
    int fd = root->knobs[CONTROLLER_MEMORY];

    if (!is_fresh && root->has_swap_limit &&
        knob_write(fd, box, "memory.memsw.limit_in_bytes", "-1", err) < 0)
        return -1;
    if (!bytes)
        return is_fresh ? 0 : knob_write(fd, box, "memory.limit_in_bytes", "-1", err);
    if (knob_write_number(fd, box, "memory.limit_in_bytes", bytes, err) < 0)
        return is_fresh ? -1 : refuse_memory(root, box, bytes, err);
    if (!root->has_swap_limit)
        return 0;
    return knob_write_number(fd, box, "memory.memsw.limit_in_bytes", bytes, err);
}

/*
 * What lies in sockets is not in a version 1 group's memory. Its own limit, "tcp" by name only, holds for every protocol that
 * the kernel counts (tcp, udp). It takes some milliseconds of traffic to take effect, so TCP may pass it by as much again.
 */
static int set_sockets(struct cgroup_root *root, const char *box, uint64_t bytes, bool is_fresh,
                       struct error *err)
{
    int fd = root->knobs[CONTROLLER_MEMORY];
    uint64_t share = bytes / V1_SOCKET_SHARE;

    if (!root->has_socket_limit || (!bytes && is_fresh))
        return 0;
    if (!bytes)
        return knob_write(fd, box, "memory.kmem.tcp.limit_in_bytes", "-1", err);
    if (share < V1_SOCKETS_LEAST)
        share = V1_SOCKETS_LEAST;
    return knob_write_number(fd, box, "memory.kmem.tcp.limit_in_bytes", share, err);
}

int v1_set_cpu(struct cgroup_root *root, const char *box, int64_t millicores, bool is_fresh,
               struct error *err)
{
    int fd = root->knobs[CONTROLLER_CPU];
    struct cpu_share share = cpu_share_of(millicores);

    if (!is_fresh && knob_write(fd, box, "cpu.cfs_quota_us", "-1", err) < 0)
        return -1;
    if (!share.quota_usec)
        return 0;
    if ((!is_fresh || share.period_usec != 100000) && // a fresh group has 100 ms
        knob_write_number(fd, box, "cpu.cfs_period_us", share.period_usec, err) < 0)
        return -1;
    if (knob_write_number(fd, box, "cpu.cfs_quota_us", share.quota_usec, err) == 0)
        return 0;
    if (err->sys != EINVAL)
        return -1;
    // v1 refuses more than a group above has; without a quota of its own the box gets exactly that
    return knob_write(fd, box, "cpu.cfs_quota_us", "-1", err);
}

int v1_set_limits(struct cgroup_root *root, const char *box, const struct limits *limits,
                  bool is_fresh, struct error *err)
{
    if (set_sockets(root, box, (uint64_t)limits->memory_bytes, is_fresh, err) < 0 ||
        set_memory(root, box, (uint64_t)limits->memory_bytes, is_fresh, err) < 0)
        return -1;
    return v1_set_cpu(root, box, limits->cpu_millicores, is_fresh, err);
}

static int read_cpu(struct cgroup_root *root, const char *box, uint64_t *usec, struct error *err)
{
    if (root->mode == CGROUP_HYBRID)
        return knob_read_field(root->trees[0].fd, box, "cpu.stat", "usage_usec", usec, err);
    *usec = 0;
    if (root->knobs[CONTROLLER_CPUACCT] < 0)
        return 0;
    if (knob_read_number(root->knobs[CONTROLLER_CPUACCT], box, "cpuacct.usage", usec, err) < 0)
        return -1;
    *usec /= 1000;
    return 0;
}

int v1_usage(struct cgroup_root *root, const char *box, struct cgroup_usage *out, struct error *err)
{
    int memory = root->knobs[CONTROLLER_MEMORY];
    int pids = root->knobs[CONTROLLER_PIDS];
    uint64_t throttled_nsec = 0;

    if (knob_read_number(memory, box, "memory.usage_in_bytes", &out->memory_bytes, err) < 0 ||
        knob_read_number(memory, box, "memory.max_usage_in_bytes", &out->memory_peak_bytes, err) <
            0 ||
        knob_read_field(memory, box, "memory.oom_control", "oom_kill", &out->oom_kills, err) < 0 ||
        knob_read_field(root->knobs[CONTROLLER_CPU], box, "cpu.stat", "throttled_time",
                        &throttled_nsec, err) < 0 ||
        knob_read_number(pids, box, "pids.current", &out->procs, err) < 0 ||
        knob_read_field(pids, box, "pids.events", "max", &out->procs_refused, err) < 0)
        return -1;
    out->throttled_usec = throttled_nsec / 1000;
    return read_cpu(root, box, &out->cpu_usec, err);
}

/* The state is worked out when it is read: FREEZING becomes FROZEN once every task stands. */
static int wait_state(int dir_fd, const char *group, const char *wanted, int patience_ms,
                      struct error *err)
{
    char path[CGROUP_PATH_MAX];
    char state[32];
    int64_t deadline_ms = (int64_t)clock_monotonic_ms() + patience_ms;

    (void)snprintf(path, sizeof path, "%s/freezer.state", group);
    for (unsigned tries = 0;; cgroup_pause(&tries)) {
        if (fd_read_knob(dir_fd, path, state, sizeof state, err) < 0)
            return -1;
        if (strcmp(state, wanted) == 0)
            return 0;
        if ((int64_t)clock_monotonic_ms() >= deadline_ms)
            return error_set(err, ERROR_TIMEOUT, "control group '%s' is still %s, not %s", group,
                             state, wanted);
    }
}

int v1_freeze(int dir_fd, const char *group, struct error *err)
{
    struct error ignored;

    if (knob_write(dir_fd, group, "freezer.state", "FROZEN", err) < 0)
        return -1;
    if (wait_state(dir_fd, group, "FROZEN", CGROUP_DEADLINE_MS, err) == 0)
        return 0;
    (void)knob_write(dir_fd, group, "freezer.state", "THAWED",
                     &ignored); // half frozen would be neither
    return -1;
}

int v1_thaw(int dir_fd, const char *group, struct error *err)
{
    if (knob_write(dir_fd, group, "freezer.state", "THAWED", err) < 0)
        return -1;
    return wait_state(dir_fd, group, "THAWED", CGROUP_DEADLINE_MS, err);
}

static void kill_one(pid_t pid, void *count)
{
    if (pid > 1) { // 0: a process our pid namespace does not show
        (void)kill(pid, SIGKILL);
        ++*(int *)count;
    }
}

static int signal_all(int dir_fd, const char *group, void *count, struct error *err)
{
    if (knob_each_pid(dir_fd, group, "cgroup.procs", kill_one, count, err) < 0)
        return group_is_gone(err) ? 0 : -1;
    return group_each_child(dir_fd, group, signal_all, count, err);
}

static int thaw_all(int dir_fd, const char *group, void *data, struct error *err)
{
    if (knob_write(dir_fd, group, "freezer.state", "THAWED", err) < 0)
        return group_is_gone(err) ? 0 : -1;
    return group_each_child(dir_fd, group, thaw_all, data, err);
}

static int count_all(int dir_fd, const char *group, void *count, struct error *err)
{
    int here = knob_each_pid(dir_fd, group, "tasks", NULL, NULL, err);
    if (here < 0)
        return group_is_gone(err) ? 0 : -1;
    *(int *)count += here;
    return group_each_child(dir_fd, group, count_all, count, err);
}

struct escape {
    int dir_fd;
    const char *refuge;
};

static void move_one(pid_t tid, void *data)
{
    struct escape *escape = data;
    struct error ignored;
    if (tid > 1)
        (void)knob_write_number(escape->dir_fd, escape->refuge, "tasks", (uint64_t)tid, &ignored);
}

/* Signals everything while it stands still, so that no child can be born unseen, then lets it die.
 */
static int kill_round(int dir_fd, const char *group, const char *refuge, struct error *err)
{
    struct error ignored;
    int count = 0;

    if (knob_write(dir_fd, group, "freezer.state", "FROZEN", err) < 0)
        return -1;
    (void)wait_state(dir_fd, group, "FROZEN", FREEZE_PATIENCE_MS,
                     &ignored); // next round takes the rest
    int failed = signal_all(dir_fd, group, &count, err);
    if (thaw_all(dir_fd, group, NULL, failed ? &ignored : err) < 0 || failed)
        return -1;
    if (refuge) { // a frozen task does not die, but out here it is not frozen
        struct escape escape = {dir_fd, refuge};
        (void)knob_each_pid(dir_fd, group, "tasks", move_one, &escape, &ignored);
    }
    return 0;
}

int v1_kill(int dir_fd, const char *group, const char *refuge, struct error *err)
{
    int64_t deadline_ms = (int64_t)clock_monotonic_ms() + CGROUP_DEADLINE_MS;

    for (;;) {
        int left = 0;
        if (count_all(dir_fd, group, &left, err) < 0)
            return -1;
        if (left == 0)
            return 0;
        if ((int64_t)clock_monotonic_ms() >= deadline_ms)
            return error_set(err, ERROR_TIMEOUT, "%d tasks in control group '%s' do not die", left,
                             group);
        if (kill_round(dir_fd, group, refuge, err) < 0)
            return -1;
        for (unsigned tries = 0; left > 0 && tries < 12; cgroup_pause(&tries)) {
            left = 0;
            if (count_all(dir_fd, group, &left, err) < 0)
                return -1;
        }
    }
}
