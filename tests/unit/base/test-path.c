/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/base/path.c. */
#include "base/auto.h"
#include "base/path.h"
#include "test.h"

static void fill(char *text, size_t length, char with)
{
    memset(text, with, length);
    text[length] = '\0';
}

TEST(a_path_the_kernel_would_not_take_is_refused)
{
    struct error err = {0};
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
}
