/* SPDX-License-Identifier: Apache-2.0 */
/* The data directory; see data_dir.h. */
#include "base/data_dir.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int data_dir_resolve(const char **dir, char room[PATH_MAX], struct error *err)
{
    const char *given = *dir;

    if (*given == '/')
        return 0;
    if (!*given)
        return error_set(err, ERROR_INVALID, "the data directory has no name");
    while (strncmp(given, "./", 2) == 0)
        given += 2 + strspn(given + 2, "/");
    if (!getcwd(room, PATH_MAX))
        return error_sys(err, "find the current directory, which '%s' is below", *dir);
    size_t length = strlen(room);
    if (length + 1 + strlen(given) >= PATH_MAX)
        return error_set(err, ERROR_INVALID, "the data directory '%s/%.100s…' is too long a name",
                         room, given);
    (void)snprintf(room + length, PATH_MAX - length, "/%s", given);
    *dir = room;
    return 0;
}

int data_dir_check(const char *dir, struct error *err)
{
    struct stat info;

    if (stat(dir, &info) < 0)
        return 0;
    if (info.st_uid != 0 && info.st_uid != geteuid())
        return error_set(err, ERROR_DENIED,
                         "the data directory '%.300s' belongs to user %u, who could change what "
                         "burrow keeps there: choose another, or give it to yourself with chown",
                         dir, info.st_uid);
    if (info.st_mode & S_IWOTH || (info.st_mode & S_IWGRP && info.st_gid != 0))
        return error_set(err, ERROR_DENIED,
                         "the data directory '%.300s' may be changed by others: choose another, or "
                         "take that from them with chmod go-w",
                         dir);
    return 0;
}
