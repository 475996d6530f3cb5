/* SPDX-License-Identifier: Apache-2.0 */
/* What has changed in real sandboxes between two moments, and its patches. Needs root. */
#include "core/snapshot/difference.h"
#include "state_fixture.h"

#include <sys/stat.h>

static void compare(const char *sandbox, const char *from, const char *to, bool has_patches,
                    struct difference *out)
{
    const struct difference_request request = {.from = from,
                                               .to = to,
                                               .has_patches = has_patches,
                                               .max_entries = 1000,
                                               .max_patch_bytes = 1 << 20};
    struct error err = {0};

    difference_clear(out);
    CHECK_OK(difference_get(core->snapshots, &actor, sandbox, &request, out, &err), err);
}

static const struct difference_entry *find(const struct difference *difference, const char *path)
{
    for (size_t i = 0; i < difference->count; i++) {
        if (strcmp(difference->entries[i].path, path) == 0)
            return &difference->entries[i];
    }
    return NULL;
}

static const struct difference_entry *must_find(const struct difference *difference,
                                                const char *path)
{
    const struct difference_entry *entry = find(difference, path);
    if (!entry) {
        for (size_t i = 0; i < difference->count; i++)
            printf("# %d %s\n", difference->entries[i].kind, difference->entries[i].path);
        test_fail(__FILE__, __LINE__, "'%s' is not told", path);
    }
    return entry;
}

CORE_TEST(files_added_changed_and_removed_since_a_checkpoint_are_told_with_patches)
{
    autodifference found = {0};
    char id[ID_TEXT];

    make_sandbox(id);
    (void)shell_in(
        id, "seq 1 20 > numbers; echo same > same; echo gone > gone; mkdir old; echo x > old/x; "
            "printf 'a\\0b' > binary; ln -s a link; echo mode > mode");
    keep_checkpoint(id, "one");
    (void)shell_in(id, "sed -i 's/^10$/ten/' numbers; echo same > other; cat other > same; rm "
                       "other gone; rm -r old; "
                       "printf 'a\\0c' > binary; ln -sfn b link; chmod 700 mode; mkdir new; printf "
                       "'no newline' > new/file");
    compare(id, "one", "now", true, &found);

    const struct difference_entry *entry = must_find(&found, "/home/me/numbers");
    CHECK_INT(entry->kind, DIFFERENCE_CHANGED);
    CHECK_STR(entry->patch, "--- a/home/me/numbers\n+++ b/home/me/numbers\n@@ -7,7 +7,7 @@\n 7\n "
                            "8\n 9\n-10\n+ten\n 11\n 12\n 13\n");
    CHECK_INT(entry->before.size, 51);
    CHECK_INT(entry->after.size, 52);
    CHECK(find(&found, "/home/me/same") == NULL);
    entry = must_find(&found, "/home/me/gone");
    CHECK_INT(entry->kind, DIFFERENCE_REMOVED);
    CHECK_INT(entry->after.mode, 0);
    CHECK_STR(entry->patch, "--- a/home/me/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n");
    entry = must_find(&found, "/home/me/old");
    CHECK_INT(entry->kind, DIFFERENCE_REMOVED);
    CHECK(S_ISDIR(entry->before.mode));
    CHECK(find(&found, "/home/me/old/x") == NULL);
    entry = must_find(&found, "/home/me/binary");
    CHECK(entry->is_binary && !entry->patch);
    entry = must_find(&found, "/home/me/link");
    CHECK(S_ISLNK(entry->after.mode) && !entry->patch);
    entry = must_find(&found, "/home/me/mode");
    CHECK_INT(entry->before.mode & 07777, 0644);
    CHECK_INT(entry->after.mode & 07777, 0700);
    CHECK(!entry->patch);
    CHECK_INT(must_find(&found, "/home/me/new")->kind, DIFFERENCE_ADDED);
    CHECK_STR(must_find(&found, "/home/me/new/file")->patch,
              "--- /dev/null\n+++ b/home/me/new/file\n@@ -0,0 +1 @@\n+no newline\n\\ No newline at "
              "end of file\n");
    for (size_t i = 1; i < found.count; i++)
        CHECK(strcmp(found.entries[i - 1].path, found.entries[i].path) < 0);
}

CORE_TEST(any_two_moments_can_be_compared_in_either_order)
{
    autodifference found = {0};
    char id[ID_TEXT];

    make_sandbox(id);
    (void)shell_in(id, "echo 1 > a");
    keep_checkpoint(id, "one");
    (void)shell_in(id, "echo 2 > b");
    keep_checkpoint(id, "two");
    (void)shell_in(id, "echo 3 > c");
    compare(id, "one", "two", false, &found);
    CHECK_INT(found.count, 1);
    CHECK_INT(must_find(&found, "/home/me/b")->kind, DIFFERENCE_ADDED);
    compare(id, "two", "one", true, &found);
    CHECK_INT(found.count, 1);
    CHECK_STR(must_find(&found, "/home/me/b")->patch,
              "--- a/home/me/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-2\n");
    compare(id, "two", "two", false, &found);
    CHECK_INT(found.count, 0);
    compare(id, "base", "now", false, &found);
    CHECK(must_find(&found, "/home/me/a") && must_find(&found, "/home/me/b") &&
          must_find(&found, "/home/me/c"));
    CHECK_INT(found.totals[DIFFERENCE_ADDED], found.count - found.totals[DIFFERENCE_CHANGED]);
    CHECK_INT(count_layers(), 2); // what was kept to look at is gone
}

CORE_TEST(the_base_of_a_sandbox_from_a_snapshot_is_the_snapshot)
{
    autodifference found = {0};
    char first[ID_TEXT], snapshot[ID_TEXT], second[ID_TEXT];
    struct error err = {0};

    make_sandbox(first);
    (void)shell_in(first, "echo old > kept; mkdir dir; echo in > dir/in");
    keep_snapshot(first, "base", snapshot);
    make_sandbox_from(snapshot, second);
    CHECK_OK(snapshot_delete(core->snapshots, &actor, snapshot, &err), err);
    (void)shell_in(second, "echo new > kept; rm -r dir; mkdir dir; echo other > dir/other");
    compare(second, "base", "now", true, &found);
    CHECK_STR(must_find(&found, "/home/me/kept")->patch,
              "--- a/home/me/kept\n+++ b/home/me/kept\n@@ -1 +1 @@\n-old\n+new\n");
    CHECK_INT(must_find(&found, "/home/me/dir/in")->kind, DIFFERENCE_REMOVED);
    CHECK_INT(must_find(&found, "/home/me/dir/other")->kind, DIFFERENCE_ADDED);
}

CORE_TEST(a_paused_sandbox_can_be_compared_and_limits_hold)
{
    autodifference found = {0};
    autoclear(sandbox_info) paused = {0};
    char id[ID_TEXT];
    struct error err = {0};
    const struct difference_request few = {
        .from = "one", .to = "now", .has_patches = true, .max_entries = 3, .max_patch_bytes = 70};

    make_sandbox(id);
    keep_checkpoint(id, "one");
    (void)shell_in(id, "for i in 1 2 3 4 5; do echo $i > f$i; done; head -c 2000000 /dev/zero | tr "
                       "'\\0' 'x' > large");
    CHECK_OK(sandbox_pause(core->sandboxes, &actor, id, &paused, &err), err);
    compare(id, "one", "now", true, &found);
    CHECK(!must_find(&found, "/home/me/large")->patch);
    CHECK_INT(must_find(&found, "/home/me/large")->after.size, 2000000);
    uint64_t all = found.count;
    difference_clear(&found);
    CHECK_OK(difference_get(core->snapshots, &actor, id, &few, &found, &err), err);
    CHECK_INT(found.count, 3);
    CHECK_INT(found.totals[DIFFERENCE_ADDED] + found.totals[DIFFERENCE_CHANGED], all);
}

CORE_TEST(what_is_not_there_cannot_be_compared)
{
    autodifference found = {0};
    char id[ID_TEXT];
    struct error err = {0};
    struct difference_request request = {.from = "nowhere", .to = "now", .max_entries = 10};

    make_sandbox(id);
    CHECK(difference_get(core->snapshots, &actor, id, &request, &found, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_STR(err.noun, "checkpoint");
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, id, &err), err);
    request.from = "base";
    CHECK(difference_get(core->snapshots, &actor, id, &request, &found, &err) < 0);
    CHECK(error_is(&err, ERROR_GONE) || error_is(&err, ERROR_NOT_FOUND));
    CHECK_STR(err.noun, "sandbox");
    CHECK_INT(count_layers(), 0);
}
