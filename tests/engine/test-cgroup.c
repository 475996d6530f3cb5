/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups for real: roots, limits and usage. Linked static this is a program that needs no
 * other file, so that a virtual machine can run it.
 */
#include "cgroup_fixture.h"

#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

TEST_MODES(all_groups_together_have_limits_of_their_own)
{
    bool is_v2 = root->mode == CGROUP_V2;
    struct cgroup_share share = {.memory_bytes = 256 << 20, .max_processes = 300, .cpu_weight = 50};
    struct error err = {0};

    CHECK_OK(cgroup_root_share(root, &share, &err), err);
    check_knob(CONTROLLER_MEMORY, is_v2 ? "memory.max" : "memory.limit_in_bytes", "268435456");
    check_knob(CONTROLLER_PIDS, "pids.max", "300");
    check_knob(CONTROLLER_CPU, is_v2 ? "cpu.weight" : "cpu.shares", is_v2 ? "50" : "512");
    share = (struct cgroup_share){.max_processes = 400}; // what is not named stays
    CHECK_OK(cgroup_root_share(root, &share, &err), err);
    check_knob(CONTROLLER_MEMORY, is_v2 ? "memory.max" : "memory.limit_in_bytes", "268435456");
    check_knob(CONTROLLER_PIDS, "pids.max", "400");
}

TEST_MODES(limits_are_set_changed_and_lifted)
{
    bool is_v2 = root->mode == CGROUP_V2;
    struct limits limits = {.memory_bytes = 64 << 20, .cpu_millicores = 500, .max_processes = 20};
    struct error err;
    autoptr(cgroup) group = make("b1", &limits, true);

    check_knob(CONTROLLER_PIDS, "b1/pids.max", "20");
    if (is_v2) {
        check_knob(CONTROLLER_MEMORY, "b1/memory.max", "67108864");
        check_knob(CONTROLLER_MEMORY, "b1/memory.oom.group", "0");
        check_knob(CONTROLLER_CPU, "b1/cpu.max", "25000 50000");
        if (root->has_swap_limit)
            check_knob(CONTROLLER_MEMORY, "b1/memory.swap.max", "0");
    } else {
        check_knob(CONTROLLER_MEMORY, "b1/memory.limit_in_bytes", "67108864");
        check_knob(CONTROLLER_CPU, "b1/cpu.cfs_quota_us", "25000");
        check_knob(CONTROLLER_CPU, "b1/cpu.cfs_period_us", "50000");
        if (root->has_swap_limit)
            check_knob(CONTROLLER_MEMORY, "b1/memory.memsw.limit_in_bytes", "67108864");
    }
    limits = (struct limits){.memory_bytes = 128 << 20, .cpu_millicores = 1500, .max_processes = 7};
    CHECK_OK(cgroup_set_limits(group, &limits, &err), err);
    check_knob(CONTROLLER_PIDS, "b1/pids.max", "7");
    check_knob(CONTROLLER_MEMORY, is_v2 ? "b1/memory.max" : "b1/memory.limit_in_bytes",
               "134217728");
    if (is_v2)
        check_knob(CONTROLLER_CPU, "b1/cpu.max", "150000 100000");
    else
        check_knob(CONTROLLER_CPU, "b1/cpu.cfs_quota_us", "150000");
    CHECK_OK(cgroup_set_limits(group, &no_limits, &err), err);
    check_knob(CONTROLLER_PIDS, "b1/pids.max", "max");
    if (is_v2) {
        check_knob(CONTROLLER_MEMORY, "b1/memory.max", "max");
        check_knob(CONTROLLER_CPU, "b1/cpu.max", "max 100000");
    } else {
        check_knob(CONTROLLER_CPU, "b1/cpu.cfs_quota_us", "-1");
        check_knob(CONTROLLER_MEMORY, "b1/memory.limit_in_bytes", "9223372036854771712");
    }
}

TEST(every_cpu_share_is_one_the_kernel_takes)
{
    for (uint32_t milli = 1; milli < 200000; milli++) {
        struct cpu_share share = cpu_share_of(milli);
        CHECK(share.quota_usec >= 1000 && share.period_usec <= 1000000);
        int64_t got = (int64_t)(share.quota_usec * 1000000 / share.period_usec);
        CHECK(llabs(got - (int64_t)milli * 1000) <= (int64_t)milli * 20); // within 2 %
    }
}

static void use_memory(void *bytes)
{
    size_t size = *(size_t *)bytes;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t at = 0; memory != MAP_FAILED && at < size; at += 4096)
        ((volatile char *)memory)[at] = 1;
}

TEST_MODES(a_process_over_the_memory_limit_is_killed_and_counted_and_the_box_goes_on)
{
    struct limits limits = {.memory_bytes = 32 << 20};
    struct cgroup_usage usage;
    struct error err;
    size_t too_much = 128 << 20, little = 4 << 20;
    autoptr(cgroup) group = make("b1", &limits, false);

    int status = status_of(start(group, use_memory, &too_much));
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK_OK(cgroup_usage(group, &usage, &err), err);
    CHECK(usage.oom_kills >= 1);
    CHECK(usage.memory_peak_bytes > 16 << 20 && usage.memory_peak_bytes <= 32 << 20);
    uint64_t before = usage.oom_kills;
    CHECK_INT(status_of(start(group, use_memory, &little)), 0);
    CHECK_OK(cgroup_usage(group, &usage, &err), err);
    CHECK_INT(usage.oom_kills, before);
}

static void fork_until_refused(void *unused)
{
    for (int i = 0; i < 50; i++) {
        pid_t pid = fork();
        if (pid == 0)
            for (;;)
                (void)pause();
        if (pid < 0)
            _exit(errno == EAGAIN ? i : 98);
    }
    _exit(97);
}

TEST_MODES(forks_past_the_process_limit_are_refused_and_counted)
{
    struct limits limits = {.max_processes = 5};
    struct cgroup_usage usage;
    struct error err;
    autoptr(cgroup) group = make("b1", &limits, false);
    struct cgroup_leaf leaf;

    CHECK_OK(cgroup_leaf_create(group, "p1", &leaf, &err), err);
    CHECK_INT(WEXITSTATUS(status_of(start_in(group, &leaf, fork_until_refused, NULL))), 4);
    CHECK_OK(cgroup_usage(group, &usage, &err), err);
    CHECK_INT(usage.procs, 4);
    CHECK(usage.procs_refused >= 1);
    cgroup_leaf_close(&leaf);
}

TEST_MODES(a_busy_process_is_throttled_and_its_time_counted)
{
    struct limits limits = {.cpu_millicores = 100};
    struct cgroup_usage usage = {0};
    struct error err;
    autoptr(cgroup) group = make("b1", &limits, true);

    (void)start(group, count_up, &shared->counts[0]);
    uint64_t seen = 0;
    for (int grown = 0; grown<3; grown += usage.throttled_usec> seen) {
        int64_t end = deadline();
        seen = usage.throttled_usec;
        while (usage.throttled_usec <= seen) {
            CHECK((int64_t)clock_monotonic_ms() < end);
            nap();
            CHECK_OK(cgroup_usage(group, &usage, &err), err);
        }
    }
    if (root->mode != CGROUP_V1 || root->knobs[CONTROLLER_CPUACCT] >= 0)
        CHECK(usage.cpu_usec > 0);
}

TEST_MODES(a_box_made_over_half_a_leftover_starts_clean)
{
    unsigned last = root->n_trees - 1;
    CHECK(mkdirat(root->trees[last].fd, "b1", 0755) == 0);
    autoptr(cgroup) group = make("b1", &no_limits, true);
    struct error err;
    CHECK_OK(cgroup_remove(group, &err), err);
    CHECK(!box_exists("b1"));
}

TEST_MODES(a_missing_knob_is_named_and_nothing_is_left)
{
    struct limits limits = {.memory_bytes = 64 << 20};
    struct cgroup *group = NULL;
    struct error err;
    int before = count_fds();
    int memory = root->knobs[CONTROLLER_MEMORY];
    autofd elsewhere = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC); // no knobs there

    root->knobs[CONTROLLER_MEMORY] = elsewhere;
    int made = cgroup_create(root, "b1", &limits, false, OWNER, &group, &err);
    root->knobs[CONTROLLER_MEMORY] = memory;
    closep(&elsewhere);
    CHECK(made < 0 && group == NULL);
    CHECK(strstr(err.text, "limit sandbox 'b1': open b1/memory."));
    CHECK(strstr(err.text, "No such file or directory"));
    CHECK(!box_exists("b1"));
    CHECK_INT(count_fds(), before);
}

TEST_MODES(a_limit_the_kernel_refuses_is_named_and_nothing_is_left)
{
    struct limits limits = {
        .memory_bytes = 64 << 20, .cpu_millicores = 500, .max_processes = 5000000};
    struct cgroup *group = NULL;
    struct error err;
    int before = count_fds();

    CHECK(cgroup_create(root, "b1", &limits, false, OWNER, &group, &err) < 0);
    CHECK_STR(err.text, "limit sandbox 'b1': write '5000000' to b1/pids.max: Invalid argument");
    CHECK(!box_exists("b1"));
    CHECK(cgroup_create(root, "../b1", &no_limits, false, OWNER, &group, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK_INT(count_fds(), before);
}

TEST_MODES(an_idle_box_holds_no_fds)
{
    int before = count_fds();
    autoptr(cgroup) group = make("b1", &no_limits, false);
    (void)status_of(start(group, use_memory, &(size_t){4096}));
    cgroup_entry_done(group);
    CHECK_INT(count_fds(), before);
}

TEST_MODES(a_share_above_the_parents_is_no_error)
{
    struct limits limits = {.cpu_millicores = 2000};
    struct error err;
    int fd = root->knobs[CONTROLLER_CPU];
    if (root->mode == CGROUP_V2)
        CHECK_OK(knob_write(fd, "", "cpu.max", "50000 100000", &err), err);
    else
        CHECK_OK(knob_write(fd, "", "cpu.cfs_quota_us", "50000", &err), err);
    autoptr(cgroup) group = make("b1", &limits, true);
    CHECK_OK(cgroup_set_limits(group, &limits, &err), err);
}

/* PID 1 as it will be: mapped ids, root inside, nobody outside; here it starts a process in a leaf.
 */
struct pid1 {
    struct cgroup_leaf *leaf;
    int mapped_fd;
};

static void start_in_leaf_as_owner(void *data)
{
    struct pid1 *pid1 = data;
    struct error err;
    char go;

    if (read(pid1->mapped_fd, &go, 1) != 1 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        _exit(90);
    pid_t pid = clone_into(pid1->leaf->into_fd, 0);
    if (pid < 0) {
        atomic_store(&shared->sys, errno);
        _exit(91);
    }
    if (pid == 0) {
        if (pid1->leaf->tasks_fd >= 0)
            join_tasks(&pid1->leaf->tasks_fd, 1);
        if (fd_read_knob(AT_FDCWD, "/proc/self/cgroup", shared->text, sizeof shared->text, &err) <
            0)
            _exit(92);
        _exit(0);
    }
    int status = -1;
    _exit(waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 93);
}

static int run_pid1_as(struct cgroup *group, struct cgroup_leaf *leaf, unsigned uid)
{
    char path[64], map[64];
    struct error err;
    int go[2];

    CHECK(pipe2(go, O_CLOEXEC) == 0);
    pid_t pid = clone_into(cgroup_entry(group)->into_fd, CLONE_NEWUSER);
    CHECK(pid >= 0);
    if (pid == 0) {
        struct pid1 pid1 = {leaf, go[0]};
        join_tasks(cgroup_entry(group)->tasks, cgroup_entry(group)->n_tasks);
        start_in_leaf_as_owner(&pid1);
    }
    (void)snprintf(map, sizeof map, "0 %u 65536", uid);
    (void)snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
    CHECK_OK(fd_write_knob(AT_FDCWD, path, map, &err), err);
    (void)snprintf(path, sizeof path, "/proc/%d/gid_map", (int)pid);
    CHECK_OK(fd_write_knob(AT_FDCWD, path, map, &err), err);
    CHECK(write(go[1], "x", 1) == 1);
    int status = status_of(pid);
    (void)close(go[0]);
    (void)close(go[1]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_MODES(the_owner_starts_processes_in_leaves_and_nobody_else_does)
{
    struct error err;
    struct cgroup_leaf leaf;
    char want[256];
    autoptr(cgroup) group = make("b1", &no_limits, false);

    CHECK_OK(cgroup_leaf_create(group, "p1", &leaf, &err), err);
    CHECK_INT(run_pid1_as(group, &leaf, OWNER), 0);
    (void)snprintf(want, sizeof want, "/%s/b1/run/p1", root_name);
    CHECK(strstr(shared->text, want));
    if (leaf.into_fd >= 0) {
        CHECK_INT(run_pid1_as(group, &leaf, OWNER + 65536), 91);
        CHECK_INT(atomic_load(&shared->sys), EACCES);
    }
    cgroup_leaf_close(&leaf);
}

/* Runs `body` in a process with mounts of its own. Its exit code; shared->text is what it has to
 * say. */
static int in_own_mounts(void (*body)(void))
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
            _exit(90);
        body();
        _exit(0);
    }
    int status = status_of(pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int try_open(int mode) // -1: whatever is there
{
    struct cgroup_root *other = NULL;
    struct error err = {0};
    char name[96];
    (void)snprintf(name, sizeof name, "%s-other", root_name);
    int opened = mode < 0 ? cgroup_root_open(name, &other, &err)
                          : cgroup_root_open_as(name, (enum cgroup_mode)mode, &other, &err);
    (void)snprintf(shared->text, sizeof shared->text, "%d %s", (int)error_kind(&err), err.text);
    if (opened < 0)
        return -1;
    int got = (int)cgroup_root_mode(other);
    (void)cgroup_root_remove(other, &err);
    cgroup_root_free(other);
    return got;
}

/* Unmounts what /proc/self/mountinfo shows as `type` with `option`. */
static void unmount(const char *type, const char *option)
{
    char line[4096], top[PATH_MAX];
    autofile mounts = fopen("/proc/self/mountinfo", "re");
    while (mounts && fgets(line, sizeof line, mounts)) {
        char *rest = strstr(line, " - ");
        if (rest && strncmp(rest + 3, type, strlen(type)) == 0 && rest[3 + strlen(type)] == ' ' &&
            strstr(rest, option) && sscanf(line, "%*s %*s %*s %*s %4095s", top) == 1)
            (void)umount2(top, MNT_DETACH);
    }
}

static void open_without_pids(void)
{
    unmount("cgroup", ",pids");
    _exit(try_open(cgroup_root_mode(root)) < 0 ? 10 : 11);
}

static void open_without_v2(void)
{
    unmount("cgroup2", "");
    _exit(10 + try_open(-1));
}

static void open_without_any(void)
{
    unmount("cgroup", "");
    unmount("cgroup2", "");
    _exit(try_open(-1) < 0 ? 10 : 11);
}

TEST_MODES(a_missing_controller_is_named)
{
    char want[8], other[PATH_MAX];
    (void)snprintf(want, sizeof want, "%d ", ERROR_UNAVAILABLE);
    if (root->mode != CGROUP_V2) {
        CHECK_INT(in_own_mounts(open_without_pids), 10);
        CHECK(strncmp(shared->text, want, strlen(want)) == 0);
        CHECK(strstr(shared->text, "has the controller 'pids'"));
        (void)snprintf(other, sizeof other, "%s-other", root->trees[0].path);
        CHECK(access(other, F_OK) < 0 && errno == ENOENT);
        CHECK_INT(in_own_mounts(open_without_v2), 10 + CGROUP_V1);
    }
    CHECK_INT(in_own_mounts(open_without_any), 10);
    CHECK(strncmp(shared->text, want, strlen(want)) == 0);
    CHECK(strstr(shared->text, "no control groups are mounted"));
}

TEST(the_best_mode_is_chosen)
{
    prepare();
    struct error err;
    CHECK_OK(cgroup_root_open(root_name, &root, &err), err);
    enum cgroup_mode mode = cgroup_root_mode(root);
    clean_up();
    for (int better = 0; better < (int)mode; better++)
        CHECK(cgroup_root_open_as(root_name, (enum cgroup_mode)better, &root, &err) < 0);
}

/* Leaves our own directories of a delegated group behind us, whatever happened in it. */
static void remove_delegated(const char *path)
{
    struct error err;
    autofd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)v2_kill(fd, ".", &err);
    closep(&fd);
    if (group_remove(AT_FDCWD, path, deadline(), &err) < 0)
        printf("# left behind: %s\n", err.text);
}

/* Moves this process into the group, whose directory is made where it is missing. */
static void enter(const char *path)
{
    struct error err;

    (void)mkdir(path, 0755);
    autofd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (knob_write(fd, "", "cgroup.procs", "0", &err) < 0)
        _exit(90);
}

static void open_in_supervisor(const char *path)
{
    struct error err;
    struct cgroup_root *mine = NULL;
    char leaf[PATH_MAX];

    enter(path);
    if (fork() == 0) { // somebody of ours who stands in the way
        for (;;)
            (void)pause();
    }
    (void)snprintf(leaf, sizeof leaf, "%s/" CGROUP_SUPERVISOR, path);
    enter(leaf);
    if (cgroup_root_open_as("mine", CGROUP_V2, &mine, &err) < 0) {
        (void)snprintf(shared->text, sizeof shared->text, "%s", err.text);
        _exit(1);
    }
    if (strncmp(mine->trees[0].path, path, strlen(path)) != 0)
        _exit(2);
    struct cgroup *group = NULL;
    if (cgroup_create(mine, "b1", &no_limits, false, OWNER, &group, &err) < 0)
        _exit(3);
    uint64_t kept = 0;
    autofd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cgroup_root_protect(mine, 16 << 20);
    if (knob_read_number(fd, CGROUP_SUPERVISOR, "memory.min", &kept, &err) < 0 || kept != 16 << 20)
        _exit(4);
    _exit(0);
}

/* As systemd does it: a group with a mark, for a service. */
static int in_delegated_group(void (*fn)(const char *path))
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s", root->trees[0].path);
    (void)snprintf(strrchr(path, '/'), 64, "/burrow-delegated-%d", (int)getpid());
    CHECK(mkdir(path, 0755) == 0);
    int marked = setxattr(path, "trusted.delegate", "1", 1, 0);
    shared->text[0] = '\0';
    pid_t pid = fork();
    if (pid == 0)
        fn(path);
    int status = status_of(pid);
    remove_delegated(path);
    CHECK(marked == 0);
    return status;
}

TEST(a_delegated_group_is_used_and_its_processes_make_room)
{
    begin(CGROUP_V2);
    CHECK_INT(in_delegated_group(open_in_supervisor), 0);
    CHECK_STR(shared->text, "");
    clean_up();
}

static void open_in_service(const char *path)
{
    struct error err;
    struct cgroup_root *mine = NULL;
    struct cgroup *group = NULL;

    enter(path);
    if (cgroup_root_open_as("mine", CGROUP_V2, &mine, &err) < 0 ||
        cgroup_create(mine, "b1", &no_limits, false, OWNER, &group, &err) < 0) {
        (void)snprintf(shared->text, sizeof shared->text, "%s", err.text);
        _exit(1);
    }
    pid_t again = fork(); // the next server, while the first one's box is there
    if (again == 0) {
        enter(path);
        _exit(0);
    }
    int status = status_of(again);
    if (cgroup_remove(group, &err) < 0 || cgroup_root_remove(mine, &err) < 0)
        (void)snprintf(shared->text, sizeof shared->text, "%s", err.text);
    _exit(status ? 5 : 0);
}

/* systemd before 254 knows no DelegateSubgroup: it starts a service in the group of the service, each time. */
TEST(a_delegated_group_with_the_service_itself_in_it_can_be_entered_again)
{
    begin(CGROUP_V2);
    CHECK_INT(in_delegated_group(open_in_service), 0);
    CHECK_STR(shared->text, "");
    clean_up();
}
