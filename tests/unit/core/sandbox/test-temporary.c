/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sandbox/temporary.h"

#include "test.h"

#include <string.h>
#include <sys/stat.h>

#define KIB ((size_t)1024)

static char bytes[64 * KIB], zeros[64 * KIB];
static struct core_settings settings;

static struct temporaries *open_room(int64_t in_all, int64_t for_a_key)
{
    settings = core_settings_default;
    settings.data_dir = "/tmp";
    settings.temporary_bytes = in_all;
    settings.temporary_key_bytes = for_a_key;
    memset(bytes, 'x', sizeof bytes);
    return temporaries_new(&settings);
}

static struct temporary *new_file(struct temporaries *all, const char *key)
{
    struct actor actor = {0};
    struct temporary *file = NULL;
    struct error err = {0};

    (void)snprintf(actor.key_id, sizeof actor.key_id, "%s", key);
    CHECK_OK(temporary_new(all, &actor, &file, &err), err);
    return file;
}

TEST(a_key_has_its_part_of_the_room_and_others_have_theirs)
{
    autoptr(temporaries) all = open_room(256 * KIB, 128 * KIB);
    struct temporary *one = new_file(all, "a"), *two = new_file(all, "a");
    autoptr(temporary) other = new_file(all, "b");
    struct error err = {0};

    CHECK_OK(temporary_write(one, bytes, 64 * KIB, &err), err);
    CHECK_OK(temporary_write(two, bytes, 64 * KIB, &err), err);
    CHECK(temporary_write(two, bytes, KIB, &err) < 0);
    CHECK_INT(err.reason, ERROR_FULL);
    CHECK_STR(err.noun, "file");
    CHECK(strstr(err.text, "128Ki that there is for each key"));
    CHECK_OK(temporary_write(other, bytes, 64 * KIB, &err), err);
    temporary_free(one); // what is gone is free again
    CHECK_OK(temporary_write(two, bytes, 32 * KIB, &err), err);
    temporary_free(two);
}

TEST(all_keys_together_have_no_more_than_there_is)
{
    autoptr(temporaries) all = open_room(128 * KIB, 96 * KIB);
    autoptr(temporary) one = new_file(all, "a");
    autoptr(temporary) two = new_file(all, "b");
    struct error err = {0};

    CHECK_OK(temporary_write(one, bytes, 64 * KIB, &err), err);
    CHECK_OK(temporary_write(two, bytes, 64 * KIB, &err), err);
    CHECK(temporary_write(two, bytes, KIB, &err) < 0);
    CHECK_INT(err.reason, ERROR_FULL);
}

TEST(what_never_fits_is_said_to_be_too_large)
{
    autoptr(temporaries) all = open_room(256 * KIB, 96 * KIB);
    autoptr(temporary) file = new_file(all, "a");
    struct error err = {0};

    CHECK_OK(temporary_write(file, bytes, 64 * KIB, &err), err);
    CHECK(temporary_write(file, bytes, 64 * KIB, &err) < 0);
    CHECK_INT(err.reason, ERROR_TOO_LARGE);
}

TEST(a_disk_that_was_full_at_the_start_does_not_stay_full)
{
    struct error err = {0};

    settings = core_settings_default;
    settings.data_dir = "/proc"; // nothing is free there
    autoptr(temporaries) all = temporaries_new(&settings);
    settings.data_dir = "/tmp";
    autoptr(temporary) file = new_file(all, "a");
    memset(bytes, 'x', sizeof bytes);
    CHECK_OK(temporary_write(file, bytes, 64 * KIB, &err), err);
}

TEST(holes_take_no_room)
{
    autoptr(temporaries) all = open_room(256 * KIB, 128 * KIB);
    autoptr(temporary) file = new_file(all, "a");
    struct error err = {0};
    struct stat info;

    for (int i = 0; i < 1024; i++)
        CHECK_OK(temporary_write(file, zeros, sizeof zeros, &err), err);
    CHECK_OK(temporary_write(file, bytes, KIB, &err), err);
    CHECK_OK(temporary_finish(file, &err), err);
    CHECK_INT(file->size, 1024 * sizeof zeros + KIB);
    CHECK(fstat(file->fd, &info) == 0);
    CHECK_INT(info.st_size, file->size);
    CHECK(info.st_blocks * 512 <= (long)(8 * KIB));
}

TEST(room_that_was_reserved_is_given_back_when_less_was_needed)
{
    autoptr(temporaries) all = open_room(256 * KIB, 128 * KIB);
    autoptr(temporary) file = new_file(all, "a");
    autoptr(temporary) beside = new_file(all, "a");
    struct error err = {0};

    CHECK_OK(temporary_reserve(file, 120 * KIB, &err), err);
    CHECK(temporary_write(beside, bytes, 64 * KIB, &err) < 0);
    CHECK(write(file->fd, bytes, KIB) == (ssize_t)KIB);
    CHECK_OK(temporary_settle(file, &err), err);
    CHECK_INT(file->size, KIB);
    CHECK_OK(temporary_write(beside, bytes, 32 * KIB, &err), err);
}
