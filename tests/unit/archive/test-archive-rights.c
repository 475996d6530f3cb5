/* SPDX-License-Identifier: Apache-2.0 */
/* What burrow-archive could do if it were taken over: a running one is looked at from outside, and its filter is tried out. Needs root. */
#include "archive/archive_filter.h"
#include "archive/unpacker.h"
#include "archive_fixture.h"
#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* One that has more to say than its socket holds, so that it stays where it is. */
static struct unpacker *start_busy(void)
{
    struct archive_task task = plain_task();
    struct unpacker *unpacker = NULL;
    autobuffer tar = {0};
    struct error err = {0};
    size_t length = 8 << 20;
    char *content = calloc(1, length);
    CHECK(content);
    tar_add(&tar, &(struct tar_entry){.name = "big", .content = content, .length = length});
    tar_end(&tar);
    free(content);
    autofd fd = file_of(&tar);
    CHECK_OK(unpacker_open(&task, fd, &unpacker, &err), err);
    return unpacker;
}

static void read_proc(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : fd_read_full(fd, text, size - 1);
    CHECK(got >= 0);
    text[got] = '\0';
}

static void check_line(const char *text, const char *line)
{
    if (!strstr(text, line))
        test_fail(__FILE__, __LINE__, "no line '%s' in:\n%s", line, text);
}

TEST(it_is_nobody_and_may_nothing)
{
    autoptr(unpacker) unpacker = start_busy();
    char status[8192], environment[64];
    static const char *const lines[] = {
        "\nUid:\t65534\t65534\t65534\t65534\n",
        "\nGid:\t65534\t65534\t65534\t65534\n",
        "\nGroups:\t \n",
        "\nCapInh:\t0000000000000000\n",
        "\nCapPrm:\t0000000000000000\n",
        "\nCapEff:\t0000000000000000\n",
        "\nCapBnd:\t0000000000000000\n",
        "\nCapAmb:\t0000000000000000\n",
        "\nNoNewPrivs:\t1\n",
        "\nSeccomp:\t2\n",
        "\nThreads:\t1\n",
    };
    read_proc(unpacker_pid(unpacker), "status", status, sizeof status);
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        check_line(status, lines[i]);
    read_proc(unpacker_pid(unpacker), "environ", environment, sizeof environment);
    CHECK_STR(environment, "");
}

TEST(it_shares_no_namespace_but_that_of_processes_and_time)
{
    autoptr(unpacker) unpacker = start_busy();
    static const char *const names[] = {"user", "mnt", "net", "ipc", "uts", "cgroup"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char path[64], theirs[64], ours[64];
        (void)snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)unpacker_pid(unpacker), names[i]);
        ssize_t got = readlink(path, theirs, sizeof theirs - 1);
        CHECK(got > 0);
        theirs[got] = '\0';
        (void)snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
        got = readlink(path, ours, sizeof ours - 1);
        CHECK(got > 0);
        ours[got] = '\0';
        if (strcmp(theirs, ours) == 0)
            test_fail(__FILE__, __LINE__, "it is in our %s", ours);
    }
}

TEST(its_root_is_empty_and_cannot_be_written_to)
{
    autoptr(unpacker) unpacker = start_busy();
    char path[64], mounts[4096];
    struct statfs info;
    int count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/root/", (int)unpacker_pid(unpacker));
    autodir dir = opendir(path);
    CHECK(dir);
    while (readdir(dir))
        count++;
    CHECK_INT(count, 2); // "." and ".."
    CHECK(statfs(path, &info) == 0);
    CHECK_INT(info.f_type, TMPFS_MAGIC);
    CHECK(info.f_flags & ST_RDONLY);
    read_proc(unpacker_pid(unpacker), "mounts", mounts, sizeof mounts);
    char *end = strchr(mounts, '\n');
    CHECK(end && end[1] == '\0'); // one mount
    (void)snprintf(path, sizeof path, "/proc/%d/cwd/..", (int)unpacker_pid(unpacker));
    CHECK(statfs(path, &info) == 0);
    CHECK_INT(info.f_type, TMPFS_MAGIC);
}

TEST(it_has_three_files_and_its_archive_is_read_only)
{
    int extra = open("/etc/passwd", O_RDONLY); // not close-on-exec: somebody's mistake
    CHECK(extra > 2);
    autoptr(unpacker) unpacker = start_busy();
    char path[64], text[1024];
    unsigned seen = 0;
    closep(&extra);
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)unpacker_pid(unpacker));
    autodir dir = opendir(path);
    CHECK(dir);
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            seen |= 1u << atoi(entry->d_name);
    CHECK_INT(seen, 7);
    read_proc(unpacker_pid(unpacker), "fdinfo/1", text, sizeof text);
    char *flags = strstr(text, "flags:\t");
    CHECK(flags);
    CHECK_INT(strtol(flags + 7, NULL, 8) & O_ACCMODE, O_RDONLY);
}

TEST(its_limits_are_hard)
{
    autoptr(unpacker) unpacker = start_busy();
    char text[4096];
    read_proc(unpacker_pid(unpacker), "limits", text, sizeof text);
    check_line(text, "\nMax open files            0                    0 ");
    check_line(text, "\nMax processes             0                    0 ");
    check_line(text, "\nMax core file size        0                    0 ");
    check_line(text, "\nMax file size             0                    0 ");
    check_line(text, "\nMax address space         402653184            402653184 ");
    check_line(text, "Max cpu time              64                   64 ");
}

TEST(it_is_gone_when_it_is_no_longer_needed)
{
    struct unpacker *unpacker = start_busy();
    pid_t pid = unpacker_pid(unpacker);
    unpacker_free(unpacker);
    CHECK(kill(pid, 0) < 0 && errno == ESRCH);
}

// --- the filter, tried call by call in a child of ours ---

struct attempt {
    const char *title;
    long number;
    long arguments[6];
};

static int end_of(const struct attempt *attempt, bool is_reading)
{
    int status = 0;
    const long *a = attempt->arguments;
    size_t count;
    const struct filter_rule *rules = archive_filter(is_reading, &count);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_load(rules, count) < 0)
            syscall(SYS_exit_group, 99);
        (void)syscall(attempt->number, a[0], a[1], a[2], a[3], a[4], a[5]);
        syscall(SYS_exit_group, 0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    return status;
}

static void check_kills(const struct attempt *attempts, size_t count, bool is_reading)
{
    for (size_t i = 0; i < count; i++) {
        int status = end_of(&attempts[i], is_reading);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
            test_fail(__FILE__, __LINE__, "%s does not end it (status %x)", attempts[i].title,
                      (unsigned)status);
    }
}

TEST(what_it_has_no_need_for_ends_it)
{
    static const struct attempt attempts[] = {
        {"open", SYS_openat, {AT_FDCWD, (long)"/", O_RDONLY}},
        {"old open", SYS_open, {(long)"/", O_RDONLY}},
        {"stat", SYS_newfstatat, {AT_FDCWD, 0, 0}},
        {"socket", SYS_socket, {AF_INET, SOCK_STREAM}},
        {"connect", SYS_connect, {0}},
        {"clone", SYS_clone, {SIGCHLD}},
        {"clone3", SYS_clone3, {0}},
        {"fork", SYS_fork, {0}},
        {"execve", SYS_execve, {(long)"/bin/sh"}},
        {"execveat", SYS_execveat, {1, (long)"", 0, 0, 0x1000}},
        {"kill", SYS_kill, {1, 0}},
        {"tgkill", SYS_tgkill, {1, 1, 0}},
        {"ptrace", SYS_ptrace, {0}},
        {"prctl", SYS_prctl, {PR_SET_DUMPABLE, 1}},
        {"setuid", SYS_setuid, {0}},
        {"unshare", SYS_unshare, {0}},
        {"mount", SYS_mount, {0}},
        {"ioctl", SYS_ioctl, {0}},
        {"dup", SYS_dup, {0}},
        {"pidfd_open", SYS_pidfd_open, {1}},
        {"process_vm_readv", SYS_process_vm_readv, {1}},
        {"io_uring_setup", SYS_io_uring_setup, {1}},
        {"bpf", SYS_bpf, {0}},
        {"recvmsg", SYS_recvmsg, {0}},
        {"executable memory",
         SYS_mmap,
         {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1}},
        {"memory made executable", SYS_mprotect, {0, 4096, PROT_EXEC}},
        {"an x32 call", 0x40000000 | SYS_read, {1}},
        {"sending elsewhere", SYS_sendmsg, {2}},
        {"receiving elsewhere", SYS_recvfrom, {1}},
        {"truncating", SYS_ftruncate, {1, 0}},
    };
    check_kills(attempts, ARRAY_SIZE(attempts), true);
    check_kills(attempts, ARRAY_SIZE(attempts), false);
}

TEST(an_archive_is_read_or_written_and_never_both)
{
    static const struct attempt for_reader[] = {
        {"writing to the archive", SYS_write, {1, (long)"x", 0}},
        {"reading the conversation past its filter", SYS_read, {0}},
        {"writing at a place", SYS_pwrite64, {1, (long)"x", 0}},
    };
    static const struct attempt for_writer[] = {
        {"reading the archive", SYS_read, {1}},
        {"seeking in it", SYS_lseek, {1}},
        {"writing elsewhere", SYS_write, {2, (long)"x", 0}},
    };
    check_kills(for_reader, ARRAY_SIZE(for_reader), true);
    check_kills(for_writer, ARRAY_SIZE(for_writer), false);
}

TEST(what_it_needs_is_allowed)
{
    static const struct attempt attempts[] = {
        {"memory", SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1}},
        {"brk", SYS_brk, {0}},
        {"speaking", SYS_sendmsg, {0}},
        {"hearing", SYS_recvfrom, {0}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(attempts); i++)
        for (int is_reading = 0; is_reading < 2; is_reading++)
            CHECK_INT(end_of(&attempts[i], is_reading), 0);
}
