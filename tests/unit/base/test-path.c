/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/base/path.c. */
#include "base/auto.h"
#include "base/path.h"
#include "test.h"

TEST(paths_are_joined_and_tidied_but_never_resolved)
{
    static const struct {
        const char *base, *path, *joined;
    } rows[] = {
        {"/workspace", "a", "/workspace/a"},
        {"/workspace", "/etc/x", "/etc/x"},
        {"/", "a", "/a"},
        {"/workspace/", "a//b/./c/", "/workspace/a/b/c"},
        {"/workspace", ".", "/workspace"},
        {"/workspace", "./", "/workspace"},
        {"/", ".", "/"},
        {"/x", "/", "/"},
        {"/x", "////", "/"},
        {"/workspace", "../etc/passwd", "/workspace/../etc/passwd"},
        {"/workspace", "...", "/workspace/..."},
        {"/workspace", "a b\nc", "/workspace/a b\nc"},
        {"relative", "/absolute", "/absolute"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char out[PATH_TEXT];
        struct error err = {0};
        CHECK_OK(path_join(rows[i].base, rows[i].path, out, &err), err);
        CHECK_STR(out, rows[i].joined);
    }
}

static void fill(char *text, size_t length, char with)
{
    memset(text, with, length);
    text[length] = '\0';
}

TEST(a_path_the_kernel_would_not_take_is_refused)
{
    struct error err = {0};
    char out[PATH_TEXT] = "untouched";
    char path[PATH_TEXT + 10];

    CHECK(path_check("", 0, "workdir", &err) < 0);
    CHECK_STR(err.text, "workdir is empty");
    CHECK(path_check("a\0b", 3, "workdir", &err) < 0);
    CHECK_STR(err.text, "workdir 'a...' has a NUL byte in it");
    CHECK(path_check_absolute("a/b", 3, "workdir", &err) < 0);
    CHECK_STR(err.text, "workdir 'a/b' does not begin with '/'");
    fill(path, PATH_NAME, 'n');
    CHECK_OK(path_check(path, PATH_NAME, "name", &err), err);
    fill(path, PATH_NAME + 1, 'n');
    CHECK(path_check(path, PATH_NAME + 1, "name", &err) < 0);
    fill(path, PATH_TEXT, '/');
    CHECK(path_check(path, PATH_TEXT, "name", &err) < 0);
    CHECK(path_join("relative", "x", out, &err) < 0);
    CHECK(path_join("/", "", out, &err) < 0);
    CHECK_STR(out, "untouched");
}

TEST(a_join_that_grows_too_long_is_refused)
{
    struct error err = {0};
    char out[PATH_TEXT];
    char base[PATH_TEXT];
    for (size_t i = 0; i < PATH_TEXT - 1; i++)
        base[i] = i % 200 ? 'd' : '/';
    base[PATH_TEXT - 1] = '\0';
    CHECK_OK(path_join(base, ".", out, &err), err);
    CHECK_INT(strlen(out), PATH_TEXT - 1);
    CHECK(path_join(base, "x", out, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
}
