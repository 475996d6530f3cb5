/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes started from layers: what they see, that they are alone with what they write, and who keeps a layer there. */
#include "base/auto.h"
#include "base/fd.h"
#include "box_fixture.h"
#include "engine/files.h"
#include "engine/launch.h"
#include "engine/layer.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct volume *volume_of_test(void)
{
    return engine_volume(engine);
}

static void save(struct box *box, const char *name)
{
    struct error err = {0};
    CHECK_OK(layer_save(volume_of_test(), box_scratch(box), name, NULL, &err), err);
}

static struct box *launch_over(const char *const *saved, size_t n_saved, const char *scratch)
{
    struct box_spec spec = plain_spec();
    spec.saved = saved;
    spec.n_saved = n_saved;
    spec.scratch = scratch;
    return launch(&spec);
}

static void remove_layer(const char *name)
{
    struct error err = {0};
    CHECK_OK(layer_remove(volume_of_test(), name, &err), err);
}

static void check_says(struct box *box, const char *path, const char *text)
{
    char command[200];
    (void)snprintf(command, sizeof command, "cat %s", path);
    run_well(box, command);
    CHECK_STR(last_output(), text);
}

static bool has_file(struct box *box, const char *path)
{
    char command[200];
    (void)snprintf(command, sizeof command, "cat %s", path);
    return run(box, command).code == 0;
}

/* A box with something of everything, saved as `name` while it runs. */
static void make_first(const char *name)
{
    struct box *box = launch_plain();
    int conv = -1;
    struct error err = {0};
    (void)start_ready(box, NULL, "count /root/count");
    run_well(box, "write /root/notes one");
    run_well(box, "write /etc/text more");
    run_well(box, "unlink /etc/group");
    CHECK_OK(box_files(box, NULL, "/", &conv, &err), err);
    CHECK_OK(files_rename(conv, "/home/kim", "/home/tim", 0, &err), err);
    CHECK_OK(files_write_buffer(conv, "/tmp/mine", 0600, 0, "x", 1, &err), err);
    CHECK_OK(files_chown(conv, "/tmp/mine", 1000, 1000, 0, &err), err);
    (void)close(conv);
    save(box, name);
    end(box);
}

static void check_first(struct box *box)
{
    check_says(box, "/root/notes", "one\n");
    check_says(box, "/etc/text", "not a program\nmore\n");
    CHECK(!has_file(box, "/etc/group"));
    CHECK(count_in(box, "/root/count") > 0);
    struct error err = {0};
    struct files_item item;
    int conv = -1;
    CHECK_OK(box_files(box, NULL, "/", &conv, &err), err);
    CHECK_OK(files_stat(conv, "/home/tim", false, &item, NULL, &err), err);
    CHECK_INT(item.uid, 1000);
    CHECK_OK(files_stat(conv, "/tmp/mine", false, &item, NULL, &err), err);
    CHECK_INT(item.uid, 1000);
    CHECK_INT(item.mode & 07777, 0600);
    CHECK(files_stat(conv, "/home/kim", false, &item, NULL, &err) < 0);
    CHECK_OK(files_stat(conv, "/tmp", false, &item, NULL, &err), err);
    CHECK_INT(item.mode & 07777, 01777);
    (void)close(conv);
}

BOX_TEST(a_box_from_a_layer_sees_what_was_saved_and_two_never_see_each_other)
{
    const char *const saved[] = {"first"};
    make_first("first");
    struct box *one = launch_over(saved, 1, NULL);
    struct box *two = launch_over(saved, 1, NULL);
    check_first(one);
    check_first(two);
    run_well(one, "write /root/notes two");
    run_well(one, "write /root/new new");
    run_well(two, "unlink /root/notes");
    check_says(one, "/root/notes", "one\ntwo\n");
    CHECK(!has_file(two, "/root/notes") && !has_file(two, "/root/new"));
    struct box *three = launch_over(saved, 1, NULL);
    check_first(three);
    CHECK(!has_file(three, "/root/new"));
    end(one);
    end(two);
    end(three);
    remove_layer("first");
}

BOX_TEST(layers_stack_and_deep_chains_start)
{
    const char *names[LAUNCH_MAX_LAYERS];
    char texts[LAUNCH_MAX_LAYERS][16];
    size_t count = engine->has_layer_fds ? 100 : 40;

    for (size_t i = 0; i < count; i++) {
        char command[64];
        struct box *box = launch_over(names + count - i, i, NULL);
        (void)snprintf(command, sizeof command, "write /root/log %zu", i);
        run_well(box, command);
        (void)snprintf(texts[i], sizeof texts[i], "deep-%zu", i);
        names[count - 1 - i] = texts[i];
        save(box, texts[i]);
        end(box);
    }
    struct box *box = launch_over(names, count, NULL);
    run_well(box, "cat /root/log");
    CHECK(strncmp(last_output(), "0\n1\n2\n", 6) == 0);
    struct error err = {0};
    CHECK_OK(layer_merge(volume_of_test(), names, count, "flat", NULL, NULL, &err), err);
    autofree char *before = strdup(last_output());
    for (size_t i = 0; i < count; i++)
        remove_layer(names[i]);
    check_says(box, "/root/log", before); // still in use
    check_says(box, "/etc/text", "not a program\n");
    unsigned n_used = 0;
    CHECK_OK(layer_reclaim(volume_of_test(), &n_used, &err), err);
    CHECK_INT(n_used, count);
    end(box);
    CHECK_OK(layer_reclaim(volume_of_test(), &n_used, &err), err);
    CHECK_INT(n_used, 0);
    struct box *flat = launch_over((const char *const[]){"flat"}, 1, NULL);
    check_says(flat, "/root/log", before);
    end(flat);
    remove_layer("flat");
}

BOX_TEST(a_missing_or_misnamed_layer_fails_the_launch_and_leaves_nothing)
{
    struct box_spec spec = plain_spec();
    struct box *box = NULL;
    struct error err = {0};
    const char *bad[] = {"nobody", "../scratch", ""};

    make_first("first");
    int fds = count_fds();
    for (size_t i = 0; i < 3; i++) {
        spec.saved = (const char *const[]){"first", bad[i]};
        spec.n_saved = 2;
        CHECK(box_launch(engine, &spec, &box, &err) < 0);
        CHECK_INT(error_kind(&err), i == 0 ? ERROR_SYSTEM : ERROR_INVALID);
    }
    CHECK_INT(count_fds(), fds);
    spec.n_saved = LAUNCH_MAX_LAYERS;
    CHECK(box_launch(engine, &spec, &box, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    remove_layer("first");
    unsigned n_used = 1;
    CHECK_OK(layer_reclaim(volume_of_test(), &n_used, &err), err);
    CHECK_INT(n_used, 0); // the slots of failed launches are free
}

BOX_TEST(a_checkpoint_is_restored_under_a_kept_box)
{
    const struct volume_limits limits = {.bytes = 64 << 20};
    struct error err = {0};
    uint64_t bytes = 0, used = 0;
    struct box *box = launch_over(NULL, 0, "box-kept");
    run_well(box, "write /root/notes one");
    CHECK_OK(layer_save(volume_of_test(), "box-kept", "check", &bytes, &err), err);
    run_well(box, "write /root/notes two");
    run_well(box, "write /root/later x");
    end(box);
    CHECK_OK(layer_restore(volume_of_test(), "check", bytes, "box-kept", &limits, &err), err);
    box = launch_over(NULL, 0, "box-kept");
    check_says(box, "/root/notes", "one\n");
    CHECK(!has_file(box, "/root/later"));
    CHECK_OK(volume_scratch_usage(volume_of_test(), "box-kept", true, &used, &err), err);
    CHECK(used >= bytes);
    run_well(box, "fill /root/big 100");
    CHECK(strstr(last_output(), "122")); // EDQUOT
    end(box);
    CHECK_OK(volume_scratch_remove(volume_of_test(), "box-kept", &err), err);
    remove_layer("check");
}

static int give_item(void *data, struct files_item *item, struct error *err)
{
    uint32_t *mode = data;
    if (*mode == 0)
        return 0;
    *item = (struct files_item){.mode = *mode, .path = "bad", .target = ""};
    *mode = 0;
    return 1;
}

static ssize_t give_nothing(void *data, void *bytes, size_t size, struct error *err)
{
    return 0;
}

BOX_TEST(marks_of_overlay_can_neither_be_made_nor_brought_in)
{
    struct box *box = launch_plain();
    static const uint32_t modes[] = {S_IFCHR | 0600, S_IFBLK | 0600, S_IFIFO | 0600};
    CHECK_INT(run(box, "overlay-marks /root/marks").code, 1);
    for (size_t i = 0; i < 3; i++) {
        struct error err = {0};
        struct files_total total;
        uint32_t mode = modes[i];
        int conv = -1;
        CHECK_OK(box_files(box, NULL, "/", &conv, &err), err);
        CHECK(files_import(conv, "/", FILES_OWNERS, give_item, give_nothing, &mode, &total, &err) <
              0);
        (void)close(conv);
    }
    CHECK(!has_file(box, "/bad"));
    end(box);
}

/* An owner that dies with a frozen box: another adopts, thaws and ends it; its layers were kept meanwhile. */

struct deed {
    unsigned slot;
    atomic_bool is_done;
};

static void own_frozen(struct deed *deed)
{
    struct engine_options options = {.data_dir = data_dir};
    const char *const saved[] = {"first"};
    struct box_spec spec = plain_spec();
    struct engine *mine = NULL;
    struct box *box = NULL;
    struct error err = {0};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    spec.owner_loss = BOX_STAY;
    spec.scratch = "box-frozen";
    spec.saved = saved;
    spec.n_saved = 1;
    const char *const argv[] = {"/bin/guest", "count", "/root/ticks", NULL};
    int pair[2];
    char ready;
    if (pipe2(pair, O_CLOEXEC) < 0)
        _exit(3);
    struct process_spec process = {
        .id = 77, .command.argv = argv, .stdin_fd = -1, .stdout_fd = pair[1], .stderr_fd = -1};
    if (engine_open(&options, &mine, &err) < 0 || box_launch(mine, &spec, &box, &err) < 0 ||
        box_spawn(box, &process, NULL, &err) < 0 || read(pair[0], &ready, 1) != 1)
        _exit(1);
    if (box_freeze(box, &err) < 0)
        _exit(2);
    deed->slot = box_slot(box);
    deed->is_done = true;
    for (;;)
        (void)pause();
}

BOX_TEST(a_frozen_box_outlives_its_owner_is_adopted_thawed_and_ended)
{
    struct error err = {0};
    struct box *box = NULL;
    unsigned n_used = 0;
    struct deed *deed = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    make_first("first");
    pid_t owner = fork();
    if (owner == 0)
        own_frozen(deed);
    AWAIT(deed->is_done || waitpid(owner, NULL, WNOHANG) != 0);
    CHECK(deed->is_done);
    CHECK(kill(owner, SIGKILL) == 0 && waitpid(owner, NULL, 0) == owner);
    remove_layer("first");
    CHECK_OK(layer_reclaim(volume_of_test(), &n_used, &err), err);
    CHECK_INT(n_used, 1);
    CHECK_OK(box_adopt(engine, deed->slot, "box-frozen", &box, &err), err);
    own(box);
    uint64_t before = count_in(box, "/root/ticks"); // PID 1 answers
    CHECK(count_in(box, "/root/ticks") == before);
    CHECK(count_in(box, "/root/count") > 0); // from the layer
    CHECK_OK(box_thaw(box, &err), err);
    AWAIT(count_in(box, "/root/ticks") > before);
    CHECK_OK(box_freeze(box, &err), err);
    end(box);
    CHECK_OK(volume_scratch_remove(volume_of_test(), "box-frozen", &err), err);
    AWAIT(layer_reclaim(volume_of_test(), &n_used, &err) == 0 && n_used == 0);
    (void)munmap(deed, 4096);
}

NOTHING_IS_LEFT_TEST
