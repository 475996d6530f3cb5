/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/turns.h"

#include "test.h"

static void nothing(void *data)
{
    (void)data;
}

/* Each work is known by the letter it carries. */
static enum turns_added add(struct turns *turns, uint64_t who, uint64_t what, const char *letter)
{
    struct turns_owner owner = {.who = who, .what = what};
    return turns_add(turns, &owner, (struct turns_work){nothing, (void *)letter});
}

static struct turns_party *take_next(struct turns *turns, char *letter)
{
    struct turns_work work = {0};
    struct turns_party *party = turns_next(turns, &work);

    *letter = party ? *(const char *)work.data : '-';
    return party;
}

/* The letters in the order of their turns, each done before the next. */
static void run_all(struct turns *turns, char *order)
{
    struct turns_party *party;

    while ((party = take_next(turns, order))) {
        turns_done(turns, party);
        order++;
    }
    *order = '\0';
}

TEST(those_who_ask_take_turns_whoever_came_first)
{
    autoptr(turns) turns = turns_new(&(struct turns_limits){0});
    char order[16];

    for (int i = 0; i < 5; i++)
        CHECK_INT(add(turns, 1, 1, "a"), TURNS_ADDED);
    for (int i = 0; i < 2; i++)
        CHECK_INT(add(turns, 2, 1, "b"), TURNS_ADDED);
    CHECK_INT(add(turns, 3, 1, "c"), TURNS_ADDED);
    run_all(turns, order);
    CHECK_STR(order, "abcabaaa");
}

TEST(things_of_one_who_asks_take_turns_as_well)
{
    autoptr(turns) turns = turns_new(&(struct turns_limits){0});
    char order[16];

    for (int i = 0; i < 3; i++)
        CHECK_INT(add(turns, 1, 1, "x"), TURNS_ADDED);
    CHECK_INT(add(turns, 1, 2, "y"), TURNS_ADDED);
    CHECK_INT(add(turns, 1, 0, "z"), TURNS_ADDED);
    CHECK_INT(add(turns, 2, 1, "o"), TURNS_ADDED);
    run_all(turns, order);
    CHECK_STR(order, "xoyzxx");
}

TEST(who_has_the_least_running_comes_first)
{
    autoptr(turns) turns = turns_new(&(struct turns_limits){0});
    char letter;

    for (int i = 0; i < 4; i++)
        CHECK_INT(add(turns, 1, (uint64_t)i + 1, "a"), TURNS_ADDED);
    CHECK(take_next(turns, &letter));
    CHECK(take_next(turns, &letter));
    struct turns_party *third = take_next(turns, &letter);
    for (int i = 0; i < 3; i++)
        CHECK_INT(add(turns, 2, 1, "b"), TURNS_ADDED);
    for (int i = 0; i < 2; i++) { // 1 has two or three running, 2 fewer
        CHECK(take_next(turns, &letter));
        CHECK_INT(letter, 'b');
    }
    turns_done(turns, third);
    CHECK(take_next(turns, &letter)); // now both have two: 1 has waited for longer
    CHECK_INT(letter, 'a');
}

TEST(nobody_runs_more_at_once_than_is_allowed_for_a_thing_and_for_all_its_things)
{
    autoptr(turns) turns = turns_new(&(struct turns_limits){.per_who = 3, .per_what = 2});
    struct turns_party *one[3];
    char letter;

    for (int i = 0; i < 4; i++)
        CHECK_INT(add(turns, 1, 1, "x"), TURNS_ADDED);
    for (int i = 0; i < 2; i++) {
        one[i] = take_next(turns, &letter);
        CHECK(one[i]);
    }
    CHECK(!take_next(turns, &letter)); // two of the four wait, for what they are about
    CHECK_INT(turns_waiting(turns), 2);
    for (int i = 0; i < 2; i++)
        CHECK_INT(add(turns, 1, 2, "y"), TURNS_ADDED);
    CHECK(take_next(turns, &letter));
    CHECK_INT(letter, 'y');
    CHECK(!take_next(turns, &letter)); // three run for the one who asks
    CHECK_INT(add(turns, 2, 1, "o"), TURNS_ADDED);
    CHECK(take_next(turns, &letter)); // and another's is not held up, though it is about the same
    CHECK_INT(letter, 'o');
    turns_done(turns, one[0]);
    CHECK(take_next(turns, &letter));
    CHECK_INT(turns_running(turns), 4);
}

TEST(work_about_nothing_is_bounded_for_who_asks_only)
{
    autoptr(turns) turns = turns_new(&(struct turns_limits){.per_who = 3, .per_what = 1});
    char letter;

    for (int i = 0; i < 4; i++)
        CHECK_INT(add(turns, 1, 0, "c"), TURNS_ADDED);
    for (int i = 0; i < 3; i++)
        CHECK(take_next(turns, &letter));
    CHECK(!take_next(turns, &letter));
}

TEST(heavy_work_runs_one_at_a_time_for_a_thing_and_so_many_in_all)
{
    autoptr(turns) turns = turns_new(&(struct turns_limits){.heavy = 2});
    struct turns_owner owner = {.who = 1, .what = 1, .is_heavy = true};
    struct turns_party *first;
    char letter;

    for (int i = 0; i < 36; i++)
        CHECK_INT(turns_add(turns, &owner, (struct turns_work){nothing, "d"}), TURNS_ADDED);
    first = take_next(turns, &letter);
    CHECK(first);
    CHECK(!take_next(turns, &letter)); // the same again waits
    owner.who = 2;
    CHECK_INT(turns_add(turns, &owner, (struct turns_work){nothing, "e"}), TURNS_ADDED);
    CHECK(take_next(turns, &letter));
    CHECK_INT(letter, 'e');
    owner.who = 3;
    CHECK_INT(turns_add(turns, &owner, (struct turns_work){nothing, "f"}), TURNS_ADDED);
    CHECK(!take_next(turns, &letter)); // two are heavy already
    CHECK_INT(add(turns, 1, 1, "l"), TURNS_ADDED);
    CHECK(take_next(turns, &letter)); // what is light goes on, of the same thing too
    CHECK_INT(letter, 'l');
    turns_done(turns, first);
    CHECK(take_next(turns, &letter));
    CHECK_INT(letter, 'f'); // 1 has a light one running
}

TEST(one_who_asks_fills_its_own_part_of_the_queue_alone)
{
    autoptr(turns) turns = turns_new(&(struct turns_limits){.queue = 5, .queue_per_who = 3});

    for (int i = 0; i < 3; i++)
        CHECK_INT(add(turns, 1, 1, "a"), TURNS_ADDED);
    CHECK_INT(add(turns, 1, 2, "a"), TURNS_FULL_FOR_WHO);
    CHECK_INT(add(turns, 2, 1, "b"), TURNS_ADDED);
    CHECK_INT(add(turns, 3, 1, "c"), TURNS_ADDED);
    CHECK_INT(add(turns, 4, 1, "d"), TURNS_FULL);
    CHECK_INT(turns_waiting(turns), 5);
}
