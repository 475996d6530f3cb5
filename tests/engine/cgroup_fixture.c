/* SPDX-License-Identifier: Apache-2.0 */
/* Processes in boxes and what is shared with them; see cgroup_fixture.h. */
#include "cgroup_fixture.h"

#include "base/clock.h"
#include "base/fd.h"
#include "cgroup_world.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct shared *shared;
struct cgroup_root *root;
char root_name[64];
const struct limits no_limits;

static bool owns_nothing(const char *name, void *data)
{
    return false;
}

/* Also after a failed test, which ends anywhere. */
void clean_up(void)
{
    struct error err;
    if (!root)
        return;
    if (cgroup_sweep(root, owns_nothing, NULL, &err) < 0 || cgroup_root_remove(root, &err) < 0)
        printf("# left behind: %s\n", err.text);
    cgroup_root_free(root);
    root = NULL;
}

static void kill_children(void)
{
    char path[64], text[4096];
    struct error err;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    if (fd_read_knob(AT_FDCWD, path, text, sizeof text, &err) == 0) {
        for (char *at = strtok(text, " "); at; at = strtok(NULL, " "))
            (void)kill(atoi(at), SIGKILL);
    }
    while (waitpid(-1, NULL, 0) > 0)
        ;
}

static void at_exit(void)
{
    static pid_t tester;
    if (!tester)
        tester = getpid(); // the first call registers
    else if (tester == getpid()) {
        clean_up();
        kill_children();
    }
}

static void on_terminated(int signal)
{
    exit(128 + signal);
}

void prepare(void)
{
    if (geteuid() != 0)
        SKIP("control groups need root");
    if (!shared) {
        shared =
            mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(shared != MAP_FAILED);
        at_exit();
        (void)atexit(at_exit);
        (void)signal(SIGTERM, on_terminated);
        (void)signal(SIGINT, on_terminated);
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    }
    clean_up();
    kill_children();
    memset(shared, 0, sizeof *shared);
    (void)snprintf(root_name, sizeof root_name, "burrow-test-%d", (int)getpid());
}

void begin(enum cgroup_mode mode)
{
    struct error err;
    prepare();
    need_cgroup_mode(mode);
    CHECK_OK(cgroup_root_open_as(root_name, mode, &root, &err), err);
}

int64_t deadline(void)
{
    return (int64_t)clock_monotonic_ms() + PATIENCE_MS;
}

void nap(void)
{
    unsigned turn = 4;
    cgroup_pause(&turn);
}

pid_t clone_into(int into_fd, uint64_t flags)
{
    struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};
    if (into_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)into_fd;
    }
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

void join_tasks(const int *tasks, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (write(tasks[i], "0", 1) != 1)
            _exit(99);
    }
}

pid_t start_in(struct cgroup *group, struct cgroup_leaf *leaf, void (*body)(void *), void *data)
{
    const struct cgroup_entry *entry = cgroup_entry(group);
    pid_t pid = clone_into(leaf && leaf->into_fd >= 0 ? leaf->into_fd : entry->into_fd, 0);
    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    join_tasks(entry->tasks, entry->n_tasks);
    if (leaf && leaf->tasks_fd >= 0)
        join_tasks(&leaf->tasks_fd, 1);
    body(data);
    _exit(0);
}

pid_t start(struct cgroup *group, void (*body)(void *), void *data)
{
    return start_in(group, NULL, body, data);
}

int status_of(pid_t pid)
{
    int status = -1;
    CHECK_INT(waitpid(pid, &status, 0), pid);
    return status;
}

struct cgroup *make(const char *name, const struct limits *limits, bool is_flat)
{
    struct cgroup *group = NULL;
    struct error err;
    CHECK_OK(cgroup_create(root, name, limits, is_flat, OWNER, &group, &err), err);
    return group;
}

bool box_exists(const char *name)
{
    struct stat info;
    for (unsigned i = 0; i < root->n_trees; i++) {
        if (fstatat(root->trees[i].fd, name, &info, 0) == 0)
            return true;
    }
    return false;
}

int count_fds(void)
{
    int count = 0;
    autodir dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    return count;
}

void count_up(void *count)
{
    for (;;)
        atomic_fetch_add((atomic_ullong *)count, 1);
}

bool counts_on(atomic_ullong *count, unsigned long long steps)
{
    unsigned long long goal = atomic_load(count) + steps;
    for (int64_t end = deadline(); (int64_t)clock_monotonic_ms() < end; nap()) {
        if (atomic_load(count) >= goal)
            return true;
    }
    return false;
}

bool stands_still(atomic_ullong *count)
{
    unsigned long long before = atomic_load(count);
    return counts_on(&shared->counts[3], 100000) && atomic_load(count) == before;
}

void start_outside_counter(void)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid > 0)
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    count_up(&shared->counts[3]);
}

void check_knob(enum controller controller, const char *path, const char *want)
{
    char text[128] = "";
    struct error err;
    CHECK_OK(fd_read_knob(root->knobs[controller], path, text, sizeof text, &err), err);
    CHECK_STR(text, want);
}
