/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of attacks that 'burrow doctor --attack' carries out, one test each row, and that walls which are not there are found
 * open. The titles are the names of the rows: tests/THREATS.md has them as `attack: NAME`.
 */
#include "attack/attack_range.h"
#include "threat_fixture.h"

#define MAX_ROWS 256

static struct range *range; // one for all rows: each mends what the one before it broke

static struct range *open_range_over(const struct box_spec *spec, bool has_no_limits)
{
    const struct range_options options = {
        .spec = spec, .data_dir = data_dir, .has_no_limits = has_no_limits};
    struct range *opened = NULL;
    struct error err = {0};
    CHECK_OK(range_open(engine, &options, &opened, &err), err);
    return opened;
}

static const struct attack *find_attack(const char *name)
{
    for (const struct attack *attack = attack_table; attack->name; attack++) {
        if (strcmp(attack->name, name) == 0)
            return attack;
    }
    test_fail(__FILE__, __LINE__, "there is no attack '%s'", name);
}

static void run_row(void)
{
    const struct attack *attack = find_attack(test_running->name);
    struct attack_result result;
    if (!range) {
        begin_box_test(NULL);
        static const struct box_bind bind = {.host = "/usr", .box = "/run"};
        struct box_spec spec = spec_with(NULL);
        spec.binds = &bind;
        spec.n_binds = 1;
        range = open_range_over(&spec, false);
    }
    attack_run(attack, range, &result);
    if (result.verdict != ATTACK_HELD)
        test_fail(__FILE__, __LINE__, "%s: %s", attack_verdict_name(result.verdict), result.reason);
}

__attribute__((constructor)) static void register_rows(void)
{
    static struct test tests[MAX_ROWS];
    for (size_t i = 0; attack_table[i].name && i < MAX_ROWS; i++) {
        tests[i] = (struct test){.name = attack_table[i].name, .run = run_row};
        test_register(&tests[i]);
    }
}

TEST(the_rows_leave_nothing)
{
    if (!range)
        SKIP("no row was run");
    range_free(range);
    range = NULL;
    CHECK(access(place("attacker"), F_OK) == 0); // the data directory is still there, and
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/attack-%d", data_dir, (int)getpid());
    CHECK(access(path, F_OK) < 0); // the range's own place is not
    end_box_test();
}

static void check_open(struct range *attacked, const char *name)
{
    const struct attack *attack = find_attack(name);
    struct attack_result result;
    attack_run(attack, attacked, &result);
    if (result.verdict != ATTACK_OPEN || !*result.reason)
        test_fail(__FILE__, __LINE__, "%s: %s %s", name, attack_verdict_name(result.verdict),
                  result.reason);
}

BOX_TEST(limits_that_are_not_there_are_found_open)
{
    static const char *const names[] = {"memory-limit", "process-limit", "disk-limit", "cpu-limit"};
    struct box_spec spec = spec_with(NULL);
    autoptr(range) attacked = open_range_over(&spec, true);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        check_open(attacked, names[i]);
}

/* The data directory itself, seen in the box where it is on the host. */
BOX_TEST(a_directory_of_the_host_seen_inside_is_found_open)
{
    int fd = -1;
    const char *layer = hostile_layer(&fd);
    char path[4096];
    struct error err = {0};
    (void)snprintf(path, sizeof path, "%s%s", layer, data_dir);
    closep(&fd);
    CHECK_OK(fd_make_dirs(path, 0755, &err), err);
    struct box_bind bind = {.host = data_dir, .box = data_dir};
    struct box_spec spec = spec_with(layer);
    spec.binds = &bind;
    spec.n_binds = 1;
    autoptr(range) attacked = open_range_over(&spec, false);
    check_open(attacked, "path-escape");
}

/* A box that an attack has ended is made again of what the range was opened with, wherever that stood. */
BOX_TEST(a_box_is_mended_when_the_list_of_binds_is_gone)
{
    static const char *const argv[] = {RANGE_ATTACKER, "hello", NULL};
    struct box_bind bind = {.host = "/usr", .box = "/run"};
    struct box_spec spec = spec_with(NULL);
    struct range_outcome outcome;
    struct error err = {0};
    spec.binds = &bind;
    spec.n_binds = 1;
    autoptr(range) attacked = open_range_over(&spec, false);
    bind = (struct box_bind){.host = "/nowhere", .box = "/nowhere"};
    CHECK_STR(attacked->spec.binds[0].box, "/run");
    CHECK_OK(box_end(attacked->a, &err), err);
    CHECK_OK(range_mend(attacked, &err), err);
    CHECK_OK(range_finish(attacked, attacked->a, NULL, argv, &outcome, &err), err);
    CHECK(outcome.exit.code == 0);
}

NOTHING_IS_LEFT_TEST
