/* SPDX-License-Identifier: Apache-2.0 */
/* Paths inside a sandbox, as texts; see path.h. */
#include "base/path.h"

#include <string.h>

static bool has_long_name(const char *path, size_t length)
{
    size_t run = 0;
    for (size_t i = 0; i < length; i++) {
        run = path[i] == '/' ? 0 : run + 1;
        if (run > PATH_NAME)
            return true;
    }
    return false;
}

int path_check(const char *path, size_t length, const char *what, struct error *err)
{
    if (length == 0)
        return error_set(err, ERROR_INVALID, "%s is empty", what);
    if (memchr(path, '\0', length))
        return error_set(err, ERROR_INVALID, "%s '%.80s...' has a NUL byte in it", what, path);
    if (length >= PATH_TEXT)
        return error_set(err, ERROR_INVALID, "%s '%.80s...' is longer than %d bytes", what, path,
                         PATH_TEXT - 1);
    if (has_long_name(path, length))
        return error_set(err, ERROR_INVALID, "%s '%.80s...' has a name longer than %d bytes", what,
                         path, PATH_NAME);
    return 0;
}

int path_check_absolute(const char *path, size_t length, const char *what, struct error *err)
{
    if (path_check(path, length, what, err) < 0)
        return -1;
    if (path[0] != '/')
        return error_set(err, ERROR_INVALID, "%s '%.200s' does not begin with '/'", what, path);
    return 0;
}
