/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/sandbox/shapes.c: which shapes are remembered, in what order, and how many of each are to wait. */
#include "core/sandbox/shapes.h"

#include "../core_rig.h"

#include <stdio.h>

#define SECOND 1000

static struct runtimes *runtimes;
static struct image *image;
static struct shapes shapes;

static void begin(void)
{
    static char data_dir[160];
    struct error err = {0};

    (void)snprintf(data_dir, sizeof data_dir, "%s", fixture_fresh());
    CHECK_OK(runtimes_open(data_dir, NULL, &runtimes, &err), err);
    CHECK_OK(image_get(runtimes, "host", &image, &err), err);
    shapes_init(&shapes);
}

static void end(void)
{
    shapes_clear(&shapes);
    shapes = (struct shapes){0};
    image_free(take(image));
    runtimes_free(take(runtimes));
}

static struct shape_key key(const char *directory)
{
    return (struct shape_key){.image = image, .directory = directory};
}

/* How many are to wait then. */
static unsigned ask(const char *directory, uint64_t now_ms)
{
    const struct shape_key wanted = key(directory);
    autoptr(shape) shape = shapes_ask(&shapes, &wanted, 8, now_ms);
    CHECK(shape);
    return shape->wanted;
}

static bool is_known(const char *directory)
{
    const struct shape_key wanted = key(directory);
    autoptr(shape) shape = shapes_find(&shapes, &wanted);
    return shape != NULL;
}

TEST(one_is_to_wait_at_first_and_more_when_none_is_left)
{
    begin();
    CHECK_INT(ask("/a", SECOND), 1);
    CHECK_INT(ask("/a", SECOND), 2);
    CHECK_INT(ask("/a", SECOND), 4);
    CHECK_INT(ask("/a", SECOND), 8);
    CHECK_INT(ask("/a", SECOND), 8); // never more than may
    CHECK_INT(ask("/b", SECOND), 1);
    end();
}

TEST(shapes_differ_in_network_mode_directory_and_owner)
{
    begin();
    struct shape_key keys[] = {key(NULL), key("/a"), key("/a"), key("/a"), key("/a")};
    keys[2].uid = 1000;
    keys[3].has_network = true;
    keys[4].is_one_shot = true;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        CHECK_INT(shapes.count, i);
        shape_free(shapes_ask(&shapes, &keys[i], 1, SECOND));
        shape_free(shapes_ask(&shapes, &keys[i], 1, SECOND));
    }
    CHECK_INT(shapes.count, ARRAY_SIZE(keys));
    end();
}

TEST(the_usual_ones_come_first_then_those_asked_for_last)
{
    const char *const wanted[] = {"/usual", "/new", "/middle", "/old"};
    struct shape *list[SHAPES_MOST];

    begin();
    (void)ask("/old", 1 * SECOND);
    (void)ask("/new", 3 * SECOND);
    const struct shape_key usual = key("/usual");
    shapes_set_usual(&shapes, &usual, 5);
    (void)ask("/middle", 2 * SECOND);
    CHECK_INT(shapes_list(&shapes, list), 4);
    for (unsigned i = 0; i < 4; i++) {
        CHECK_STR(list[i]->key.directory, wanted[i]);
        shape_free(list[i]);
    }
    end();
}

TEST(all_of_the_usual_image_are_to_wait_at_once)
{
    begin();
    const struct shape_key usual = key("/usual");
    shapes_set_usual(&shapes, &usual, 5);
    CHECK_INT(ask("/other", SECOND), 8);
    CHECK(shapes_is_usual(&shapes, image));
    end();
}

TEST(a_full_table_forgets_what_was_asked_for_longest_ago_and_never_the_usual)
{
    char name[16];

    begin();
    const struct shape_key usual = key("/usual");
    shapes_set_usual(&shapes, &usual, 1);
    for (unsigned i = 1; i < SHAPES_MOST; i++) {
        (void)snprintf(name, sizeof name, "/%u", i);
        (void)ask(name, i * SECOND);
    }
    (void)ask("/1", 100 * SECOND);
    CHECK(!shapes_tally(&shapes, 0).is_over);
    (void)ask("/more", 101 * SECOND);
    CHECK_INT(shapes.count, SHAPES_MOST);
    CHECK(is_known("/more") && is_known("/1") && is_known("/usual"));
    CHECK(!is_known("/2"));
    CHECK(shapes_tally(&shapes, 0).is_over); // it is still to be ended
    autoptr(shape) leaving = shapes_next_leaving(&shapes);
    CHECK_STR(leaving->key.directory, "/2");
    CHECK(!shapes_next_leaving(&shapes));
    end();
}

TEST(callers_who_ask_for_ever_new_shapes_stay_within_the_table)
{
    unsigned refused = 0;
    char name[16];

    begin();
    for (unsigned i = 0; i < 10 * SHAPES_MOST; i++) {
        (void)snprintf(name, sizeof name, "/%u", i);
        const struct shape_key wanted = key(name);
        autoptr(shape) shape = shapes_ask(&shapes, &wanted, 1, i * SECOND);
        refused += shape == NULL;
    }
    CHECK_INT(shapes.count, SHAPES_MOST);
    CHECK_INT(shapes.n_leaving, SHAPES_MOST);
    CHECK_INT(refused, 8 * SHAPES_MOST);
    end();
}

TEST(what_was_not_asked_for_is_over_but_the_usual_never)
{
    begin();
    const struct shape_key usual = key("/usual");
    shapes_set_usual(&shapes, &usual, 1);
    (void)ask("/a", 5 * SECOND);
    CHECK(!shapes_tally(&shapes, 5 * SECOND).is_over);
    CHECK(shapes_tally(&shapes, 6 * SECOND).is_over);
    end();
}

TEST(what_is_held_back_is_not_missing_until_somebody_asks)
{
    begin();
    const struct shape_key wanted = key("/a");
    autoptr(shape) shape = shapes_ask(&shapes, &wanted, 2, SECOND);
    CHECK_INT(shapes_missing(&shapes, shape), 1);
    CHECK(shapes_tally(&shapes, 0).is_short);
    shapes_hold_back(&shapes, shape);
    CHECK_INT(shapes_missing(&shapes, shape), 0);
    CHECK(!shapes_tally(&shapes, 0).is_short);
    (void)ask("/b", SECOND);
    CHECK_INT(shapes_missing(&shapes, shape), 1);
    end();
}
