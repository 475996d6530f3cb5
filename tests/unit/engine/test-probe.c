/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/engine/probe.c and its probes, on whatever machine this is. */
#include "engine/probe.h"

#include "base/auto.h"
#include "test.h"

#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const struct probe *find(const char *name)
{
    for (const struct probe *probe = probe_table; probe->name; probe++) {
        if (strcmp(probe->name, name) == 0)
            return probe;
    }
    test_fail(__FILE__, __LINE__, "no probe '%s'", name);
}

static void run(const char *name, const char *data_dir, struct probe_result *result)
{
    const struct probe_context context = {.data_dir = data_dir};
    memset(result, 0xff, sizeof *result); // a probe that answers only in part shows
    probe_run(find(name), &context, result);
}

static unsigned count_lines(const char *path)
{
    autofile file = fopen(path, "re");
    unsigned count = 0;
    for (int c; file && (c = fgetc(file)) != EOF;)
        count += c == '\n';
    return count;
}

static unsigned count_entries(const char *path)
{
    autodir dir = opendir(path);
    unsigned count = 0;
    while (dir && readdir(dir))
        count++;
    return count;
}

TEST(every_probe_answers_in_full)
{
    for (const struct probe *probe = probe_table; probe->name; probe++) {
        struct probe_result result;
        run(probe->name, "/var/lib/burrow", &result);
        printf("# %-18s %-9s %s\n", probe->name, probe_state_name(result.state), result.detail);
        CHECK(result.detail[0]);
        CHECK(memchr(result.detail, '\0', sizeof result.detail));
        CHECK((result.state == PROBE_FINE) == (result.cost == NULL));
        CHECK((result.state == PROBE_FINE) == (result.fix == NULL));
        CHECK(probe->purpose[0]);
    }
}

TEST(names_are_not_used_twice)
{
    for (const struct probe *probe = probe_table; probe->name; probe++) {
        for (const struct probe *other = probe_table; other != probe; other++)
            CHECK(strcmp(probe->name, other->name) != 0);
    }
}

static bool has_doctors_group(const char *path)
{
    autodir dir = opendir(path);
    char name[64];
    (void)snprintf(name, sizeof name, "burrow-doctor-%d", (int)getpid());
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, name) == 0)
            return true;
    }
    return false;
}

TEST(probing_leaves_no_file_descriptor_child_or_group)
{
    static const char *const trees[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/memory",
                                        "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/pids",
                                        "/sys/fs/cgroup/unified"};
    unsigned fds = count_entries("/proc/self/fd");

    for (const struct probe *probe = probe_table; probe->name; probe++) {
        struct probe_result result;
        run(probe->name, "/var/lib/burrow", &result);
        CHECK(waitpid(-1, NULL, WNOHANG | __WALL) < 0);
    }
    CHECK_INT(count_entries("/proc/self/fd"), fds);
    for (size_t i = 0; i < ARRAY_SIZE(trees); i++)
        CHECK(!has_doctors_group(trees[i]));
}

/* In a mount namespace of its own, where nobody else mounts meanwhile. */
static int check_mounts(void)
{
    struct probe_result result;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return 1;
    unsigned before = count_lines("/proc/self/mountinfo");
    for (const struct probe *probe = probe_table; probe->name; probe++)
        run(probe->name, "/var/lib/burrow", &result);
    return count_lines("/proc/self/mountinfo") == before ? 0 : 2;
}

TEST(probing_leaves_no_mount)
{
    int status = 0;
    if (geteuid() != 0)
        SKIP("mounting needs root");
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(check_mounts());
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_INT(status, 0);
}

TEST(a_data_directory_that_does_not_exist_is_not_made)
{
    struct probe_result result;
    struct stat info;
    for (const struct probe *probe = probe_table; probe->name; probe++)
        run(probe->name, "/tmp/burrow-no-such/data", &result);
    CHECK(stat("/tmp/burrow-no-such", &info) < 0);
    run("free-space", "/tmp/burrow-no-such/data", &result);
    CHECK(result.state != PROBE_UNCHECKED);
}

TEST(a_data_directory_on_proc_has_no_room_and_no_idmapped_mounts)
{
    struct probe_result result;
    run("free-space", "/proc/nothing/here", &result);
    CHECK_INT(result.state, PROBE_MISSING);
    run("idmapped-mounts", "/proc", &result);
    CHECK_INT(result.state, geteuid() == 0 ? PROBE_MISSING : PROBE_UNCHECKED);
}

static int check_as_nobody(void)
{
    struct probe_result result;
    if (setgid(65534) < 0 || setuid(65534) < 0)
        return 1;
    for (const struct probe *probe = probe_table; probe->name; probe++) {
        run(probe->name, "/var/lib/burrow", &result);
        if (probe->needs_root && result.state != PROBE_UNCHECKED)
            return 2;
    }
    run("root", "/var/lib/burrow", &result);
    if (result.state != PROBE_MISSING)
        return 3;
    run("capabilities", "/var/lib/burrow", &result);
    return result.state == PROBE_MISSING ? 0 : 4;
}

TEST(without_root_it_says_what_cannot_be_checked)
{
    int status = 0;
    if (geteuid() != 0)
        SKIP("becoming another user needs root");
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(check_as_nobody());
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
}

TEST(a_lost_capability_is_named)
{
    int status = 0;
    if (geteuid() != 0)
        SKIP("losing a capability needs it first");
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct probe_result result;
        if (setuid(65534) < 0)
            _exit(1);
        run("capabilities", "/var/lib/burrow", &result);
        _exit(strstr(result.detail, "CAP_SYS_ADMIN") ? 0 : 2);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_INT(status, 0);
}
