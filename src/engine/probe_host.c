/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of the machine's settings: id ranges, ceilings, and what building runtimes takes. */
#include "engine/probe_impl.h"

#include "base/fd.h"
#include "engine/slot.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#define FIRST_ID ((unsigned long long)SLOT_FIRST_ID)
#define IDS ((unsigned long long)SLOT_COUNT * SLOT_IDS)
#define MANY_BOXES 4096
#define GOOD_FILES 16384
#define GOOD_PIDS 65536
#define GOOD_WATCHERS 128

static bool overlaps(unsigned long long first, unsigned long long count)
{
    return first < FIRST_ID + IDS && FIRST_ID < first + count;
}

/* "name:…": 1 and the line's name in `who` when its ids (from field `first` on, `count` or a field
 * of that) overlap. */
static bool line_overlaps(char *line, bool is_range, char *who, size_t size)
{
    char *fields[4] = {0};
    for (size_t i = 0; i < ARRAY_SIZE(fields) && line; i++)
        fields[i] = strsep(&line, ":");
    const char *first = fields[is_range ? 1 : 2];
    if (!first || (is_range && !fields[2]))
        return false;
    if (!overlaps(strtoull(first, NULL, 10), is_range ? strtoull(fields[2], NULL, 10) : 1))
        return false;
    (void)snprintf(who, size, "%s", fields[0]);
    return true;
}

static bool file_overlaps(const char *path, bool is_range, char *who, size_t size)
{
    autofile file = fopen(path, "re");
    autofree char *line = NULL;
    size_t capacity = 0;

    while (file && getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if (line_overlaps(line, is_range, who, size))
            return true;
    }
    return false;
}

void probe_id_range(const struct probe *probe, const struct probe_context *context,
                    struct probe_result *result)
{
    static const struct {
        const char *path;
        bool is_range;
    } files[] = {{"/etc/passwd", false},
                 {"/etc/group", false},
                 {"/etc/subuid", true},
                 {"/etc/subgid", true}};
    char who[64];

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        if (!file_overlaps(files[i].path, files[i].is_range, who, sizeof who))
            continue;
        probe_say(
            result, PROBE_DEGRADED,
            "a sandbox and that account can have the same ids, so the kernel takes one's files "
            "and processes for "
            "the other's",
            "give the account ids outside of 1879048192 to 2147483647",
            "ids of '%s' in %s are burrow's too", who, files[i].path);
        return;
    }
    probe_fine(result, "%llu to %llu are free", FIRST_ID, FIRST_ID + IDS - 1);
}

/* A number under /proc; false, and the answer given, when it cannot be read. */
static bool read_setting(const char *path, uint64_t *out, struct probe_result *result)
{
    struct error err = {0};
    if (fd_read_knob_number(AT_FDCWD, path, out, &err) == 0)
        return true;
    probe_say(result, PROBE_UNCHECKED, "nobody knows yet", "mount /proc", "%s", err.text);
    return false;
}

void probe_namespace_limits(const struct probe *probe, const struct probe_context *context,
                            struct probe_result *result)
{
    static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
    char path[80];
    uint64_t least = UINT64_MAX;
    const char *which = "";

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        uint64_t number = 0;
        (void)snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kinds[i]);
        if (!read_setting(path, &number, result))
            return;
        if (number < least) {
            least = number;
            which = kinds[i];
        }
    }
    if (least == 0)
        probe_say(result, PROBE_MISSING, "sandboxes cannot be started",
                  "sysctl user.max_user_namespaces=100000, likewise the others of user.max_*",
                  "user.max_%s_namespaces is 0", which);
    else if (least < MANY_BOXES)
        probe_say(result, PROBE_DEGRADED, "only so many sandboxes at once",
                  "sysctl user.max_user_namespaces=100000, likewise the others of user.max_*",
                  "user.max_%s_namespaces is %llu", which, (unsigned long long)least);
    else
        probe_fine(result, "%llu of each kind", (unsigned long long)least);
}

void probe_pid_max(const struct probe *probe, const struct probe_context *context,
                   struct probe_result *result)
{
    uint64_t number = 0;
    if (!read_setting("/proc/sys/kernel/pid_max", &number, result))
        return;
    if (number < GOOD_PIDS)
        probe_say(result, PROBE_DEGRADED, "all sandboxes and the machine share that many processes",
                  "sysctl kernel.pid_max=4194304", "%llu", (unsigned long long)number);
    else
        probe_fine(result, "%llu", (unsigned long long)number);
}

void probe_inotify(const struct probe *probe, const struct probe_context *context,
                   struct probe_result *result)
{
    uint64_t instances = 0;
    uint64_t watches = 0;
    if (!read_setting("/proc/sys/fs/inotify/max_user_instances", &instances, result) ||
        !read_setting("/proc/sys/fs/inotify/max_user_watches", &watches, result))
        return;
    // counted by the slot's own ids: each box has as many
    if (instances < GOOD_WATCHERS)
        probe_say(result, PROBE_DEGRADED,
                  "a sandbox has that many; past it, tools that watch files fail",
                  "sysctl fs.inotify.max_user_instances=128", "%llu watchers of files",
                  (unsigned long long)instances);
    else
        probe_fine(result, "%llu watchers of %llu files", (unsigned long long)instances,
                   (unsigned long long)watches);
}

void probe_files(const struct probe *probe, const struct probe_context *context,
                 struct probe_result *result)
{
    struct rlimit limit = {0};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < GOOD_FILES)
        probe_say(result, PROBE_DEGRADED, "a server holds a few files for each sandbox",
                  "raise the hard limit where burrow is started (ulimit -Hn, LimitNOFILE=)",
                  "at most %llu", (unsigned long long)limit.rlim_max);
    else if (limit.rlim_max == RLIM_INFINITY)
        probe_fine(result, "no limit");
    else
        probe_fine(result, "%llu", (unsigned long long)limit.rlim_max);
}

void probe_mmdebstrap(const struct probe *probe, const struct probe_context *context,
                      struct probe_result *result)
{
    if (probe_has_program("mmdebstrap"))
        probe_fine(result, "installed");
    else
        probe_say(result, PROBE_DEGRADED, "only host:latest can be used; no runtime can be built",
                  "apt install mmdebstrap", "not installed");
}

static bool has_deb_line(const char *path)
{
    autofile file = fopen(path, "re");
    autofree char *line = NULL;
    size_t capacity = 0;

    while (file && getline(&line, &capacity, file) > 0) {
        // one-line style, and the field of deb822 style
        if (strncmp(line, "deb ", 4) == 0 || strncmp(line, "deb\t", 4) == 0 ||
            strncasecmp(line, "URIs:", 5) == 0)
            return true;
    }
    return false;
}

static unsigned count_sources(void)
{
    static const char dir_path[] = "/etc/apt/sources.list.d";
    autodir dir = opendir(dir_path);
    struct dirent *entry;
    unsigned count = has_deb_line("/etc/apt/sources.list");

    while (dir && (entry = readdir(dir))) {
        char path[600];
        (void)snprintf(path, sizeof path, "%s/%s", dir_path, entry->d_name);
        count += has_deb_line(path);
    }
    return count;
}

void probe_apt_sources(const struct probe *probe, const struct probe_context *context,
                       struct probe_result *result)
{
    unsigned count = count_sources();
    if (count)
        probe_fine(result, "%u file%s", count, count == 1 ? "" : "s");
    else
        probe_say(result, PROBE_DEGRADED, "building a runtime needs a mirror named by hand",
                  "name one in /etc/apt/sources.list", "none");
}

void probe_core_pattern(const struct probe *probe, const struct probe_context *context,
                        struct probe_result *result)
{
    char text[256];
    struct error err = {0};

    if (fd_read_knob(AT_FDCWD, "/proc/sys/kernel/core_pattern", text, sizeof text, &err) < 0)
        probe_say(result, PROBE_UNCHECKED, "nobody knows yet", "mount /proc", "%s", err.text);
    else if (text[0] == '@')
        probe_say(result, PROBE_DEGRADED,
                  "a crash in a sandbox may reach a handler of the machine's",
                  "sysctl kernel.core_pattern=core, or a pattern that begins with '|'",
                  "the machine sends crashes to the socket '%.120s'", text + 1);
    else if (text[0] == '|')
        probe_fine(result, "the machine pipes crashes to '%.120s'", text + 1);
    else
        probe_fine(result, "a file named '%.120s' where the program ran", text);
}

/* 1 means that processes which changed their ids can be traced by others of those ids: PID 1 of a box among them. */
void probe_suid_dumpable(const struct probe *probe, const struct probe_context *context,
                         struct probe_result *result)
{
    uint64_t value = 0;
    struct error err = {0};

    if (fd_read_knob_number(AT_FDCWD, "/proc/sys/fs/suid_dumpable", &value, &err) < 0)
        probe_say(result, PROBE_UNCHECKED, "nobody knows yet", "mount /proc", "%s", err.text);
    else if (value == 1)
        probe_say(result, PROBE_DEGRADED,
                  "one of two walls around PID 1 of a sandbox is open while a process is started",
                  "sysctl fs.suid_dumpable=0", "1, for debugging");
    else
        probe_fine(result, "%u", (unsigned)value);
}

/* Before 6.14 a program of unknown format makes the kernel start modprobe, as root and outside, with four digits to tell it which. */
void probe_modprobe(const struct probe *probe, const struct probe_context *context,
                    struct probe_result *result)
{
    struct utsname name = {0};
    struct error err = {0};
    unsigned major = 0, minor = 0;
    uint64_t is_disabled = 0;
    char path[256] = "";

    (void)uname(&name);
    (void)sscanf(name.release, "%u.%u", &major, &minor);
    (void)fd_read_knob_number(AT_FDCWD, "/proc/sys/kernel/modules_disabled", &is_disabled, &err);
    if (major > 6 || (major == 6 && minor >= 14))
        probe_fine(result, "never started for one");
    else if (fd_read_knob(AT_FDCWD, "/proc/sys/kernel/modprobe", path, sizeof path, &err) < 0 ||
             !path[0] || is_disabled)
        probe_fine(result, "no modules are loaded on demand");
    else
        probe_say(result, PROBE_DEGRADED,
                  "each such program costs the machine a start of modprobe that no limit counts",
                  "Linux 6.14, or sysctl kernel.modprobe= once all modules are loaded",
                  "started for each, as '%.120s'", path);
}
