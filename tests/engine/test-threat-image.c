/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks by the files of an image: links, devices, privileges and attributes where a launch or PID
 * 1 will look. */
#include "threat_fixture.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

static const char *const mount_points[] = {"dev", "proc", "sys", "tmp", "run", "workspace"};

/* The box starts and is whole, or it does not start; the host is as before. */
static void check_box(const char *layer, const char *canary, const char *user)
{
    uint64_t before = inventory(canary);
    struct box_spec spec = spec_with(layer);
    struct box *box = launch(&spec);
    ATTACK(box, "places");
    ATTACK_AS(box, user, "hello");
    struct outcome outcome =
        RUN(box, "/attacker", "probe", canary, "/dev/canary", "/proc/canary", "/sys/canary",
            "/tmp/canary", "/run/canary", "/workspace/canary", "/etc/canary");
    check_no_canary(&outcome);
    static const char *const argv[] = {"/attacker", "hello", NULL};
    struct threat_command command = {.directory = "/", .argv = argv, .output = OUTPUT_TTY};
    outcome = run_command(box, &command);
    CHECK_STR(outcome.output, "hello\r\n");
    end(box);
    CHECK(inventory(canary) == before);
}

static void relative(const char *path, char *out, size_t size)
{
    (void)snprintf(out, size, "../../../../../../../../../../../../../../../..%s", path);
}

/* CVE-2026-41579, CVE-2026-47766, CVE-2019-19921, CVE-2023-27561, CVE-2023-28642, CVE-2019-16884.
 */
BOX_TEST(mount_points_that_are_links_lead_nowhere)
{
    for (unsigned is_relative = 0; is_relative < 2; is_relative++) {
        const char *canary = canary_dir();
        char target[512];
        int fd = -1;
        const char *layer = hostile_layer(&fd);
        if (is_relative)
            relative(canary, target, sizeof target);
        else
            (void)snprintf(target, sizeof target, "%s", canary);
        for (size_t i = 0; i < ARRAY_SIZE(mount_points); i++)
            CHECK(symlinkat(target, fd, mount_points[i]) == 0);
        closep(&fd);
        check_box(layer, canary, "1000");
    }
}

BOX_TEST(mount_points_that_are_no_directories_are_replaced)
{
    const char *canary = canary_dir();
    for (unsigned kind = 0; kind < 4; kind++) {
        int fd = -1;
        const char *layer = hostile_layer(&fd);
        for (size_t i = 0; i < ARRAY_SIZE(mount_points); i++) {
            static const mode_t kinds[] = {S_IFREG | 0666, S_IFIFO | 0666, S_IFSOCK | 0666,
                                           S_IFCHR | 0666};
            // The last is a whiteout: the image says there is nothing.
            CHECK(mknodat(fd, mount_points[i], kinds[kind], makedev(0, 0)) == 0);
        }
        closep(&fd);
        check_box(layer, canary, "1000");
    }
}

/* CVE-2025-31133 (/dev/null), CVE-2025-52565 (/dev/pts, console): inside /dev the image has no say.
 */
BOX_TEST(links_below_dev_are_never_followed)
{
    static const char *const names[] = {"null",  "zero",   "full",   "random", "urandom", "tty",
                                        "ptmx",  "pts",    "shm",    "fd",     "console", ".empty",
                                        "stdin", "stdout", "stderr", "mqueue"};
    const char *canary = canary_dir();
    char target[512];
    int fd = -1;
    const char *layer = hostile_layer(&fd);
    CHECK(mkdirat(fd, "dev", 0755) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "dev/%s", names[i]);
        (void)snprintf(target, sizeof target, "%s/%s", canary, i % 2 ? "pts" : "canary");
        CHECK(symlinkat(i == 0 ? "/proc/sys/kernel/core_pattern" : target, fd, name) == 0);
    }
    closep(&fd);
    char before[256], after[256];
    struct error err = {0};
    CHECK_OK(fd_read_knob(AT_FDCWD, "/proc/sys/kernel/core_pattern", before, sizeof before, &err),
             err);
    check_box(layer, canary, "1000");
    CHECK_OK(fd_read_knob(AT_FDCWD, "/proc/sys/kernel/core_pattern", after, sizeof after, &err),
             err);
    CHECK_STR(after, before);
}

/* CVE-2025-52881: a /proc of the image's own, with the files a runtime writes. */
BOX_TEST(a_proc_in_the_image_is_covered_by_the_real_one)
{
    static const char *const names[] = {"meminfo", "cmdline", "sys", "keys", "self", "fs"};
    const char *canary = canary_dir();
    char target[512];
    int fd = -1;
    const char *layer = hostile_layer(&fd);
    (void)snprintf(target, sizeof target, "%s/canary", canary);
    CHECK(mkdirat(fd, "proc", 0755) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "proc/%s", names[i]);
        CHECK(symlinkat(target, fd, name) == 0);
    }
    closep(&fd);
    check_box(layer, canary, "1000");
    struct box_spec spec = spec_with(layer);
    spec.limits.memory_bytes = 64 << 20;
    struct box *box = launch(&spec);
    struct outcome outcome = RUN(box, "/attacker", "cat", "/proc/meminfo", "/proc/cmdline");
    CHECK(strstr(outcome.output, "MemTotal:          65536 kB"));
    check_no_canary(&outcome);
}

/* CVE-2025-24965, CVE-2022-21682: files a helper might write are links. */
BOX_TEST(links_at_every_helper_path_stay_unfollowed)
{
    static const char *const names[] = {"etc", "root", "home", "var",         "usr", "bin",
                                        "lib", "opt",  "mnt",  "burrow-init", "init"};
    const char *canary = canary_dir();
    int fd = -1;
    const char *layer = hostile_layer(&fd);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        CHECK(symlinkat(canary, fd, names[i]) == 0);
    closep(&fd);
    check_box(layer, canary, "1000");

    // A bind whose place is a link is refused, and nothing is left of the launch.
    uint64_t before = inventory(canary);
    struct box_bind binds[] = {{.host = attacker_layer(), .box = "/opt"}};
    struct box_spec spec = spec_with(layer);
    struct box *box = NULL;
    struct error err = {0};
    spec.binds = binds;
    spec.n_binds = 1;
    CHECK(box_launch(engine, &spec, &box, &err) < 0);
    CHECK(inventory(canary) == before);
}

/* CVE-2024-42472, CVE-2026-34078: a scratch that is kept comes back as the guest left it. */
BOX_TEST(links_planted_in_a_kept_scratch_are_not_followed_at_the_next_launch)
{
    const char *canary = canary_dir();
    uint64_t before = inventory(canary);
    struct box_spec spec = spec_with(NULL);
    struct error err = {0};
    struct box *box = NULL;

    spec.scratch = "kept-by-a-test";
    box = launch(&spec);
    ATTACK(box, "hide-places");
    ATTACK(box, "plant-links", "/opt", canary, "/run", canary, "/workspace", canary, "/root",
           canary, "/mnt", "/proc/1/root");
    end(box);

    box = launch(&spec);
    struct outcome outcome = RUN(box, "/attacker", "probe", "/opt/canary", "/run/canary",
                                 "/workspace/canary", "/root/canary");
    check_no_canary(&outcome);
    static const char *const argv[] = {"/attacker", "hello", NULL};
    struct threat_command command = {.directory = "/mnt", .argv = argv};
    outcome = run_command(box, &command);
    CHECK_INT(outcome.exit.cause, CAUSE_NOT_RUN);
    end(box);

    struct box_bind binds[] = {{.host = attacker_layer(), .box = "/opt"}};
    spec.binds = binds;
    spec.n_binds = 1;
    CHECK(box_launch(engine, &spec, &box, &err) < 0);
    CHECK(inventory(canary) == before);
    CHECK_OK(volume_scratch_remove(engine_volume(engine), spec.scratch, &err), err);
}

/* CVE-2021-30465: the place of a bind is a directory, or a link, when it is looked at and when it
 * is used. */
BOX_TEST(a_mount_point_exchanged_with_a_link_during_launches_leads_nowhere)
{
    const char *canary = canary_dir();
    uint64_t before = inventory(canary);
    int fd = -1;
    const char *layer = hostile_layer(&fd);
    unsigned worked = 0;
    CHECK(mkdirat(fd, "opt", 0755) == 0 && symlinkat(canary, fd, "link") == 0);
    CHECK(mkdirat(fd, "dev", 0755) == 0 && symlinkat(canary, fd, "dev-link") == 0);
    pid_t racer = fork();
    if (racer == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            (void)syscall(SYS_renameat2, fd, "opt", fd, "link", RENAME_EXCHANGE);
            (void)syscall(SYS_renameat2, fd, "dev", fd, "dev-link", RENAME_EXCHANGE);
        }
    }
    for (int i = 0; i < (is_in_vm() ? 20 : 300); i++) {
        struct box_bind bind = {.host = attacker_layer(), .box = "/opt"};
        struct box_spec spec = spec_with(layer);
        struct box *box = NULL;
        struct error err = {0};
        spec.binds = &bind;
        spec.n_binds = 1;
        spec.is_one_shot = true;
        if (box_launch(engine, &spec, &box, &err) < 0)
            continue;
        worked++;
        end(own(box));
    }
    (void)kill(racer, SIGKILL);
    (void)waitpid(racer, NULL, 0);
    closep(&fd);
    CHECK(worked > 0);
    CHECK(inventory(canary) == before);
}

BOX_TEST(devices_in_an_image_do_not_open)
{
    int fd = -1;
    const char *layer = hostile_layer(&fd);
    CHECK(mknodat(fd, "disk", S_IFBLK | 0666, makedev(254, 0)) == 0);
    CHECK(mknodat(fd, "mem", S_IFCHR | 0666, makedev(1, 1)) == 0);
    CHECK(mknodat(fd, "kmsg", S_IFCHR | 0666, makedev(1, 11)) == 0);
    CHECK(mknodat(fd, "null", S_IFCHR | 0666, makedev(1, 3)) == 0);
    CHECK(mkdirat(fd, "dev", 0755) == 0);
    CHECK(mknodat(fd, "dev/mem", S_IFCHR | 0666, makedev(1, 1)) == 0);
    CHECK(mknodat(fd, "dev/kvm", S_IFCHR | 0666, makedev(10, 232)) == 0);
    closep(&fd);
    struct box_spec spec = spec_with(layer);
    struct box *box = launch(&spec);
    ATTACK(box, "planted-devices", "/disk", "/mem", "/kmsg", "/null");
    struct outcome outcome = RUN(box, "/attacker", "probe", "/dev/mem", "/dev/kvm");
    CHECK_STR(outcome.output,
              "/dev/mem: No such file or directory\n/dev/kvm: No such file or directory\n");
}

/* Privileges of files: set-user-id, set-group-id, capabilities. */
BOX_TEST(privileged_programs_of_an_image_gain_nothing)
{
    struct {
        uint32_t magic, permitted, inheritable, permitted_high, inheritable_high;
    } caps = {0x02000001, 0xffffffff, 0, 0x1ff, 0};
    int fd = -1;
    const char *layer = hostile_layer(&fd);
    put_attacker(fd, "setuid", 04755);
    put_attacker(fd, "setgid", 02755);
    put_attacker(fd, "caps", 0755);
    autofd file = openat(fd, "caps", O_RDONLY | O_CLOEXEC);
    CHECK(fsetxattr(file, "security.capability", &caps, sizeof caps, 0) == 0);
    closep(&fd);
    struct box_spec spec = spec_with(layer);
    struct box *box = launch(&spec);
    struct outcome outcome = RUN_AS(box, "guest", "/setuid", "who");
    CHECK_STR(outcome.output, "1000 1000 1000 1000 1000 1000 +2000\n");
    outcome = RUN_AS(box, "guest", "/setgid", "who");
    CHECK_STR(outcome.output, "1000 1000 1000 1000 1000 1000 +2000\n");
    outcome = RUN_AS(box, "guest", "/caps", "cat", "/proc/self/status");
    CHECK(strstr(outcome.output, "\nCapPrm:\t0000000000000000\n"));
    CHECK(strstr(outcome.output, "\nCapEff:\t0000000000000000\n"));
}

static void set_attribute(int dir_fd, const char *name, const char *attribute, const char *value)
{
    autofd fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && fsetxattr(fd, attribute, value, strlen(value), 0) == 0);
}

/* Overlay's own marks in a layer: they may hide files of the image and must not show any of the
 * host. */
BOX_TEST(overlay_marks_in_a_layer_lead_nowhere_outside)
{
    const char *canary = canary_dir();
    uint64_t before = inventory(canary);
    const char *const targets[] = {
        canary,     "../../../../../../..", "/../../../..", "..", "/..", "/.", "/etc", "/", "//",
        "a/../../b"};
    int fd = -1;
    const char *layer = hostile_layer(&fd);
    char name[32], up[512];
    relative(canary, up, sizeof up);
    for (size_t i = 0; i < ARRAY_SIZE(targets) + 1; i++) {
        (void)snprintf(name, sizeof name, "redirect%zu", i);
        CHECK(mkdirat(fd, name, 0755) == 0);
        set_attribute(fd, name, "trusted.overlay.redirect",
                      i < ARRAY_SIZE(targets) ? targets[i] : up);
        (void)snprintf(name, sizeof name, "metacopy%zu", i);
        put_file(fd, name, "", 0644);
        set_attribute(fd, name, "trusted.overlay.metacopy", "");
        set_attribute(fd, name, "trusted.overlay.redirect",
                      i < ARRAY_SIZE(targets) ? targets[i] : up);
    }
    CHECK(mkdirat(fd, "opaque", 0755) == 0);
    set_attribute(fd, "opaque", "trusted.overlay.opaque", "y");
    closep(&fd);
    struct box_spec spec = spec_with(layer);
    struct box *box = launch(&spec);
    for (size_t i = 0; i < ARRAY_SIZE(targets) + 1; i++) {
        char inner[64], host[64], copy[32];
        (void)snprintf(inner, sizeof inner, "/redirect%zu/canary", i);
        (void)snprintf(host, sizeof host, "/redirect%zu/proc/version", i);
        (void)snprintf(copy, sizeof copy, "/metacopy%zu", i);
        struct outcome outcome = RUN(box, "/attacker", "probe", inner, host, copy);
        check_no_canary(&outcome);
        CHECK(!strstr(outcome.output, "Linux version"));
    }
    ATTACK(box, "file-attributes");
    end(box);
    CHECK(inventory(canary) == before);
}

/* The user files are an image's: whatever stands there, PID 1 goes on and says what is wrong. */
BOX_TEST(user_files_that_are_traps_are_refused_in_bounded_time)
{
    for (unsigned trap = 0; trap < 8; trap++) {
        const char *canary = canary_dir();
        char target[512];
        int fd = -1;
        const char *layer = hostile_layer(&fd);
        (void)snprintf(target, sizeof target, "%s/canary", canary);
        CHECK(mkdirat(fd, "etc", 0755) == 0);
        static const char *const names[] = {"etc/passwd", "etc/group"};
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
            const char *name = names[i];
            switch (trap) {
            case 0:
                CHECK(mknodat(fd, name, S_IFIFO | 0666, 0) == 0);
                break;
            case 1:
                CHECK(symlinkat(target, fd, name) == 0);
                break;
            case 2:
                CHECK(symlinkat("/proc/self/fd/0", fd, name) == 0);
                break;
            case 3:
                CHECK(symlinkat("/dev/zero", fd, name) == 0);
                break;
            case 4:
                CHECK(symlinkat(name + 4, fd, name) == 0);
                break; // to itself
            case 5:
                CHECK(mkdirat(fd, name, 0755) == 0);
                break;
            case 6:
                CHECK(symlinkat("/proc/kmsg", fd, name) == 0);
                break;
            default: {
                autofd file = openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
                CHECK(file >= 0 && ftruncate(file, (off_t)1 << 40) == 0);
            }
            }
        }
        closep(&fd);
        struct box_spec spec = spec_with(layer);
        struct box *box = launch(&spec);
        struct outcome outcome = RUN_AS(box, "guest", "/attacker", "hello");
        CHECK_INT(outcome.exit.cause, CAUSE_NOT_RUN);
        CHECK_INT(outcome.exit.code, 126);
        outcome = RUN_AS(box, "1000", "/attacker", "who");
        CHECK_STR(outcome.output, "1000 1000 1000 1000 1000 1000\n");
        outcome = RUN_AS(box, "0:guest", "/attacker", "hello");
        CHECK_INT(outcome.exit.cause, CAUSE_NOT_RUN);
        check_serves(box);
        end(box);
    }
}

/* CVE-2024-0132, CVE-2025-23266, CVE-2019-14271: nothing outside, and not PID 1, runs or loads what
 * an image brings. */
BOX_TEST(no_helper_runs_or_loads_anything_of_an_image)
{
    static const char *const planted[] = {"init",
                                          "burrow-init",
                                          "sbin/init",
                                          "bin/sh",
                                          "sbin/modprobe",
                                          "usr/bin/newuidmap",
                                          "lib/ld-musl-x86_64.so.1",
                                          "lib/libnss_files.so.2",
                                          "etc/ld.so.preload"};
    int fd = -1;
    const char *layer = hostile_layer(&fd);
    static const char *const dirs[] = {"sbin", "bin", "usr", "usr/bin", "lib", "etc"};
    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
        CHECK(mkdirat(fd, dirs[i], 0755) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(planted); i++)
        put_file(fd, planted[i], "#!/attacker plant-setuid\n", 0755);
    closep(&fd);
    struct box_spec spec = spec_with(layer);
    struct box *box = launch(&spec);
    struct error err = {0};
    int conv = -1;
    struct files_item item;
    CHECK_OK(box_files(box, NULL, "/", &conv, &err), err);
    CHECK_OK(files_stat(conv, "/etc", false, &item, NULL, &err), err);
    CHECK_OK(files_write_buffer(conv, "/tmp/made", 0600, 0, "x", 1, &err), err);
    closep(&conv);

    // What PID 1 has in its memory is the sealed file of ours and nothing else.
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)box_pid(box));
    FILE *maps = fopen(path, "re");
    CHECK(maps);
    char line[512];
    while (fgets(line, sizeof line, maps)) {
        char *file = strchr(line, '/');
        if (file && strncmp(file, "/memfd:burrow-init", 18) != 0)
            test_fail(__FILE__, __LINE__, "PID 1 has mapped %s", file);
    }
    (void)fclose(maps);
    struct outcome outcome = RUN(box, "/attacker", "probe", "/planted/suid");
    CHECK_STR(outcome.output, "/planted/suid: No such file or directory\n");
}

NOTHING_IS_LEFT_TEST
