/* SPDX-License-Identifier: Apache-2.0 */
/* Listing in order and searching lines, over trees that guests made. */
#include "file_rig.h"

struct seen {
    char text[8192]; // "path\n" or "path:line:column:text\n"
    size_t length;
    unsigned count;
    char last[FILES_MAX_RECORD_PATH];
};

static int see_item(void *data, const struct files_item *item, struct error *err)
{
    struct seen *seen = data;
    seen->count++;
    memcpy(seen->last, item->path, strlen(item->path) + 1);
    if (seen->length + strlen(item->path) + 2 < sizeof seen->text)
        seen->length += (size_t)snprintf(seen->text + seen->length,
                                         sizeof seen->text - seen->length, "%s\n", item->path);
    return 0;
}

static int see_match(void *data, const struct files_match *match, struct error *err)
{
    struct seen *seen = data;
    seen->count++;
    if (seen->length + match->text_size + 256 < sizeof seen->text)
        seen->length +=
            (size_t)snprintf(seen->text + seen->length, sizeof seen->text - seen->length,
                             "%s:%llu:%u:%.*s\n", match->path, (unsigned long long)match->line,
                             match->column, (int)match->text_size, match->text);
    return 0;
}

static struct files_find everything(void)
{
    return (struct files_find){
        .pattern = "", .after = "", .kinds = FILES_KIND_ANY, .maximum = 1000};
}

static void plant(const struct rig *rig)
{
    CHECK(mkdirat(rig->fd, "a", 0755) == 0 && mkdirat(rig->fd, "a/b", 0755) == 0);
    put_file(rig->fd, "a/b/c.c", "int main;\n", 0644);
    put_file(rig->fd, "a/z.h", "/* main */\n", 0644);
    put_file(rig->fd, "a-b", "", 0644);
    put_file(rig->fd, "b.c", "x\nmain(\n", 0644);
    CHECK(symlinkat("a", rig->fd, "link") == 0);
    CHECK(mkfifoat(rig->fd, "pipe", 0644) == 0);
}

TEST(a_tree_is_told_in_the_order_of_its_paths)
{
    RIG(rig);
    struct error err = {0};
    struct seen seen = {0};
    struct files_total total = {0};
    struct files_find what = everything();
    plant(&rig);

    CHECK_OK(files_find(rig.conv, ".", &what, NULL, see_item, &seen, &total, &err), err);
    CHECK_STR(seen.text, "a\na/b\na/b/c.c\na/z.h\na-b\nb.c\nlink\npipe\n");
    CHECK(!total.is_truncated);
}

TEST(depth_kinds_and_patterns_choose)
{
    RIG(rig);
    struct error err = {0};
    static const struct {
        struct files_find what;
        const char *found;
    } rows[] = {
        {{"", "", 1, FILES_KIND_ANY, 100}, "a\na-b\nb.c\nlink\npipe\n"},
        {{"", "", 2, FILES_KIND_DIRECTORY, 100}, "a\na/b\n"},
        {{"", "", 0, FILES_KIND_LINK | FILES_KIND_OTHER, 100}, "link\npipe\n"},
        {{"**/*.c", "", 0, FILES_KIND_FILE, 100}, "a/b/c.c\nb.c\n"},
        {{"a/*", "", 0, FILES_KIND_ANY, 100}, "a/b\na/z.h\n"},
        {{"*.{c,h}", "", 0, FILES_KIND_ANY, 100}, "b.c\n"},
    };
    plant(&rig);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct seen seen = {0};
        CHECK_OK(files_find(rig.conv, ".", &rows[i].what, NULL, see_item, &seen, NULL, &err), err);
        CHECK_STR(seen.text, rows[i].found);
    }
    struct files_find wrong = everything();
    wrong.pattern = "{a";
    struct seen seen = {0};
    CHECK(files_find(rig.conv, ".", &wrong, NULL, see_item, &seen, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    wrong.pattern = "";
    CHECK(files_find(rig.conv, "b.c", &wrong, NULL, see_item, &seen, NULL, &err) < 0);
    CHECK_INT(err.sys, ENOTDIR);
}

TEST(pages_join_to_the_whole_while_others_come_and_go)
{
    RIG(rig);
    struct error err = {0};
    struct seen seen = {0};
    struct files_total total = {.is_truncated = 1};
    struct files_find what = everything();
    char after[FILES_MAX_RECORD_PATH] = "", name[64];
    for (int d = 0; d < 5; d++) {
        (void)snprintf(name, sizeof name, "d%d", d);
        CHECK(mkdirat(rig.fd, name, 0755) == 0);
        for (int f = 0; f < 21; f++) {
            (void)snprintf(name, sizeof name, "d%d/f%02d", d, f);
            put_file(rig.fd, name, "", 0644);
        }
    }
    what.maximum = 7;
    what.after = after;
    for (int page = 0; total.is_truncated; page++) {
        struct seen one = {0};
        CHECK(page < 40);
        CHECK_OK(files_find(rig.conv, ".", &what, NULL, see_item, &one, &total, &err), err);
        CHECK(one.count <= 7);
        seen.count += one.count;
        if (one.count)
            memcpy(after, one.last, sizeof after);
        // before the place: seen by nobody, and moves nothing
        (void)snprintf(name, sizeof name, "a%d", page);
        put_file(rig.fd, name, "", 0644);
    }
    CHECK_INT(seen.count, 5 * 22);
}

TEST(deep_trees_and_long_paths_take_a_page_and_no_more)
{
    RIG(rig);
    struct error err = {0};
    struct seen seen = {0};
    struct files_total total = {0};
    struct files_find what = everything();
    char name[251];
    memset(name, 'n', 250);
    name[250] = '\0';
    autofd dir = openat(rig.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 300; i++) { // 75 KB of path: more than can be named
        CHECK(mkdirat(dir, name, 0755) == 0);
        int next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        closep(&dir);
        dir = next;
    }
    what.maximum = 6;
    CHECK_OK(files_find(rig.conv, ".", &what, NULL, see_item, &seen, &total, &err), err);
    CHECK_INT(seen.count, 6);
    unsigned all = seen.count;
    for (int page = 0; total.is_truncated && page < 100; page++) {
        struct seen one = {0};
        char after[FILES_MAX_RECORD_PATH];
        memcpy(after, seen.last, sizeof after);
        what.after = after;
        CHECK_OK(files_find(rig.conv, ".", &what, NULL, see_item, &one, &total, &err), err);
        all += one.count;
        if (one.count)
            memcpy(seen.last, one.last, sizeof seen.last);
    }
    CHECK(!total.is_truncated);
    CHECK_INT(all, (FILES_MAX_PATH - 257) / 251 + 1); // as deep as a request can name one
}

TEST(a_listing_of_everything_stays_out_of_kernel_files)
{
    RIG(rig);
    struct error err = {0};
    struct seen seen = {0};
    struct files_find what = everything();
    what.pattern = "proc/*/fd/*";
    CHECK_OK(files_find(rig.conv, "/", &what, NULL, see_item, &seen, NULL, &err), err);
    CHECK_INT(seen.count, 0);
}

static struct files_search looking_for(const char *pattern)
{
    return (struct files_search){
        .pattern = pattern, .names = "", .line_bytes = 200, .file_bytes = 1 << 20, .maximum = 100};
}

TEST(lines_are_found_with_their_place)
{
    RIG(rig);
    struct error err = {0};
    struct seen seen = {0}, one = {0};
    struct files_total total = {0};
    struct files_search what = looking_for("\\bmain");
    plant(&rig);

    what.names = "b.c";
    CHECK_OK(files_search(rig.conv, ".", &what, NULL, see_match, &seen, &total, &err), err);
    CHECK_STR(seen.text, "b.c:2:1:main(\n");
    what.names = "**/*.{c,h}";
    struct seen all = {0};
    CHECK_OK(files_search(rig.conv, ".", &what, NULL, see_match, &all, &total, &err), err);
    CHECK_INT(all.count, 3);
    CHECK(strstr(all.text, "a/z.h:1:4:/* main */\n") != NULL);
    what = looking_for("MAIN(");
    what.flags = FILES_FIXED | FILES_IGNORE_CASE;
    CHECK_OK(files_search(rig.conv, "b.c", &what, NULL, see_match, &one, &total, &err), err);
    CHECK_STR(one.text, ":2:1:main(\n");
}

TEST(matches_are_bounded_in_number_and_length)
{
    RIG(rig);
    struct error err = {0};
    struct seen seen = {0}, cut = {0};
    struct files_total total = {0};
    struct files_search what = looking_for("x");
    autofd fd = openat(rig.fd, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    for (int i = 0; i < 150; i++)
        CHECK(write(fd, "x\n", 2) == 2);

    CHECK_OK(files_search(rig.conv, ".", &what, NULL, see_match, &seen, &total, &err), err);
    CHECK_INT(seen.count, 100);
    CHECK(total.is_truncated);
    // one line of a megabyte, the match far inside it
    CHECK(ftruncate(fd, 0) == 0);
    char filler[1000];
    memset(filler, '.', sizeof filler);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    for (int i = 0; i < 1000; i++)
        CHECK(write(fd, i == 700 ? "needle" : filler, i == 700 ? 6 : sizeof filler) > 0);
    what = looking_for("needle");
    what.line_bytes = 40;
    CHECK_OK(files_search(rig.conv, ".", &what, NULL, see_match, &cut, &total, &err), err);
    CHECK_INT(cut.count, 1);
    CHECK(strstr(cut.text, "needle") != NULL);
    CHECK(strlen(cut.text) < 100);
}

TEST(large_binary_and_odd_files_are_passed_over)
{
    RIG(rig);
    struct error err = {0};
    struct seen seen = {0};
    struct files_total total = {0};
    struct files_search what = looking_for("a");
    put_file(rig.fd, "text", "a", 0644);
    autofd binary = openat(rig.fd, "binary", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    CHECK(write(binary, "a\0b\n", 4) == 4);
    autofd sparse = openat(rig.fd, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    CHECK(ftruncate(sparse, (off_t)1 << 42) == 0);
    CHECK(mkfifoat(rig.fd, "pipe", 0644) == 0);
    CHECK(symlinkat("/etc/passwd", rig.fd, "link") == 0);

    CHECK_OK(files_search(rig.conv, ".", &what, NULL, see_match, &seen, &total, &err), err);
    CHECK_STR(seen.text, "text:1:1:a\n");
    CHECK_INT(total.skipped, 2);
    CHECK_INT(total.bytes, 1);
    CHECK(files_search(rig.conv, "pipe", &what, NULL, see_match, &seen, &total, &err) < 0);
    CHECK(files_search(rig.conv, "/proc/self/environ", &what, NULL, see_match, &seen, &total,
                       &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_DENIED);
}

TEST(a_hostile_expression_over_a_long_line_ends)
{
    RIG(rig);
    struct error err = {0};
    struct seen seen = {0};
    struct files_search what = looking_for("(a*)*(a|aa)+$b");
    autofd fd = openat(rig.fd, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    char block[4096];
    memset(block, 'a', sizeof block);
    for (int i = 0; i < 200; i++)
        CHECK(write(fd, block, sizeof block) == sizeof block);
    CHECK_OK(files_search(rig.conv, ".", &what, NULL, see_match, &seen, NULL, &err), err);
    CHECK_INT(seen.count, 0);
    what.pattern = "((x{100}){100}){100}";
    CHECK(files_search(rig.conv, ".", &what, NULL, see_match, &seen, NULL, &err) < 0);
    CHECK_STR(err.text, "the pattern is too large: it repeats too much");
}

TEST(names_of_any_bytes_are_told_as_they_are)
{
    RIG(rig);
    struct error err = {0};
    struct seen seen = {0}, matches = {0};
    struct files_find what = everything();
    struct files_search lines = looking_for("hit");
    put_file(rig.fd, "two\nlines", "hit", 0644);
    put_file(rig.fd, "\xff\xfe", "hit", 0644);

    CHECK_OK(files_find(rig.conv, ".", &what, NULL, see_item, &seen, NULL, &err), err);
    CHECK_STR(seen.text, "two\nlines\n\xff\xfe\n");
    CHECK_OK(files_search(rig.conv, ".", &lines, NULL, see_match, &matches, NULL, &err), err);
    CHECK_INT(matches.count, 2);
    CHECK(strstr(matches.text, "two\nlines:1:1:hit\n") != NULL);
}
