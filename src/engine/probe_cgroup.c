/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of control groups. They only look and make empty groups of their own; engine/cgroup.h sets
 * them up for good. */
#include "engine/probe_impl.h"

#include "base/fd.h"
#include "base/mem.h"
#include "engine/kernel.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *const needed[] = {"memory", "cpu", "pids"};

/* Where the hierarchies are mounted; "" for not at all. */
struct hierarchies {
    char v2[256];
    char v1[ARRAY_SIZE(needed)][256];
    char freezer[256];
    bool has_v2[ARRAY_SIZE(needed)]; // controllers the v2 tree offers
};

static bool has_word(const char *list, const char *word, const char *separators)
{
    size_t length = strlen(word);
    for (const char *at = list; *at;) {
        size_t next = strcspn(at, separators);
        if (next == length && memcmp(at, word, length) == 0)
            return true;
        at += next;
        at += *at != '\0';
    }
    return false;
}

static void note_v2(struct hierarchies *found, const char *mount)
{
    char path[300];
    char controllers[256];
    struct error err = {0};

    (void)snprintf(found->v2, sizeof found->v2, "%s", mount);
    (void)snprintf(path, sizeof path, "%.255s/cgroup.controllers", mount);
    if (fd_read_knob(AT_FDCWD, path, controllers, sizeof controllers, &err) < 0)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
        found->has_v2[i] = has_word(controllers, needed[i], " ");
}

static void note_v1(struct hierarchies *found, const char *mount, const char *options)
{
    for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
        if (has_word(options, needed[i], ","))
            (void)snprintf(found->v1[i], sizeof found->v1[i], "%s", mount);
    }
    if (has_word(options, "freezer", ","))
        (void)snprintf(found->freezer, sizeof found->freezer, "%s", mount);
}

/* "36 25 0:31 / /sys/fs/cgroup/memory rw,… - cgroup cgroup rw,memory" */
static void note_line(struct hierarchies *found, char *line)
{
    char mount[256];
    char type[32];
    char options[512];
    char *tail = strstr(line, " - ");

    if (!tail || sscanf(line, "%*s %*s %*s %*s %255s", mount) != 1 ||
        sscanf(tail, " - %31s %*s %511s", type, options) != 2)
        return;
    if (strcmp(type, "cgroup2") == 0)
        note_v2(found, mount);
    else if (strcmp(type, "cgroup") == 0)
        note_v1(found, mount, options);
}

static void find_hierarchies(struct hierarchies *found)
{
    autofile file = fopen("/proc/self/mountinfo", "re");
    autofree char *line = NULL;
    size_t size = 0;

    *found = (struct hierarchies){0};
    while (file && getline(&line, &size, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        note_line(found, line);
    }
}

/* An empty group, made and removed. */
static int try_group(const char *mount)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%.255s/burrow-doctor-%d", mount, (int)getpid());
    if (mkdir(path, 0755) < 0)
        return -1;
    return rmdir(path);
}

static bool can_make_groups(const struct hierarchies *found, bool is_v2)
{
    for (size_t i = 0; !is_v2 && i < ARRAY_SIZE(needed); i++) {
        if (try_group(found->v1[i]) < 0)
            return false;
    }
    return !is_v2 || try_group(found->v2) == 0;
}

/* The first controller that is neither here nor there; NULL when each limit has a home in one
 * world. */
static const char *lacking(const struct hierarchies *found, bool is_v2)
{
    for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
        if (is_v2 ? !found->has_v2[i] : !found->v1[i][0])
            return needed[i];
    }
    return NULL;
}

void probe_cgroups(const struct probe *probe, const struct probe_context *context,
                   struct probe_result *result)
{
    static const char cost[] = "sandboxes cannot be started: nothing would limit them";
    struct hierarchies found;
    find_hierarchies(&found);
    bool is_v2 = found.v2[0] && !lacking(&found, true);
    const char *without = is_v2 ? NULL : lacking(&found, !found.v1[0][0]);

    if (!found.v2[0] && !found.v1[0][0])
        probe_say(result, PROBE_MISSING, cost, "mount -t cgroup2 none /sys/fs/cgroup",
                  "no control groups are mounted");
    else if (without)
        probe_say(
            result, PROBE_MISSING, cost,
            "enable it on the kernel's command line (cgroup_enable=memory), or hand it down to "
            "the container burrow is in",
            "no controller '%s'", without);
    else if (!can_make_groups(&found, is_v2))
        probe_say(result, PROBE_MISSING, cost,
                  "mount the control groups writable, or run burrow outside the container",
                  "make a group: %s", strerror(errno));
    else if (is_v2 || found.v2[0])
        probe_fine(result, is_v2 ? "v2" : "hybrid: limits by v1, the rest by v2");
    else
        probe_say(result, PROBE_DEGRADED, "freezing and ending sandboxes takes longer",
                  "mount -t cgroup2 none /sys/fs/cgroup/unified, or boot with cgroup v2", "v1%s",
                  found.freezer[0] ? "" : ", and without a freezer");
}

/* All that TCP or UDP may hold on this machine, in MiB; 0: not known. */
static uint64_t most_of(const char *setting)
{
    char text[96];
    uint64_t pages = 0;
    struct error err = {0};

    if (fd_read_knob(AT_FDCWD, setting, text, sizeof text, &err) < 0 ||
        sscanf(text, "%*s %*s %" SCNu64, &pages) != 1)
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE) >> 20;
}

void probe_socket_memory(const struct probe *probe, const struct probe_context *context,
                         struct probe_result *result)
{
    struct hierarchies found;
    char path[320];

    find_hierarchies(&found);
    (void)snprintf(path, sizeof path, "%.255s/memory.kmem.tcp.limit_in_bytes", found.v1[0]);
    if (found.v2[0] && !lacking(&found, true))
        probe_fine(result, "counted as memory");
    else if (found.v1[0][0] && access(path, F_OK) == 0)
        probe_fine(result, "a quarter of a sandbox's memory, on top of it");
    else
        probe_say(result, PROBE_DEGRADED,
                  "one sandbox may hold that much of the machine's memory in its sockets",
                  "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)",
                  "no limit but the machine's own: TCP %" PRIu64 " MiB, UDP %" PRIu64 " MiB",
                  most_of("/proc/sys/net/ipv4/tcp_mem"), most_of("/proc/sys/net/ipv4/udp_mem"));
}

/* A group of our own in the v2 tree, with a waiting child born in it. */
struct trial {
    char path[300];
    int dir;
    pid_t pid;
};

static void end_trial(struct trial *trial)
{
    if (trial->pid > 0) {
        (void)kill(trial->pid, SIGKILL);
        (void)waitpid(trial->pid, NULL, 0);
    }
    if (trial->dir >= 0) {
        (void)close(trial->dir);
        (void)rmdir(trial->path);
    }
}

static const char *start_trial(struct trial *trial)
{
    struct hierarchies found;
    find_hierarchies(&found);
    if (!found.v2[0]) {
        errno = ENOENT;
        return "no v2 tree is mounted";
    }
    (void)snprintf(trial->path, sizeof trial->path, "%.255s/burrow-doctor-%d", found.v2,
                   (int)getpid());
    if (mkdir(trial->path, 0755) < 0)
        return "make a group";
    trial->dir = open(trial->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (trial->dir < 0)
        return "open the group";
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)trial->dir};
    trial->pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (trial->pid == 0) {
        (void)alarm(20); // should the parent die
        for (;;)
            (void)pause();
    }
    return trial->pid < 0 ? "clone3 with CLONE_INTO_CGROUP" : NULL;
}

static const char v2_fix[] = "mount -t cgroup2 none /sys/fs/cgroup/unified, or boot with cgroup v2";

void probe_clone_into_cgroup(const struct probe *probe, const struct probe_context *context,
                             struct probe_result *result)
{
    __attribute__((cleanup(end_trial))) struct trial trial = {.dir = -1};
    const char *failed = start_trial(&trial);
    if (failed)
        probe_say(result, PROBE_DEGRADED, "joining a group by hand makes launches slower", v2_fix,
                  "%s: %s", failed, strerror(errno));
    else
        probe_fine(result, "a process was born in a group");
}

void probe_cgroup_kill(const struct probe *probe, const struct probe_context *context,
                       struct probe_result *result)
{
    static const char cost[] = "ending a sandbox kills its processes one by one";
    __attribute__((cleanup(end_trial))) struct trial trial = {.dir = -1};
    struct error err = {0};
    int status = 0;

    const char *failed = start_trial(&trial);
    if (failed) {
        probe_say(result, PROBE_DEGRADED, cost, v2_fix, "%s: %s", failed, strerror(errno));
        return;
    }
    if (fd_write_knob(trial.dir, "cgroup.kill", "1", &err) < 0) {
        probe_say(result, PROBE_DEGRADED, cost, v2_fix, "%s", err.text);
        return;
    }
    (void)waitpid(trial.pid, &status, 0);
    trial.pid = 0;
    probe_fine(result, "killed a group");
}
