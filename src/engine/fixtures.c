/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and opens the fixtures of a data directory; see fixtures.h. */
#include "engine/fixtures.h"

#include "base/fd.h"
#include "base/mem.h"
#include "engine/cgroup.h"
#include "engine/fs_context.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define FIXTURES "fixtures-2" // another number for another content
#define MOUNTS "mounts-1"
#define SHOWN_CPUS 1024
#define SHARED_VIEWS 256

enum { DIRECTORY, NODE, LINK, TEXT };

struct item {
    const char *path;
    int kind;
    mode_t mode;
    const char *text; // of LINK and TEXT
    unsigned major, minor;
};

static const struct item fixture_items[] = {
    {"dev", DIRECTORY, 0755},
    {"dev/null", NODE, 0666, NULL, 1, 3},
    {"dev/zero", NODE, 0666, NULL, 1, 5},
    {"dev/full", NODE, 0666, NULL, 1, 7},
    {"dev/random", NODE, 0666, NULL, 1, 8},
    {"dev/urandom", NODE, 0666, NULL, 1, 9},
    {"dev/tty", NODE, 0666, NULL, 5, 0},
    {"dev/ptmx", LINK, 0, "pts/ptmx"},
    {"dev/fd", LINK, 0, "/proc/self/fd"},
    {"dev/stdin", LINK, 0, "/proc/self/fd/0"},
    {"dev/stdout", LINK, 0, "/proc/self/fd/1"},
    {"dev/stderr", LINK, 0, "/proc/self/fd/2"},
    {"dev/pts", DIRECTORY, 0755},
    {"dev/shm", DIRECTORY, 01777},
    {"dev/.empty", DIRECTORY, 0555},
    {"views", DIRECTORY, 0755},
};

static const struct item view_items[] = {
    {"root", DIRECTORY, 0755},      {"root/proc", DIRECTORY, 0555},
    {"root/dev", DIRECTORY, 0755},  {"root/run", DIRECTORY, 0755},
    {"root/tmp", DIRECTORY, 01777}, {"root/workspace", DIRECTORY, 0777},
    {"root/sys", DIRECTORY, 0755},
};

static const struct item sys_items[] = {
    {"block", DIRECTORY, 0755},
    {"class", DIRECTORY, 0755},
    {"class/net", DIRECTORY, 0755},
    {"devices", DIRECTORY, 0755},
    {"devices/system", DIRECTORY, 0755},
    {"devices/system/cpu", DIRECTORY, 0755},
    {"fs", DIRECTORY, 0755},
    {"fs/cgroup", DIRECTORY, 0755},
    {"fs/cgroup/memory", DIRECTORY, 0755},
    {"kernel", DIRECTORY, 0755},
    {"kernel/mm", DIRECTORY, 0755},
};

static int make_item(int dir_fd, const struct item *item, struct error *err)
{
    int result = 0;
    switch (item->kind) {
    case DIRECTORY:
        result = mkdirat(dir_fd, item->path, 0700);
        break;
    case NODE:
        result = mknodat(dir_fd, item->path, S_IFCHR | 0600, makedev(item->major, item->minor));
        break;
    case LINK:
        result = symlinkat(item->text, dir_fd, item->path);
        break;
    case TEXT: {
        autofd fd = openat(dir_fd, item->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        result = fd < 0 ? -1 : fd_write_all(fd, item->text, strlen(item->text));
        break;
    }
    }
    if (result == 0 && item->kind != LINK)
        result = fchmodat(dir_fd, item->path, item->mode, 0); // mkdir's own mode would be masked
    return result < 0 ? error_sys(err, "make '%s'", item->path) : 0;
}

/* Makes a directory whole or not at all: under another name, then renamed. Losing a race to another maker is fine. */
static int publish(int dir_fd, const char *name,
                   int (*fill)(int fd, const void *data, struct error *err), const void *data,
                   struct error *err)
{
    char temporary[128];
    (void)snprintf(temporary, sizeof temporary, ".%s.%ld", name, syscall(SYS_gettid));
    if (fd_remove_tree(dir_fd, temporary, err) < 0)
        return -1;
    if (mkdirat(dir_fd, temporary, 0755) < 0)
        return error_sys(err, "make '%s'", temporary);
    autofd fd = openat(dir_fd, temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 ? error_sys(err, "open '%s'", temporary) : fill(fd, data, err);
    if (result == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0 && errno != ENOTEMPTY &&
        errno != EEXIST)
        result = error_sys(err, "name '%s'", name);
    struct error ignored = {0};
    (void)fd_remove_tree(dir_fd, temporary, &ignored); // ours, when another was faster or it failed
    return result;
}

static int make_items(int fd, const struct item *items, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (make_item(fd, &items[i], err) < 0)
            return -1;
    }
    return 0;
}

static int fill_fixtures(int fd, const void *unused, struct error *err)
{
    (void)unused;
    return make_items(fd, fixture_items, ARRAY_SIZE(fixture_items), err);
}

static int fill_mounts(int fd, const void *unused, struct error *err)
{
    static const struct item places[] = {{"root", DIRECTORY, 0755}, {"up", DIRECTORY, 0755}};
    (void)unused;
    for (unsigned i = 0; i < 128; i++) {
        char path[24];
        (void)snprintf(path, sizeof path, "l%u", i);
        struct item place = {path, DIRECTORY, 0755};
        if (make_item(fd, &place, err) < 0)
            return -1;
    }
    return make_items(fd, places, ARRAY_SIZE(places), err);
}

static int open_dir(int dir_fd, const char *name, int *out, struct error *err)
{
    *out = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *out < 0 ? error_sys(err, "open '%s'", name) : 0;
}

/* Opens a directory of ours, making it the first time. */
static int open_made(int dir_fd, const char *name,
                     int (*fill)(int fd, const void *data, struct error *err), const void *data,
                     int *out, struct error *err)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        if (publish(dir_fd, name, fill, data, err) < 0)
            return -1;
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0)
        return error_sys(err, "open '%s'", name);
    *out = fd;
    return 0;
}

int fixtures_open(int data_fd, int own_fd, struct fixtures **out, struct error *err)
{
    autoptr(fixtures) fixtures = xnew(struct fixtures);
    autofd dir = -1;

    *fixtures = (struct fixtures){-1, -1, -1, -1};
    if (open_made(own_fd < 0 ? data_fd : own_fd, FIXTURES, fill_fixtures, NULL, &dir, err) < 0 ||
        open_made(data_fd, MOUNTS, fill_mounts, NULL, &fixtures->mounts_fd, err) < 0 ||
        open_dir(dir, "dev", &fixtures->dev_fd, err) < 0 ||
        open_dir(dir, "views", &fixtures->views_fd, err) < 0)
        return -1;
    fixtures->dir_fd = take_fd(dir);
    *out = take(fixtures);
    return 0;
}

void fixtures_free(struct fixtures *fixtures)
{
    if (!fixtures)
        return;
    closep(&fixtures->dir_fd);
    closep(&fixtures->dev_fd);
    closep(&fixtures->mounts_fd);
    closep(&fixtures->views_fd);
    free(fixtures);
}

struct view {
    struct limits limits;
    unsigned n_cpus;
};

static int make_text(int fd, const char *path, const char *text, struct error *err)
{
    struct item item = {path, TEXT, 0444, text};
    return make_item(fd, &item, err);
}

static int fill_cpus(int sys_fd, unsigned n_cpus, struct error *err)
{
    char range[32];
    (void)snprintf(range, sizeof range, n_cpus > 1 ? "0-%u\n" : "0\n", n_cpus - 1);
    static const char *const names[] = {"online", "possible", "present"};
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "devices/system/cpu/%s", names[i]);
        if (make_text(sys_fd, path, range, err) < 0)
            return -1;
    }
    for (unsigned i = 0; i < n_cpus && i < SHOWN_CPUS; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "devices/system/cpu/cpu%u", i);
        struct item item = {path, DIRECTORY, 0555};
        if (make_item(sys_fd, &item, err) < 0)
            return -1;
    }
    return 0;
}

/* Where runtimes (JVM, Node, .NET, Go) look for their limits, in the words of cgroups version 2, memory in those of version 1 too. */
static int fill_cgroup(int sys_fd, const struct limits *limits, struct error *err)
{
    struct cpu_share share = cpu_share_of(limits->cpu_millicores);
    char memory[32] = "max\n";
    char cpu[64];
    char processes[32] = "max\n";

    if (limits->memory_bytes)
        (void)snprintf(memory, sizeof memory, "%" PRId64 "\n", limits->memory_bytes);
    if (limits->max_processes)
        (void)snprintf(processes, sizeof processes, "%" PRId64 "\n", limits->max_processes);
    if (share.quota_usec)
        (void)snprintf(cpu, sizeof cpu, "%" PRIu64 " %" PRIu64 "\n", share.quota_usec,
                       share.period_usec);
    else
        (void)snprintf(cpu, sizeof cpu, "max 100000\n");
    if (make_text(sys_fd, "fs/cgroup/memory.max", memory, err) < 0 ||
        make_text(sys_fd, "fs/cgroup/cpu.max", cpu, err) < 0 ||
        make_text(sys_fd, "fs/cgroup/pids.max", processes, err) < 0)
        return -1;
    return limits->memory_bytes
               ? make_text(sys_fd, "fs/cgroup/memory/memory.limit_in_bytes", memory, err)
               : 0;
}

static int make_meminfo(int fd, const char *name, uint64_t bytes, struct error *err)
{
    char text[512];
    uint64_t kib = bytes / 1024;

    (void)snprintf(text, sizeof text,
                   "MemTotal:       %8" PRIu64 " kB\nMemFree:        %8" PRIu64 " kB\n"
                   "MemAvailable:   %8" PRIu64 " kB\nBuffers:               0 kB\n"
                   "Cached:                0 kB\nSwapCached:            0 kB\n"
                   "SwapTotal:             0 kB\nSwapFree:              0 kB\n"
                   "Shmem:                 0 kB\nSReclaimable:          0 kB\n",
                   kib, kib, kib);
    return make_text(fd, name, text, err);
}

static int fill_sys(int sys_fd, const struct view *view, struct error *err)
{
    if (make_items(sys_fd, sys_items, ARRAY_SIZE(sys_items), err) < 0 ||
        fill_cpus(sys_fd, view->n_cpus, err) < 0)
        return -1;
    return fill_cgroup(sys_fd, &view->limits, err);
}

static int fill_view(int fd, const void *data, struct error *err)
{
    const struct view *view = data;
    autofd sys_fd = -1;

    if (make_items(fd, view_items, ARRAY_SIZE(view_items), err) < 0 ||
        open_dir(fd, "root/sys", &sys_fd, err) < 0 || fill_sys(sys_fd, view, err) < 0)
        return -1;
    return view->limits.memory_bytes
               ? make_meminfo(fd, "meminfo", (uint64_t)view->limits.memory_bytes, err)
               : 0;
}

unsigned fixtures_cpus(const struct limits *limits, unsigned have)
{
    int64_t wanted = (limits->cpu_millicores + 999) / 1000;
    return wanted > 0 && wanted < have ? (unsigned)wanted : have;
}

static unsigned count_views(struct fixtures *fixtures)
{
    autofd fd = openat(fixtures->views_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    unsigned count = 0;

    autodir dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return 0;
    (void)take_fd(fd); // the directory's from here on
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    return count;
}

int fixtures_shared_view(struct fixtures *fixtures, const struct limits *limits, unsigned have_cpus,
                         int *out_fd, struct error *err)
{
    struct view view = {*limits, fixtures_cpus(limits, have_cpus)};
    char name[96];

    (void)snprintf(name, sizeof name, "m%" PRId64 "-c%u-u%" PRId64 "-p%" PRId64,
                   limits->memory_bytes, view.n_cpus, limits->cpu_millicores,
                   limits->max_processes);
    if (faccessat(fixtures->views_fd, name, F_OK, 0) < 0 && count_views(fixtures) >= SHARED_VIEWS)
        return error_set(err, ERROR_LIMIT, "there are %d views already", SHARED_VIEWS);
    return open_made(fixtures->views_fd, name, fill_view, &view, out_fd, err);
}

int fixtures_view(struct fixtures *fixtures, const struct limits *limits, unsigned have_cpus,
                  unsigned slot, int *out_fd, struct error *err)
{
    struct view view = {*limits, fixtures_cpus(limits, have_cpus)};
    char name[16];

    if (fixtures_shared_view(fixtures, limits, have_cpus, out_fd, err) == 0)
        return 0;
    if (!error_is(err, ERROR_LIMIT))
        return -1;
    (void)snprintf(name, sizeof name, "s%u", slot);
    if (fd_remove_tree(fixtures->views_fd, name, err) < 0)
        return -1;
    return open_made(fixtures->views_fd, name, fill_view, &view, out_fd, err);
}

static int fill_resolver(int fd, const void *text, struct error *err)
{
    const struct item folder = {"etc", DIRECTORY, 0755};
    const struct item file = {"etc/resolv.conf", TEXT, 0644, text};

    return make_item(fd, &folder, err) < 0 ? -1 : make_item(fd, &file, err);
}

int fixtures_resolver(struct fixtures *fixtures, uint32_t address, int *out_fd, struct error *err)
{
    char name[32];
    char text[64];

    (void)snprintf(name, sizeof name, "resolver-%08" PRIx32, address);
    (void)snprintf(text, sizeof text, "nameserver %u.%u.%u.%u\n", address >> 24,
                   address >> 16 & 255, address >> 8 & 255, address & 255);
    return open_made(fixtures->dir_fd, name, fill_resolver, text, out_fd, err);
}

int fixtures_make_sys(const struct limits *limits, unsigned have_cpus, int *out_fd,
                      struct error *err)
{
    struct view view = {*limits, fixtures_cpus(limits, have_cpus)};
    char inodes[16];
    const struct fs_option options[] = {
        {"mode", "0755"}, {"size", "256k"}, {"nr_inodes", inodes}, {NULL, NULL}};
    autofd dir = -1;

    (void)snprintf(inodes, sizeof inodes, "%u", 64 + view.n_cpus);
    if (fs_context_mount("tmpfs", options, &dir, err) < 0 || fill_sys(dir, &view, err) < 0)
        return -1;
    if (limits->memory_bytes &&
        make_meminfo(dir, ".meminfo", (uint64_t)limits->memory_bytes, err) < 0)
        return -1;
    *out_fd = take_fd(dir);
    return 0;
}

static int make_dev_items(int dir_fd, uint32_t owner, struct error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(fixture_items); i++) {
        struct item item = fixture_items[i];
        if (strncmp(item.path, "dev/", 4) != 0)
            continue;
        item.path += 4;
        if (make_item(dir_fd, &item, err) < 0)
            return -1;
        if (fchownat(dir_fd, item.path, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
            return error_sys(err, "give '/dev/%s' to the sandbox", item.path);
    }
    return 0;
}

int fixtures_make_dev(int view_fd, uint32_t owner, int *out_fd, struct error *err)
{
    char id[16];
    char text[512];
    struct error ignored = {0};
    const struct fs_option options[] = {{"mode", "0755"}, {"uid", id},         {"gid", id},
                                        {"size", "64k"},  {"nr_inodes", "64"}, {NULL, NULL}};
    autofd dir = -1;

    (void)snprintf(id, sizeof id, "%" PRIu32, owner);
    if (fs_context_mount("tmpfs", options, &dir, err) < 0 || make_dev_items(dir, owner, err) < 0)
        return -1;
    // Without a limit there is none.
    if (fd_read_knob(view_fd, "meminfo", text, sizeof text - 1, &ignored) == 0 &&
        make_text(dir, ".meminfo", strcat(text, "\n"), err) < 0)
        return -1;
    *out_fd = take_fd(dir);
    return 0;
}
