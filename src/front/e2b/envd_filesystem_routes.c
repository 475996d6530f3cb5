/* SPDX-License-Identifier: Apache-2.0 */
/* filesystem.Filesystem: looking at files, moving, making and removing them. */
#include "core/core.h"
#include "front/e2b/connect_rpc.h"
#include "front/e2b/envd_file.h"
#include "web/client_watch.h"

#include <string.h>
#include <sys/stat.h>

#define DEPTH_MOST 1000
#define ENTRIES_MOST 200000 // of one listing

struct path_body {
    const char *path, *source, *destination;
    int64_t depth;
};
#define AT(member) offsetof(struct path_body, member)
static const struct field path_fields[] = {
    {"path", FIELD_TEXT, AT(path), .is_nullable = true, .maximum = 4095},
    {"depth", FIELD_INTEGER, AT(depth), .is_nullable = true, .minimum = 0, .maximum = UINT32_MAX},
    {0},
};
static const struct field move_fields[] = {
    {"source", FIELD_TEXT, AT(source), .is_nullable = true, .maximum = 4095},
    {"destination", FIELD_TEXT, AT(destination), .is_nullable = true, .maximum = 4095},
    {0},
};
#undef AT

static int user_and_place(struct call *call, const char *path, struct e2b_user *user,
                          struct file_place *out, struct error *err)
{
    const char *name;

    *out = (struct file_place){0};
    if (e2b_user_name(call, &name, err) < 0 || envd_enter(call, &out->sandbox_id, err) < 0)
        return -1;
    envd_user(call, out->sandbox_id, name, user);
    out->user = user->box_user;
    client_watch_start(call);
    return e2b_path(call, user, path, &out->path, err);
}

static int place_of(struct call *call, const char *path, struct file_place *out, struct error *err)
{
    struct e2b_user user;

    return user_and_place(call, path, &user, out, err);
}

static int read_place(struct call *call, struct path_body *body, struct data_document **document,
                      struct file_place *out, struct error *err)
{
    return rpc_read(call, path_fields, body, document, err) < 0
               ? -1
               : place_of(call, body->path, out, err);
}

static int answer_entry(struct call *call, const struct file_place *place,
                        const struct file_info *info, struct error *err)
{
    autoreply reply = {0};

    reply_init(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "entry");
    if (envd_entry_write(call, &reply.json, place, info, true, err) < 0)
        return -1;
    json_map_end(&reply.json);
    return rpc_answer(call, &reply);
}

/* POST /filesystem.Filesystem/Stat */
static int stat_path(struct call *call, struct error *err)
{
    autoptr(data_document) document = NULL;
    struct path_body body = {0};
    struct file_place place;
    autofileinfo info = {0};

    if (read_place(call, &body, &document, &place, err) < 0)
        return -1;
    if (file_stat(call->core->sandboxes, &call->actor, &place, false, &info, err) < 0)
        return envd_file_failed(err);
    return answer_entry(call, &place, &info, err);
}

// ---- ListDir ----

static int write_entries(struct call *call, struct json_writer *json,
                         const struct file_place *place, uint32_t depth, struct error *err)
{
    struct file_query query = {.depth = depth, .maximum = FILE_FIND_MAX};
    const char *base = strcmp(place->path, "/") == 0 ? "" : place->path;

    for (size_t told = 0; told < ENTRIES_MOST;) {
        autofileinfos found = {0};
        if (file_find(call->core->sandboxes, &call->actor, place, &query, &found, err) < 0)
            return envd_file_failed(err);
        for (size_t i = 0; i < found.count; i++) {
            const struct file_place one = {place->sandbox_id, place->user,
                                           call_print(call, "%s/%s", base, found.items[i].path)};
            if (envd_entry_write(call, json, &one, &found.items[i],
                                 told + found.count <= FILE_FIND_MAX && !found.has_more, err) < 0)
                return -1;
        }
        told += found.count;
        if (!found.has_more || found.count == 0)
            return 0;
        query.after = call_print(call, "%s", found.items[found.count - 1].path);
    }
    return error_set(err, ERROR_LIMIT, "there are more than %d entries: list with less depth",
                     ENTRIES_MOST);
}

/* POST /filesystem.Filesystem/ListDir */
static int list_directory(struct call *call, struct error *err)
{
    autoptr(data_document) document = NULL;
    struct path_body body = {0};
    struct file_place place;
    autofileinfo info = {0};
    autoreply reply = {0};

    if (read_place(call, &body, &document, &place, err) < 0)
        return -1;
    if (file_stat(call->core->sandboxes, &call->actor, &place, true, &info, err) < 0)
        return envd_file_failed(err);
    if (!S_ISDIR(info.mode))
        return error_set(err, ERROR_INVALID, "path is not a directory: %.200s", place.path);
    int64_t depth = body.depth < 1 ? 1 : body.depth > DEPTH_MOST ? DEPTH_MOST : body.depth;
    reply_init(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "entries");
    json_list_begin(&reply.json);
    if (write_entries(call, &reply.json, &place, (uint32_t)depth, err) < 0)
        return -1;
    json_list_end(&reply.json);
    json_map_end(&reply.json);
    return rpc_answer(call, &reply);
}

// ---- changes ----

/* POST /filesystem.Filesystem/MakeDir */
static int make_directory(struct call *call, struct error *err)
{
    autoptr(data_document) document = NULL;
    struct path_body body = {0};
    struct file_place place;
    autofileinfo there = {0}, info = {0};
    struct error absent = {0};

    if (read_place(call, &body, &document, &place, err) < 0)
        return -1;
    if (file_stat(call->core->sandboxes, &call->actor, &place, true, &there, &absent) == 0)
        return S_ISDIR(there.mode)
                   ? error_set(err, ERROR_EXISTS, "directory already exists: %.200s", place.path)
                   : error_set(err, ERROR_INVALID, "path is there, and no directory: %.200s",
                               place.path);
    if (file_make_directory(call->core->sandboxes, &call->actor, &place, 0755, true, &info, err) <
        0)
        return error_is(err, ERROR_CONFLICT) && !error_is(err, ERROR_EXISTS)
                   ? error_restate(err, ERROR_INVALID, "file")
                   : envd_file_failed(err);
    return answer_entry(call, &place, &info, err);
}

/* POST /filesystem.Filesystem/Move */
static int move(struct call *call, struct error *err)
{
    autoptr(data_document) document = NULL;
    struct path_body body = {0};
    struct file_place place, there;
    struct e2b_user user;
    autofileinfo info = {0};

    if (rpc_read(call, move_fields, &body, &document, err) < 0 ||
        user_and_place(call, body.source, &user, &place, err) < 0)
        return -1;
    there = place;
    if (e2b_path(call, &user, body.destination, &there.path, err) < 0)
        return -1;
    const struct file_target target = {there.path, true, true};
    if (file_move(call->core->sandboxes, &call->actor, &place, &target, &info, err) < 0)
        return envd_file_failed(err);
    return answer_entry(call, &there, &info, err);
}

/* POST /filesystem.Filesystem/Remove */
static int remove_path(struct call *call, struct error *err)
{
    autoptr(data_document) document = NULL;
    struct path_body body = {0};
    struct file_place place;

    if (read_place(call, &body, &document, &place, err) < 0)
        return -1;
    if (file_delete(call->core->sandboxes, &call->actor, &place, true, NULL, false, err) < 0 &&
        !(error_is(err, ERROR_NOT_FOUND) && error_is_about(err, "file") &&
          strncmp(err->text, "no user", 7) != 0))
        return envd_file_failed(err);
    return rpc_answer_nothing(call);
}

#define ROW(method, handler, summary, scope)                                                       \
    {                                                                                              \
        "POST", "/filesystem.Filesystem/" method, ROUTE_SLOW, ACCESS_KEY, BODY_WHOLE, handler,     \
            summary, .needs = scope, .is_undescribed = true, .reach = REACH_SANDBOX,               \
                     .body_limit = E2B_MESSAGE_BYTES                                               \
    }
const struct route envd_filesystem_routes[] = {
    ROW("Stat", stat_path, "what is known of a path", SCOPE_READ),
    ROW("ListDir", list_directory, "what is in a directory", SCOPE_READ),
    ROW("MakeDir", make_directory, "makes a directory", SCOPE_RUN),
    ROW("Move", move, "moves or renames", SCOPE_RUN),
    ROW("Remove", remove_path, "removes, with all that is below", SCOPE_RUN),
    {0},
};
