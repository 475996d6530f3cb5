/* SPDX-License-Identifier: Apache-2.0 */
/* Starting boxes, and failing to: every step once, and nothing of it may stay. */
#include "base/fd.h"
#include "base/mem.h"
#include "box_fixture.h"
#include "box_stock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* A launch on `failing` must fail and name `step`; one on `working` must then do. */
static void fail_once(struct engine *failing, struct engine *working, const struct box_spec *spec,
                      const char *step)
{
    struct error err = {0};
    struct box *box = NULL;
    autofree char *before = take_stock(failing);

    CHECK(box_launch(failing, spec, &box, &err) < 0);
    CHECK(box == NULL);
    if (!error_is_fault(&err))
        test_fail(__FILE__, __LINE__, "'%s' would be told as status %d", err.text,
                  error_status(&err));
    if (!strstr(err.text, step))
        test_fail(__FILE__, __LINE__, "'%s' does not name '%s'", err.text, step);
    autofree char *after = take_stock(failing);
    CHECK_STR(after, before);
    CHECK_OK(box_launch(working, spec, &box, &err), err);
    own(box);
    if (spec->is_one_shot)
        run_well(box, "exit 0");
    end(box);
}

/* The first of both fills caches (user namespaces, the fixtures' view), which is not what is looked for. */
static void warm(struct engine *one, const struct box_spec *spec)
{
    struct box *box = NULL;
    struct error err = {0};
    if (box_launch(one, spec, &box, &err) == 0)
        end(own(box));
}

static void fail_every_step(const struct box_spec *spec, bool is_long_lived, bool is_death)
{
    // whatever it is that the kernel says
    static const int codes[] = {EIO, EINVAL, ENOENT, EPERM, EMFILE, ENOSPC};
    static unsigned next;
    struct engine *working = open_engine(&(struct engine_options){.is_long_lived = is_long_lived});
    for (const char *const *step = engine_launch_steps(); *step; step++) {
        if (is_death && !step[1])
            break; // it has said all it has to say by then
        struct engine *failing =
            open_engine(&(struct engine_options){.is_long_lived = is_long_lived,
                                                 .fail_step = *step,
                                                 .fail_errno = codes[next++ % ARRAY_SIZE(codes)],
                                                 .is_death = is_death});
        warm(failing, spec);
        fail_once(failing, working, spec, *step);
        close_engine(failing);
    }
    close_engine(working);
}

/* Everything a box can have, so that every step has something to do and to undo. */
static struct box_spec full_spec(void)
{
    static const struct box_bind binds[] = {{"/usr", "/home"}};
    static struct box_mount mounts[] = {{-1, "/mnt/host", true}};
    struct box_spec spec = plain_spec();
    if (mounts[0].fd < 0)
        mounts[0].fd = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
    spec.mounts = mounts;
    spec.n_mounts = 1;
    spec.binds = binds;
    spec.n_binds = 1;
    spec.hostname = "full";
    spec.limits =
        (struct limits){.memory_bytes = 256 << 20, .cpu_millicores = 500, .max_processes = 100};
    spec.limits.disk_bytes = 64 << 20;
    return spec;
}

BOX_TEST(each_step_may_fail_and_leaves_nothing_of_a_one_shot_box)
{
    struct box_spec spec = full_spec();
    spec.is_one_shot = true;
    fail_every_step(&spec, false, false);
}

BOX_TEST(a_process_that_dies_at_a_step_is_noticed)
{
    struct box_spec spec = full_spec();
    fail_every_step(&spec, true, true);
}

BOX_TEST(each_step_may_fail_and_leaves_nothing_of_a_kept_box)
{
    struct box_spec spec = full_spec();
    spec.owner_loss = BOX_STAY;
    fail_every_step(&spec, false, false);
}

BOX_TEST(each_step_may_fail_and_leaves_nothing_of_a_one_shot_box_of_a_server)
{
    struct box_spec spec = full_spec();
    spec.is_one_shot = true;
    fail_every_step(&spec, true, false);
}

BOX_TEST(each_step_may_fail_and_leaves_nothing_of_a_kept_box_of_a_server)
{
    struct box_spec spec = full_spec();
    spec.owner_loss = BOX_STAY;
    fail_every_step(&spec, true, false);
}

static void check_refused(const struct box_spec *spec, const char *words)
{
    struct error err = {0};
    struct box *box = NULL;
    autofree char *before = take_stock(engine);
    CHECK(box_launch(engine, spec, &box, &err) < 0);
    if (!strstr(err.text, words))
        test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", err.text, words);
    autofree char *after = take_stock(engine);
    CHECK_STR(after, before);
}

BOX_TEST(a_spec_that_cannot_be_is_refused_by_a_sentence_and_leaves_nothing)
{
    struct box_spec spec = plain_spec();
    static const char *const missing[] = {"/nowhere/at/all"};
    static const struct box_bind no_host[] = {{"/nowhere/at/all", "/home"}};
    static const struct box_bind no_target[] = {{"/usr", "/no/such/place"}};
    char name[80];

    warm(engine, &spec);
    spec.layers = missing;
    check_refused(&spec, "'/nowhere/at/all'");
    spec = plain_spec();
    spec.n_layers = 0;
    check_refused(&spec, "layers");
    spec = plain_spec();
    spec.binds = no_host;
    spec.n_binds = 1;
    check_refused(&spec, "'/nowhere/at/all'");
    spec.binds = no_target;
    check_refused(&spec, "binds.mount");
    spec = plain_spec();
    memset(name, 'x', sizeof name);
    name[79] = '\0';
    spec.hostname = name;
    check_refused(&spec, "hostname");
    spec.hostname = "";
    check_refused(&spec, "hostname");
}

static void put_text(const char *dir, const char *name, const char *text)
{
    char path[300];

    CHECK(mkdir(dir, 0755) == 0 || errno == EEXIST);
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    autofd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

BOX_TEST(many_layers_of_a_runtime_lie_over_each_other)
{
    char dirs[40][240];
    const char *layers[41];
    struct box_spec spec = plain_spec();

    for (unsigned i = 0; i < ARRAY_SIZE(dirs); i++) {
        char name[16];
        (void)snprintf(dirs[i], sizeof dirs[i], "%s-over-%u", layer_dir, i);
        (void)snprintf(name, sizeof name, "only-%u", i);
        put_text(dirs[i], "same", name);
        put_text(dirs[i], name, "x");
        layers[i] = dirs[i];
    }
    layers[ARRAY_SIZE(dirs)] = layer_dir;
    spec.layers = layers;
    spec.n_layers = ARRAY_SIZE(layers);
    struct box *box = launch(&spec);
    run_well(box, "cat /same");
    CHECK_STR(last_output(), "only-0");
    run_well(box, "cat /only-39");
    CHECK_STR(last_output(), "x");
    run_well(box, "cat /only-0");
    end(box);
}

BOX_TEST(a_layer_that_something_is_mounted_on_is_what_is_mounted)
{
    char real[200], top[200], mounted[240], below[240];
    const char *layers[2] = {mounted, below};
    struct box_spec spec = plain_spec();

    (void)snprintf(real, sizeof real, "%s-real", layer_dir);
    (void)snprintf(top, sizeof top, "%s-top", layer_dir);
    (void)snprintf(mounted, sizeof mounted, "%s/mounted", top);
    (void)snprintf(below, sizeof below, "%s/below", top);
    put_text(real, "which", "mounted");
    CHECK(mkdir(top, 0755) == 0 || errno == EEXIST);
    put_text(mounted, "which", "hidden");
    put_text(below, "which", "hidden");
    CHECK(mount(real, mounted, NULL, MS_BIND, NULL) == 0);
    CHECK(mount(layer_dir, below, NULL, MS_BIND, NULL) == 0);
    spec.layers = layers;
    spec.n_layers = ARRAY_SIZE(layers);
    struct error err = {0};
    struct box *box = NULL;
    int result = box_launch(engine, &spec, &box, &err);
    CHECK(umount2(mounted, MNT_DETACH) == 0 && umount2(below, MNT_DETACH) == 0);
    CHECK_OK(result, err);
    own(box);
    run_well(box, "cat /which");
    CHECK_STR(last_output(), "mounted");
    end(box);
}

BOX_TEST(a_box_too_small_for_its_own_start_says_so)
{
    struct box_spec spec = plain_spec();
    struct error err = {0};
    struct box *box = NULL;
    warm(engine, &spec);
    spec.limits.memory_bytes = 64 << 10;
    autofree char *before = take_stock(engine);
    if (box_launch(engine, &spec, &box, &err) == 0) { // where PID 1 fits after all, it serves
        own(box);
        (void)run(box, "exit 0");
        end(box);
        return;
    }
    CHECK(err.text[0] != '\0');
    autofree char *after = take_stock(engine);
    CHECK_STR(after, before);
}

BOX_TEST(a_bind_shows_a_directory_of_the_host_read_only)
{
    struct box_spec spec = plain_spec();
    char path[256];
    struct box_bind bind = {path, "/home"};
    (void)snprintf(path, sizeof path, "%s/shown", data_dir);
    CHECK(mkdir(path, 0755) == 0);
    (void)snprintf(path, sizeof path, "%s/shown/words", data_dir);
    CHECK(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)) == 0);
    (void)snprintf(path, sizeof path, "%s/shown", data_dir);
    spec.binds = &bind;
    spec.n_binds = 1;
    struct box *box = launch(&spec);
    run_well(box, "cat /home/words");
    CHECK_INT(run(box, "write /home/words more").code, 1);
    CHECK_INT(run(box, "write /home/new more").code, 1);
}

BOX_TEST(a_box_has_its_hostname_and_files_of_its_own)
{
    struct box_spec spec = plain_spec();
    spec.hostname = "burrow-7";
    struct box *one = launch(&spec);
    struct box *two = launch_plain();
    run_well(one, "hostname");
    CHECK_STR(last_output(), "burrow-7\n");
    run_well(two, "hostname");
    CHECK_STR(last_output(), "burrow\n");
    run_well(one, "write /etc/passwd x");
    run_well(one, "write /new x");
    run_well(two, "cat /etc/passwd");
    CHECK(!strstr(last_output(), "x\nx"));
    CHECK_INT(run(two, "cat /new").code, 1);
}

BOX_TEST(two_hundred_boxes_at_once)
{
    struct box_spec spec = full_spec();
    unsigned count = is_in_vm() ? 20 : 200;
    struct box *many[200];
    uint32_t ids[200];

    warm(engine, &spec);
    autofree char *before = take_stock(engine);
    for (unsigned i = 0; i < count; i++)
        many[i] = launch(&spec);
    for (unsigned i = 0; i < count; i++) {
        char command[64];
        (void)snprintf(command, sizeof command, "echo I am %u", i);
        ids[i] = start(many[i], NULL, command);
    }
    for (unsigned i = 0; i < count; i++) {
        char want[64];
        (void)snprintf(want, sizeof want, "I am %u\n", i);
        CHECK_INT(finish(many[i], ids[i]).code, 0);
        CHECK_STR(output_of(ids[i]), want);
    }
    for (unsigned i = 0; i < count; i++)
        end(many[i]);
    forget_outputs();
    autofree char *after = take_stock(engine);
    CHECK_STR(after, before);
}

BOX_TEST(networks_made_ahead_are_used_up_and_closed)
{
    struct error err = {0};
    struct box_spec spec = plain_spec();
    warm(engine, &spec);
    int before = count_fds();
    CHECK_OK(engine_fill_networks(engine, 3, &err), err);
    CHECK_INT(count_fds(), before + 3);
    struct box *box = launch(&spec);
    run_well(box, "exit 0");
    end(box);
    forget_outputs();
    CHECK_INT(count_fds(), before + 2);
}

BOX_TEST(a_kept_scratch_outlives_its_box)
{
    struct box_spec spec = plain_spec();
    struct error err = {0};
    spec.scratch = "kept";
    struct box *box = launch(&spec);
    run_well(box, "write /root/diary day-one");
    end(box);
    CHECK_OK(engine_sweep(engine, &err), err);
    box = launch(&spec);
    run_well(box, "cat /root/diary");
    CHECK_STR(last_output(), "day-one\n");
    end(box);
    CHECK_OK(volume_scratch_remove(engine_volume(engine), "kept", &err), err);
}

BOX_TEST(a_kept_scratch_whose_name_is_a_number_is_nobodys_slot)
{
    struct box_spec spec = plain_spec();
    struct error err = {0};
    int fd = -1;
    spec.scratch = "4000"; // as a slot it would be free
    struct box *box = launch(&spec);
    end(box);
    CHECK_OK(engine_sweep(engine, &err), err);
    CHECK_OK(volume_scratch_open(engine_volume(engine), "4000", &fd, &err), err);
    (void)close(fd);
    CHECK_OK(volume_scratch_remove(engine_volume(engine), "4000", &err), err);
}

BOX_TEST(two_engines_on_two_data_directories_know_nothing_of_each_other)
{
    char other_dir[160];
    struct box *box = NULL;
    struct error err = {0};
    struct box_spec spec = plain_spec();

    (void)snprintf(other_dir, sizeof other_dir, "%s/other", data_dir);
    struct engine *other =
        open_engine(&(struct engine_options){.data_dir = other_dir, .is_long_lived = true});
    struct box *mine = launch_plain();
    CHECK_OK(box_launch(other, &spec, &box, &err), err);
    CHECK(box_slot(box) != box_slot(mine));
    CHECK_OK(engine_sweep(engine, &err), err);
    CHECK_OK(engine_sweep(other, &err), err);
    run_well(mine, "write /root/x mine");
    run_well(box, "write /root/x other");
    run_well(mine, "cat /root/x");
    CHECK_STR(last_output(), "mine\n");
    run_well(box, "cat /root/x");
    CHECK_STR(last_output(), "other\n");
    end(own(box));
    run_well(mine, "exit 0");
    close_engine(other);
}

/* How many lines of overlay's the kernel has logged since `log` was read last; -1: it cannot be read. */
static int read_log(int log)
{
    char line[4096];
    int count = 0;
    for (ssize_t got; (got = read(log, line, sizeof line - 1)) >= 0 || errno == EPIPE;) {
        line[got > 0 ? got : 0] = '\0';
        count += strstr(line, "overlayfs:") != NULL;
    }
    return errno == EAGAIN ? count : -1;
}

/* Others on this machine may log meanwhile: once without is enough. */
BOX_TEST(a_launch_leaves_no_line_in_the_kernels_log)
{
    autofd log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int count = log < 0 ? -1 : read_log(log);
    if (is_in_vm())
        SKIP("overlay takes layers by fd from 6.13 on, and older ones log a line");
    if (count < 0)
        SKIP("the kernel's log cannot be read");
    for (unsigned i = 0; i < 10; i++) {
        end(launch_plain());
        count = read_log(log);
        if (count == 0)
            return;
    }
    CHECK_INT(count, 0);
}

NOTHING_IS_LEFT_TEST
