/* SPDX-License-Identifier: Apache-2.0 */
/* Patches, applied again by a small reader of them. */
#include "base/auto.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "core/snapshot/patch.h"
#include "test.h"

#include <stdint.h>
#include <string.h>

static struct patch_text text(const char *bytes)
{
    return (struct patch_text){.bytes = bytes, .length = strlen(bytes)};
}

static void check_patch(const char *before, const char *after, const char *want)
{
    struct patch_text old = text(before), new = text(after);
    autobuffer out = {.maximum = 1 << 20};
    struct error err = {0};

    CHECK_OK(patch_make("/f", &old, &new, &out, &err), err);
    CHECK_STR(out.length ? out.data : "", want);
}

#define HEAD "--- a/f\n+++ b/f\n"

TEST(a_patch_reads_as_that_of_diff)
{
    check_patch("a\nb\nc\n", "a\nb\nc\n", "");
    check_patch("a\nb\nc\n", "a\nB\nc\n", HEAD "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
    check_patch("a\n", "a\nb\n", HEAD "@@ -1 +1,2 @@\n a\n+b\n");
    check_patch("a\nb\n", "b\n", HEAD "@@ -1,2 +1 @@\n-a\n b\n");
    check_patch("a", "a\n", HEAD "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
    check_patch("", "a\n", HEAD "@@ -0,0 +1 @@\n+a\n");
    check_patch("a\n", "", HEAD "@@ -1 +0,0 @@\n-a\n");
}

TEST(changes_far_apart_are_in_hunks_of_their_own_and_near_ones_together)
{
    check_patch("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "X\n2\n3\n4\n5\n6\n7\n8\nY\n",
                HEAD "@@ -1,4 +1,4 @@\n-1\n+X\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+Y\n");
    check_patch("1\n2\n3\n4\n5\n6\n7\n8\n", "X\n2\n3\n4\n5\n6\n7\nY\n",
                HEAD "@@ -1,8 +1,8 @@\n-1\n+X\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+Y\n");
}

TEST(names_that_would_end_their_line_are_quoted)
{
    struct patch_text old = text("a\n"), new = {.bytes = "", .is_missing = true};
    autobuffer out = {.maximum = 1000};
    struct error err = {0};

    CHECK_OK(patch_make("/a\n\"b\\", &old, &new, &out, &err), err);
    CHECK_STR(out.data, "--- \"a/a\\012\\\"b\\\\\"\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
}

/* Applies a patch as patch(1) would, without any looseness. */
static void apply(const char *before, const char *patch, struct buffer *out)
{
    struct error err = {0};
    const char *at = before, *line = strchr(strchr(patch, '\n') + 1, '\n') + 1;
    size_t number = 1; // of the line at `at`

    while (*line) {
        size_t first = 0, count = 1;
        CHECK(sscanf(line, "@@ -%zu,%zu", &first, &count) >= 1);
        if (count == 0)
            first++;
        for (; number < first; number++) {
            const char *next = strchr(at, '\n') + 1;
            CHECK_OK(buffer_add(out, at, (size_t)(next - at), &err), err);
            at = next;
        }
        for (line = strchr(line, '\n') + 1; *line && *line != '@'; line = strchr(line, '\n') + 1) {
            size_t length =
                (size_t)(strchr(line, '\n') - line); // without the mark, with the newline
            if (*line != '-')
                CHECK_OK(buffer_add(out, line + 1, length, &err), err);
            if (*line != '+') {
                CHECK(strncmp(at, line + 1, length) == 0);
                at += length;
                number++;
            }
        }
    }
    CHECK_OK(buffer_add_text(out, at, &err), err);
}

static uint32_t random_below(uint32_t limit)
{
    static uint64_t state = 42;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % limit;
}

static void make_text(struct buffer *out, unsigned lines, unsigned kinds)
{
    struct error err = {0};
    for (unsigned i = 0; i < lines; i++)
        CHECK_OK(buffer_addf(out, &err, "line %u\n", random_below(kinds)), err);
    CHECK_OK(buffer_add_text(out, "", &err), err);
}

static void check_random(unsigned n, unsigned m, unsigned kinds)
{
    autobuffer before = {0}, after = {0}, patch = {.maximum = 4 << 20}, result = {0};
    struct error err = {0};

    make_text(&before, n, kinds);
    make_text(&after, m, kinds);
    struct patch_text old = {.bytes = before.length ? before.data : "", .length = before.length};
    struct patch_text new = {.bytes = after.length ? after.data : "", .length = after.length};
    CHECK_OK(patch_make("/f", &old, &new, &patch, &err), err);
    if (!patch.length)
        return;
    apply(old.bytes, patch.data, &result);
    CHECK_INT(result.length, new.length);
    CHECK(memcmp(result.data, new.bytes, new.length) == 0);
}

TEST(random_texts_become_each_other)
{
    for (unsigned i = 0; i < 3000; i++)
        check_random(random_below(40), random_below(40), 1 + random_below(12));
    check_random(5000, 5000, 100000); // too different for the shortest way
    check_random(60000, 60000, 5);
}

TEST(what_is_too_large_has_no_patch)
{
    autofree char *large = xcalloc(1, PATCH_MAX_BYTES + 2);
    autobuffer out = {.maximum = 100};
    struct error err = {0};

    memset(large, '\n', PATCH_MAX_BYTES + 1);
    struct patch_text old = {.bytes = large, .length = PATCH_MAX_BYTES + 1}, new = text("a\n");
    CHECK(patch_make("/f", &old, &new, &out, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    old.length = PATCH_MAX_LINES + 1;
    CHECK(patch_make("/f", &old, &new, &out, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    old.length = PATCH_MAX_LINES;
    CHECK(patch_make("/f", &old, &new, &out, &err) < 0); // the patch itself
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
}
