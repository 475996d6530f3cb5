/* SPDX-License-Identifier: Apache-2.0 */
/* The table of probes and how one is run; see probe.h. */
#include "engine/probe_impl.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_SECONDS 20

const struct probe probe_table[] = {
    {"root", "makes namespaces, mounts and control groups", probe_root},
    {"capabilities", "the parts of root's power that launching a sandbox takes",
     probe_capabilities},
    {"kernel", "the calls burrow is written for", probe_kernel},
    {"namespace-user", "root inside is nobody outside", probe_namespace, true, CLONE_NEWUSER},
    {"namespace-mount", "a file tree of the sandbox's own", probe_namespace, true, CLONE_NEWNS},
    {"namespace-pid", "processes see only their sandbox", probe_namespace, true, CLONE_NEWPID},
    {"namespace-net", "a loopback of the sandbox's own, and nothing else", probe_namespace, true,
     CLONE_NEWNET},
    {"namespace-ipc", "shared memory and queues of the sandbox's own", probe_namespace, true,
     CLONE_NEWIPC},
    {"namespace-uts", "a host name of the sandbox's own", probe_namespace, true, CLONE_NEWUTS},
    {"namespace-cgroup", "hides the host's control groups", probe_namespace, true, CLONE_NEWCGROUP},
    {"namespace-limits", "how many sandboxes may exist at once", probe_namespace_limits},
    {"id-maps", "65536 user ids for each sandbox", probe_id_maps, true},
    {"id-range", "keeps the sandboxes' user ids apart from the machine's", probe_id_range},
    {"cgroups", "limits on memory, CPU and processes", probe_cgroups, true},
    {"socket-memory", "limits what lies in a sandbox's sockets", probe_socket_memory, true},
    {"clone-into-cgroup", "starts a process in its group without a detour", probe_clone_into_cgroup,
     true},
    {"cgroup-kill", "ends everything in a sandbox at once", probe_cgroup_kill, true},
    {"seccomp", "refuses system calls that sandboxes do not need", probe_seccomp},
    {"proc", "a sandbox's own /proc", probe_filesystem, true, 0, "proc"},
    {"tmpfs", "a sandbox's /tmp and /dev/shm", probe_filesystem, true, 0, "tmpfs"},
    {"devpts", "terminals in a sandbox", probe_filesystem, true, 0, "devpts"},
    {"overlay", "many sandboxes over one read-only runtime", probe_overlay, true},
    {"overlay-fd", "gives overlay its layers without a path", probe_overlay_fd, true},
    {"idmapped-mounts", "shares a runtime's files without changing their owners",
     probe_idmapped_mounts, true},
    {"disk-limit", "a hard limit on what a sandbox writes", probe_quota, true},
    {"loop-device", "the volume, where the disk has no quotas itself", probe_loop, true},
    {"mkfs.btrfs", "makes the volume", probe_mkfs},
    {"free-space", "room for runtimes and for what sandboxes write", probe_space},
    {"pidfd", "watches and signals a sandbox without mistaking it for another", probe_pidfd},
    {"pidfd-namespace", "takes the end of a sandbox off the caller's path", probe_pidfd_namespace},
    {"openat2", "never follows a guest's link", probe_openat2},
    {"memfd", "starts PID 1 of a sandbox from a sealed copy", probe_memfd},
    {"nftables", "rules for sandboxes with network", probe_nftables, true},
    {"forwarding", "a way out for sandboxes with network", probe_forwarding, true},
    {"forward-policy", "whether others drop what sandboxes send", probe_forward_policy, true},
    {"network-addresses", "keeps the sandboxes' addresses apart from the machine's networks",
     probe_addresses, true},
    {"pid-max", "how many processes the machine can hold", probe_pid_max},
    {"open-files", "how many sandboxes one server can hold", probe_files},
    {"inotify", "watching files in sandboxes", probe_inotify},
    {"core-dumps", "where a crash in a sandbox would go", probe_core_pattern},
    {"suid-dumpable", "keeping PID 1 of a sandbox out of its guests' reach", probe_suid_dumpable},
    {"modprobe", "programs of unknown format in a sandbox", probe_modprobe},
    {"mmdebstrap", "builds base:latest and other runtimes", probe_mmdebstrap},
    {"apt-sources", "where packages of runtimes come from", probe_apt_sources},
    {"ssh-host-key", "by which clients of SSH know this server again", probe_ssh_key, true},
    {0},
};

const char *probe_state_name(enum probe_state state)
{
    static const char *const names[] = {
        [PROBE_FINE] = "fine",
        [PROBE_DEGRADED] = "degraded",
        [PROBE_MISSING] = "missing",
        [PROBE_UNCHECKED] = "unchecked",
    };
    return names[state];
}

void probe_fine(struct probe_result *result, const char *format, ...)
{
    va_list args;
    *result = (struct probe_result){.state = PROBE_FINE};
    va_start(args, format);
    (void)vsnprintf(result->detail, sizeof result->detail, format, args);
    va_end(args);
}

void probe_say(struct probe_result *result, enum probe_state state, const char *cost,
               const char *fix, const char *format, ...)
{
    va_list args;
    *result = (struct probe_result){.state = state, .cost = cost, .fix = fix};
    va_start(args, format);
    (void)vsnprintf(result->detail, sizeof result->detail, format, args);
    va_end(args);
}

void probe_run(const struct probe *probe, const struct probe_context *context,
               struct probe_result *result)
{
    if (probe->needs_root && geteuid() != 0)
        probe_say(result, PROBE_UNCHECKED, "nobody knows yet", "run it again as root",
                  "only root can find out");
    else
        probe->run(probe, context, result);
}

static _Noreturn void answer(probe_function *run, const struct probe *probe,
                             const struct probe_context *context, int to)
{
    struct probe_result result = {.state = PROBE_MISSING};
    (void)alarm(ANSWER_SECONDS);
    run(probe, context, &result);
    _exit(fd_write_all(to, &result, sizeof result) < 0);
}

void probe_in_child(probe_function *run, const struct probe *probe,
                    const struct probe_context *context, struct probe_result *result)
{
    int fds[2];
    int status = 0;

    if (pipe2(fds, O_CLOEXEC) < 0) {
        probe_say(result, PROBE_UNCHECKED, "nobody knows yet", "close some files and try again",
                  "make a pipe: %s", strerror(errno));
        return;
    }
    autofd from = fds[0];
    autofd to = fds[1];
    pid_t pid = fork();
    if (pid == 0)
        answer(run, probe, context, to); // literals in the answer are at the same place here
    closep(&to);
    bool is_whole = pid > 0 && fd_read_full(from, result, sizeof *result) == sizeof *result;
    if (pid > 0)
        (void)waitpid(pid, &status, 0);
    if (!is_whole)
        probe_say(result, PROBE_MISSING, "sandboxes cannot be started",
                  "look into the kernel's log for the reason", "%s",
                  pid < 0 ? "no process could be started for it" : "the process trying it died");
}

int probe_open_data(const struct probe_context *context)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s", context->data_dir) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (;;) {
        int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        char *slash = strrchr(path, '/');
        if (fd >= 0 || errno != ENOENT)
            return fd;
        if (!slash)
            return open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        slash[slash == path] = '\0'; // "/x" → "/"
    }
}

bool probe_has_program(const char *name)
{
    static const char *const places[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                         "/usr/bin",        "/sbin",          "/bin"};
    char path[300];
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", places[i], name);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}
