/* SPDX-License-Identifier: Apache-2.0 */
/* All attacks, one row each; see attack.h. tests/THREATS.md names every row as `attack: NAME` at the threat it belongs to. */
#include "attack/rows.h"

// What to do where one is open.
#define FILTER                                                                                     \
    "the system call filter is not in force: run a kernel of 6.1 or newer with "                   \
    "CONFIG_SECCOMP_FILTER, and this program as it was released"
#define REPORT                                                                                     \
    "run no untrusted code here; report it privately as SECURITY.md says, with this table and "    \
    "the kernel's version"
#define KERNEL "the kernel has a known hole: update it and restart the machine"
#define HOST_MOUNTS                                                                                \
    "a runtime's directory lies on a file system that others share: use another runtime"
#define DUMPABLE "set the kernel setting fs.suid_dumpable to 0; else report it as SECURITY.md says"
#define DATA_DIR "close the data directory to others: chmod 700"
#define CGROUP                                                                                     \
    "the control group of that limit is not in force: see the line 'cgroups' of burrow doctor"
#define DISK "the volume has no quota: see the line 'disk-limit' of burrow doctor"
#define UPDATE "update burrow: sandboxes must have accounts of their own with the kernel"
#define SOCKETS                                                                                    \
    "boot with control groups of version 2 alone (systemd.unified_cgroup_hierarchy=1), where the " \
    "kernel counts socket memory; or lower the kernel settings net.ipv4.udp_mem and tcp_mem"

const struct attack attack_table[] = {
    {"mount", "mount a file system, bind the root, clone a mount", "CVE-2021-41133", ATTACK_INSIDE,
     run_inside, .remedy = FILTER},
    {"remount", "make /proc/sys writable, unmount what hides things, move the root",
     "CVE-2023-25809", ATTACK_INSIDE, run_inside, .remedy = FILTER},
    {"mount-table", "find a kernel file system or a mount that is shared with the host",
     "CVE-2023-25809", ATTACK_INSIDE, run_inside, .remedy = HOST_MOUNTS},
    {"climb", "leave the root with chroot and a directory held open", "proc-leaks", ATTACK_INSIDE,
     run_inside_as_root, .remedy = REPORT},
    {"new-namespaces", "make namespaces of mounts, processes, networks …", "no-user-namespaces",
     ATTACK_INSIDE, run_inside, .remedy = FILTER},
    {"user-namespace", "become root of a user namespace, with mounts and networks in it",
     "CVE-2022-0185", ATTACK_INSIDE, run_inside, .remedy = FILTER},
    {"enter-namespaces", "enter the namespaces of PID 1 and its own again", "CVE-2022-0185",
     ATTACK_INSIDE, run_inside, .remedy = FILTER},
    {"every-call", "every system call number against the table of what is allowed",
     "CVE-2021-41133", ATTACK_INSIDE, run_inside_as_root, .remedy = FILTER},
    {"other-entries", "system calls by the 32-bit and x32 entries", "no-exotic-calls",
     ATTACK_INSIDE, run_inside, .remedy = FILTER},
    {"rights", "capabilities beyond the declared ones, privileges by program files",
     "CVE-2022-27650", ATTACK_INSIDE, run_rights, .remedy = REPORT},
    {"setuid", "a set-user-id program made by root of the sandbox, run by another user",
     "image-privileges", ATTACK_INSIDE, run_setuid, .remedy = REPORT},
    {"inherited", "open files, directories and signal settings of the launcher", "CVE-2024-21626",
     ATTACK_INSIDE, run_inside, .remedy = REPORT},
    {"environment", "variables of the caller and of the server", "CVE-2021-21261", ATTACK_INSIDE,
     run_inside, .remedy = REPORT},
    {"proc-write", "open any file below /proc for writing", "CVE-2023-25809", ATTACK_INSIDE,
     run_inside, .remedy = REPORT},
    {"core-pattern", "name a program for the kernel to start: core_pattern, modprobe, binfmt_misc",
     "core-handler", ATTACK_INSIDE, run_inside, .remedy = REPORT},
    {"core-dump", "a core file, or a crash that starts the host's handler", "core-handler",
     ATTACK_INSIDE, run_inside, .remedy = REPORT},
    {"sysrq", "sysrq, which reboots and kills", "machine-settings", ATTACK_INSIDE, run_inside,
     .remedy = REPORT},
    {"sys-write", "sysfs: uevent helper, power state, debug files", "CVE-2023-25809", ATTACK_INSIDE,
     run_inside, .remedy = REPORT},
    {"cgroup-escape", "a control group with a release_agent, and groups above its own",
     "CVE-2023-25809", ATTACK_INSIDE, run_inside, .remedy = REPORT},
    {"pid1-read", "memory, environment, files and links of PID 1 in /proc/1", "reaching-processes",
     ATTACK_INSIDE, run_inside, .remedy = DUMPABLE},
    {"pid1-program", "overwrite or run the program of PID 1", "CVE-2019-5736", ATTACK_INSIDE,
     run_inside, .remedy = DUMPABLE},
    {"pid1-trace", "trace PID 1, read and write its memory, take its files", "reaching-processes",
     ATTACK_INSIDE, run_inside, .remedy = DUMPABLE},
    {"pid1-signals", "every signal to PID 1", "reaching-processes", ATTACK_INSIDE,
     run_first_signals, .remedy = REPORT},
    {"pid1-limits", "limits, priority and affinity of PID 1", "supervisor-limits", ATTACK_INSIDE,
     run_inside, .remedy = REPORT},
    {"other-users", "trace and kill processes of another user of the sandbox", "reaching-processes",
     ATTACK_INSIDE, run_other_users, .remedy = REPORT},
    {"device-nodes", "make nodes of disks and memory", "image-devices", ATTACK_INSIDE, run_inside,
     .remedy = REPORT},
    {"devices", "find a device beyond null, zero, random and terminals", "image-devices",
     ATTACK_INSIDE, run_inside, .remedy = REPORT},
    {"physical-memory", "memory and ports of the machine", "machine-settings", ATTACK_INSIDE,
     run_inside, .remedy = REPORT},
    {"kernel-log", "read or write the kernel's log", "machine-settings", ATTACK_INSIDE, run_inside,
     .remedy = FILTER},
    {"host-information", "files that tell about the host: symbols, modules, interrupts, disks",
     "proc-leaks", ATTACK_INSIDE, run_inside, .remedy = REPORT},
    {"socket-families", "sockets other than unix, inet and route netlink", "few-socket-families",
     ATTACK_INSIDE, run_inside, .remedy = FILTER},
    {"raw-sockets", "raw and packet sockets", "CVE-2020-14386", ATTACK_INSIDE, run_inside,
     .remedy = REPORT},
    {"network-settings", "change an interface, by ioctl and by netlink", "no-network-admin",
     ATTACK_INSIDE, run_inside, .remedy = REPORT},
    {"keyrings", "keys of the kernel", "machine-settings", ATTACK_INSIDE, run_inside,
     .remedy = FILTER},
    {"bpf", "load a program into the kernel with bpf", "no-exotic-calls", ATTACK_INSIDE, run_inside,
     .remedy = FILTER},
    {"perf", "performance counters", "no-exotic-calls", ATTACK_INSIDE, run_inside,
     .remedy = FILTER},
    {"userfaultfd", "page faults handled by the program", "no-exotic-calls", ATTACK_INSIDE,
     run_inside, .remedy = FILTER},
    {"io-uring", "io_uring", "no-exotic-calls", ATTACK_INSIDE, run_inside, .remedy = FILTER},
    {"file-handles", "open files by their number, past directories", "no-exotic-calls",
     ATTACK_INSIDE, run_inside, .remedy = FILTER},
    {"kernel-modules", "load and remove kernel modules", "machine-settings", ATTACK_INSIDE,
     run_inside, .remedy = FILTER},
    {"kexec", "start another kernel, reboot", "machine-settings", ATTACK_INSIDE, run_inside,
     .remedy = FILTER},
    {"swap-and-accounts", "swap, accounting and quotas of the machine", "machine-settings",
     ATTACK_INSIDE, run_inside, .remedy = FILTER},
    {"clock", "set the clock", "machine-settings", ATTACK_INSIDE, run_inside, .remedy = FILTER},
    {"host-name", "set the host name", "machine-settings", ATTACK_INSIDE, run_inside,
     .remedy = FILTER},
    {"priority", "a better priority, a real-time scheduler", "machine-settings", ATTACK_INSIDE,
     run_inside, .remedy = REPORT},
    {"terminal-input", "a terminal of the caller, and input pushed into it", "CVE-2017-5226",
     ATTACK_INSIDE, run_inside, .remedy = REPORT},
    {"file-attributes", "attributes by which overlay and the machine's root steer files",
     "overlay-marks", ATTACK_INSIDE, run_inside, .remedy = REPORT},
    {"shared-files", "write to a file of a layer that all sandboxes share, by every known way",
     "CVE-2022-0847", ATTACK_INSIDE, run_shared_files, .remedy = KERNEL},
    {"hard-links", "a second name for a file of a shared layer, written through", "CVE-2022-0847",
     ATTACK_INSIDE, run_hard_links, .remedy = KERNEL},
    {"neighbour-processes", "see, signal and trace processes of another sandbox",
     "reaching-processes", ATTACK_BETWEEN, run_neighbour_processes, .remedy = REPORT},
    {"neighbour-secrets", "arguments and environment of processes of another sandbox",
     "reaching-processes", ATTACK_BETWEEN, run_neighbour_secrets, .remedy = REPORT},
    {"neighbour-files", "files, shared memory and queues that another sandbox left", "isolate-2.6",
     ATTACK_BETWEEN, run_neighbour_files, .remedy = REPORT},
    {"neighbour-sockets", "abstract unix sockets of another sandbox", "CVE-2020-15257",
     ATTACK_BETWEEN, run_neighbour_sockets, .remedy = REPORT},
    {"neighbour-name", "the name of another sandbox", "proc-leaks", ATTACK_BETWEEN,
     run_neighbour_name, .remedy = REPORT},
    {"kill-all", "kill everything that can be killed", "kill", ATTACK_BETWEEN, run_kill_all,
     .remedy = REPORT},
    {"host-processes", "see, signal and trace processes of the host", "reaching-processes",
     ATTACK_OUTSIDE, run_host_processes, .remedy = REPORT},
    {"host-sockets", "abstract unix sockets of the host", "CVE-2020-15257", ATTACK_OUTSIDE,
     run_host_sockets, .remedy = REPORT},
    {"network-off", "reach the host, the network and the metadata address", "agentcore-dns",
     ATTACK_OUTSIDE, run_host_network, .remedy = REPORT},
    {"host-paths", "names and paths of the host in mount tables and kernel files", "proc-leaks",
     ATTACK_OUTSIDE, run_host_paths, .remedy = REPORT},
    {"path-escape", "a file of the host, by its path and by every way up", "proc-leaks",
     ATTACK_OUTSIDE, run_path_escape, .remedy = REPORT},
    {"host-users", "files of sandboxes, for users who have an account on this machine",
     "CVE-2021-41091", ATTACK_OUTSIDE, run_host_users, .remedy = DATA_DIR},
    {"file-links", "links that lead whoever reads and writes files from outside to the host",
     "file-verbs", ATTACK_OUTSIDE, run_file_links, .remedy = REPORT},
    {"file-special", "pipes, devices and endless files for whoever reads files from outside",
     "special-files", ATTACK_OUTSIDE, run_file_special, .remedy = REPORT},
    {"file-exchange", "a directory that is a link every other moment", "file-verbs", ATTACK_OUTSIDE,
     run_file_exchange, .remedy = REPORT},
    {"memory-limit", "more memory than it may have: heap, memory files, /dev/shm", "limits",
     ATTACK_BETWEEN, run_memory_limit, .remedy = CGROUP},
    {"process-limit", "more processes than it may have, while others must fork", "limits",
     ATTACK_BETWEEN, run_process_limit, .remedy = CGROUP},
    {"disk-limit", "more disk than it may have, also in deleted files", "limits", ATTACK_BETWEEN,
     run_disk_limit, .remedy = DISK},
    {"cpu-limit", "more CPU than it may have", "limits", ATTACK_BETWEEN, run_cpu_limit,
     .remedy = CGROUP},
    {"open-files", "more open files than it may have", "limits", ATTACK_BETWEEN, run_open_files,
     .remedy = REPORT},
    {"accounts", "have the kernel charge what it takes to root or to another sandbox",
     "kernel-counts", ATTACK_BETWEEN, run_accounts, .remedy = UPDATE},
    {"inotify", "use up the machine's inotify instances", "kernel-counts", ATTACK_BETWEEN,
     run_count, .subject = "inotify", .remedy = UPDATE},
    {"signals", "use up the machine's queued signals", "kernel-counts", ATTACK_BETWEEN, run_count,
     .subject = "signals", .remedy = UPDATE},
    {"message-queues", "use up the machine's message queues", "kernel-counts", ATTACK_BETWEEN,
     run_count, .subject = "queues", .remedy = UPDATE},
    {"aio", "use up the machine's asynchronous input and output", "kernel-counts", ATTACK_BETWEEN,
     run_share, .subject = "aio", .remedy = UPDATE},
    {"terminals", "use up the machine's terminals", "kernel-counts", ATTACK_BETWEEN, run_share,
     .subject = "terminals", .remedy = UPDATE},
    {"udp-memory", "memory beyond the limit, in UDP sockets", "limits", ATTACK_BETWEEN,
     run_socket_memory, .subject = "udp", .remedy = SOCKETS},
    {"tcp-memory", "memory beyond the limit, in TCP sockets", "limits", ATTACK_BETWEEN,
     run_socket_memory, .subject = "tcp", .remedy = SOCKETS},
    {"unix-memory", "memory beyond the limit, in unix sockets", "limits", ATTACK_BETWEEN,
     run_socket_memory, .subject = "unix", .remedy = SOCKETS},
    {0},
};

void attack_run(const struct attack *attack, struct range *range, struct attack_result *result)
{
    struct error err = {0};
    *result = (struct attack_result){0};
    if (range_is_stopped(range))
        attack_judge(result, ATTACK_UNTRIED, "stopped");
    else if (range_mend(range, &err) < 0)
        attack_judge(result, ATTACK_UNTRIED, "make sandboxes: %s", err.text);
    else
        attack->run(range, attack, result);
}
