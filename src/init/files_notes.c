/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of files: short texts by name that stand with a file, as extended attributes below a prefix that the asker names. */
#include "base/fd.h"
#include "init/files_talk.h"
#include "init/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#define NAME_MOST 256

/* Whether the file system has none at all: then there are no notes, and that is all right. */
static bool has_none(int code)
{
    return code == ENOTSUP || code == ENOSYS;
}

/* The names of all there are, each with its NUL, in talk->in. */
static ssize_t list(struct talk *talk, int fd)
{
    ssize_t length = flistxattr(fd, (char *)talk->in, sizeof talk->in - 1);

    if (length < 0)
        return has_none(errno) ? 0 : -1;
    talk->in[length] = '\0';
    return length;
}

static int remove_all(struct talk *talk, int fd, struct error *err)
{
    size_t prefix = strlen(talk->second);
    ssize_t length = list(talk, fd);

    if (length < 0)
        return error_path(err, "read the notes of " INSIDE_SHOWN, talk->path);
    for (const char *name = (const char *)talk->in; name < (const char *)talk->in + length;
         name += strlen(name) + 1) {
        if (strncmp(name, talk->second, prefix) == 0 && fremovexattr(fd, name) < 0 &&
            errno != ENODATA)
            return error_path(err, "remove a note of " INSIDE_SHOWN, talk->path);
    }
    return 0;
}

/* "name=value" */
static int set_one(struct talk *talk, int fd, char *line, struct error *err)
{
    char name[NAME_MOST];
    char *equals = strchr(line, '=');

    if (!equals || equals == line)
        return error_set(err, ERROR_INVALID, "a note is NAME=VALUE");
    *equals = '\0';
    if (snprintf(name, sizeof name, "%s%s", talk->second, line) >= (int)sizeof name)
        return error_set(err, ERROR_INVALID, "the name of a note is too long");
    if (fsetxattr(fd, name, equals + 1, strlen(equals + 1), 0) == 0 || has_none(errno))
        return 0;
    return error_path(err, "keep a note with " INSIDE_SHOWN, talk->path);
}

int files_do_set_notes(struct talk *talk, struct error *err)
{
    struct stat info;
    autofd fd = inside_open(talk->base, talk->path, O_RDONLY, S_IFREG, &info, err);

    if (fd < 0)
        return -1;
    if (strncmp(talk->second, "user.", 5) != 0)
        return error_set(err, ERROR_INVALID, "notes are those of users");
    if (remove_all(talk, fd, err) < 0)
        return -1;
    for (char *line = talk->third, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        if (set_one(talk, fd, line, err) < 0)
            return -1;
    }
    return 0;
}

/* Behind what is in talk->target; those that do not fit, or hold what no line can, are left out. */
static void tell_one(struct talk *talk, int fd, const char *name, size_t *used)
{
    const char *shown = name + strlen(talk->second);
    size_t room = sizeof talk->target - *used;
    int head = snprintf(talk->target + *used, room, "%s%s=", *used ? "\n" : "", shown);

    if (head < 0 || (size_t)head + 1 >= room) {
        talk->target[*used] = '\0';
        return;
    }
    char *value = talk->target + *used + head;
    ssize_t length = fgetxattr(fd, name, value, room - (size_t)head - 1);
    if (length < 0 || memchr(value, 0, (size_t)length) || memchr(value, '\n', (size_t)length)) {
        talk->target[*used] = '\0';
        return;
    }
    value[length] = '\0';
    *used += (size_t)head + (size_t)length;
}

int files_do_notes(struct talk *talk, struct error *err)
{
    struct stat info;
    struct files_item item;
    size_t used = 0, prefix = strlen(talk->second);
    autofd fd = inside_open(talk->base, talk->path, O_RDONLY, S_IFREG, &info, err);

    if (fd < 0)
        return -1;
    talk_describe(talk, fd, "", "", &info, &item);
    talk->target[0] = '\0';
    ssize_t length = list(talk, fd);
    for (const char *name = (const char *)talk->in;
         length > 0 && name < (const char *)talk->in + length; name += strlen(name) + 1) {
        if (prefix && strncmp(name, talk->second, prefix) == 0)
            tell_one(talk, fd, name, &used);
    }
    item.target = talk->target;
    return talk_item(talk, &item) < 0 ? TALK_OVER : talk_flush(talk);
}
