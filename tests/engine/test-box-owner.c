/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes whose owner is killed: they end, or stay and are adopted; in every cgroup mode. */
#include "base/auto.h"
#include "base/fd.h"
#include "box_fixture.h"
#include "engine/cgroup_impl.h"
#include "engine/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define IDS 100 // of processes that an owner started: its first

/* What an owner tells of its box before it is killed. */
struct deed {
    unsigned slot;
    pid_t init;
};

/*
 * A process that opens an engine of its own, launches a box, starts commands in it (ids 100, 101, ...) with these
 * spools, and waits to be killed.
 */
struct owner {
    struct box_spec spec;
    const char *commands[4];
    int spools[4];
    int stdin_fd; // of the first; 0: none
    pid_t pid;
    struct deed deed;
};

static void own_box(struct owner *o, int out)
{
    enum cgroup_mode mode = cgroup_root_mode(engine_cgroups(engine));
    struct engine_options options = {.data_dir = data_dir, .cgroup_mode = &mode};
    struct engine *mine = NULL;
    struct box *box = NULL;
    struct error err = {0};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (engine_open(&options, &mine, &err) < 0 || box_launch(mine, &o->spec, &box, &err) < 0)
        _exit(1);
    for (uint32_t i = 0; i < 4 && o->commands[i]; i++) {
        char text[256];
        const char *argv[64];
        (void)snprintf(text, sizeof text, "%s", o->commands[i]);
        split_words(text, argv);
        struct process_spec spec = {.id = IDS + i,
                                    .command.argv = argv,
                                    .output = OUTPUT_SPOOL,
                                    .stdin_fd = i == 0 && o->stdin_fd ? o->stdin_fd : -1,
                                    .stdout_fd = o->spools[i],
                                    .stderr_fd = -1};
        if (box_spawn(box, &spec, NULL, &err) < 0)
            _exit(2);
    }
    struct deed deed = {box->slot, box->pid};
    if (write(out, &deed, sizeof deed) != sizeof deed)
        _exit(3);
    for (;;)
        (void)pause();
}

static void start_owner(struct owner *o)
{
    int ends[2];
    for (unsigned i = 0; i < 4; i++) {
        if (o->commands[i])
            o->spools[i] = memfd_create("spool", MFD_CLOEXEC);
    }
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    o->pid = fork();
    CHECK(o->pid >= 0);
    if (o->pid == 0)
        own_box(o, ends[1]);
    (void)close(ends[1]);
    ssize_t got = read(ends[0], &o->deed, sizeof o->deed);
    (void)close(ends[0]);
    CHECK_INT(got, sizeof o->deed);
}

static const char *spooled(const struct owner *o, unsigned index)
{
    static char text[1 << 20];
    ssize_t got = pread(o->spools[index], text, sizeof text - 1, 0);
    CHECK(got >= 0);
    text[got] = '\0';
    return text;
}

static void kill_owner(struct owner *o)
{
    CHECK(kill(o->pid, SIGKILL) == 0);
    CHECK_INT(waitpid(o->pid, NULL, 0), o->pid);
}

static void close_spools(struct owner *o)
{
    for (unsigned i = 0; i < 4; i++) {
        if (o->spools[i] > 0)
            (void)close(o->spools[i]);
    }
}

static bool has_scratch(unsigned slot)
{
    char name[32];
    int fd = -1;
    struct error err = {0};
    (void)snprintf(name, sizeof name, "run-%u", slot);
    bool is_there = volume_scratch_open(engine_volume(engine), name, &fd, &err) == 0;
    if (is_there)
        (void)close(fd);
    return is_there;
}

static bool has_group(unsigned slot)
{
    char name[32];
    struct error err = {0};
    autoptr(cgroup) group = NULL;
    (void)snprintf(name, sizeof name, "%u", slot);
    return cgroup_open(engine_cgroups(engine), name, &group, &err) == 0;
}

BOX_TEST_MODES(a_killed_owner_ends_its_box_and_a_sweep_removes_the_rest)
{
    static const char *const commands[] = {"daemon away stay", "ignore", "bomb"};
    struct error err = {0};
    for (unsigned i = 0; i < ARRAY_SIZE(commands); i++) {
        struct owner o = {.spec = plain_spec(), .commands = {commands[i]}};
        o.spec.limits.max_processes = 100;
        start_owner(&o);
        AWAIT(strstr(spooled(&o, 0), "ready"));
        CHECK_OK(engine_sweep(engine, &err), err);
        CHECK(has_group(o.deed.slot) && has_scratch(o.deed.slot)); // it lives: nobody's to sweep
        kill_owner(&o);
        // we are its reaper now: it is gone when everything in its namespace is
        CHECK_INT(waitpid(o.deed.init, NULL, __WALL), o.deed.init);
        CHECK_OK(engine_sweep(engine, &err), err);
        CHECK(!has_group(o.deed.slot));
        CHECK(!has_scratch(o.deed.slot));
        close_spools(&o);
    }
}

BOX_TEST_MODES(a_killed_owner_ends_its_one_shot_box)
{
    struct error err = {0};
    struct owner o = {.spec = plain_spec(), .commands = {"daemon away stay"}};
    o.spec.is_one_shot = true;
    start_owner(&o);
    kill_owner(&o);
    CHECK_INT(waitpid(o.deed.init, NULL, __WALL), o.deed.init);
    CHECK_OK(engine_sweep(engine, &err), err);
    CHECK(!has_group(o.deed.slot));
    CHECK(!has_scratch(o.deed.slot));
    close_spools(&o);
}

BOX_TEST_MODES(what_a_dead_owner_left_frozen_is_swept)
{
    struct error err = {0};
    struct owner o = {.spec = plain_spec(), .commands = {"daemon away stay"}};
    char name[32];
    autoptr(cgroup) group = NULL;
    start_owner(&o);
    AWAIT(strstr(spooled(&o, 0), "ready"));
    (void)snprintf(name, sizeof name, "%u", o.deed.slot);
    CHECK_OK(cgroup_open(engine_cgroups(engine), name, &group, &err), err);
    CHECK_OK(cgroup_freeze(group, &err), err);
    kill_owner(&o);
    int64_t end = now_ms() + PATIENCE_MS;
    while (has_group(o.deed.slot) && now_ms() < end) {
        CHECK_OK(engine_sweep(engine, &err), err);
        nap();
    }
    CHECK(!has_group(o.deed.slot));
    CHECK_INT(waitpid(o.deed.init, NULL, __WALL), o.deed.init);
    close_spools(&o);
}

static struct box *adopt(const struct owner *o)
{
    struct box *box = NULL;
    struct error err = {0};
    CHECK_OK(box_adopt(engine, o->deed.slot, o->spec.scratch, &box, &err), err);
    CHECK_INT(box_slot(box), o->deed.slot);
    return own(box);
}

static void feed(int fd, uint64_t count)
{
    for (uint64_t at = 0; at < count;) {
        unsigned char data[4096];
        size_t part = count - at < sizeof data ? (size_t)(count - at) : sizeof data;
        for (size_t i = 0; i < part; i++)
            data[i] = (unsigned char)('a' + (at + i) % 26);
        ssize_t wrote = write(fd, data, part);
        CHECK(wrote > 0);
        at += (uint64_t)wrote;
    }
}

BOX_TEST_MODES(a_box_that_stays_loses_no_byte_and_no_end_and_can_be_adopted)
{
    struct error err = {0};
    struct owner o = {.spec = plain_spec(), .commands = {"cat", "exit 7", "catch 1", "lines 3"}};
    int in[2];
    CHECK(pipe2(in, O_CLOEXEC) == 0);
    o.spec.owner_loss = BOX_STAY;
    o.stdin_fd = in[0];
    start_owner(&o);
    (void)close(in[0]);
    feed(in[1], 1000);
    kill_owner(&o);
    feed(in[1], 500000);
    (void)close(in[1]);
    AWAIT(strlen(spooled(&o, 0)) == 501000);
    CHECK_OK(engine_sweep(engine, &err), err);
    struct box *newer = launch_plain();
    CHECK(box_slot(newer) != o.deed.slot);

    struct box *box = adopt(&o);
    struct process_exit exit = finish(box, IDS);
    CHECK_INT(exit.code, 0);
    CHECK_INT(exit.stdout_bytes, 501000);
    CHECK_INT(finish(box, IDS + 1).code, 7);
    CHECK_INT(finish(box, IDS + 3).stdout_bytes, 21);
    CHECK_STR(spooled(&o, 3), "line 0\nline 1\nline 2\n");
    AWAIT(strstr(spooled(&o, 2), "ready"));
    CHECK_OK(box_signal(box, IDS + 2, SIGTERM, true, &err), err);
    CHECK_INT(finish(box, IDS + 2).code, 0);
    run_well(box, "write /root/x adopted");
    CHECK_OK(box_freeze(box, &err), err);
    CHECK_OK(box_thaw(box, &err), err);
    end(box);
    CHECK_INT(waitpid(o.deed.init, NULL, __WALL), o.deed.init);
    CHECK(!has_group(o.deed.slot));
    CHECK(!has_scratch(o.deed.slot));
    close_spools(&o);
}

BOX_TEST_MODES(PID_1_waits_quietly_for_the_next_owner)
{
    struct error err = {0};
    struct owner o = {.spec = plain_spec(), .commands = {"cat"}};
    struct cgroup_usage before;
    struct cgroup_usage after;
    int in[2];
    CHECK(pipe2(in, O_CLOEXEC) == 0);
    o.spec.owner_loss = BOX_STAY;
    o.stdin_fd = in[0];
    start_owner(&o);
    (void)close(in[0]);
    kill_owner(&o);
    feed(in[1], 1000); // news that nobody takes
    AWAIT(strlen(spooled(&o, 0)) == 1000);
    struct box *box = adopt(&o);
    CHECK_OK(box_usage(box, &before, &err), err);
    disown(box);
    box_free(box);
    feed(in[1], 1000);
    for (int64_t pause = now_ms() + 1000; now_ms() < pause;)
        nap();
    box = adopt(&o);
    CHECK_OK(box_usage(box, &after, &err), err);
    CHECK(after.cpu_usec - before.cpu_usec < 300000);
    (void)close(in[1]);
    CHECK_INT(finish(box, IDS).stdout_bytes, 2000);
    end(box);
    close_spools(&o);
}

BOX_TEST_MODES(owners_follow_each_other_and_the_last_one_is_heard)
{
    struct error err = {0};
    struct owner o = {.spec = plain_spec(), .commands = {"exit 7", "sleep 1000"}};
    struct box_event event;
    o.spec.owner_loss = BOX_STAY;
    start_owner(&o);
    kill_owner(&o);
    struct box *first = adopt(&o);
    struct box *second = adopt(&o);
    do
        CHECK_OK(box_next(first, &event, PATIENCE_MS, &err), err);
    while (event.kind == BOX_EVENT_OUTPUT || event.kind == BOX_EVENT_EXIT);
    CHECK_INT(event.kind, BOX_EVENT_ENDED); // for the first, not for the box
    disown(first);
    box_free(first);
    // an end that was told and not collected is told again
    do
        CHECK_OK(box_next(second, &event, PATIENCE_MS, &err), err);
    while (event.kind == BOX_EVENT_OUTPUT);
    CHECK_INT(event.kind, BOX_EVENT_EXIT);
    CHECK_INT(event.exit.code, 7);
    disown(second);
    box_free(second);
    struct box *third = adopt(&o);
    CHECK_INT(finish(third, IDS).code, 7);
    run_well(third, "exit 0");
    CHECK_OK(box_signal(third, IDS + 1, SIGKILL, true, &err), err);
    CHECK_INT(finish(third, IDS + 1).code, 137);
    end(third);
    close_spools(&o);
}

BOX_TEST_MODES(a_one_shot_box_that_stays_is_adopted_as_one)
{
    struct owner o = {.spec = plain_spec(), .commands = {"exit 9"}};
    o.spec.owner_loss = BOX_STAY;
    o.spec.is_one_shot = true;
    start_owner(&o);
    kill_owner(&o);
    struct box *box = adopt(&o);
    CHECK_INT(finish(box, IDS).code, 9);
    end(box);
    close_spools(&o);
}

BOX_TEST(limits_and_a_kept_scratch_hold_after_adoption)
{
    struct error err = {0};
    struct owner o = {.spec = plain_spec(), .commands = {"write /root/x one"}};
    o.spec.owner_loss = BOX_STAY;
    o.spec.scratch = "kept";
    o.spec.max_files = 20;
    o.spec.limits.memory_bytes = 32 << 20;
    start_owner(&o);
    kill_owner(&o);
    struct box *box = adopt(&o);
    CHECK_INT(finish(box, IDS).code, 0);
    run_well(box, "open-many");
    CHECK_STR(last_output(), "20 24\n");
    CHECK_INT(run(box, "eat 100").cause, CAUSE_MEMORY);
    end(box);
    struct box_spec spec = plain_spec();
    spec.scratch = "kept";
    box = launch(&spec);
    run_well(box, "cat /root/x");
    CHECK_STR(last_output(), "one\n");
    end(box);
    CHECK_OK(volume_scratch_remove(engine_volume(engine), "kept", &err), err);
    close_spools(&o);
}

BOX_TEST_MODES(limits_of_an_adopted_box_change_and_are_seen)
{
    struct limits more = {.memory_bytes = 128 << 20, .max_processes = 30};
    struct error err = {0};
    struct owner o = {.spec = plain_spec(), .commands = {"write /root/x one"}};

    for (int is_one_shot = 0; is_one_shot < 2; is_one_shot++) {
        o.spec.owner_loss = BOX_STAY;
        o.spec.is_one_shot = is_one_shot;
        o.spec.limits.memory_bytes = 32 << 20;
        start_owner(&o);
        kill_owner(&o);
        struct box *box = adopt(&o);
        CHECK_INT(finish(box, IDS).code, 0);
        CHECK_OK(box_set_limits(box, &more, &err), err);
        run_well(box, "machine");
        CHECK(strstr(last_output(), "memory.max 134217728\n") != NULL);
        CHECK(strstr(last_output(), "pids.max 30\n") != NULL);
        run_well(box, "eat 64");
        end(box);
        close_spools(&o);
    }
}

/* The directory of this process's own memory group. */
static void own_memory_group(char path[PATH_MAX])
{
    struct cgroup_root *root = engine_cgroups(engine);
    for (unsigned i = 0; i < root->n_trees; i++) {
        if (root->trees[i].fd == root->knobs[CONTROLLER_MEMORY])
            (void)snprintf(path, PATH_MAX, "%s", root->trees[i].path);
    }
    *strrchr(path, '/') = '\0';
}

static void write_pid(const char *group, pid_t pid)
{
    char path[PATH_MAX + 32];
    char text[16];
    struct error err = {0};
    (void)snprintf(path, sizeof path, "%s/cgroup.procs", group);
    (void)snprintf(text, sizeof text, "%d", (int)pid);
    CHECK_OK(fd_write_knob(AT_FDCWD, path, text, &err), err);
}

/* A box has died and one lives when the next server is started, in another memory group than the one before. */
BOX_TEST_MODES(groups_of_a_server_that_was_started_elsewhere_are_found_used_and_removed)
{
    struct owner o[2] = {{.spec = plain_spec()}, {.spec = plain_spec()}};
    enum cgroup_mode mode = cgroup_root_mode(engine_cgroups(engine));
    struct cgroup_usage usage = {0};
    struct limits more = {.memory_bytes = 64 << 20};
    struct error err = {0};
    struct box *box = NULL;
    char own_group[PATH_MAX];
    char elsewhere[PATH_MAX + 32];

    if (mode == CGROUP_V2)
        return; // there is one place only
    own_memory_group(own_group);
    (void)snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere-%d", own_group, (int)getpid());
    CHECK(mkdir(elsewhere, 0755) == 0);
    write_pid(elsewhere, getpid()); // owners start where we are
    for (int i = 0; i < 2; i++) {
        o[i].spec.owner_loss = BOX_STAY;
        start_owner(&o[i]);
    }
    write_pid(own_group, getpid());
    for (int i = 0; i < 2; i++)
        kill_owner(&o[i]);
    CHECK(kill(o[0].deed.init, SIGKILL) == 0);

    struct engine *server =
        open_engine(&(struct engine_options){.is_long_lived = true, .cgroup_mode = &mode});
    CHECK_OK(box_adopt(server, o[1].deed.slot, NULL, &box, &err), err);
    CHECK_OK(box_usage(box, &usage, &err), err);
    CHECK(usage.memory_bytes > 0);
    CHECK_OK(box_set_limits(box, &more, &err), err);
    CHECK_INT(run(box, "eat 100").cause, CAUSE_MEMORY);
    CHECK_OK(engine_sweep(server, &err), err);
    CHECK(rmdir(elsewhere) < 0);
    CHECK_OK(box_end(box, &err), err);
    box_free(box);
    AWAIT(engine_sweep(server, &err) == 0 && (rmdir(elsewhere) == 0 || errno == ENOENT));
    close_engine(server);
    close_spools(&o[0]);
    close_spools(&o[1]);
}

BOX_TEST(nobody_can_be_adopted_from_a_slot_without_a_box)
{
    struct error err = {0};
    struct box *box = NULL;
    CHECK(box_adopt(engine, 4095, NULL, &box, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    struct box *mine = launch_plain(); // lives, and does not stay
    CHECK(box_adopt(engine, box_slot(mine), NULL, &box, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
}

BOX_TEST_MODES(a_box_that_stayed_and_died_is_swept_with_its_socket)
{
    struct error err = {0};
    struct owner o = {.spec = plain_spec(), .commands = {"sleep 1000"}};
    struct box *box = NULL;
    char name[16];
    o.spec.owner_loss = BOX_STAY;
    start_owner(&o);
    kill_owner(&o);
    CHECK(kill(o.deed.init, SIGKILL) == 0);
    CHECK_INT(waitpid(o.deed.init, NULL, __WALL), o.deed.init);
    CHECK(box_adopt(engine, o.deed.slot, NULL, &box, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    (void)snprintf(name, sizeof name, "%u", o.deed.slot);
    // An engine of somebody else may be trying the slot just now: then it is swept the next time.
    AWAIT(engine_sweep(engine, &err) == 0 && !has_group(o.deed.slot) &&
          faccessat(engine->run_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0);
    close_spools(&o);
}

static bool is_listed(unsigned slot, size_t *count)
{
    struct error err = {0};
    autofree unsigned *slots = NULL;
    bool is_there = false;
    CHECK_OK(engine_list_staying(engine, &slots, count, &err), err);
    for (size_t i = 0; i < *count; i++)
        is_there |= slots[i] == slot;
    return is_there;
}

BOX_TEST_MODES(boxes_that_stay_are_listed_and_one_nobody_knows_is_ended)
{
    struct error err = {0};
    struct owner known = {.spec = plain_spec(), .commands = {"sleep 1000"}};
    struct owner unknown = known;
    size_t count = 1;
    struct box *stranger = NULL;

    CHECK(!is_listed(0, &count) && count == 0);
    known.spec.owner_loss = unknown.spec.owner_loss = BOX_STAY;
    known.spec.scratch = "kept";
    start_owner(&known);
    start_owner(&unknown);
    (void)launch_plain(); // lives, and does not stay
    kill_owner(&known);
    kill_owner(&unknown);
    CHECK(is_listed(known.deed.slot, &count));
    CHECK(is_listed(unknown.deed.slot, &count));
    CHECK_INT(count, 2);

    CHECK(has_scratch(unknown.deed.slot));
    CHECK_OK(box_adopt(engine, unknown.deed.slot, NULL, &stranger, &err), err);
    end(own(stranger));
    CHECK_INT(waitpid(unknown.deed.init, NULL, __WALL), unknown.deed.init);
    CHECK(!has_scratch(unknown.deed.slot) && !has_group(unknown.deed.slot));
    CHECK(!is_listed(unknown.deed.slot, &count) && count == 1);

    struct box *box = adopt(&known);
    CHECK_STR(box_scratch(box), "kept");
    run_well(box, "exit 0");
    end(box);
    CHECK(!is_listed(known.deed.slot, &count) && count == 0);
    CHECK_OK(volume_scratch_remove(engine_volume(engine), "kept", &err), err);
    close_spools(&known);
    close_spools(&unknown);
}

BOX_TEST(a_box_that_stayed_and_died_is_not_listed)
{
    struct owner o = {.spec = plain_spec(), .commands = {"sleep 1000"}};
    size_t count = 0;
    o.spec.owner_loss = BOX_STAY;
    start_owner(&o);
    kill_owner(&o);
    CHECK(is_listed(o.deed.slot, &count));
    CHECK(kill(o.deed.init, SIGKILL) == 0);
    CHECK_INT(waitpid(o.deed.init, NULL, __WALL), o.deed.init);
    CHECK(!is_listed(o.deed.slot, &count));
    close_spools(&o);
}

NOTHING_IS_LEFT_TEST
