/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a real box, walked by its PID 1 while guests plant traps. Needs root, and python3 in
 * /usr for the guests. All is below a directory of its own in BURROW_TEST_DIR (else /var/tmp) and
 * goes after each test, also a failed one.
 */
#include "base/fd.h"
#include "engine/box.h"
#include "engine/files.h"
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#define SWAPS "100000"

static char base[96];
static struct engine *engine;
static struct box *box;
static int conv = -1; // as root of the box, at "/"

static void put(const char *name, const char *text)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", base, name);
    autofd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

static void clean(void)
{
    struct error err = {0};
    char data[128];
    closep(&conv);
    if (box && box_end(box, &err) < 0)
        printf("# %s\n", err.text);
    box_free(take(box));
    if (engine && cgroup_root_remove(engine_cgroups(engine), &err) < 0)
        printf("# %s\n", err.text);
    engine_free(take(engine));
    if (!base[0])
        return;
    (void)snprintf(data, sizeof data, "%s/data", base);
    if (volume_detach(data, &err) < 0)
        printf("# %s\n", err.text);
    if (fd_remove_tree(AT_FDCWD, base, &err) < 0)
        printf("# %s\n", err.text);
    base[0] = '\0';
}

/* A layer with a few links and users, over the machine's /usr. */
static void make_layer(void)
{
    static const char *const dirs[] = {"layer",           "layer/etc",  "layer/usr",
                                       "layer/workspace", "layer/home", "layer/home/agent"};
    static const char *const links[] = {"bin", "lib", "lib64", "sbin"};
    char path[160], target[16];
    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", base, dirs[i]);
        CHECK(mkdir(path, 0755) == 0);
    }
    CHECK(chown(path, 1000, 1000) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
        (void)snprintf(path, sizeof path, "%s/layer/%s", base, links[i]);
        (void)snprintf(target, sizeof target, "usr/%s", links[i]);
        CHECK(symlink(target, path) == 0);
    }
    put("layer/etc/passwd", "root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n");
    put("layer/etc/group", "root:x:0:\nagent:x:1000:\n");
}

static void begin(void)
{
    const char *where = getenv("BURROW_TEST_DIR");
    static bool is_prepared;
    struct error err = {0};
    char data[128], layer[128];

    if (geteuid() != 0)
        SKIP("needs root");
    if (!is_prepared)
        (void)atexit(clean);
    is_prepared = true;
    clean();
    if (!where)
        where = "/var/tmp";
    CHECK_OK(fd_make_dirs(where, 0755, &err), err);
    (void)snprintf(base, sizeof base, "%s/burrow-files-XXXXXX", where);
    CHECK(mkdtemp(base) && chmod(base, 0755) == 0);
    make_layer();
    put("canary", "outside");
    (void)snprintf(data, sizeof data, "%s/data", base);
    (void)snprintf(layer, sizeof layer, "%s/layer", base);
    struct engine_options options = {.data_dir = data, .volume = {.size_bytes = 512 << 20}};
    CHECK_OK(engine_open(&options, &engine, &err), err);
    const char *layers[] = {layer};
    struct box_bind binds[] = {{"/usr", "/usr"}};
    struct box_spec spec = {.layers = layers,
                            .n_layers = 1,
                            .binds = binds,
                            .n_binds = access("/usr", F_OK) == 0,
                            .hold_fd = -1,
                            .limits = {.disk_bytes = 64 << 20}};
    CHECK_OK(box_launch(engine, &spec, &box, &err), err);
    CHECK_OK(box_files(box, NULL, "/", &conv, &err), err);
    CHECK_OK(files_set_timeout(conv, 20000, &err), err);
}

static void start_python(uint32_t id, const char *script)
{
    struct error err = {0};
    if (access("/usr/bin/python3", X_OK) < 0)
        SKIP("no python3 in /usr for a guest");
    const char *argv[] = {"/usr/bin/python3", "-c", script, NULL}, *env[] = {NULL};
    struct process_spec spec = {.id = id,
                                .command.argv = argv,
                                .command.env = env,
                                .command.directory = "/workspace",
                                .output = OUTPUT_PIPE,
                                .stdin_fd = -1,
                                .stdout_fd = -1,
                                .stderr_fd = -1};
    CHECK_OK(box_spawn(box, &spec, NULL, &err), err);
}

static int add_data(void *data, const void *bytes, size_t length, struct error *err)
{
    return buffer_add(data, bytes, length, err);
}

static int ignore_item(void *data, const struct files_item *item, struct error *err)
{
    return 0;
}

TEST(files_go_in_and_out_of_a_box_with_the_users_rights)
{
    begin();
    struct error err = {0};
    struct files_item item = {0};
    autobuffer text = {.maximum = 1000};
    autofd agent = -1, nobody = -1;
    CHECK_OK(box_files(box, "agent", NULL, &agent, &err), err);
    CHECK_OK(files_write_buffer(agent, "a/b", 0640, FILES_PARENTS, "hello", 5, &err), err);
    CHECK_OK(files_read(conv, "/home/agent/a/b", 0, 99, &item, add_data, &text, NULL, &err), err);
    CHECK_STR(text.data, "hello");
    CHECK_INT(item.uid, 1000);
    CHECK_INT(item.gid, 1000);
    CHECK(files_write_buffer(agent, "/etc/passwd", 0640, 0, "x", 1, &err) < 0);
    CHECK_STR(err.text, "open '/etc/passwd': Permission denied");
    CHECK_OK(files_write_buffer(conv, "etc/own", 0600, 0, "x", 1, &err), err);
    CHECK_OK(files_chown(conv, "etc/own", 1000, 1000, 0, &err), err);
    CHECK_OK(files_chmod(agent, "/etc/own", 0644, &err), err);
    CHECK_OK(files_rename(conv, "etc/own", "etc/other", 0, &err), err);
    CHECK_OK(files_remove(conv, "home/agent/a", FILES_RECURSIVE, &err), err);
    CHECK(files_remove(conv, "usr/bin", FILES_RECURSIVE, &err) < 0);
    // a directory of a layer below, which the kernel does not rename
    CHECK_OK(files_move(conv, "home", "moved", FILES_EXCLUSIVE, NULL, &err), err);
    CHECK_OK(files_stat(conv, "moved/agent", false, &item, NULL, &err), err);
    CHECK_INT(item.uid, 1000);
    CHECK(files_stat(conv, "home", false, &item, NULL, &err) < 0);
    CHECK_OK(files_copy(conv, "moved", "home", FILES_EXCLUSIVE, NULL, NULL, &err), err);
    CHECK_OK(box_files(box, "nobody", NULL, &nobody, &err), err);
    CHECK(files_stat(nobody, "/", true, NULL, NULL, &err) < 0);
    CHECK_STR(err.text, "no user 'nobody' in the sandbox's /etc/passwd");
}

TEST(files_are_served_while_the_guests_are_frozen)
{
    begin();
    struct error err = {0};
    start_python(1, "import time\nwhile True: time.sleep(1)");
    CHECK_OK(box_freeze(box, &err), err);
    CHECK_OK(files_write_buffer(conv, "/workspace/x", 0640, 0, "hello", 5, &err), err);
    CHECK_OK(box_thaw(box, &err), err);
}

/* One record: the link /workspace/link. */
static int give_link(void *data, struct files_item *item, struct error *err)
{
    const char **target = data;
    *item = (struct files_item){.path = "link", .mode = S_IFLNK | 0777, .target = *target};
    return take(*target) != NULL;
}

static ssize_t give_nothing(void *data, void *bytes, size_t size, struct error *err)
{
    return 0;
}

static int ignore_match(void *data, const struct files_match *match, struct error *err)
{
    return 0;
}

/* Whole files, search and copies of what must not be reached. */
static void check_new_verbs(const char *at)
{
    static const struct files_find all = {
        .pattern = "", .after = "", .kinds = FILES_KIND_ANY, .maximum = 9};
    static const struct files_search any = {
        .pattern = ".", .names = "", .line_bytes = 99, .file_bytes = 1 << 20, .maximum = 9};
    struct files_save save = {
        .mode = 0600, .uid = FILES_KEEP_ID, .gid = FILES_KEEP_ID, .condition = ""};
    struct error err = {0};
    CHECK(files_save(conv, at, &save, give_nothing, NULL, NULL, &err) < 0);
    save.flags = FILES_APPEND;
    CHECK(files_save(conv, at, &save, give_nothing, NULL, NULL, &err) < 0);
    CHECK(files_find(conv, at, &all, NULL, ignore_item, NULL, NULL, &err) < 0);
    CHECK(files_search(conv, at, &any, NULL, ignore_match, NULL, NULL, &err) < 0);
    CHECK(files_copy(conv, at, "/workspace/copy", 0, NULL, NULL, &err) < 0);
    CHECK(!error_is(&err, ERROR_GONE));
}

TEST(nothing_of_pid_1_can_be_reached)
{
    begin();
    struct error err = {0};
    autobuffer text = {.maximum = 1000};
    char path[64];
    static const char *const forms[] = {"/proc/1/fd/%d", "/proc/self/fd/%d",
                                        "/proc/thread-self/fd/%d", "/dev/fd/%d"};
    static const char *const files[] = {"/proc/1/mem",  "/proc/1/environ", "/proc/1/exe",
                                        "/proc/1/root", "/proc/1/cwd",     "/proc/1/maps"};
    CHECK_OK(files_mkdir(conv, "/workspace/sound", 0755, 0, &err),
             err); // what is refused below is refused for a reason
    for (int i = 0; i < 64 * (int)ARRAY_SIZE(forms) + (int)ARRAY_SIZE(files); i++) {
        if (i < 64 * (int)ARRAY_SIZE(forms))
            (void)snprintf(path, sizeof path, forms[i / 64], i % 64);
        else
            (void)snprintf(path, sizeof path, "%s", files[i - 64 * (int)ARRAY_SIZE(forms)]);
        const char *target = path;
        CHECK_OK(files_import(conv, "/workspace", 0, give_link, NULL, &target, NULL, &err), err);
        for (int is_link = 0; is_link < 2; is_link++) {
            const char *at = is_link ? "/workspace/link" : path;
            CHECK(files_read(conv, at, 0, 99, NULL, add_data, &text, NULL, &err) < 0);
            CHECK(!error_is(&err, ERROR_GONE));
            CHECK(files_write_buffer(conv, at, 0600, 0, "x", 1, &err) < 0);
            CHECK(files_list(conv, at, true, 9, ignore_item, NULL, NULL, &err) < 0);
            CHECK(files_stat(conv, at, true, NULL, NULL, &err) < 0);
            CHECK(files_chmod(conv, at, 0777, &err) < 0);
            check_new_verbs(at);
        }
    }
}

TEST(a_guest_that_swaps_directories_and_links_gets_nothing_from_outside)
{
    begin();
    struct error err = {0};
    struct process_exit exit_info;
    autobuffer text = {.maximum = 1 << 20};
    CHECK_OK(files_mkdir(conv, "/workspace/x", 0755, 0, &err), err);
    CHECK_OK(files_write_buffer(conv, "/workspace/x/canary", 0644, 0, "inside", 6, &err), err);
    start_python(1, "import ctypes, os\n"
                    "os.symlink('../../../../../../../../..', 'l')\n"
                    "c = ctypes.CDLL(None)\n"
                    "for i in range(" SWAPS "): c.renameat2(-100, b'x', -100, b'l', 2)\n");
    unsigned rounds = 0;
    char outside[160];
    (void)snprintf(outside, sizeof outside, "x%s/canary", base);
    CHECK_OK(files_stat(conv, "/workspace", true, NULL, NULL, &err), err);
    autofd work = -1;
    CHECK_OK(box_files(box, NULL, "/workspace", &work, &err), err);
    for (;;) {
        struct pollfd poller = {.fd = box_event_fd(box), .events = POLLIN};
        (void)files_read(work, "x/canary", 0, 99, NULL, add_data, &text, NULL, &err);
        (void)files_read(work, outside, 0, 99, NULL, add_data, &text, NULL, &err);
        (void)files_write_buffer(work, outside, 0644, 0, "planted", 7, &err);
        (void)files_write_buffer(work, "x/made/f", 0644, FILES_PARENTS, "inside", 6, &err);
        (void)files_list(work, ".", true, 9999, ignore_item, NULL, NULL, &err);
        (void)files_rename(work, "x/made", "x/made2", 0, &err);
        (void)files_remove(work, "x/made2", FILES_RECURSIVE, &err);
        CHECK(!text.length || !memmem(text.data, text.length, "outside", 7));
        text.length = 0;
        rounds++;
        if (poll(&poller, 1, 0) > 0)
            break;
    }
    CHECK_OK(box_wait(box, 1, 60000, &exit_info, &err), err);
    CHECK_INT(exit_info.code, 0);
    CHECK(rounds > 10);
    (void)snprintf(outside, sizeof outside, "%s/canary", base);
    char kept[32];
    CHECK_OK(fd_read_knob(AT_FDCWD, outside, kept, sizeof kept, &err), err);
    CHECK_STR(kept, "outside");
}
