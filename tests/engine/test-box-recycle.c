/* SPDX-License-Identifier: Apache-2.0 */
/* What goes from box to box: the next one in a slot gets nothing of the one before but empty groups and a socket. */
#include "base/auto.h"
#include "base/fd.h"
#include "box_fixture.h"
#include "engine/cgroup_impl.h"
#include "engine/launch.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const struct limits some = {.memory_bytes = 128 << 20, .max_processes = 64};

static struct box_spec staying_spec(const struct limits *limits)
{
    struct box_spec spec = plain_spec();

    engine_recycle(engine, 8);
    spec.owner_loss = BOX_STAY;
    spec.limits = *limits;
    return spec;
}

static bool is_hybrid(void)
{
    return cgroup_root_mode(engine->cgroups) == CGROUP_HYBRID;
}

/* 0: there is none. */
static ino_t group_of(unsigned slot, enum controller controller)
{
    struct stat info;
    char name[16];
    (void)snprintf(name, sizeof name, "%u", slot);
    return fstatat(engine->cgroups->knobs[controller], name, &info, 0) < 0 ? 0 : info.st_ino;
}

static bool has_first_group(unsigned slot)
{
    char name[16];
    (void)snprintf(name, sizeof name, "%u", slot);
    return faccessat(engine->cgroups->trees[0].fd, name, F_OK, 0) == 0;
}

static uint64_t max_processes_of(unsigned slot)
{
    uint64_t number = 0;
    struct error err = {0};
    char path[64];
    (void)snprintf(path, sizeof path, "%u/pids.max", slot);
    CHECK_OK(fd_read_knob_number(engine->cgroups->knobs[CONTROLLER_PIDS], path, &number, &err),
             err);
    return number;
}

/* Starts one, runs a command in it, ends it; its slot. */
static unsigned pass_through(const struct box_spec *spec, const char *command)
{
    struct box *box = launch(spec);
    unsigned slot = box_slot(box);

    (void)run(box, command);
    end(box);
    return slot;
}

/* So that a test meets the slot it means: a child of another engine may hold a copy of its lock for a moment. */
static struct box *launch_in(const struct box_spec *spec, unsigned slot)
{
    for (;;) {
        struct box *box = launch(spec);
        if (box_slot(box) == slot)
            return box;
        end(box);
        nap();
    }
}

BOX_TEST(emptied_groups_serve_the_next_box_and_show_nothing_of_the_last)
{
    struct box_spec spec = staying_spec(&some);
    struct cgroup_usage usage;
    struct error err = {0};

    unsigned slot = pass_through(&spec, "exit 0");
    if (!is_hybrid())
        SKIP("there are version 1 groups to keep beside version 2 only");
    ino_t before = group_of(slot, CONTROLLER_MEMORY);
    CHECK(before != 0 && !has_first_group(slot));
    struct box *box = launch_in(&spec, slot);
    CHECK(group_of(slot, CONTROLLER_MEMORY) == before && has_first_group(slot));
    CHECK_OK(box_usage(box, &usage, &err), err);
    CHECK(usage.oom_kills == 0 && usage.procs_refused == 0 && usage.procs == 1);
    CHECK(usage.memory_peak_bytes < 8 << 20);
    run_well(box, "exit 0");
    end(box);
}

BOX_TEST(a_box_on_kept_groups_has_its_own_limits)
{
    struct box_spec spec = staying_spec(&some);
    struct cgroup_usage usage;
    struct error err = {0};

    unsigned slot = pass_through(&spec, "exit 0");
    spec.limits = (struct limits){.memory_bytes = 96 << 20, .max_processes = 5};
    struct box *box = launch_in(&spec, slot);
    uint32_t id = start(box, &(struct process_spec){.command.timeout_ms = 500}, "bomb");
    (void)finish(box, id);
    CHECK_OK(box_usage(box, &usage, &err), err);
    CHECK(usage.procs_refused > 0);
    end(box);
    if (is_hybrid())
        CHECK(group_of(slot, CONTROLLER_PIDS) == 0); // it shows what was refused
}

BOX_TEST(groups_that_bear_traces_or_unknown_limits_are_not_kept)
{
    struct box_spec spec = staying_spec(&some);
    struct error err = {0};

    struct box *box = launch(&spec);
    unsigned slot = box_slot(box);
    CHECK_OK(box_set_limits(box, &(struct limits){.max_processes = 9}, &err), err);
    end(box);
    if (!is_hybrid())
        SKIP("there are version 1 groups to keep beside version 2 only");
    CHECK(group_of(slot, CONTROLLER_PIDS) == 0);
    slot = pass_through(&spec, "eat 200");
    CHECK(group_of(slot, CONTROLLER_MEMORY) == 0);
}

BOX_TEST(groups_another_engine_has_made_anew_are_not_taken_for_ones_own)
{
    struct box_spec spec = staying_spec(&some);
    struct limits others = {.max_processes = 7};
    struct error err = {0};
    struct cgroup *group = NULL;
    char name[16];

    unsigned slot = pass_through(&spec, "exit 0");
    (void)snprintf(name, sizeof name, "%u", slot);
    struct engine *other = open_engine(&(struct engine_options){.is_long_lived = true});
    CHECK_OK(cgroup_create(engine_cgroups(other), name, &others, true, 0, &group, &err), err);
    CHECK_INT(max_processes_of(slot), 7);
    cgroup_entry_done(group);
    cgroup_free(group); // it died and left it
    struct box *box = launch_in(&spec, slot);
    CHECK_INT(max_processes_of(slot), some.max_processes);
    run_well(box, "exit 0");
    end(box);
    close_engine(other);
}

BOX_TEST(a_box_that_only_exists_holds_one_descriptor)
{
    struct engine *server = open_engine(&(struct engine_options){.is_long_lived = true});
    struct box_spec spec = plain_spec();
    struct error err = {0};
    struct box *boxes[6] = {NULL};
    struct box *warm = NULL;

    spec.owner_loss = BOX_STAY;
    engine_recycle(server, 8);
    CHECK_OK(box_launch(server, &spec, &warm, &err), err);
    box_settle(own(warm));
    int before = count_fds();
    for (unsigned i = 0; i < ARRAY_SIZE(boxes); i++) {
        CHECK_OK(box_launch(server, &spec, &boxes[i], &err), err);
        box_settle(own(boxes[i]));
        box_prepare(boxes[i], next_id());
    }
    CHECK_INT(count_fds(), before + (int)ARRAY_SIZE(boxes));
    run_well(boxes[0], "exit 0"); // once used, and paused, too
    CHECK_OK(box_freeze(boxes[1], &err), err);
    forget_outputs();
    CHECK_INT(count_fds(), before + (int)ARRAY_SIZE(boxes));
    for (unsigned i = 0; i < ARRAY_SIZE(boxes); i++)
        end(boxes[i]);
    end(warm);
    CHECK(count_fds() <= before + 2 * 8); // what waits for the next boxes
    close_engine(server);
}

/* Its ids are above 2^31, where a number with a sign would be negative. */
BOX_TEST(a_box_in_one_of_the_last_slots_is_like_any_other)
{
    struct box_spec spec = staying_spec(&some);
    struct error err = {0};

    for (unsigned i = 0; i < SLOT_COUNT - 64; i++)
        slot_add(&engine->own_slots, i);
    struct box *box = launch(&spec);
    CHECK(box_slot(box) >= SLOT_COUNT - 64);
    CHECK(slot_first_id(box_slot(box)) > INT32_MAX);
    run_well(box, "write /root/x mine");
    run_well(box, "cat /root/x");
    CHECK_STR(last_output(), "mine\n");
    CHECK_INT(
        run_as(box, &(struct process_spec){.command.user = "1000:1000"}, "write /etc/x no").code,
        1);
    CHECK_OK(box_freeze(box, &err), err);
    CHECK_OK(box_thaw(box, &err), err);
    unsigned slot = box_slot(box);
    disown(box);
    box_free(box);
    struct box *again = NULL;
    CHECK_OK(box_adopt(engine, slot, NULL, &again, &err), err);
    run_well(own(again), "cat /root/x");
    end(again);
    for (unsigned i = 0; i < SLOT_COUNT / 64; i++)
        engine->own_slots.held[i] = 0;
}

/* What the child of a launch can have open for a moment does not grow with what its launcher has open. */
BOX_TEST(a_launch_moves_what_it_needs_below_whatever_else_is_open)
{
    struct rlimit files; // where there are few, none are set aside
    CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
    files.rlim_cur = files.rlim_max = files.rlim_max < 8192 ? 8192 : files.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
    struct engine *server = open_engine(&(struct engine_options){.is_long_lived = true});
    struct box_spec spec = plain_spec();
    struct error err = {0};
    struct box *box = NULL;
    int high[300];

    for (unsigned i = 0; i < ARRAY_SIZE(high); i++)
        CHECK((high[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) > server->low->end - 300);
    int before = count_fds();
    CHECK(server->low->end < high[ARRAY_SIZE(high) - 1]);
    CHECK_OK(box_launch(server, &spec, &box, &err), err);
    CHECK(own(box)->control > server->low->end);
    run_well(box, "exit 0");
    end(box);
    forget_outputs();
    CHECK_INT(server->low->taken, 0);
    CHECK(count_fds() <= before + 2);
    for (unsigned i = 0; i < ARRAY_SIZE(high); i++)
        (void)close(high[i]);
    close_engine(server);
}

BOX_TEST(the_socket_of_a_slot_leads_to_the_box_that_lives_there_now)
{
    struct box_spec spec = staying_spec(&some);
    struct box *found = NULL;
    struct error err = {0};

    unsigned slot = pass_through(&spec, "exit 0");
    CHECK(box_adopt(engine, slot, NULL, &found, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    struct box *box = launch_in(&spec, slot);
    run_well(box, "write /root/x new");
    CHECK_OK(box_adopt(engine, slot, NULL, &found, &err), err);
    run_well(found, "cat /root/x");
    CHECK_STR(last_output(), "new\n");
    box_free(found);
    end(box);
}

BOX_TEST(a_socket_whose_file_another_has_replaced_is_made_anew)
{
    struct box_spec spec = staying_spec(&some);
    struct box *found = NULL;
    struct error err = {0};
    char name[16];

    unsigned slot = pass_through(&spec, "exit 0");
    (void)snprintf(name, sizeof name, "%u", slot);
    CHECK(unlinkat(engine->run_fd, name, 0) == 0);
    struct box *box = launch_in(&spec, slot);
    CHECK_OK(box_adopt(engine, slot, NULL, &found, &err), err);
    box_free(found);
    end(box);
}

BOX_TEST(a_sweep_takes_what_is_kept_and_the_next_box_does_without)
{
    struct box_spec spec = staying_spec(&some);
    struct error err = {0};
    char name[16];

    unsigned slot = pass_through(&spec, "exit 0");
    (void)snprintf(name, sizeof name, "%u", slot);
    CHECK_OK(engine_sweep(engine, &err), err);
    CHECK(faccessat(engine->run_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0);
    CHECK(!is_hybrid() || group_of(slot, CONTROLLER_MEMORY) == 0);
    struct box *box = launch(&spec);
    run_well(box, "exit 0");
    end(box);
}

BOX_TEST(a_sweep_takes_what_is_kept_where_another_data_directory_has_a_box_now)
{
    struct box_spec spec = staying_spec(&some);
    struct slot_set others = {.owner = 4711};
    struct error err = {0};
    unsigned slot = pass_through(&spec, "exit 0");
    bool is_theirs = false;
    autofd lock = -1;

    for (unsigned taken = 0; !is_theirs; is_theirs = taken == slot) {
        autofd other = -1;
        bool is_dirty;
        CHECK_OK(slot_take(engine->slots_fd, &others, &taken, &other, &is_dirty, &err), err);
        slot_is_clean(other);
        if (taken == slot)
            lock = take_fd(other);
    }
    CHECK_OK(engine_sweep(engine, &err), err);
    CHECK(!is_hybrid() || group_of(slot, CONTROLLER_MEMORY) == 0);
}

NOTHING_IS_LEFT_TEST
