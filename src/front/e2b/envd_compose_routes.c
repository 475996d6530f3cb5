/* SPDX-License-Identifier: Apache-2.0 */
/* envd: several files put together as one. */
#include "base/fd.h"
#include "core/core.h"
#include "core/sandbox/temporary.h"
#include "front/e2b/envd_file.h"

#include <string.h>

#define SOURCES_MOST 1000
#define PIECE (64u << 10)

struct compose_body {
    const char **sources;
    const char *destination, *username;
};
static const struct field compose_fields[] = {
    {"source_paths", FIELD_TEXTS, offsetof(struct compose_body, sources), .is_needed = true,
     .minimum = 1, .maximum = SOURCES_MOST},
    {"destination", FIELD_TEXT, offsetof(struct compose_body, destination), .is_needed = true,
     .minimum = 1},
    {"username", FIELD_TEXT, offsetof(struct compose_body, username), .is_nullable = true,
     .maximum = 64},
    {0},
};

static bool choose_all(void *data, const struct file_info *info, uint64_t *offset, uint64_t *length)
{
    (void)data;
    *offset = 0;
    *length = info->size_bytes;
    return true;
}

static int append(struct call *call, const struct file_place *place, struct temporary *all,
                  struct error *err)
{
    autoptr(temporary) piece = NULL;
    autofileinfo info = {0};
    char bytes[PIECE];
    off_t at = 0;
    ssize_t got;

    if (file_fetch(call->core->sandboxes, &call->actor, place, choose_all, NULL, &info, &piece,
                   err) < 0)
        return envd_file_failed(err);
    while (piece && (uint64_t)at < piece->size) {
        uint64_t left = piece->size - (uint64_t)at;
        got = fd_read_full_at(piece->fd, bytes, left < PIECE ? left : PIECE, at);
        if (got <= 0)
            return error_sys(err, "read what was fetched");
        if (temporary_write(all, bytes, (size_t)got, err) < 0)
            return -1;
        at += got;
    }
    return 0;
}

/* POST /files/compose: the destination is there whole, or as it was; then the others go. */
static int compose(struct call *call, struct error *err)
{
    const struct file_change how = {
        .mode = FILE_KEEP, .uid = FILE_KEEP, .gid = FILE_KEEP, .makes_parents = true};
    struct compose_body body = {0};
    struct file_place place = {0}, source;
    struct e2b_user user;
    autoptr(temporary) all = NULL;
    autofileinfo info = {0};
    autoreply reply = {0};

    if (fields_read(call->body, compose_fields, &body, err) < 0)
        return -1;
    if (body.username && strpbrk(body.username, ":/ "))
        return error_refuse(err, ERROR_UNAUTHORIZED, "user", "there is no such user");
    if (envd_enter(call, &place.sandbox_id, err) < 0)
        return -1;
    envd_user(call, place.sandbox_id, body.username, &user);
    if (e2b_path(call, &user, body.destination, &place.path, err) < 0 ||
        temporary_new(call->core->temporaries, &call->actor, &all, err) < 0)
        return -1;
    place.user = user.box_user;
    source = place;
    for (const char **at = body.sources; *at; at++) {
        if (e2b_path(call, &user, *at, &source.path, err) < 0 ||
            append(call, &source, all, err) < 0)
            return -1;
    }
    if (temporary_finish(all, err) < 0)
        return -1;
    const struct file_content content = {.fd = all->fd, .length = all->size};
    if (file_save(call->core->sandboxes, &call->actor, &place, &how, &content, &info, err) < 0)
        return envd_file_failed(err);
    for (const char **at = body.sources; *at; at++) {
        struct error ignored = {0};
        if (e2b_path(call, &user, *at, &source.path, err) == 0 &&
            strcmp(source.path, place.path) != 0)
            (void)file_delete(call->core->sandboxes, &call->actor, &source, false, NULL, false,
                              &ignored); // named twice, or gone by itself
    }
    const char *slash = strrchr(place.path, '/');
    reply_init(&reply);
    json_map_begin(&reply.json);
    e2b_member_text(&reply.json, "path", place.path);
    e2b_member_text(&reply.json, "name", slash ? slash + 1 : place.path);
    e2b_member_text(&reply.json, "type", "file");
    json_map_end(&reply.json);
    return e2b_answer(call, &reply, 200);
}

const struct route envd_compose_routes[] = {
    {"POST", "/files/compose", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, compose,
     "puts files together as one", .needs = SCOPE_RUN, .is_undescribed = true,
     .reach = REACH_SANDBOX},
    {0},
};
