/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes made for real: host:latest, replacing, locking, cancelling, and base:latest from
 * Debian's packages. */
#include "runtime/build.h"
#include "runtime/image.h"

#include "base/fd.h"
#include "base/mem.h"
#include "runtime/skeleton.h"
#include "runtime/tool.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct data {
    char dir[64];
};

// Of the test at hand: a failing one does not come to its cleanup, so the next one or the end does
// it.
static struct data current;

__attribute__((destructor)) static void clear_current(void)
{
    struct error err;
    if (*current.dir)
        (void)fd_remove_tree(AT_FDCWD, current.dir, &err);
}

static void data_clear(struct data *data)
{
    struct error err;
    (void)fd_remove_tree(AT_FDCWD, data->dir, &err);
}
#define autodata __attribute__((cleanup(data_clear))) struct data

static struct data make_data(void)
{
    struct data data = {"/tmp/burrow-runtime-XXXXXX"};

    if (geteuid() != 0)
        SKIP("needs root");
    clear_current();
    CHECK(mkdtemp(data.dir));
    current = data;
    return data;
}

static char *read_all(const char *path)
{
    autobuffer text = {.maximum = 1 << 20};
    struct error err = {0};
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        test_fail(__FILE__, __LINE__, "open %s: %s", path, strerror(errno));
    CHECK_OK(fd_read_buffer(fd, &text, &err), err);
    return text.data ? take(text.data) : xstrdup("");
}

static char *read_in(const struct runtime_image *image, const char *path)
{
    autofree char *full = xasprintf("%s/%s", image->layers[0], path);
    return read_all(full);
}

static bool exists_in(const struct runtime_image *image, const char *path)
{
    autofree char *full = xasprintf("%s/%s", image->layers[0], path);
    struct stat info;
    return lstat(full, &info) == 0;
}

static struct runtime_image *open_image(const char *dir, const char *reference)
{
    struct runtime_image *image = NULL;
    struct error err = {0};

    CHECK_OK(runtime_image_open(dir, reference, &image, &err), err);
    return image;
}

static const struct runtime_definition *find(struct catalog *catalog, const char *text,
                                             struct runtime_reference *reference)
{
    const struct runtime_definition *definition = NULL;
    struct error err = {0};

    CHECK_OK(runtime_reference_parse(text, reference, &err), err);
    CHECK_OK(catalog_find(catalog, reference, &definition, &err), err);
    return definition;
}

TEST(host_is_made_when_it_is_first_opened)
{
    autodata data = make_data();
    autoptr(runtime_image) image = open_image(data.dir, "host");

    CHECK_INT(image->n_layers, 1);
    CHECK_STR(image->binds[0].host, "/usr");
    CHECK_STR(image->binds[0].box, "/usr");
    CHECK(strncmp(image->env[0], "PATH=", 5) == 0);
    CHECK(fcntl(image->lock_fd, F_GETFD) & FD_CLOEXEC);

    autofree char *passwd = read_in(image, "etc/passwd");
    CHECK(strstr(passwd, "burrow:x:1000:"));
    CHECK(strstr(passwd, "root:x:0:0:"));
    autofree char *resolv = read_in(image, "etc/resolv.conf");
    CHECK_STR(resolv, "nameserver 127.0.0.1\n");
    CHECK(exists_in(image, "etc/ld.so.cache"));
    CHECK(exists_in(image, "workspace"));
    CHECK(exists_in(image, "home/burrow"));
    struct stat info;
    if (lstat("/bin", &info) == 0 && S_ISLNK(info.st_mode))
        CHECK(exists_in(image, "bin"));
}

TEST(host_holds_nothing_of_the_machines_own_business)
{
    static const char *const absent[] = {"etc/ssh",
                                         "etc/ssl/private",
                                         "etc/sudoers",
                                         "etc/fstab",
                                         "etc/apt",
                                         "etc/environment.d",
                                         "etc/ssl/certs/ssl-cert-snakeoil.pem",
                                         "root/.ssh",
                                         "root/.bash_history",
                                         "var/lib/dpkg",
                                         "home/user"};
    autodata data = make_data();
    autoptr(runtime_image) image = open_image(data.dir, "host:latest");
    autofree char *shadow = read_in(image, "etc/shadow");
    autofree char *hosts = read_in(image, "etc/hosts");
    autofree char *search =
        xasprintf("grep -rlI 'PRIVATE KEY' '%s/etc' >/dev/null", image->layers[0]);
    char name[256] = "";

    for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
        if (exists_in(image, absent[i]))
            test_fail(__FILE__, __LINE__, "%s is there", absent[i]);
    CHECK(!strchr(shadow, '$'));
    (void)gethostname(name, sizeof name - 1);
    CHECK(strlen(name) < 3 || !strstr(hosts, name));
    CHECK(system(search) != 0);
}

TEST(a_certificate_of_the_machine_itself_stays_outside)
{
    // Only links into /usr and the bundle are taken: no other regular file may be in the copy.
    autodata data = make_data();
    autoptr(runtime_image) image = open_image(data.dir, "host:latest");
    autofree char *search =
        xasprintf("test -z \"$(find '%s/etc/ssl/certs' -type f ! -name ca-certificates.crt)\"",
                  image->layers[0]);

    CHECK(system(search) == 0);
}

TEST(opening_again_gives_the_same_build)
{
    autodata data = make_data();
    autoptr(runtime_image) one = open_image(data.dir, "host");
    autoptr(runtime_image) two = open_image(data.dir, "host");

    CHECK_STR(one->layers[0], two->layers[0]);
}

// The manifest as if a watched file had been different when the runtime was made.
static void make_stale(const struct data *data)
{
    autofree char *path = xasprintf("%s/runtimes/host/latest/manifest", data->dir);
    autofree char *text = read_all(path);
    char *watch = strstr(text, "\nwatch ");

    CHECK(watch);
    watch[7] = watch[7] == '1' ? '2' : '1';
    autofd fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    CHECK(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

TEST(host_is_made_anew_when_the_machine_changed_and_the_old_one_stays_while_used)
{
    autodata data = make_data();
    autoptr(runtime_image) old = open_image(data.dir, "host");
    make_stale(&data);
    autoptr(runtime_image) fresh = open_image(data.dir, "host");

    CHECK(strcmp(old->layers[0], fresh->layers[0]) != 0);
    CHECK(exists_in(old, "etc/passwd"));
    CHECK(exists_in(fresh, "etc/passwd"));

    autofree char *gone = xstrdup(old->layers[0]);
    runtime_image_free(take(old));
    make_stale(&data);
    autoptr(runtime_image) third = open_image(data.dir, "host");
    CHECK(access(gone, F_OK) < 0); // swept: nobody used it any more
    CHECK(exists_in(fresh, "etc/passwd"));
}

TEST(host_is_made_anew_after_a_boot)
{
    autodata data = make_data();
    autoptr(runtime_image) old = open_image(data.dir, "host");
    autofree char *path = xasprintf("%s/runtimes/host/latest/manifest", data.dir);
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

    CHECK(utimensat(AT_FDCWD, path, long_ago, 0) == 0);
    autoptr(runtime_image) fresh = open_image(data.dir, "host");
    CHECK(strcmp(old->layers[0], fresh->layers[0]) != 0);
}

TEST(a_runtime_in_use_is_not_removed)
{
    autodata data = make_data();
    struct runtime_reference reference = {"host", "latest"};
    struct error err = {0};
    autoptr(runtime_image) image = open_image(data.dir, "host");
    autofd kept = fcntl(image->lock_fd, F_DUPFD_CLOEXEC, 3); // as PID 1 of a box keeps it
    autofree char *layer = xstrdup(image->layers[0]);

    runtime_image_free(take(image));
    CHECK(runtime_remove(data.dir, &reference, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    autofree char *says = xasprintf("runtime 'host:latest' is in use by a sandbox of process %d "
                                    "('test-runtime'); end that first",
                                    (int)getpid());
    CHECK_STR(err.text, says);
    CHECK(access(layer, F_OK) == 0);
    closep(&kept);
    CHECK_OK(runtime_remove(data.dir, &reference, &err), err);
    CHECK(access(layer, F_OK) < 0);
    CHECK(runtime_remove(data.dir, &reference, &err) < 0);
    CHECK_STR(err.text, "runtime 'host:latest' is not built");
}

TEST(verifying_finds_changed_missing_and_added_files)
{
    autodata data = make_data();
    struct runtime_reference reference = {"host", "latest"};
    struct runtime_status status;
    struct error err = {0};
    autoptr(runtime_image) image = open_image(data.dir, "host");
    autofree char *hosts = xasprintf("%s/etc/hosts", image->layers[0]);
    autofree char *extra = xasprintf("%s/etc/extra", image->layers[0]);

    CHECK_OK(runtime_verify(data.dir, &reference, &status, &err), err);
    CHECK(status.files > 20);
    CHECK(chmod(hosts, 0600) == 0);
    CHECK(runtime_verify(data.dir, &reference, &status, &err) < 0);
    CHECK(strstr(err.text, "have changed since it was built"));
    CHECK(chmod(hosts, 0644) == 0);
    CHECK_OK(runtime_verify(data.dir, &reference, &status, &err), err);
    autofd fd = open(extra, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    CHECK(runtime_verify(data.dir, &reference, &status, &err) < 0);
    CHECK(strstr(err.text, "when it was built"));
    CHECK(unlink(extra) == 0 && mkfifo(extra, 0600) == 0);
    CHECK(runtime_verify(data.dir, &reference, &status, &err) < 0);
    CHECK(strstr(err.text, "device, socket or pipe"));
}

TEST(unknown_and_unbuilt_runtimes_say_what_to_do)
{
    autodata data = make_data();
    autoptr(runtime_image) image = NULL;
    struct error err = {0};

    CHECK(runtime_image_open(data.dir, "hots", &image, &err) < 0);
    CHECK(strstr(err.text, "did you mean 'host:latest'?"));
    CHECK(runtime_image_open(data.dir, "base", &image, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_UNAVAILABLE);
    CHECK_INT(err.reason, ERROR_NOT_BUILT);
    CHECK(strstr(err.text, "run 'burrow runtime build base:latest --data "));
    CHECK(strstr(err.text, data.dir));
    CHECK(runtime_image_open(data.dir, "../x", &image, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK(image == NULL);
}

// ---- tools ----

struct seen {
    char last[200];
    int cancel_fd;
};

static void on_line(void *data, const char *line)
{
    struct seen *seen = data;
    uint64_t one = 1;

    (void)snprintf(seen->last, sizeof seen->last, "%s", line);
    if (strcmp(line, "cancel me") == 0)
        CHECK(write(seen->cancel_fd, &one, sizeof one) == sizeof one);
}

static int run_shell(const char *script, struct seen *seen, struct error *err)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    struct tool_spec spec = {.argv = argv,
                             .input = "hello\n",
                             .log_fd = -1,
                             .cancel_fd = seen->cancel_fd,
                             .on_line = on_line,
                             .data = seen};

    if (geteuid() != 0)
        SKIP("needs root");
    return tool_run(&spec, err);
}

TEST(the_first_user_of_a_layer_has_the_number_of_burrow_and_is_the_one_that_is_shown)
{
    autodata data = make_data();
    const char *layers[] = {"base/1"}, *users[] = {"user", "more", NULL};
    autofree char *below = xasprintf("%s/base/1/rootfs", data.dir);
    autofree char *above = xasprintf("%s/layer", data.dir);
    autofree char *passwd = xasprintf("%s/etc/passwd", above);
    autofree char *home = xasprintf("%s/home/user", above);
    struct error err = {0};
    struct stat info;

    CHECK_OK(fd_make_dirs(below, 0755, &err), err);
    CHECK_OK(fd_make_dirs(above, 0755, &err), err);
    autofd below_fd = open(below, O_PATH | O_DIRECTORY | O_CLOEXEC);
    autofd above_fd = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(skeleton_write_users(below_fd, &err), err);
    CHECK_OK(skeleton_add_users(above_fd, data.dir, layers, 1, users, &err), err);
    autofree char *text = read_all(passwd);
    CHECK_STR(text, "root:x:0:0:root:/root:/bin/bash\n"
                    "more:x:1001:1001:more:/home/more:/bin/bash\n"
                    "user:x:1000:1000:user:/home/user:/bin/bash\n"
                    "burrow:x:1000:1000:burrow:/home/burrow:/bin/bash\n"
                    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
    CHECK(stat(home, &info) == 0 && info.st_uid == 1000 && info.st_gid == 1000);
}

TEST(a_tool_gets_its_input_and_a_clean_environment)
{
    struct seen seen = {.cancel_fd = -1};
    struct error err = {0};

    CHECK(setenv("SECRET_OF_THE_CALLER", "x", 1) == 0);
    CHECK_OK(run_shell("read a; echo \"$a ${SECRET_OF_THE_CALLER-clean} $$\"", &seen, &err), err);
    CHECK_STR(seen.last, "hello clean 2");
    CHECK(run_shell("exit 3", &seen, &err) < 0);
    CHECK_STR(err.text, "sh failed with exit code 3");
}

TEST(what_a_tool_left_running_and_mounted_ends_with_it)
{
    struct seen seen = {.cancel_fd = -1};
    struct error err = {0};
    // The sleep holds the output open: without the namespace's end this would wait for it.
    CHECK_OK(run_shell("mount -t tmpfs burrow-test-left /mnt; (setsid sleep 1000 &) ; echo done",
                       &seen, &err),
             err);
    autofree char *mounts = read_all("/proc/self/mountinfo");
    CHECK(!strstr(mounts, "burrow-test-left"));
}

TEST(cancelling_kills_all_of_it)
{
    struct seen seen = {.cancel_fd = eventfd(0, EFD_CLOEXEC)};
    struct error err = {0};

    CHECK(run_shell(
              "(setsid sh -c 'trap \"\" TERM INT HUP; sleep 1000' &) ; echo cancel me; sleep 1000",
              &seen, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_GONE);
    (void)close(seen.cancel_fd);
}

TEST(the_death_of_the_caller_ends_a_tool)
{
    int ends[2];
    char byte;

    if (geteuid() != 0)
        SKIP("needs root");
    CHECK(pipe2(ends, 0) == 0); // inherited: its end says that all holders are dead
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        const char *argv[] = {"/bin/sh", "-c", "echo x; sleep 1000", NULL};
        struct tool_spec spec = {.argv = argv, .log_fd = ends[1], .cancel_fd = -1};
        struct error err;
        (void)close(ends[0]);
        (void)tool_run(&spec, &err);
        _exit(0);
    }
    (void)close(ends[1]);
    CHECK(read(ends[0], &byte, 1) == 1); // the tool runs
    CHECK(kill(child, SIGKILL) == 0);
    CHECK(waitpid(child, NULL, 0) == child);
    while (read(ends[0], &byte, 1) == 1)
        continue; // ends only when the supervisors, which inherited the pipe, are gone
    (void)close(ends[0]);
}

// ---- Debian ----

TEST(no_mirror_is_one_sentence_and_leaves_nothing)
{
    autodata data = make_data();
    autoptr(catalog) catalog = NULL;
    struct runtime_reference reference;
    struct error err = {0};
    char path[100];

    if (tool_find("mmdebstrap", path, sizeof path) < 0)
        SKIP("mmdebstrap is not installed");
    CHECK_OK(catalog_load(data.dir, "/nonexistent", &catalog, &err), err);
    struct runtime_build_options options = {
        .data_dir = data.dir, .mirror = "http://127.0.0.1:1/debian", .cancel_fd = -1};
    CHECK(runtime_build(find(catalog, "base", &reference), &options, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_UNAVAILABLE);
    CHECK(strstr(err.text, "build runtime 'base:latest': no package mirror can be reached; name a "
                           "mirror with --mirror"));
    autofree char *left = xasprintf(
        "test -z \"$(find %s/runtimes -mindepth 1 ! -name '.lock-*' ! -name '*.log')\"", data.dir);
    CHECK(system(left) == 0);
}

static void on_progress(void *data, const struct runtime_progress *progress)
{
    unsigned *last = data;

    CHECK(progress->permille >= *last && progress->permille <= 1000);
    *last = progress->permille;
}

// Where base:latest is built once for all tests: BURROW_TEST_CACHE, which meson sets.
static const char *test_cache(void)
{
    const char *cache = getenv("BURROW_TEST_CACHE");
    char path[100];

    if (geteuid() != 0)
        SKIP("needs root");
    if (!cache)
        SKIP("BURROW_TEST_CACHE names no directory");
    if (tool_find("mmdebstrap", path, sizeof path) < 0)
        SKIP("mmdebstrap is not installed");
    return cache;
}

// Builds base:latest unless it is there. Only a machine that reaches no mirror is an excuse.
static bool build_base(const char *cache, const struct runtime_definition *base)
{
    struct error err = {0};
    unsigned last = 0;
    bool was_ready = false;
    struct runtime_build_options options = {
        .data_dir = cache, .cancel_fd = -1, .on_progress = on_progress, .data = &last};

    options.mirror = getenv("BURROW_DEBIAN_MIRROR");
    if (runtime_build(base, &options, &was_ready, &err) < 0) {
        if (error_is(&err, ERROR_UNAVAILABLE) &&
            strstr(err.text, "no package mirror can be reached"))
            SKIP("no package mirror can be reached");
        test_fail(__FILE__, __LINE__, "%s", err.text);
    }
    return was_ready;
}

static void open_base(const char *cache, const char *name, struct runtime_image **out)
{
    autoptr(catalog) catalog = NULL;
    struct runtime_reference reference;
    struct error err = {0};

    CHECK_OK(catalog_load(cache, "/nonexistent", &catalog, &err), err);
    (void)build_base(cache, find(catalog, "base", &reference));
    CHECK_OK(runtime_image_open(cache, name, out, &err), err);
}

TEST(base_is_built_from_debians_packages)
{
    const char *cache = test_cache();
    autoptr(catalog) catalog = NULL;
    struct runtime_reference reference;
    struct runtime_status status;
    struct error err = {0};

    CHECK_OK(catalog_load(cache, "/nonexistent", &catalog, &err), err);
    const struct runtime_definition *base = find(catalog, "base", &reference);
    (void)build_base(cache, base);
    CHECK(build_base(cache, base));
    CHECK_OK(runtime_verify(cache, &reference, &status, &err), err);
    CHECK(status.files > 5000 && status.bytes > 100 << 20 && status.bytes < 500 << 20);
    runtime_status(cache, base, &status);
    CHECK_INT(status.state, RUNTIME_READY);
}

TEST(base_is_fitted_to_a_box)
{
    static const char *const programs[] = {"bash", "python3", "git",  "curl",    "ps",   "tar",
                                           "gzip", "unzip",   "xz",   "less",    "file", "find",
                                           "grep", "sed",     "gawk", "patch",   "jq",   "make",
                                           "ssh",  "pip3",    "rg",   "apt-get", "dpkg"};
    const char *cache = test_cache();
    autoptr(runtime_image) image = NULL;

    open_base(cache, "base:bookworm", &image);
    for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
        autofree char *path = xasprintf("usr/bin/%s", programs[i]);
        if (!exists_in(image, path))
            test_fail(__FILE__, __LINE__, "%s is missing", path);
    }
    autofree char *empty = xasprintf("cd '%s' && test -z \"$(ls -A dev tmp var/tmp | grep -v : ; "
                                     "find . -type b -o -type c -o -type s -o -type p; "
                                     "find var/cache/apt var/lib/apt/lists -type f)\" && test ! -s "
                                     "etc/machine-id && test -f etc/machine-id",
                                     image->layers[0]);
    CHECK(system(empty) == 0);
    autofree char *resolv = read_in(image, "etc/resolv.conf");
    CHECK_STR(resolv, "nameserver 127.0.0.1\n");
    autofree char *hostname = read_in(image, "etc/hostname");
    CHECK_STR(hostname, "burrow\n");
    autofree char *apt = read_in(image, "etc/apt/apt.conf.d/90burrow");
    CHECK(strstr(apt, "APT::Sandbox::User \"root\";"));
    autofree char *passwd = read_in(image, "etc/passwd");
    CHECK(strstr(passwd, "\nburrow:x:1000:1000:"));
    CHECK_INT(image->n_binds, 0);
}

TEST(apt_in_base_finds_its_dependencies_whole)
{
    const char *cache = test_cache();
    autoptr(runtime_image) image = NULL;
    struct error err = {0};
    struct seen seen = {.cancel_fd = -1};

    open_base(cache, "base", &image);
    // Over an overlay, so that the shared build stays as it is; in the tool's own mount namespace.
    autofree char *script =
        xasprintf("set -e; mount -t tmpfs t /mnt; mkdir /mnt/u /mnt/w /mnt/r; "
                  "mount -t overlay o -o lowerdir='%s',upperdir=/mnt/u,workdir=/mnt/w /mnt/r; "
                  "chroot /mnt/r apt-get check -qq; chroot /mnt/r dpkg --audit; chroot /mnt/r "
                  "python3 -c 'import ssl, venv, pip'; "
                  "chroot /mnt/r git --version >/dev/null; chroot /mnt/r id -un 1000; echo fine",
                  image->layers[0]);
    if (run_shell(script, &seen, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", err.text, seen.last);
    CHECK_STR(seen.last, "fine");
}
