/* SPDX-License-Identifier: Apache-2.0 */
/* Version 2 control groups: limits, usage, and the core features that hybrid hosts use too; see
 * cgroup_impl.h. */
#include "engine/cgroup_impl.h"
#include "base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>

/*
 * memory.max itself would kill where too much is in use. memory.high only takes back what it can, and before the write returns; where
 * that is enough, memory.max has nothing more to do.
 */
static int make_memory_fit(struct cgroup_root *root, const char *box, uint64_t bytes,
                           struct error *err)
{
    int fd = root->knobs[CONTROLLER_MEMORY];
    struct error ignored;
    uint64_t used = 0;

    if (knob_read_number(fd, box, "memory.current", &used, err) < 0)
        return -1;
    if (used <= bytes)
        return 0;
    if (knob_write_number(fd, box, "memory.high", bytes, err) < 0)
        return -1;
    int result = knob_read_number(fd, box, "memory.current", &used, err);
    (void)knob_write(fd, box, "memory.high", "max", &ignored);
    if (result < 0)
        return -1;
    return used <= bytes ? 0 : cgroup_refuse_memory(bytes, err);
}

static int set_memory(struct cgroup_root *root, const char *box, uint64_t bytes, bool is_fresh,
                      struct error *err)
{
    int fd = root->knobs[CONTROLLER_MEMORY];

    if (bytes && !is_fresh && make_memory_fit(root, box, bytes, err) < 0)
        return -1;
    if (root->has_swap_limit && (bytes || !is_fresh) &&
        knob_write(fd, box, "memory.swap.max", bytes ? "0" : "max", err) < 0)
        return -1;
    if (bytes)
        return knob_write_number(fd, box, "memory.max", bytes, err);
    return is_fresh ? 0 : knob_write(fd, box, "memory.max", "max", err);
}

int v2_set_cpu(struct cgroup_root *root, const char *box, int64_t millicores, bool is_fresh,
               struct error *err)
{
    struct cpu_share share = cpu_share_of(millicores);
    char text[64];

    if (!share.quota_usec)
        return is_fresh ? 0 : knob_write(root->knobs[CONTROLLER_CPU], box, "cpu.max", "max", err);
    (void)snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, share.quota_usec, share.period_usec);
    return knob_write(root->knobs[CONTROLLER_CPU], box, "cpu.max", text, err);
}

int v2_set_limits(struct cgroup_root *root, const char *box, const struct limits *limits,
                  bool is_fresh, struct error *err)
{
    if (set_memory(root, box, (uint64_t)limits->memory_bytes, is_fresh, err) < 0)
        return -1;
    return v2_set_cpu(root, box, limits->cpu_millicores, is_fresh, err);
}

static int read_memory(int fd, const char *group, struct cgroup_usage *out, struct error *err)
{
    if (knob_read_number(fd, group, "memory.current", &out->memory_bytes, err) < 0 ||
        knob_read_number(fd, group, "memory.peak", &out->memory_peak_bytes, err) < 0)
        return -1;
    return knob_read_field(fd, group, "memory.events", "oom_kill", &out->oom_kills, err);
}

int v2_usage(struct cgroup_root *root, const char *box, struct cgroup_usage *out, struct error *err)
{
    int fd = root->trees[0].fd;

    if (read_memory(fd, box, out, err) < 0 ||
        knob_read_field(fd, box, "cpu.stat", "usage_usec", &out->cpu_usec, err) < 0 ||
        knob_read_field(fd, box, "cpu.stat", "throttled_usec", &out->throttled_usec, err) < 0 ||
        knob_read_number(fd, box, "pids.current", &out->procs, err) < 0)
        return -1;
    return knob_read_field(fd, box, "pids.events", "max", &out->procs_refused, err);
}

/* Waits until `key` in cgroup.events is `value`; the kernel wakes pollers of that file at every
 * change. */
static int wait_event(int dir_fd, const char *group, const char *key, uint64_t value,
                      struct error *err)
{
    char path[CGROUP_PATH_MAX];
    char text[256];
    int64_t deadline_ms = (int64_t)clock_monotonic_ms() + CGROUP_DEADLINE_MS;

    (void)snprintf(path, sizeof path, "%s/cgroup.events", group);
    autofd fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open %s", path);
    for (;;) {
        ssize_t got = pread(fd, text, sizeof text - 1, 0);
        if (got < 0)
            return error_sys(err, "read %s", path);
        text[got] = '\0';
        if (knob_field(text, key) == value)
            return 0;
        int64_t left_ms = deadline_ms - (int64_t)clock_monotonic_ms();
        if (left_ms <= 0)
            return error_set(err, ERROR_TIMEOUT, "control group '%s' is not '%s %d' after %d s",
                             group, key, (int)value, CGROUP_DEADLINE_MS / 1000);
        struct pollfd change = {.fd = fd, .events = POLLPRI};
        (void)poll(&change, 1, (int)left_ms);
    }
}

int v2_set_frozen(int dir_fd, const char *group, bool is_frozen, struct error *err)
{
    struct error ignored;

    if (knob_write(dir_fd, group, "cgroup.freeze", is_frozen ? "1" : "0", err) < 0)
        return -1;
    if (wait_event(dir_fd, group, "frozen", is_frozen, err) == 0)
        return 0;
    if (is_frozen) // half frozen would be neither
        (void)knob_write(dir_fd, group, "cgroup.freeze", "0", &ignored);
    return -1;
}

int v2_kill(int dir_fd, const char *group, struct error *err)
{
    if (knob_write(dir_fd, group, "cgroup.kill", "1", err) < 0)
        return -1;
    return wait_event(dir_fd, group, "populated", 0, err);
}
