/* SPDX-License-Identifier: Apache-2.0 */
/* Names of an image's users become numbers; see oci_user.h. */
#include "runtime/oci_user.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ID 65535

static bool read_id(const char *text, size_t length, uint32_t *out)
{
    uint32_t id = 0;

    if (length == 0 || length > 5 || strspn(text, "0123456789") < length)
        return false;
    for (size_t i = 0; i < length; i++)
        id = id * 10 + (uint32_t)(text[i] - '0');
    *out = id;
    return id <= MAX_ID;
}

/* The field of a line, between colons; false when the line has not so many. */
static bool find_field(const char *line, size_t length, unsigned number, const char **field,
                       size_t *size)
{
    const char *end = line + length;

    for (; number; number--) {
        line = memchr(line, ':', (size_t)(end - line));
        if (!line)
            return false;
        line++;
    }
    const char *colon = memchr(line, ':', (size_t)(end - line));
    *field = line;
    *size = (size_t)((colon ? colon : end) - line);
    return true;
}

/* The numbers of the first line whose field `key` is this text: those in fields 2 and 3; of a group, only the first. */
static bool look_up(const char *file, unsigned key, const char *text, size_t length,
                    uint32_t *first, uint32_t *second)
{
    for (const char *line = file; *line;) {
        size_t size = strcspn(line, "\n"), field_size;
        const char *field;
        if (find_field(line, size, key, &field, &field_size) && field_size == length &&
            memcmp(field, text, length) == 0 && find_field(line, size, 2, &field, &field_size) &&
            read_id(field, field_size, first))
            return !second || (find_field(line, size, 3, &field, &field_size) &&
                               read_id(field, field_size, second));
        line += size + (line[size] == '\n');
    }
    return false;
}

bool oci_user_resolve(const char *user, const char *passwd, const char *group,
                      char out[OCI_USER_TEXT])
{
    size_t length = strcspn(user, ":");
    const char *of = user[length] ? user + length + 1 : "";
    uint32_t uid, gid = 0, named;

    if (length == 0)
        return false;
    if (!look_up(passwd, 0, user, length, &uid, &gid)) {
        if (!read_id(user, length, &uid))
            return false;
        if (!look_up(passwd, 2, user, length, &named, &gid))
            gid = 0;
    }
    if (*of && !look_up(group, 0, of, strlen(of), &gid, NULL) && !read_id(of, strlen(of), &gid))
        return false;
    (void)snprintf(out, OCI_USER_TEXT, "%u:%u", uid, gid);
    return true;
}
