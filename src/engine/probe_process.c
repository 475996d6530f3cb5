/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of power, namespaces and the calls that start, watch and confine processes. */
#include "engine/probe_impl.h"

#include "base/fd.h"
#include "engine/kernel.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#define FIRST_ID 0x70000000u
#define IDS 65536u
#define REFUSED_ERRNO 123 // what the trial filter answers

#ifndef PIDFD_GET_MNT_NAMESPACE
#define PIDFD_GET_MNT_NAMESPACE _IO(0xFF, 3)
#endif
#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static const char no_boxes[] = "sandboxes cannot be started";
static const char newer_kernel[] =
    "use a kernel of 6.1 or newer, built with what distributions build in";
static const char not_nested[] =
    "run burrow on the machine itself, or give the container around it all privileges";

void probe_root(const struct probe *probe, const struct probe_context *context,
                struct probe_result *result)
{
    if (geteuid() == 0)
        probe_fine(result, "running as root");
    else
        probe_say(result, PROBE_MISSING, no_boxes, "run burrow as root, for example with sudo",
                  "running as user %u", (unsigned)geteuid());
}

static const struct {
    int number;
    const char *name;
    bool is_needed;
} capabilities[] = {
    {CAP_SYS_ADMIN, "SYS_ADMIN", true},
    {CAP_SETUID, "SETUID", true},
    {CAP_SETGID, "SETGID", true},
    {CAP_SETPCAP, "SETPCAP", true},
    {CAP_SETFCAP, "SETFCAP", true},
    {CAP_CHOWN, "CHOWN", true},
    {CAP_DAC_OVERRIDE, "DAC_OVERRIDE", true},
    {CAP_FOWNER, "FOWNER", true},
    {CAP_SYS_CHROOT, "SYS_CHROOT", true},
    {CAP_NET_ADMIN, "NET_ADMIN", true},
    {CAP_KILL, "KILL", true},
    {CAP_MKNOD, "MKNOD", true},
    {CAP_SYS_RESOURCE, "SYS_RESOURCE", false},
};

void probe_capabilities(const struct probe *probe, const struct probe_context *context,
                        struct probe_result *result)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    char lacking[300] = "";
    bool is_needed = false;

    if (syscall(SYS_capget, &header, data) < 0) {
        probe_say(result, PROBE_UNCHECKED, "nobody knows yet", newer_kernel, "capget: %s",
                  strerror(errno));
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++) {
        int number = capabilities[i].number;
        if (data[CAP_TO_INDEX(number)].effective & CAP_TO_MASK(number))
            continue;
        size_t used = strlen(lacking);
        (void)snprintf(lacking + used, sizeof lacking - used, " CAP_%s", capabilities[i].name);
        is_needed |= capabilities[i].is_needed;
    }
    if (is_needed)
        probe_say(result, PROBE_MISSING, no_boxes,
                  geteuid() ? "run burrow as root, for example with sudo" : not_nested, "without%s",
                  lacking);
    else if (lacking[0])
        probe_say(result, PROBE_DEGRADED,
                  "limits on open files cannot be raised past the hard limit burrow starts with, "
                  "and its own processes are "
                  "not kept from the kernel's out-of-memory killer",
                  "let whatever starts burrow keep CAP_SYS_RESOURCE", "without%s", lacking);
    else
        probe_fine(result, "all there");
}

void probe_kernel(const struct probe *probe, const struct probe_context *context,
                  struct probe_result *result)
{
    struct utsname name = {0};
    unsigned major = 0;
    unsigned minor = 0;

    if (uname(&name) < 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2)
        probe_say(result, PROBE_UNCHECKED, "nobody knows yet", newer_kernel,
                  "'%s' is not a version", name.release);
    else if (strcmp(name.machine, "x86_64") != 0)
        probe_say(result, PROBE_MISSING, no_boxes, "use an x86-64 machine", "machine is %s",
                  name.machine);
    else if (major < 6 || (major == 6 && minor < 1))
        probe_say(result, PROBE_MISSING, no_boxes, newer_kernel, "%s, older than 6.1",
                  name.release);
    else
        probe_fine(result, "%s", name.release);
}

static pid_t clone_child(uint64_t flags, int *pidfd)
{
    struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};
    if (pidfd) {
        args.flags |= CLONE_PIDFD;
        args.pidfd = (uintptr_t)pidfd;
    }
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

static int bring_loopback_up(void)
{
    autofd sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo"};
    request.ifr_flags = IFF_UP;
    return sock < 0 ? -1 : ioctl(sock, SIOCSIFFLAGS, &request);
}

void probe_namespace(const struct probe *probe, const struct probe_context *context,
                     struct probe_result *result)
{
    int status = 0;
    pid_t pid = clone_child(probe->flags, NULL);
    if (pid == 0)
        _exit(probe->flags == CLONE_NEWNET && bring_loopback_up() < 0 ? errno : 0);
    if (pid < 0) {
        probe_say(result, PROBE_MISSING, no_boxes,
                  errno == ENOSPC   ? "raise user.max_*_namespaces with sysctl"
                  : errno == EINVAL ? newer_kernel
                                    : not_nested,
                  "clone: %s", strerror(errno));
        return;
    }
    (void)waitpid(pid, &status, 0);
    if (status)
        probe_say(result, PROBE_MISSING, no_boxes, not_nested, "bring its loopback up: %s",
                  strerror(WEXITSTATUS(status)));
    else
        probe_fine(result, "made");
}

static int write_map(pid_t pid, const char *file, struct error *err)
{
    char path[64];
    char map[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    (void)snprintf(map, sizeof map, "0 %u %u", FIRST_ID, IDS);
    return fd_write_knob(AT_FDCWD, path, map, err);
}

int probe_user_namespace(struct error *err)
{
    char path[64];
    pid_t pid = clone_child(CLONE_NEWUSER, NULL);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)pause();
    }
    if (pid < 0)
        return error_sys(err, "make a user namespace");
    int fd = -1;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    if (write_map(pid, "uid_map", err) == 0 && write_map(pid, "gid_map", err) == 0) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            error_sys(err, "open %s", path);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return fd;
}

void probe_id_maps(const struct probe *probe, const struct probe_context *context,
                   struct probe_result *result)
{
    struct error err = {0};
    autofd fd = probe_user_namespace(&err);
    if (fd < 0)
        probe_say(result, PROBE_MISSING, no_boxes, not_nested, "%s", err.text);
    else
        probe_fine(result, "%u ids from %u on mapped", IDS, FIRST_ID);
}

static const char *use_pidfd(int pidfd)
{
    siginfo_t info = {0};
    if (sys_pidfd_send_signal(pidfd, SIGKILL) < 0)
        return "pidfd_send_signal";
    if (waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0)
        return "waitid";
    return NULL;
}

/* A child that waits to be killed, and its pidfd. */
static pid_t clone_waiting(int *pidfd)
{
    pid_t pid = clone_child(0, pidfd);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)pause();
    }
    return pid;
}

void probe_pidfd(const struct probe *probe, const struct probe_context *context,
                 struct probe_result *result)
{
    autofd pidfd = -1;
    pid_t pid = clone_waiting(&pidfd);
    const char *failed = pid < 0 ? "clone3 with CLONE_PIDFD" : use_pidfd(pidfd);
    if (!failed) {
        probe_fine(result, "made, signalled and waited for");
        return;
    }
    probe_say(result, PROBE_MISSING, no_boxes, newer_kernel, "%s: %s", failed, strerror(errno));
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
}

void probe_pidfd_namespace(const struct probe *probe, const struct probe_context *context,
                           struct probe_result *result)
{
    autofd pidfd = -1;
    pid_t pid = clone_waiting(&pidfd);
    autofd mounts = pid < 0 ? -1 : ioctl(pidfd, PIDFD_GET_MNT_NAMESPACE, 0);
    if (mounts >= 0)
        probe_fine(result, "by ioctl");
    else
        probe_say(result, PROBE_DEGRADED, "a file of /proc is opened instead, at each launch",
                  "use kernel 6.11 or newer", "PIDFD_GET_MNT_NAMESPACE: %s", strerror(errno));
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
}

static void try_filter(const struct probe *probe, const struct probe_context *context,
                       struct probe_result *result)
{
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | REFUSED_ERRNO),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_SIZE(lines), .filter = lines};
    uint32_t action = SECCOMP_RET_KILL_PROCESS;

    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        probe_say(result, PROBE_MISSING, no_boxes, newer_kernel, "load a filter: %s",
                  strerror(errno));
    else if (syscall(SYS_getppid) >= 0 || errno != REFUSED_ERRNO)
        probe_say(result, PROBE_MISSING, no_boxes, newer_kernel, "a loaded filter has no effect");
    else
        probe_fine(result, "a filter loads and refuses");
}

void probe_seccomp(const struct probe *probe, const struct probe_context *context,
                   struct probe_result *result)
{
    probe_in_child(try_filter, probe, context, result);
}

/* A sealed memfd that is no program: executing it gives ENOEXEC exactly when executing it is
 * allowed. */
static int open_sealed(void)
{
    autofd fd = memfd_create("probe", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    if (fd < 0 && errno == EINVAL) // kernels before 6.3
        fd = memfd_create("probe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || fd_write_all(fd, "no program\n", 11) < 0 || fchmod(fd, 0500) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
        return -1;
    return take_fd(fd);
}

static void try_memfd(const struct probe *probe, const struct probe_context *context,
                      struct probe_result *result)
{
    char *const nothing[] = {"probe", NULL};
    autofd fd = open_sealed();
    if (fd >= 0) {
        // a read-only description: a file open for writing is ETXTBSY
        char path[64];
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        autofd readable = open(path, O_RDONLY | O_CLOEXEC);
        closep(&fd);
        (void)syscall(SYS_execveat, readable, "", nothing, nothing, AT_EMPTY_PATH);
    }
    if (errno == ENOEXEC)
        probe_fine(result, "sealed and executable");
    else
        probe_say(result, PROBE_MISSING, no_boxes, "sysctl vm.memfd_noexec=0",
                  "run a sealed memfd: %s", strerror(errno));
}

void probe_memfd(const struct probe *probe, const struct probe_context *context,
                 struct probe_result *result)
{
    probe_in_child(try_memfd, probe, context, result);
}

void probe_openat2(const struct probe *probe, const struct probe_context *context,
                   struct probe_result *result)
{
    autofd proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    autofd inside = sys_openat2(proc, "../../version", O_RDONLY | O_CLOEXEC, 0, RESOLVE_IN_ROOT);
    int code = errno;
    autofd outside = sys_openat2(proc, "../etc", O_PATH | O_CLOEXEC, 0, RESOLVE_BENEATH);
    if (inside < 0)
        probe_say(result, PROBE_MISSING, no_boxes, newer_kernel, "openat2: %s", strerror(code));
    else if (outside >= 0 || errno != EXDEV)
        probe_say(result, PROBE_MISSING, no_boxes, newer_kernel, "openat2 lets '..' out");
    else
        probe_fine(result, "stays inside");
}
