/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/engine/slot.c in a directory of its own. */
#include "engine/slot.h"

#include "base/auto.h"
#include "base/fd.h"
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>

#define US 1001u
#define THEM 1003u

static char dir[] = "/tmp/burrow-slots-XXXXXX";

static int make_slots(void)
{
    (void)strcpy(dir, "/tmp/burrow-slots-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static void remove_slots(void)
{
    struct error ignored = {0};
    (void)fd_remove_tree(AT_FDCWD, dir, &ignored);
}

static unsigned take_one(int slots, uint32_t owner, int *lock, bool *is_dirty)
{
    struct slot_set own = {.owner = owner}; // as a process that has just started
    struct error err = {0};
    unsigned slot = SLOT_COUNT;

    CHECK_OK(slot_take(slots, &own, &slot, lock, is_dirty, &err), err);
    return slot;
}

TEST(the_lowest_free_slot_is_taken)
{
    autofd slots = make_slots();
    autofd first = -1, second = -1, third = -1;
    bool is_dirty = true;

    CHECK_INT(take_one(slots, US, &first, &is_dirty), 0);
    CHECK(!is_dirty);
    CHECK_INT(take_one(slots, THEM, &second, &is_dirty), 1);
    slot_is_clean(first);
    closep(&first);
    CHECK_INT(take_one(slots, THEM, &third, &is_dirty), 0);
    CHECK(!is_dirty);
    remove_slots();
}

TEST(a_dirty_slot_is_taken_again_by_whose_it_was)
{
    autofd slots = make_slots();
    autofd lock = -1;
    bool is_dirty = true;

    CHECK_INT(take_one(slots, US, &lock, &is_dirty), 0);
    closep(&lock); // died without a word
    CHECK_INT(take_one(slots, US, &lock, &is_dirty), 0);
    CHECK(is_dirty);
    remove_slots();
}

TEST(a_dirty_slot_is_left_to_those_who_have_to_sweep_it)
{
    if (geteuid() != 0)
        SKIP("only root may say whose a slot is");
    autofd slots = make_slots();
    autofd lock = -1, other = -1;
    bool is_dirty = true;

    CHECK_INT(take_one(slots, US, &lock, &is_dirty), 0);
    closep(&lock);
    CHECK_INT(take_one(slots, THEM, &other, &is_dirty), 1);
    CHECK(!is_dirty);
    autofd held = slot_try(slots, 0);
    CHECK(held >= 0);
    slot_is_clean(held); // swept
    closep(&held);
    CHECK_INT(take_one(slots, THEM, &lock, &is_dirty), 0);
    remove_slots();
}

TEST(dirty_slots_of_others_are_better_than_none)
{
    if (geteuid() != 0)
        SKIP("only root may say whose a slot is");
    autofd slots = make_slots();
    autofd lock = -1;
    bool is_dirty = false;

    for (unsigned i = 0; i < SLOT_COUNT; i++) { // all of them, as if everything of ours had died
        char name[16];
        (void)snprintf(name, sizeof name, "%u", i);
        autofd fd = openat(slots, name, O_RDONLY | O_CREAT | O_CLOEXEC, 0601);
        CHECK(fd >= 0 && fchmod(fd, 0601) == 0 && fchown(fd, (uid_t)-1, US) == 0);
    }
    CHECK_INT(take_one(slots, THEM, &lock, &is_dirty), 0);
    CHECK(is_dirty);
    remove_slots();
}

TEST(what_was_anothers_is_tried_again_when_nothing_else_is_left)
{
    autofd slots = make_slots();
    autofd theirs = -1, first = -1, second = -1, last = -1;
    struct slot_set own = {.owner = US};
    struct error err = {0};
    unsigned slot = SLOT_COUNT;
    bool is_dirty = false;

    CHECK_INT(take_one(slots, THEM, &theirs, &is_dirty), 0);
    CHECK_OK(slot_take(slots, &own, &slot, &first, &is_dirty, &err), err);
    CHECK_INT(slot, 1);
    slot_is_clean(theirs);
    closep(&theirs);
    CHECK_OK(slot_take(slots, &own, &slot, &second, &is_dirty, &err), err);
    CHECK_INT(slot, 2); // 0 was another's
    for (unsigned i = 3; i < SLOT_COUNT; i++)
        slot_add(&own, i);
    CHECK_OK(slot_take(slots, &own, &slot, &last, &is_dirty, &err), err);
    CHECK_INT(slot, 0);
    remove_slots();
}

TEST(a_slot_that_was_busy_for_a_moment_is_taken_again_later)
{
    autofd slots = make_slots();
    autofd first = -1, second = -1, third = -1;
    struct slot_set own = {.owner = US};
    struct error err = {0};
    unsigned slot = SLOT_COUNT;
    bool is_dirty = false;

    CHECK_OK(slot_take(slots, &own, &slot, &first, &is_dirty, &err), err);
    CHECK_INT(slot, 0);
    autofd copy = fcntl(first, F_DUPFD_CLOEXEC, 3); // as a child has it until it executes
    slot_is_clean(first);
    slot_drop(&own, 0, &first);
    CHECK_OK(slot_take(slots, &own, &slot, &second, &is_dirty, &err), err);
    CHECK_INT(slot, 1);
    closep(&copy);
    CHECK_OK(slot_take(slots, &own, &slot, &third, &is_dirty, &err), err);
    CHECK_INT(slot, 0);
    remove_slots();
}

TEST(slots_that_were_swept_are_clean_and_those_of_others_or_taken_since_are_not)
{
    if (geteuid() != 0)
        SKIP("only root may say whose a slot is");
    autofd slots = make_slots();
    autofd ours = -1, theirs = -1, held = -1, lock = -1;
    const struct slot_set own = {.owner = US};
    struct timespec before = slots_now();
    bool is_dirty = false;

    CHECK_INT(take_one(slots, US, &ours, &is_dirty), 0);
    CHECK_INT(take_one(slots, THEM, &theirs, &is_dirty), 1);
    CHECK_INT(take_one(slots, US, &held, &is_dirty), 2);
    closep(&ours); // both died without a word
    closep(&theirs);
    slots_are_clean(slots, &own, &before);
    CHECK_INT(take_one(slots, US, &lock, &is_dirty), 0);
    CHECK(is_dirty); // it was taken after that moment
    closep(&lock);
    before.tv_sec += 3600;
    slots_are_clean(slots, &own, &before);
    CHECK_INT(take_one(slots, US, &lock, &is_dirty), 0);
    CHECK(!is_dirty);
    autofd other = -1;
    CHECK_INT(take_one(slots, US, &other, &is_dirty), 3); // 1 is theirs to sweep, 2 is held
    remove_slots();
}

TEST(kept_slots_are_held_by_one_descriptor_until_owner_and_box_are_gone)
{
    autofd slots = make_slots();
    autofd holder = openat(slots, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autofd box = -1, other = -1;
    struct slot_set own = {.owner = US};
    struct error err = {0};
    unsigned slot = SLOT_COUNT;
    bool is_dirty = true;

    for (unsigned i = 0; i < 3; i++) {
        autofd lock = -1;
        CHECK_OK(slot_take(slots, &own, &slot, &lock, &is_dirty, &err), err);
        CHECK_INT(slot, i);
        box = i == 2 ? dup(lock) : -1; // as PID 1 has it
        slot_keep(holder, slot, &lock);
        CHECK_INT(lock, -1);
    }
    CHECK(slot_try(slots, 0) < 0 && slot_try(slots, 1) < 0 && slot_try(slots, 2) < 0);
    slot_release(holder, &own, 0, true);
    slot_release(holder, &own, 2, true);
    CHECK_INT(take_one(slots, US, &other, &is_dirty), 0);
    CHECK(!is_dirty);
    CHECK(slot_try(slots, 1) < 0 && slot_try(slots, 2) < 0); // its box lives
    closep(&box);
    autofd second = slot_try(slots, 2);
    CHECK(second >= 0);
    closep(&holder); // the owner has died
    autofd first = slot_try(slots, 1);
    CHECK(first >= 0);
    remove_slots();
}

TEST(names_of_slots_are_numbers)
{
    unsigned slot = 7;

    CHECK(slot_parse("0", &slot) && slot == 0);
    CHECK(slot_parse("16383", &slot) && slot == 16383);
    CHECK(!slot_parse("16384", &slot) && !slot_parse("-1", &slot) && !slot_parse("1x", &slot) &&
          !slot_parse("", &slot));
}
