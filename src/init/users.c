/* SPDX-License-Identifier: Apache-2.0 */
/* The user grammar and the box's user files; see users.h. */
#include "init/users.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/fd.h"
#include "init/inside.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SHOWN "'%.100s'"

/* A piece of a line; not NUL-terminated. */
struct piece {
    const char *at;
    size_t length;
};

/* One side of the grammar: a number or a name. */
struct reference {
    bool is_number;
    uint32_t number;
    struct piece name;
};

enum { PASSWD_NAME, PASSWD_WORD, PASSWD_UID, PASSWD_GID, PASSWD_INFO, PASSWD_HOME, PASSWD_SHELL };
enum { GROUP_NAME, GROUP_WORD, GROUP_GID, GROUP_MEMBERS };
#define PASSWD_FIELDS 7
#define GROUP_FIELDS 4

static bool is_equal(struct piece a, struct piece b)
{
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

/* Decimal, no sign, no space, no leading zero, 0 to 65535. */
static bool parse_id(struct piece text, uint32_t *out)
{
    uint32_t number = 0;
    if (text.length == 0 || text.length > 5 || (text.at[0] == '0' && text.length > 1))
        return false;
    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        number = number * 10 + (uint32_t)(text.at[i] - '0');
    }
    if (number > USERS_MAX_ID)
        return false;
    *out = number;
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(struct piece text)
{
    if (text.length == 0 || text.length > 255 || !is_letter(text.at[0]))
        return false;
    for (size_t i = 1; i < text.length; i++) {
        char c = text.at[i];
        if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '.' && c != '-')
            return false;
    }
    return true;
}

static bool parse_reference(struct piece text, struct reference *out)
{
    *out = (struct reference){.name = text};
    out->is_number = parse_id(text, &out->number);
    return out->is_number || is_name(text);
}

static int parse_text(const char *text, struct reference *user, struct reference *group,
                      bool *has_group, struct error *err)
{
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    *has_group = colon != NULL;
    if (!parse_reference((struct piece){text, length}, user) ||
        (colon && !parse_reference((struct piece){colon + 1, strlen(colon + 1)}, group)))
        return error_set(err, ERROR_INVALID,
                         "user " SHOWN " is neither a name nor a number from 0 to %u, "
                         "nor two of them as user:group",
                         text, USERS_MAX_ID);
    return 0;
}

/* A file of the box whole, or -1: not there, not a plain file, too large. *text is the caller's. */
static int read_file(int root, const char *path, char **text, size_t *length, struct error *err)
{
    struct stat info;
    autofd probe = inside_openat(root, path, O_PATH, 0, RESOLVE_IN_ROOT);
    if (probe < 0)
        return error_sys(err, "open '/%s'", path);
    if (inside_check(probe, S_IFREG, path, &info, err) < 0)
        return -1;
    autofd fd = inside_openat(root, path, O_RDONLY, 0, RESOLVE_IN_ROOT);
    if (fd < 0)
        return error_sys(err, "open '/%s'", path);
    if (inside_check(fd, S_IFREG, path, &info, err) < 0)
        return -1;
    if (info.st_size < 0 || info.st_size > USERS_MAX_FILE)
        return error_set(err, ERROR_LIMIT, "'/%s' is larger than %u bytes", path, USERS_MAX_FILE);
    size_t room = (size_t)info.st_size;
    autofree char *data = malloc(room + 1);
    if (!data)
        return error_sys(err, "read '/%s'", path);
    ssize_t got = fd_read_full(fd, data, room);
    if (got < 0)
        return error_sys(err, "read '/%s'", path);
    *length = (size_t)got;
    *text = take(data);
    return 0;
}

/* The next line, without its newline; false at the end. */
static bool next_line(struct piece *rest, struct piece *line)
{
    if (rest->length == 0)
        return false;
    const char *end = memchr(rest->at, '\n', rest->length);
    line->at = rest->at;
    line->length = end ? (size_t)(end - rest->at) : rest->length;
    size_t used = end ? line->length + 1 : line->length;
    rest->at += used;
    rest->length -= used;
    return true;
}

/* Cuts at `separator`; false when there are not exactly `count` fields. */
static bool split(struct piece line, char separator, struct piece *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *end = memchr(line.at, separator, line.length);
        bool is_last = i == count - 1;
        if (is_last != !end)
            return false;
        fields[i] = (struct piece){line.at, end ? (size_t)(end - line.at) : line.length};
        if (end) {
            line.length -= fields[i].length + 1;
            line.at = end + 1;
        }
    }
    return true;
}

static bool is_meant(const struct reference *reference, struct piece name, struct piece id)
{
    uint32_t number = 0;
    if (reference->is_number)
        return is_name(name) && parse_id(id, &number) && number == reference->number;
    return is_equal(reference->name, name);
}

static void copy_home(struct user_info *out, struct piece home)
{
    if (home.length == 0 || home.at[0] != '/' || home.length >= sizeof out->home ||
        memchr(home.at, '\0', home.length))
        return; // "/" stays
    memcpy(out->home, home.at, home.length);
    out->home[home.length] = '\0';
}

/* The first line that is meant counts, as for everybody else who reads these files. 1: found, 0:
 * not. */
static int find_user(struct piece text, const struct reference *user, struct user_info *out,
                     struct error *err)
{
    struct piece line, fields[PASSWD_FIELDS];
    while (next_line(&text, &line)) {
        if (!split(line, ':', fields, PASSWD_FIELDS) ||
            !is_meant(user, fields[PASSWD_NAME], fields[PASSWD_UID]))
            continue;
        uint32_t uid = 0, gid = 0;
        bool is_good = parse_id(fields[PASSWD_UID], &uid) && parse_id(fields[PASSWD_GID], &gid);
        if (!is_good && user->is_number)
            continue;
        if (!is_good)
            return error_set(err, ERROR_INVALID,
                             "user '%.*s' has an id that is no number from 0 to %u",
                             (int)user->name.length, user->name.at, USERS_MAX_ID);
        out->uid = uid;
        out->gid = gid;
        memcpy(out->name, fields[PASSWD_NAME].at, fields[PASSWD_NAME].length);
        out->name[fields[PASSWD_NAME].length] = '\0';
        copy_home(out, fields[PASSWD_HOME]);
        return 1;
    }
    return 0;
}

static int find_group(struct piece text, const struct reference *group, uint32_t *out,
                      struct error *err)
{
    struct piece line, fields[GROUP_FIELDS];
    while (next_line(&text, &line)) {
        if (!split(line, ':', fields, GROUP_FIELDS) ||
            !is_meant(group, fields[GROUP_NAME], fields[GROUP_GID]))
            continue;
        if (parse_id(fields[GROUP_GID], out))
            return 1;
        return error_set(err, ERROR_INVALID,
                         "group '%.*s' has an id that is no number from 0 to %u",
                         (int)group->name.length, group->name.at, USERS_MAX_ID);
    }
    return 0;
}

static bool has_member(struct piece members, struct piece name)
{
    while (members.length > 0) {
        const char *end = memchr(members.at, ',', members.length);
        size_t length = end ? (size_t)(end - members.at) : members.length;
        if (is_equal((struct piece){members.at, length}, name))
            return true;
        size_t used = end ? length + 1 : length;
        members.at += used;
        members.length -= used;
    }
    return false;
}

static int add_group(struct user_info *out, uint32_t gid, struct error *err)
{
    if (gid == out->gid)
        return 0;
    for (uint32_t i = 0; i < out->n_groups; i++)
        if (out->groups[i] == gid)
            return 0;
    if (out->n_groups == USERS_MAX_GROUPS)
        return error_set(err, ERROR_LIMIT, "user '%s' is in more than %d groups", out->name,
                         USERS_MAX_GROUPS);
    out->groups[out->n_groups++] = gid;
    return 0;
}

static int find_memberships(struct piece text, struct user_info *out, struct error *err)
{
    struct piece line, fields[GROUP_FIELDS], name = {out->name, strlen(out->name)};
    uint32_t gid = 0;
    while (next_line(&text, &line))
        if (split(line, ':', fields, GROUP_FIELDS) && has_member(fields[GROUP_MEMBERS], name) &&
            parse_id(fields[GROUP_GID], &gid) && add_group(out, gid, err) < 0)
            return -1;
    return 0;
}

static int look_up_user(int root, const struct reference *user, struct user_info *out,
                        struct error *err)
{
    autofree char *text = NULL;
    size_t length = 0;

    if (user->is_number)
        out->uid = out->gid = user->number;
    if (read_file(root, "etc/passwd", &text, &length, err) < 0)
        return user->is_number ? 0 : -1; // a number stands for itself
    int found = find_user((struct piece){text, length}, user, out, err);
    if (found < 0)
        return -1;
    if (!found && !user->is_number)
        return error_set(err, ERROR_NOT_FOUND, "no user '%.*s' in the sandbox's /etc/passwd",
                         (int)user->name.length, user->name.at);
    return 0;
}

static int look_up_group(int root, const struct reference *group, struct user_info *out,
                         struct error *err)
{
    autofree char *text = NULL;
    size_t length = 0;

    if (group->is_number) {
        out->gid = group->number;
        return 0;
    }
    if (read_file(root, "etc/group", &text, &length, err) < 0)
        return -1;
    int found = find_group((struct piece){text, length}, group, &out->gid, err);
    if (found == 0)
        return error_set(err, ERROR_NOT_FOUND, "no group '%.*s' in the sandbox's /etc/group",
                         (int)group->name.length, group->name.at);
    return found < 0 ? -1 : 0;
}

static int look_up_memberships(int root, struct user_info *out, struct error *err)
{
    autofree char *text = NULL;
    size_t length = 0;
    struct error ignored;

    if (!out->name[0] || read_file(root, "etc/group", &text, &length, &ignored) < 0)
        return 0;
    return find_memberships((struct piece){text, length}, out, err);
}

static int find(int root, const char *text, struct user_info *out, struct error *err)
{
    struct reference user, group;
    bool has_group = false;
    struct user_info found = {.home = "/"};

    if (parse_text(text, &user, &group, &has_group, err) < 0 ||
        look_up_user(root, &user, &found, err) < 0)
        return -1;
    if (has_group ? look_up_group(root, &group, &found, err) < 0
                  : look_up_memberships(root, &found, err) < 0)
        return -1;
    *out = found;
    return 0;
}

int users_find_in(int root, const char *text, struct user_info *out, char *message, size_t size)
{
    struct error err = {0};
    if (find(root, text, out, &err) == 0)
        return 0;
    (void)snprintf(message, size, "%s", err.text);
    return -1;
}

int users_find(const char *text, struct user_info *out, char *message, size_t size)
{
    autofd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        (void)snprintf(message, size, "open '/': %s", strerror(errno));
        return -1;
    }
    return users_find_in(root, text, out, message, size);
}
