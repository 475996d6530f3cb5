/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest may plant for the file server, and what must then not happen. */
#include "base/clock.h"
#include "base/mem.h"
#include "file_rig.h"
#include "init/walk.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/un.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

#define DEEP 10000
#define MANY 100000
#define SWAPS 100000

/* Every verb that could touch what `path` leads to fails. */
static void check_all_refused(struct rig *rig, const char *path)
{
    struct error err = {0};
    autogathered got = {0};
    char below[300];
    int conv = rig->conv;
    static const struct record records[] = {{"x", S_IFREG | 0600, "planted"}};
    (void)snprintf(below, sizeof below, "%s/x", path);

    CHECK(files_read(conv, path, 0, 99, NULL, gather_data, &got, NULL, &err) < 0);
    CHECK(files_write_buffer(conv, path, 0600, 0, "planted", 7, &err) < 0);
    CHECK(files_write_buffer(conv, below, 0600, FILES_PARENTS, "planted", 7, &err) < 0);
    CHECK(files_list(conv, path, true, 99, gather_item, &got, NULL, &err) < 0);
    CHECK(files_stat(conv, path, true, NULL, NULL, &err) < 0);
    CHECK(files_chmod(conv, path, 0777, &err) < 0);
    CHECK(files_chown(conv, path, 1, 1, FILES_FOLLOW, &err) < 0);
    CHECK(files_mkdir(conv, below, 0777, FILES_PARENTS, &err) < 0);
    CHECK(files_remove(conv, below, FILES_RECURSIVE, &err) < 0);
    CHECK(files_rename(conv, below, "stolen", 0, &err) < 0);
    CHECK(files_export(conv, path, 99, gather_item, gather_data, &got, NULL, &err) < 0);
    CHECK(IMPORT(*rig, path, FILES_PARENTS, records, &err) < 0);
    CHECK_INT(got.data, 0);
    CHECK_INT(got.items, 0);
}

TEST(links_to_the_servers_own_fds_lead_nowhere)
{
    RIG(rig);
    char link[64];
    autorig outside = rig_make();
    put_file(outside.fd, "canary", "alive", 0600);
    autofd file = openat(outside.fd, "canary", O_RDWR | O_CLOEXEC);
    static const char *const forms[] = {"/proc/self/fd/%d", "/proc/thread-self/fd/%d", "/dev/fd/%d",
                                        "/proc/self/task/../fd/%d"};
    for (size_t i = 0; i < ARRAY_SIZE(forms) * 2; i++) {
        int fd = i % 2 ? outside.fd : file;
        if (i / 2 == 2 && access("/dev/fd", F_OK) < 0)
            continue; // not every machine has it
        (void)snprintf(link, sizeof link, forms[i / 2], fd);
        check_all_refused(&rig, link);
        CHECK(symlinkat(link, rig.fd, "link") == 0);
        check_all_refused(&rig, "link");
        CHECK(unlinkat(rig.fd, "link", 0) == 0);
    }
    CHECK_STR(get_file(outside.fd, "canary"), "alive");
    CHECK_INT(mode_of(outside.fd, "canary"), S_IFREG | 0600);
    CHECK(!is_there(outside.fd, "x"));
}

TEST(kernel_files_are_refused_by_name_and_by_link)
{
    RIG(rig);
    struct error err = {0};
    autogathered got = {0};
    static const char *const paths[] = {
        "/proc/self/mem",
        "/proc/thread-self/mem",
        "/proc/self/environ",
        "/proc/self/exe",
        "/proc/self/root",
        "/proc/self/cwd",
        "/proc/self/maps",
        "/proc/kmsg",
        "/proc/self/fd",
        "/proc",
        "/sys",
        "/sys/kernel",
        "/proc/self/clear_refs",
    };
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        check_all_refused(&rig, paths[i]);
        CHECK(symlinkat(paths[i], rig.fd, "link") == 0);
        check_all_refused(&rig, "link");
        CHECK(unlinkat(rig.fd, "link", 0) == 0);
    }
    CHECK(files_read(rig.conv, "/proc/self/maps", 0, 9, NULL, gather_data, &got, NULL, &err) < 0);
    CHECK_STR(err.text, "'/proc/self/maps' is a kernel file; use a command in the sandbox for it");
    CHECK_INT(error_kind(&err), ERROR_DENIED);
    CHECK(files_stat(rig.conv, "/proc/self/fd/0", false, NULL, NULL, &err) < 0);
}

TEST(a_base_inside_proc_is_refused)
{
    autorig rig = rig_make();
    struct error err = {0};
    rig_start(&rig);
    rig_stop(&rig);
    char kept[sizeof rig.dir];
    memcpy(kept, rig.dir, sizeof kept);
    (void)snprintf(rig.dir, sizeof rig.dir, "/proc/self/fd");
    rig_start(&rig);
    CHECK(files_stat(rig.conv, ".", true, NULL, NULL, &err) < 0);
    CHECK_STR(err.text, "'/proc/self/fd' is a kernel file; use a command in the sandbox for it");
    rig_stop(&rig);
    memcpy(rig.dir, kept, sizeof kept);
}

TEST(a_listing_of_everything_stays_out_of_kernel_files)
{
    RIG(rig);
    struct error err = {0};
    autogathered got = {0};
    CHECK_OK(files_list(rig.conv, "/", false, 1000, gather_item, &got, NULL, &err), err);
    CHECK(strstr(got.names.data, "proc ") != NULL);
    // entering proc is what a recursive listing must not do; that of /dev has devpts below
    struct files_total total = {0};
    autogathered dev = {0};
    CHECK_OK(files_list(rig.conv, "/dev", true, 100000, gather_item, &dev, &total, &err), err);
    CHECK(strstr(dev.names.data, "pts ") != NULL);
    CHECK(strstr(dev.names.data, "pts/ptmx ") == NULL);
    CHECK(total.skipped >= 1);
}

TEST(fifos_sockets_and_devices_are_refused_without_being_opened)
{
    RIG(rig);
    struct error err = {0};
    autogathered got = {0};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char events[4096];
    CHECK(mkfifoat(rig.fd, "fifo", 0666) == 0);
    autofd sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/sock", rig.dir);
    CHECK(bind(sock, (struct sockaddr *)&address, sizeof address) == 0);
    autofd watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    CHECK(inotify_add_watch(watch, rig.dir, IN_OPEN) >= 0);

    static const char *const paths[] = {"fifo",      "sock",      "/dev/null",  "/dev/zero",
                                        "/dev/full", "/dev/ptmx", "/dev/random"};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        const char *path = paths[i];
        CHECK(files_read(rig.conv, path, 0, 99, NULL, gather_data, &got, NULL, &err) < 0);
        CHECK(error_is(&err, ERROR_INVALID) || error_is(&err, ERROR_DENIED) ||
              error_is(&err, ERROR_NOT_FOUND));
        CHECK(files_write_buffer(rig.conv, path, 0600, 0, "x", 1, &err) < 0);
        CHECK(files_export(rig.conv, path, 99, gather_item, gather_data, &got, NULL, &err) < 0);
    }
    CHECK(files_read(rig.conv, "fifo", 0, 99, NULL, gather_data, &got, NULL, &err) < 0);
    CHECK_STR(err.text, "'fifo' is a FIFO, not a file");
    CHECK(files_write_buffer(rig.conv, "/dev/null", 0600, 0, "x", 1, &err) < 0);
    CHECK_STR(err.text, "'/dev/null' is a device, not a file");
    CHECK_INT(got.data + got.items, 0);
    CHECK(read(watch, events, sizeof events) < 0 && errno == EAGAIN);
}

TEST(a_file_under_a_lease_does_not_hold_the_server_up)
{
    RIG(rig);
    struct error err = {0};
    autogathered got = {0};
    (void)signal(SIGIO, SIG_IGN);
    put_file(rig.fd, "leased", "x", 0600);
    autofd fd = openat(rig.fd, "leased", O_RDONLY | O_CLOEXEC);
    int leased = fcntl(fd, F_SETLEASE, F_WRLCK);
    if (leased < 0 && errno == EINVAL)
        SKIP("no leases on this file system");
    CHECK_INT(leased, 0);
    CHECK(files_read(rig.conv, "leased", 0, 99, NULL, gather_data, &got, NULL, &err) < 0);
    CHECK_INT(err.sys, EAGAIN);
    CHECK_OK(files_stat(rig.conv, ".", true, NULL, NULL, &err), err);
}

TEST(a_sparse_file_of_any_size_is_read_as_far_as_asked)
{
    autorig rig = rig_make_in("/dev/shm");
    struct error err = {0};
    struct files_item item = {0};
    struct files_total total = {0};
    autogathered got = {0};
    rig_start(&rig);
    CHECK(mkdirat(rig.fd, "d", 0700) == 0);
    put_file(rig.fd, "d/sparse", "", 0600);
    autofd fd = openat(rig.fd, "d/sparse", O_WRONLY | O_CLOEXEC);
    CHECK(ftruncate(fd, INT64_C(1) << 62) == 0);

    CHECK_OK(files_read(rig.conv, "d/sparse", 0, 1 << 20, &item, gather_data, &got, &total, &err),
             err);
    CHECK_INT(got.data, 1 << 20);
    CHECK_INT(item.size, INT64_C(1) << 62);
    CHECK(total.is_truncated);
    CHECK(files_export(rig.conv, "d", 1 << 20, gather_item, gather_data, &got, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
}

static void mount_file(const char *from, int dir, const char *name)
{
    autofree char *to = xasprintf("/proc/self/fd/%d/%s", dir, name);
    put_file(dir, name, "below", 0600);
    CHECK(mount(from, to, NULL, MS_BIND, NULL) == 0);
}

TEST(files_that_are_mounted_are_exported_unless_they_are_the_kernels)
{
    if (geteuid() != 0)
        SKIP("needs root");
    CHECK(unshare(CLONE_NEWNS) == 0);
    CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    RIG(rig);
    struct error err = {0};
    struct files_total total = {0};
    autogathered got = {0};
    CHECK(mkdirat(rig.fd, "t", 0700) == 0);
    autofd t = openat(rig.fd, "t", O_PATH | O_CLOEXEC);
    put_file(rig.fd, "given", "from elsewhere", 0600);
    autofree char *given = xasprintf("/proc/self/fd/%d/given", rig.fd);
    mount_file(given, t, "mounted");
    mount_file("/proc/version", t, "kernel");
    mount_file("/dev/null", t, "device");

    int result = files_export(rig.conv, "t", 1 << 20, gather_item, gather_data, &got, &total, &err);
    for (const char *const *name = (const char *const[]){"mounted", "kernel", "device", NULL};
         *name; name++) {
        autofree char *path = xasprintf("/proc/self/fd/%d/%s", t, *name);
        CHECK(umount2(path, MNT_DETACH) == 0);
    }
    CHECK_OK(result, err);
    CHECK_STR(got.names.data, "mounted 100600\n");
    CHECK_STR(got.bytes.data, "from elsewhere");
    CHECK_INT(total.skipped, 2);
}

static void make_deep(int dir, unsigned depth)
{
    autofd at = openat(dir, ".", O_PATH | O_CLOEXEC);
    for (unsigned i = 0; i < depth; i++) {
        CHECK(mkdirat(at, "d", 0700) == 0);
        put_file(at, "f", "x", 0600);
        int next = openat(at, "d", O_PATH | O_CLOEXEC);
        CHECK(next >= 0);
        (void)close(at);
        at = next;
    }
}

static int count_deepest(void *data, const struct files_item *item, struct error *err)
{
    size_t *deepest = data, depth = 1;
    for (const char *c = item->path; *c; c++)
        depth += *c == '/';
    if (depth > *deepest)
        *deepest = depth;
    return 0;
}

static int ignore_data(void *data, const void *bytes, size_t length, struct error *err)
{
    return 0;
}

/* With few file descriptors and a small stack. */
static void check_deep(const char *place, unsigned depth)
{
    autorig rig = rig_make_in(place);
    struct error err = {0};
    struct files_total total = {0};
    size_t deepest = 0, exported = 0;
    struct rlimit limit;
    CHECK(mkdirat(rig.fd, "top", 0700) == 0);
    autofd top = openat(rig.fd, "top", O_PATH | O_CLOEXEC);
    make_deep(top, depth);
    rig_start(&rig);
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    struct rlimit few = {64, limit.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);

    int listed = files_list(rig.conv, "top", true, 1000000, count_deepest, &deepest, &total, &err);
    int sent =
        files_export(rig.conv, "top", 1 << 20, count_deepest, ignore_data, &exported, NULL, &err);
    int removed = files_remove(rig.conv, "top", FILES_RECURSIVE, &err);
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    CHECK_INT(listed, 0);
    CHECK_INT(total.items, 2 * depth);
    CHECK_INT(total.skipped, 0);
    CHECK_INT(deepest, depth);
    CHECK_INT(sent, 0);
    CHECK_INT(exported, depth);
    CHECK_OK(removed, err);
    CHECK(!is_there(rig.fd, "top"));
}

TEST(trees_ten_thousand_deep_are_listed_exported_and_removed)
{
    check_deep("/tmp", DEEP / 10); // a disk makes directories slowly
    check_deep("/dev/shm", DEEP);
}

TEST(trees_too_deep_to_name_are_skipped_but_removed)
{
    RIG(rig);
    struct error err = {0};
    struct files_total total = {0};
    size_t deepest = 0;
    char name[201];
    memset(name, 'n', 200);
    name[200] = '\0';
    autofd at = openat(rig.fd, ".", O_PATH | O_CLOEXEC);
    for (int i = 0; i < 300; i++) {
        CHECK(mkdirat(at, name, 0700) == 0);
        int next = openat(at, name, O_PATH | O_CLOEXEC);
        (void)close(at);
        at = next;
    }
    CHECK_OK(files_list(rig.conv, ".", true, 1000, count_deepest, &deepest, &total, &err), err);
    CHECK_INT(total.skipped, 1);
    CHECK(deepest > 100 && deepest < 300);
    CHECK_OK(files_remove(rig.conv, name, FILES_RECURSIVE, &err), err);
    CHECK(!is_there(rig.fd, name));
}

static int count_items(void *data, const struct files_item *item, struct error *err)
{
    ++*(uint64_t *)data;
    return 0;
}

TEST(a_hundred_thousand_entries_are_listed_and_removed)
{
    autorig rig = rig_make_in("/dev/shm");
    struct error err = {0};
    struct files_total total = {0};
    uint64_t count = 0;
    char name[32];
    CHECK(mkdirat(rig.fd, "d", 0700) == 0);
    autofd dir = openat(rig.fd, "d", O_PATH | O_CLOEXEC);
    put_file(dir, "0", "", 0600);
    for (int i = 1; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "%d", i);
        CHECK(linkat(dir, "0", dir, name, 0) == 0);
    }
    rig_start(&rig);
    CHECK_OK(files_list(rig.conv, "d", false, UINT64_MAX, count_items, &count, &total, &err), err);
    CHECK_INT(count, MANY);
    CHECK_OK(files_remove(rig.conv, "d", FILES_RECURSIVE, &err), err);
    CHECK(!is_there(rig.fd, "d"));
}

TEST(a_walk_never_climbs_out_of_a_directory_that_was_moved)
{
    autorig rig = rig_make();
    struct walk walk;
    CHECK(mkdirat(rig.fd, "top", 0700) == 0 && mkdirat(rig.fd, "victim", 0700) == 0);
    autofd top = openat(rig.fd, "top", O_PATH | O_CLOEXEC);
    make_deep(top, 60);
    CHECK(walk_init(&walk, openat(top, ".", O_RDONLY | O_CLOEXEC), true) == 0);
    enum walk_step step;
    while ((step = walk_next(&walk)) == WALK_ENTRY)
        if (strcmp(walk_name(&walk), "d") == 0)
            CHECK(walk_enter(&walk) == 0);
    CHECK_INT(step, WALK_LEAVE);
    CHECK(renameat(top, "d/d/d", rig.fd, "victim/d") == 0);
    unsigned left = 0;
    while ((step = walk_next(&walk)) != WALK_FAILED && step != WALK_END)
        left += step == WALK_LEAVE;
    CHECK_INT(step, WALK_FAILED);
    CHECK_INT(errno, ESTALE);
    CHECK(left > 30 && left < 58);
    walk_clear(&walk);
}

/* Swaps the directory "x" and the link "l" until told to stop, at least SWAPS times. */
struct swapper {
    int dir;
    atomic_bool is_done;
    atomic_uint swaps;
};

static void *swap_for_ever(void *data)
{
    struct swapper *swapper = data;
    while (!swapper->is_done || swapper->swaps < SWAPS) {
        (void)syscall(SYS_renameat2, swapper->dir, "x", swapper->dir, "l", RENAME_EXCHANGE);
        swapper->swaps++;
    }
    return NULL;
}

/* One of each verb on names that lead through the swapped directory; errors are fine, effects
 * outside are not. */
static void use_all_verbs(struct rig *rig, struct gathered *got)
{
    struct error err = {0};
    int conv = rig->conv;
    static const struct record records[] = {
        {"x/sub/f", S_IFREG | 0600, "inside"},
        {"x/new", S_IFDIR | 0777, NULL},
        {"x/h", S_IFREG | 0600, "x/sub/f", .is_hard_link = true},
        {"x/k", S_IFLNK | 0777, "canary"},
    };
    (void)files_read(conv, "x/canary", 0, 99, NULL, gather_data, got, NULL, &err);
    (void)files_write_buffer(conv, "x/canary", 0600, 0, "inside", 6, &err);
    (void)files_write_buffer(conv, "x/../../../canary", 0600, 0, "inside", 6, &err);
    (void)files_list(conv, ".", true, 1000, gather_item, got, NULL, &err);
    (void)files_stat(conv, "x/canary", true, NULL, NULL, &err);
    (void)files_chmod(conv, "x/canary", 0777, &err);
    (void)files_mkdir(conv, "x/made/more", 0700, FILES_PARENTS, &err);
    (void)files_rename(conv, "x/made", "x/made2", 0, &err);
    (void)files_export(conv, ".", 1 << 20, gather_item, gather_data, got, NULL, &err);
    (void)IMPORT(*rig, ".", 0, records, &err);
    (void)files_remove(conv, "x/made2", FILES_RECURSIVE, &err);
    (void)files_remove(conv, "x/canary", 0, &err);
}

/* A busy machine may give all its time to the one who exchanges: then we go on, for a minute at most. */
static bool goes_on(const struct swapper *swapper, unsigned rounds, uint64_t began_ms)
{
    return swapper->swaps < SWAPS || (rounds <= 10 && clock_monotonic_ms() < began_ms + 60000);
}

TEST(exchanging_a_directory_and_a_link_reaches_nothing_outside_the_box)
{
    if (geteuid() != 0)
        SKIP("needs root for a root directory of its own");
    autorig rig = rig_make();
    autogathered got = {0};
    struct swapper swapper = {0};
    pthread_t thread;
    CHECK(mkdirat(rig.fd, "root", 0755) == 0 && mkdirat(rig.fd, "root/x", 0755) == 0);
    CHECK(symlinkat("../../../../../..", rig.fd, "root/l") == 0);
    put_file(rig.fd, "canary", "outside", 0600);
    put_file(rig.fd, "root/x/canary", "inside", 0600);
    swapper.dir = openat(rig.fd, "root", O_PATH | O_CLOEXEC);
    (void)snprintf(rig.root, sizeof rig.root, "%s/root", rig.dir);
    rig_start(&rig);

    CHECK(pthread_create(&thread, NULL, swap_for_ever, &swapper) == 0);
    uint64_t began_ms = clock_monotonic_ms();
    unsigned rounds = 0;
    while (goes_on(&swapper, rounds, began_ms)) {
        use_all_verbs(&rig, &got);
        if (got.bytes.length && memmem(got.bytes.data, got.bytes.length, "outside", 7))
            break;
        buffer_clear(&got.bytes);
        buffer_clear(&got.names);
        rounds++;
    }
    swapper.is_done = true;
    (void)pthread_join(thread, NULL);
    (void)close(swapper.dir);
    CHECK(!got.bytes.length || !memmem(got.bytes.data, got.bytes.length, "outside", 7));
    CHECK(rounds > 10);
    CHECK_STR(get_file(rig.fd, "canary"), "outside");
    CHECK_INT(mode_of(rig.fd, "canary"), S_IFREG | 0600);
    CHECK(!is_there(rig.fd, "made") && !is_there(rig.fd, "made2"));
    CHECK(!is_there(rig.fd, "sub") && !is_there(rig.fd, "h"));
}

TEST(exchanging_a_directory_and_a_link_never_leads_trees_astray)
{
    RIG(rig);
    struct error err = {0};
    struct swapper swapper = {.dir = rig.fd};
    pthread_t thread;
    static const struct record records[] = {{"x/sub/f", S_IFREG | 0600, "mine"}};
    CHECK(mkdirat(rig.fd, "victim", 0700) == 0);
    put_file(rig.fd, "victim/canary", "alive", 0600);
    CHECK(symlinkat("victim", rig.fd, "l") == 0);
    CHECK(mkdirat(rig.fd, "x", 0700) == 0);

    CHECK(pthread_create(&thread, NULL, swap_for_ever, &swapper) == 0);
    uint64_t began_ms = clock_monotonic_ms();
    unsigned landed = 0;
    while (goes_on(&swapper, landed, began_ms)) {
        // no record may land in the link's directory, no removal may empty it
        landed += IMPORT(rig, ".", 0, records, &err) == 0;
        (void)files_remove(rig.conv, "x", FILES_RECURSIVE, &err);
        (void)mkdirat(rig.fd, "x", 0700);
        (void)symlinkat("victim", rig.fd, "l");
    }
    swapper.is_done = true;
    (void)pthread_join(thread, NULL);
    CHECK(landed > 10);
    CHECK_STR(get_file(rig.fd, "victim/canary"), "alive");
    CHECK(!is_there(rig.fd, "victim/sub"));
}

TEST(records_that_lead_out_or_are_no_files_are_refused)
{
    RIG(rig);
    struct error err = {0};
    static const struct {
        struct record record[1];
        const char *text;
    } rows[] = {
        {{{"../out", S_IFREG | 0600, "x"}}, "'../out' would lead out of the directory"},
        {{{"/abs", S_IFREG | 0600, "x"}}, "'/abs' would lead out of the directory"},
        {{{"a/../../b", S_IFREG | 0600, "x"}}, "'a/../../b' would lead out of the directory"},
        {{{"a//b", S_IFREG | 0600, "x"}}, "'a//b' would lead out of the directory"},
        {{{".", S_IFDIR | 0700, NULL}}, "'.' would lead out of the directory"},
        {{{"", S_IFDIR | 0700, NULL}}, "'' would lead out of the directory"},
        {{{"a/", S_IFDIR | 0700, NULL}}, "'a/' would lead out of the directory"},
        {{{"zero", S_IFCHR | 0600, NULL}}, "'zero' is neither file, directory nor link"},
        {{{"disk", S_IFBLK | 0600, NULL}}, "'disk' is neither file, directory nor link"},
        {{{"fifo", S_IFIFO | 0600, NULL}}, "'fifo' is neither file, directory nor link"},
        {{{"sock", S_IFSOCK | 0600, NULL}}, "'sock' is neither file, directory nor link"},
        {{{"hard", S_IFREG, "../out", .is_hard_link = true}},
         "'hard' is a hard link to '../out', which is not in the archive"},
        {{{"hard", S_IFREG, "/etc/passwd", .is_hard_link = true}},
         "'hard' is a hard link to '/etc/passwd', which is not in the archive"},
        {{{"out/f", S_IFREG | 0600, "x"}},
         "make the directories of 'out/f': a link stands in the way below 'into'"},
        {{{"hard", S_IFREG, "out/canary", .is_hard_link = true}},
         "make hard link 'hard': a link stands in the way below 'into'"},
        {{{"hard", S_IFREG, "out", .is_hard_link = true}},
         "make hard link 'hard' below 'into': Operation not permitted"},
        {{{"out", S_IFDIR | 0700, NULL}},
         "make directory 'out': a link stands in the way below 'into'"},
    };
    CHECK(mkdirat(rig.fd, "into", 0700) == 0 && mkdirat(rig.fd, "outside", 0700) == 0);
    put_file(rig.fd, "outside/canary", "alive", 0600);
    CHECK(symlinkat("../outside", rig.fd, "into/out") == 0);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK(IMPORT(rig, "into", 0, rows[i].record, &err) < 0);
        CHECK_STR(err.text, rows[i].text);
    }
    CHECK(!is_there(rig.fd, "out") && !is_there(rig.fd, "outside/f"));
    CHECK(!is_there(rig.fd, "into/hard") && !is_there(rig.fd, "into/zero"));
}

TEST(a_link_in_the_stream_and_a_file_through_it_stay_inside)
{
    RIG(rig);
    struct error err = {0};
    static const struct record through[] = {
        {"l", S_IFLNK | 0777, "../outside"},
        {"l/f", S_IFREG | 0600, "x"},
    };
    static const struct record over[] = {
        {"l", S_IFLNK | 0777, "../outside/canary"},
        {"l", S_IFREG | 0600, "replaces the link"},
    };
    CHECK(mkdirat(rig.fd, "into", 0700) == 0 && mkdirat(rig.fd, "outside", 0700) == 0);
    put_file(rig.fd, "outside/canary", "alive", 0600);
    CHECK(IMPORT(rig, "into", 0, through, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_DENIED);
    CHECK(!is_there(rig.fd, "outside/f"));
    CHECK_OK(IMPORT(rig, "into", 0, over, &err), err);
    CHECK_STR(get_file(rig.fd, "outside/canary"), "alive");
    CHECK_STR(get_file(rig.fd, "into/l"), "replaces the link");
}

TEST(an_import_replaces_a_planted_fifo_and_never_opens_it)
{
    RIG(rig);
    struct error err = {0};
    static const struct record records[] = {{"f", S_IFREG | 0640, "x"}};
    CHECK(mkfifoat(rig.fd, "f", 0600) == 0);
    CHECK_OK(IMPORT(rig, ".", 0, records, &err), err);
    CHECK_INT(mode_of(rig.fd, "f"), S_IFREG | 0640);
}

TEST(an_import_never_writes_to_kernel_files)
{
    RIG(rig);
    struct error err = {0};
    static const struct record inside[] = {{"proc/sys/comm", S_IFREG | 0600, "x"}};
    static const struct record made[] = {{"proc/planted/x", S_IFREG | 0600, "x"}};
    static const struct record kept[] = {{"proc", S_IFDIR | 0700, NULL}};
    mode_t mode = mode_of(AT_FDCWD, "/proc");
    CHECK(IMPORT(rig, "/", 0, inside, &err) < 0);
    CHECK_STR(err.text, "make 'proc/sys/comm' below '/': Operation not permitted");
    CHECK(IMPORT(rig, "/", 0, made, &err) < 0);
    CHECK_OK(IMPORT(rig, "/", 0, kept, &err), err);
    CHECK_INT(mode_of(AT_FDCWD, "/proc"), mode);
}

/* Sends raw frames and gives back what the answer was, or 0 when the server hung up. */
static int answer_to(struct rig *rig, const void *bytes, size_t length)
{
    static uint8_t buffer[FILES_MAX_FRAME];
    struct files_frame frame;
    if (send(rig->conv, bytes, length, MSG_NOSIGNAL) < 0)
        return -1;
    return files_frame_receive(rig->conv, buffer, &frame, 0) == 1 ? frame.type : 0;
}

TEST(malformed_requests_end_the_conversation)
{
    struct {
        struct files_header header;
        struct files_request_wire fixed;
        char strings[8];
    } good =
        {
            .header = {.type = FILES_STAT, .length = sizeof good.fixed + 4},
            .fixed = {.path_size = 2, .second_size = 1, .third_size = 1},
            .strings = ".",
        },
      bad[7];
    size_t size = sizeof good.header + sizeof good.fixed + 4;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        bad[i] = good;
    bad[0].header.length++;
    bad[1].fixed.path_size = 9;
    bad[2].fixed.path_size = 0;
    bad[3].strings[1] = 'x';         // no NUL
    bad[4].header.type = FILES_DATA; // no request
    bad[5].fixed.second_size = 0;
    bad[6].fixed.third_size = 2;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        RIG(rig);
        CHECK_INT(answer_to(&rig, &good, size), FILES_ITEM);
        rig_stop(&rig);
        rig_start(&rig);
        CHECK_INT(answer_to(&rig, &bad[i], size), 0);
    }
    RIG(rig);
    CHECK_INT(answer_to(&rig, &good, 3), 0);
}

/* The answer to an import of one frame of records. */
static int answer_to_records(struct rig *rig, const void *records, size_t length)
{
    static uint8_t room[FILES_MAX_FRAME];
    struct files_request_wire request = {.path_size = 2, .second_size = 1, .third_size = 1};
    struct iovec ask[] = {
        {&request, sizeof request}, {(void *)".", 2}, {(void *)"", 1}, {(void *)"", 1}};
    struct iovec frame = {(void *)records, length};
    struct files_frame answer;

    CHECK(files_frame_send(rig->conv, FILES_IMPORT, 0, ask, 4) == 0);
    CHECK(files_frame_send(rig->conv, FILES_RECORDS, 0, &frame, 1) == 0);
    CHECK(files_frame_send(rig->conv, FILES_COMMIT, 0, NULL, 0) == 0);
    CHECK_INT(files_frame_receive(rig->conv, room, &answer, 0), 1);
    return answer.type;
}

TEST(records_in_one_frame_are_held_to_what_single_ones_are)
{
    RIG(rig);
    uint8_t room[FILES_MAX_DATA];
    struct files_batch batch = {.room = room};
    static const struct files_item bad[] = {
        {.path = "../out", .target = "", .mode = S_IFREG | 0600, .size = 1},
        {.path = "/out", .target = "", .mode = S_IFREG | 0600, .size = 1},
        {.path = "fifo", .target = "", .mode = S_IFIFO | 0600},
        {.path = "d", .target = "", .mode = S_IFDIR | 0700, .size = 1}, // bytes that nobody takes
        {.path = "short", .target = "", .mode = S_IFREG | 0600, .size = 3}, // one byte follows
        {.path = "huge", .target = "", .mode = S_IFREG | 0600, .size = UINT64_MAX},
    };
    const struct files_item good = {
        .path = "good", .target = "", .mode = S_IFREG | 0600, .size = 4};

    memcpy(files_batch_begin(&batch, &good), "text", 4);
    files_batch_keep(&batch, &good);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        uint8_t *end = files_batch_begin(&batch, &bad[i]);
        CHECK_INT(answer_to_records(&rig, room, (size_t)(end + (bad[i].size > 0) - room)),
                  FILES_ERROR);
        CHECK_STR(get_file(rig.fd, "good"), "text");
        CHECK(unlinkat(rig.fd, "good", 0) == 0);
        CHECK(faccessat(rig.fd, "short", F_OK, 0) < 0 && faccessat(rig.fd, "huge", F_OK, 0) < 0);
    }
    CHECK_INT(answer_to_records(&rig, room, batch.length - 1), FILES_ERROR);
    CHECK_INT(answer_to_records(&rig, room, batch.length), FILES_END);
}

TEST(data_beyond_or_short_of_its_record_is_refused)
{
    RIG(rig);
    struct error err = {0};
    uint8_t room[FILES_MAX_FRAME];
    struct files_frame frame;
    for (int more = 0; more < 2; more++) {
        struct files_item item = {.path = "f", .target = "", .mode = S_IFREG, .size = 2};
        struct files_request_wire request = {.path_size = 2, .second_size = 1, .third_size = 1};
        struct iovec ask[] = {
            {&request, sizeof request}, {(void *)".", 2}, {(void *)"", 1}, {(void *)"", 1}};
        struct iovec record = {room, files_item_write(&item, room)};
        struct iovec data = {(void *)"abc", more ? 3 : 1};
        CHECK(files_frame_send(rig.conv, FILES_IMPORT, 0, ask, 4) == 0);
        CHECK(files_frame_send(rig.conv, FILES_ITEM, 0, &record, 1) == 0);
        CHECK(files_frame_send(rig.conv, FILES_DATA, 0, &data, 1) == 0);
        CHECK(files_frame_send(rig.conv, FILES_COMMIT, 0, NULL, 0) == 0);
        CHECK_INT(files_frame_receive(rig.conv, room, &frame, 0), 1);
        CHECK_INT(frame.type, FILES_ERROR);
    }
    CHECK_OK(files_stat(rig.conv, ".", true, NULL, NULL, &err), err);
}

TEST(an_asker_that_does_not_know_of_batches_gets_none)
{
    RIG(rig);
    static uint8_t room[FILES_MAX_FRAME];
    put_file(rig.fd, "f", "text", 0600);
    for (unsigned is_known = 0; is_known < 2; is_known++) {
        struct files_request_wire request = {
            .path_size = 2, .second_size = 1, .third_size = 1, .maximum = 100};
        struct iovec ask[] = {
            {&request, sizeof request}, {(void *)".", 2}, {(void *)"", 1}, {(void *)"", 1}};
        struct files_frame frame;
        CHECK(files_frame_send(rig.conv, FILES_EXPORT, is_known ? FILES_TOGETHER : 0, ask, 4) == 0);
        CHECK_INT(files_frame_receive(rig.conv, room, &frame, 0), 1);
        CHECK_INT(frame.type, is_known ? FILES_RECORDS : FILES_ITEM);
        while (frame.type != FILES_END)
            CHECK_INT(files_frame_receive(rig.conv, room, &frame, 0), 1);
    }
}
