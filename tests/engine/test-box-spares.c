/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes made ahead: filled, taken, limited as asked, and gone with their park. */
#include "base/auto.h"
#include "base/fd.h"
#include "box_fixture.h"
#include "engine/spare_boxes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct spare_boxes *make_spares(bool is_one_shot, unsigned count)
{
    static const char *const warm_up[] = {"/bin/guest", "exit", "0", NULL};
    struct box_spec spec = plain_spec();
    struct spare_boxes_options options = {.spec = &spec, .count = count, .warm_up = warm_up};
    struct spare_boxes *spares = NULL;
    struct error err = {0};

    spec.is_one_shot = is_one_shot;
    CHECK_OK(spare_boxes_new(engine, &options, &spares, &err), err);
    return spares;
}

static struct box *take_from(struct spare_boxes *spares, const struct limits *limits)
{
    return spare_boxes_take(spares, limits);
}

BOX_TEST(spare_boxes_are_made_up_to_their_count_and_work)
{
    struct limits no_limits = {0};
    struct error err = {0};
    unsigned made = 0;

    for (int is_one_shot = 0; is_one_shot < 2; is_one_shot++) {
        autoptr(spare_boxes) spares = make_spares(is_one_shot, 3);
        CHECK_OK(spare_boxes_fill(spares, 2, false, &made, &err), err);
        CHECK_INT(made, 2);
        CHECK_OK(spare_boxes_fill(spares, 5, false, &made, &err), err);
        CHECK_INT(made, 1);
        CHECK_INT(spare_boxes_count(spares), 3);
        struct box *box = take_from(spares, &no_limits);
        CHECK(box);
        (void)own(box);
        CHECK_INT(spare_boxes_count(spares), 2);
        run_well(box, "exit 0");
        end(box);
    }
}

BOX_TEST(a_box_that_is_taken_has_the_limits_that_were_asked_for)
{
    struct limits limits = {.max_processes = 5};
    struct error err = {0};
    struct cgroup_usage usage;
    unsigned made = 0;
    autoptr(spare_boxes) spares = make_spares(false, 1);

    CHECK_OK(spare_boxes_fill(spares, 1, false, &made, &err), err);
    struct box *box = own(take_from(spares, &limits));
    uint32_t id = start(box, &(struct process_spec){.command.timeout_ms = 500}, "bomb");
    (void)finish(box, id);
    CHECK_OK(box_usage(box, &usage, &err), err);
    CHECK(usage.procs_refused > 0);
}

BOX_TEST(boxes_made_in_a_hurry_are_not_warmed_up)
{
    static const char *const warm_up[] = {"/bin/guest", "write", "/root/warm", "yes", NULL};
    struct box_spec spec = plain_spec();
    struct spare_boxes_options options = {.spec = &spec, .count = 1, .warm_up = warm_up};
    struct limits no_limits = {0};
    struct error err = {0};
    unsigned made = 0;
    autoptr(spare_boxes) spares = NULL;

    CHECK_OK(spare_boxes_new(engine, &options, &spares, &err), err);
    CHECK_OK(spare_boxes_fill(spares, 1, false, &made, &err), err);
    struct box *box = own(take_from(spares, &no_limits));
    run_well(box, "cat /root/warm");
    end(box);
    CHECK_OK(spare_boxes_fill(spares, 1, true, &made, &err), err);
    CHECK_INT(made, 1);
    box = own(take_from(spares, &no_limits));
    CHECK(finish(box, start(box, NULL, "cat /root/warm")).code != 0);
    end(box);
}

BOX_TEST(without_spare_boxes_nothing_is_given_and_a_named_scratch_is_refused)
{
    struct limits no_limits = {0};
    struct box_spec spec = plain_spec();
    struct spare_boxes_options options = {.spec = &spec, .count = 1};
    struct spare_boxes *refused = NULL;
    struct error err = {0};
    autoptr(spare_boxes) spares = make_spares(true, 1);

    CHECK(take_from(spares, &no_limits) == NULL);
    spec.scratch = "kept";
    CHECK(spare_boxes_new(engine, &options, &refused, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
}

BOX_TEST(scratches_of_spare_boxes_can_be_kept_under_a_prefix)
{
    struct box_spec spec = plain_spec();
    struct spare_boxes_options options = {.spec = &spec, .count = 2, .scratch_prefix = "sandbox"};
    struct limits no_limits = {0};
    struct error err = {0};
    unsigned made = 0;
    autoptr(spare_boxes) spares = NULL;
    int fd = -1;

    CHECK_OK(spare_boxes_new(engine, &options, &spares, &err), err);
    CHECK_OK(spare_boxes_fill(spares, 2, false, &made, &err), err);
    struct box *box = own(take_from(spares, &no_limits));
    char name[80];
    (void)snprintf(name, sizeof name, "%s", box_scratch(box));
    CHECK(strncmp(name, "sandbox-", 8) == 0 && strlen(name) > 8 + 20);
    run_well(box, "write /root/x kept");
    end(box);

    spec.scratch = name;
    box = launch(&spec);
    run_well(box, "cat /root/x");
    CHECK_STR(last_output(), "kept\n");
    end(box);
    CHECK_OK(volume_scratch_remove(engine_volume(engine), name, &err), err);

    box = own(take_from(spares, &no_limits));
    (void)snprintf(name, sizeof name, "%s", box_scratch(box));
    CHECK_OK(volume_scratch_open(engine_volume(engine), name, &fd, &err), err);
    (void)close(fd);
    end(box);
    CHECK_OK(volume_scratch_remove(engine_volume(engine), name, &err), err);
}

static bool is_fresh(const char *name, void *n_kept)
{
    *(unsigned *)n_kept += strncmp(name, "sandbox-", 8) == 0;
    return true; // all stay
}

BOX_TEST(freed_spare_boxes_and_failed_launches_leave_no_scratch)
{
    struct box_spec spec = plain_spec();
    struct spare_boxes_options options = {.spec = &spec, .count = 2, .scratch_prefix = "sandbox"};
    struct error err = {0};
    unsigned made = 0;
    unsigned n_kept = 0;
    struct spare_boxes *spares = NULL;

    CHECK_OK(spare_boxes_new(engine, &options, &spares, &err), err);
    CHECK_OK(spare_boxes_fill(spares, 2, false, &made, &err), err);
    spare_boxes_free(spares);
    struct engine *failing = open_engine(&(struct engine_options){.fail_step = "link.make"});
    CHECK_OK(spare_boxes_new(failing, &options, &spares, &err), err);
    CHECK(spare_boxes_fill(spares, 2, false, &made, &err) < 0);
    CHECK_INT(made, 0);
    spare_boxes_free(spares);
    CHECK_OK(volume_sweep(engine_volume(engine), is_fresh, &n_kept, &err), err);
    CHECK_INT(n_kept, 0);
}

BOX_TEST(a_spare_box_that_died_is_not_given)
{
    struct limits no_limits = {0};
    struct error err = {0};
    unsigned made = 0;
    char path[64];
    char children[64];
    siginfo_t info;
    autoptr(spare_boxes) spares = make_spares(false, 1);

    CHECK_OK(spare_boxes_fill(spares, 1, false, &made, &err), err);
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    CHECK_OK(fd_read_knob(AT_FDCWD, path, children, sizeof children, &err), err);
    char *rest = NULL;
    pid_t init = (pid_t)strtol(children, &rest, 10);
    CHECK(init > 1 && rest[strspn(rest, " ")] == '\0'); // the only one: PID 1 of the box
    CHECK(kill(init, SIGKILL) == 0);
    CHECK(waitid(P_PID, (id_t)init, &info, WEXITED | WNOWAIT | __WALL) == 0);
    CHECK(take_from(spares, &no_limits) == NULL);
    CHECK_INT(spare_boxes_count(spares), 0);
}

NOTHING_IS_LEFT_TEST
