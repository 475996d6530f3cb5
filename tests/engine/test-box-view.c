/* SPDX-License-Identifier: Apache-2.0 */
/* What a program sees is what it has: in boxes launched, made ahead, changed while they live, and adopted. */
#include "base/auto.h"
#include "box_fixture.h"
#include "engine/box_aside.h"
#include "engine/fixtures.h"
#include "engine/launch.h"
#include "engine/spare_boxes.h"

#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MIB (1ll << 20)

static const struct limits little = {
    .memory_bytes = 64 * MIB, .cpu_millicores = 500, .disk_bytes = 64 * MIB, .max_processes = 20};
static const struct limits more = {.memory_bytes = 256 * MIB,
                                   .cpu_millicores = 2000,
                                   .disk_bytes = 128 * MIB,
                                   .max_processes = 40};

static int machine_cpus(void)
{
    cpu_set_t cpus;
    CHECK(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
    return CPU_COUNT(&cpus);
}

static void expect(const char *format, long long number)
{
    char line[128];
    (void)snprintf(line, sizeof line, format, number);
    if (!strstr(last_output(), line))
        test_fail(__FILE__, __LINE__, "no line '%s' in:\n%s", line, last_output());
}

/* What the guest's `machine` says must be these limits. */
static void check_view(struct box *box, const struct limits *limits)
{
    int wanted = (int)((limits->cpu_millicores + 999) / 1000);
    int cpus = wanted < machine_cpus() ? wanted : machine_cpus();

    run_well(box, "machine");
    expect("cpus %lld\n", cpus);
    expect(cpus > 1 ? "online 0-%lld\n" : "online 0\n", cpus - 1);
    expect("memory.max %lld\n", limits->memory_bytes);
    expect("pids.max %lld\n", limits->max_processes);
    expect(limits->cpu_millicores < 1000 ? "cpu.max %lld 50000\n" : "cpu.max %lld 100000\n",
           limits->cpu_millicores * (limits->cpu_millicores < 1000 ? 50 : 100));
    expect("meminfo MemTotal:       %8lld kB\n", limits->memory_bytes / 1024);
    expect("shm %lld\n", limits->memory_bytes / 2);
}

BOX_TEST_MODES(a_box_shows_the_limits_it_is_launched_with)
{
    struct box_spec spec = plain_spec();
    spec.limits = little;
    check_view(launch(&spec), &little);
}

BOX_TEST(a_spare_box_taken_with_other_limits_shows_those)
{
    struct box_spec spec = plain_spec();
    struct error err = {0};
    unsigned made = 0;

    spec.limits = little;
    for (int is_one_shot = 0; is_one_shot < 2; is_one_shot++) {
        spec.is_one_shot = is_one_shot;
        struct spare_boxes_options options = {.spec = &spec, .count = 2};
        autoptr(spare_boxes) spares = NULL;
        CHECK_OK(spare_boxes_new(engine, &options, &spares, &err), err);
        CHECK_OK(spare_boxes_fill(spares, 2, false, &made, &err), err);
        check_view(own(spare_boxes_take(spares, &more)), &more);
        check_view(own(spare_boxes_take(spares, &little)), &little);
    }
}

static void change(struct box *box, const struct limits *limits)
{
    struct error err = {0};
    CHECK_OK(box_set_limits(box, limits, &err), err);
    check_view(box, limits);
}

BOX_TEST_MODES(what_a_program_sees_follows_limits_up_and_down_without_a_restart)
{
    struct box_spec spec = plain_spec();
    spec.limits = little;
    struct box *box = launch(&spec);
    uint32_t witness = start_ready(box, NULL, "catch 1");
    struct error err = {0};

    for (int i = 0; i < 3; i++) {
        change(box, &more);
        change(box, &little);
    }
    change(box, &more);
    run_well(box, "eat 128");
    run_well(box, "fill /root/big 96");
    CHECK_STR(last_output(), "100663296 0\n");
    CHECK_OK(box_signal(box, witness, SIGTERM, false, &err), err);
    CHECK_INT(finish(box, witness).code, 0);
}

/* Mounts of earlier changes do not pile up. */
BOX_TEST(a_box_that_is_changed_often_has_no_more_mounts_than_one_changed_once)
{
    struct box_spec spec = plain_spec();
    spec.limits = little;
    struct box *box = launch(&spec);
    size_t lengths[2];

    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 1 + 4 * i; j++) {
            change(box, &more);
            change(box, &little);
        }
        run_well(box, "cat /proc/self/mounts");
        lengths[i] = strlen(last_output());
    }
    CHECK_INT(lengths[1], lengths[0]);
}

BOX_TEST_MODES(running_programs_get_the_processors_too)
{
    struct box_spec spec = plain_spec();
    spec.limits = little;
    struct box *box = launch(&spec);

    if (machine_cpus() < 2)
        SKIP("this machine has one processor");
    uint32_t id = start(box, NULL, "watch-cpus 2");
    await_output(id, "cpus 1\n");
    change(box, &more);
    CHECK_INT(finish(box, id).code, 0);
}

BOX_TEST_MODES(memory_below_what_is_in_use_is_refused_and_nothing_is_killed)
{
    struct box_spec spec = plain_spec();
    spec.limits = more;
    struct box *box = launch(&spec);
    struct cgroup_usage usage;
    struct error err = {0};
    uint32_t id = start(box, NULL, "eat 150 stay");

    await_output(id, "ate\n");
    CHECK(box_set_limits(box, &little, &err) < 0);
    CHECK_INT(err.reason, ERROR_STATE);
    CHECK_STR(err.noun, "memory");
    CHECK(strstr(err.text, "64Mi") != NULL);
    err = (struct error){0};
    change(box, &more); // those from before, as the contract says
    CHECK_OK(box_usage(box, &usage, &err), err);
    CHECK_INT(usage.oom_kills, 0);
    CHECK_OK(box_signal(box, id, SIGKILL, true, &err), err);
    (void)finish(box, id);
    AWAIT(box_set_limits(box, &little, &err) == 0);
    check_view(box, &little);
}

BOX_TEST(files_in_memory_that_would_not_fit_are_a_refusal_too)
{
    struct box_spec spec = plain_spec();
    spec.limits = more;
    struct box *box = launch(&spec);
    struct error err = {0};

    run_well(box, "fill /dev/shm/a 48");
    CHECK(box_set_limits(box, &little, &err) < 0);
    CHECK_INT(err.reason, ERROR_STATE);
    CHECK(strstr(err.text, "/dev/shm") != NULL);
    run_well(box, "unlink /dev/shm/a");
    change(box, &little);
}

/* A guest that puts something else where /sys was gets what it made; nothing outside of it is touched. */
BOX_TEST(a_guest_that_replaced_sys_only_loses_its_own_view)
{
    struct box_spec spec = plain_spec();
    spec.limits = little;
    struct box *box = launch(&spec);
    struct error err = {0};

    run_well(box, "move /sys /gone");
    run_well(box, "link / /sys");
    CHECK_OK(box_set_limits(box, &more, &err), err);
    run_well(box, "grep /proc/meminfo MemTotal:");
    expect("MemTotal:       %8lld kB", more.memory_bytes / 1024);
    run_well(box, "cat /etc/passwd");
}

BOX_TEST(a_box_without_limits_shows_the_machine_and_can_get_and_lose_them)
{
    struct box *box = launch_plain();
    struct limits none = {0};
    struct error err = {0};

    change(box, &little);
    CHECK_OK(box_set_limits(box, &none, &err), err);
    run_well(box, "machine");
    expect("cpus %lld\n", machine_cpus());
    CHECK(strstr(last_output(), "pids.max max\n") != NULL);
    CHECK(strstr(last_output(), "memory.max max\n") != NULL);
    CHECK(strstr(last_output(), "cpu.max max 100000\n") != NULL);
}

/* btrfs tells the size of the whole volume, whatever a subvolume may take. */
BOX_TEST(the_disk_is_as_large_as_its_limit_where_the_volume_can_tell)
{
    enum volume_scheme scheme = volume_scheme(engine_volume(engine));
    bool is_told = scheme == VOLUME_XFS || scheme == VOLUME_EXT4 || scheme == VOLUME_TMPFS;
    struct box_spec spec = plain_spec();
    unsigned long long shown = 0;

    spec.limits = little;
    struct box *box = launch(&spec);
    for (int i = 0; i < 2; i++) {
        run_well(box, "disk /");
        CHECK_INT(sscanf(last_output(), "%llu", &shown), 1);
        CHECK(is_told ? shown == (unsigned long long)(i ? more : little).disk_bytes
                      : shown > (unsigned long long)more.disk_bytes);
        change(box, &more);
    }
}

/* There the view is made in memory, so that no mount tells where burrow keeps things. */
BOX_TEST(files_in_memory_show_the_limits_and_no_path_of_the_host)
{
    struct engine *other = open_engine(&(struct engine_options){.volume.scheme = VOLUME_TMPFS});
    struct box_spec spec = plain_spec();
    struct box *box = NULL;
    struct error err = {0};

    spec.limits = little;
    if (box_launch(other, &spec, &box, &err) < 0 && error_is(&err, ERROR_UNAVAILABLE)) {
        close_engine(other);
        SKIP("files in memory need Linux 6.3");
    }
    CHECK(box != NULL);
    for (int i = 0; i < 2; i++) {
        change(box, &more);
        change(box, &little);
    }
    run_well(box, "disk /");
    expect("%lld\n", little.disk_bytes);
    run_well(box, "cat /proc/self/mountinfo");
    CHECK(strstr(last_output(), "fixtures") == NULL);
    CHECK_OK(box_end(box, &err), err);
    box_free(box);
    close_engine(other);
}

static unsigned count_entries(const char *path)
{
    unsigned count = 0;
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    if (dir)
        (void)closedir(dir);
    return count;
}

/* Who may choose limits may choose other ones each time. */
BOX_TEST(views_of_many_different_limits_do_not_pile_up)
{
    struct box_spec spec = plain_spec();
    struct limits limits = little;
    struct error err = {0};
    char views[PATH_MAX];

    spec.limits = little;
    struct box *box = launch(&spec);
    for (int i = 0; i < 300; i++) {
        limits.memory_bytes = little.memory_bytes + (i + 1) * 8192;
        CHECK_OK(box_set_limits(box, &limits, &err), err);
    }
    check_view(box, &limits);
    for (int i = 0; i < 3; i++) {
        spec.limits.memory_bytes = more.memory_bytes + (i + 1) * 8192;
        struct box *other = launch(&spec);
        check_view(other, &spec.limits);
        end(other);
    }
    (void)snprintf(views, sizeof views, "/proc/self/fd/%d", engine->fixtures->views_fd);
    CHECK(count_entries(views) <= 256 + 4);
}

static void run_on(const cpu_set_t *cpus)
{
    CHECK(sched_setaffinity(0, sizeof *cpus, cpus) == 0);
}

/* On one of these processors, unless the kernel moves it just now. */
static void step_aside(const cpu_set_t *bound, const cpu_set_t *from, struct box_aside *aside)
{
    for (int i = 0; i < 100 && !aside->is_moved; i++) {
        run_on(bound);
        run_on(from);
        box_step_aside(bound, aside);
    }
}

BOX_TEST(a_thread_leaves_a_box_its_processor_and_comes_back)
{
    struct box_spec spec = plain_spec();
    struct box_aside aside = {.is_moved = false};
    cpu_set_t all;
    cpu_set_t bound;
    cpu_set_t now;

    if (machine_cpus() < 2)
        SKIP("two processors");
    spec.limits = little;
    struct box *box = launch(&spec);
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    CHECK(box_processors(box, &bound));
    CHECK_INT(CPU_COUNT(&bound), 1);
    step_aside(&bound, &all, &aside);
    CHECK(aside.is_moved);
    CHECK(!CPU_ISSET(sched_getcpu(), &bound));
    box_aside_end(&aside);
    CHECK(sched_getaffinity(0, sizeof now, &now) == 0);
    CHECK(CPU_EQUAL(&now, &all));

    run_on(&bound); // it has no other
    box_step_aside(&bound, &aside);
    CHECK(!aside.is_moved && CPU_ISSET(sched_getcpu(), &bound));
    run_on(&all);
}

/* Else it would not get processors that its control group is given later, and no box made by it either. */
BOX_TEST(a_thread_that_chose_no_processors_has_chosen_none_after_it)
{
    struct box_aside aside = {.is_moved = false};
    cpu_set_t every;
    cpu_set_t now;
    cpu_set_t one;

    memset(&every, 0xff, sizeof every);
    run_on(&every);
    CHECK(sched_getaffinity(0, sizeof now, &now) == 0);
    if (CPU_COUNT(&now) < 2)
        SKIP("two processors");
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    step_aside(&one, &every, &aside);
    CHECK(aside.is_moved);
    CHECK(CPU_EQUAL(&aside.after, &every));
    box_aside_end(&aside);
}

NOTHING_IS_LEFT_TEST
