/* SPDX-License-Identifier: Apache-2.0 */
/* A data directory as a user gives it becomes an absolute path. */
#include "base/data_dir.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TEST(an_absolute_one_stays_and_a_relative_one_is_below_the_current_directory)
{
    static const char *const rows[][2] = {
        {"/var/lib/burrow", "/var/lib/burrow"}, {"data", "/usr/data"},     {"./data", "/usr/data"},
        {".//./data/more", "/usr/data/more"},   {"../opt", "/usr/../opt"}, {NULL, NULL}};
    char room[PATH_MAX];
    struct error err = {0};

    CHECK(chdir("/usr") == 0);
    for (size_t i = 0; rows[i][0]; i++) {
        const char *dir = rows[i][0];
        CHECK(data_dir_resolve(&dir, room, &err) == 0);
        CHECK_STR(dir, rows[i][1]);
    }
}

TEST(what_has_no_absolute_name_is_refused)
{
    char room[PATH_MAX], place[] = "/tmp/burrow-test-XXXXXX", name[PATH_MAX];
    const char *dir = "";
    struct error err = {0};

    CHECK(data_dir_resolve(&dir, room, &err) < 0);
    CHECK_STR(err.text, "the data directory has no name");
    (void)memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    dir = name;
    CHECK(data_dir_resolve(&dir, room, &err) < 0 && error_is(&err, ERROR_INVALID));
    CHECK(dir == name);
    CHECK(mkdtemp(place) && chdir(place) == 0 && rmdir(place) == 0);
    dir = "data";
    CHECK(data_dir_resolve(&dir, room, &err) < 0);
    CHECK(strstr(err.text, "find the current directory, which 'data' is below"));
}
