/* SPDX-License-Identifier: Apache-2.0 */
/* filesystem.Filesystem: watching a directory, as a stream, or by asking for what has happened since. */
#include "core/core.h"
#include "core/sandbox/file_watch.h"
#include "front/e2b/connect_rpc.h"
#include "front/e2b/envd_file.h"
#include "front/e2b/envd_watch.h"

#include <string.h>
#include <sys/stat.h>

struct watch_body {
    const char *path, *id;
    bool is_recursive, has_entries, takes_mounts;
};
#define AT(member) offsetof(struct watch_body, member)
static const struct field watch_fields[] = {
    {"path", FIELD_TEXT, AT(path), .is_nullable = true, .maximum = 4095},
    {"recursive", FIELD_BOOL, AT(is_recursive), .is_nullable = true},
    {"includeEntry", FIELD_BOOL, AT(has_entries), .is_nullable = true},
    {"allowNetworkMounts", FIELD_BOOL, AT(takes_mounts), .is_nullable = true},
    {0},
};
static const struct field watcher_fields[] = {
    {"watcherId", FIELD_TEXT, AT(id), .is_nullable = true, .maximum = 64},
    {0},
};
#undef AT

static int open_watch(struct call *call, const struct watch_body *body, struct file_place *place,
                      struct file_watch **out, struct error *err)
{
    struct e2b_user user;
    autofileinfo info = {0};
    const char *name;

    *place = (struct file_place){0};
    if (e2b_user_name(call, &name, err) < 0 || envd_enter(call, &place->sandbox_id, err) < 0)
        return -1;
    envd_user(call, place->sandbox_id, name, &user);
    if (e2b_path(call, &user, body->path, &place->path, err) < 0)
        return -1;
    place->user = user.box_user;
    if (file_stat(call->core->sandboxes, &call->actor, place, true, &info, err) < 0)
        return envd_file_failed(err);
    if (!S_ISDIR(info.mode))
        return error_set(err, ERROR_INVALID, "path is not a directory: %.200s", place->path);
    if (file_watch_open(call->core->sandboxes, &call->actor, place, body->is_recursive, out, err) <
        0)
        return envd_file_failed(err);
    return 0;
}

/* POST /filesystem.Filesystem/WatchDir */
static int watch_directory(struct call *call, struct error *err)
{
    autoptr(data_document) document = NULL;
    struct watch_body body = {0};
    struct file_place place;
    struct file_watch *watch = NULL;

    if (rpc_read(call, watch_fields, &body, &document, err) < 0 ||
        open_watch(call, &body, &place, &watch, err) < 0)
        return -1;
    const struct envd_watching watching = {
        .watch = watch, .place = &place, .has_entries = body.has_entries};
    envd_watch_start(call, &watching);
    return 0;
}

/* POST /filesystem.Filesystem/CreateWatcher */
static int create_watcher(struct call *call, struct error *err)
{
    autoptr(data_document) document = NULL;
    struct watch_body body = {0};
    struct file_place place;
    struct file_watch *watch = NULL;
    autoreply reply = {0};
    char id[ID_TEXT];

    if (rpc_read(call, watch_fields, &body, &document, err) < 0 ||
        open_watch(call, &body, &place, &watch, err) < 0)
        return -1;
    if (envd_watcher_add(call, watch, &place, body.has_entries, id, err) < 0)
        return -1;
    reply_init(&reply);
    json_map_begin(&reply.json);
    e2b_member_text(&reply.json, "watcherId", id);
    json_map_end(&reply.json);
    return rpc_answer(call, &reply);
}

/* POST /filesystem.Filesystem/GetWatcherEvents */
static int get_events(struct call *call, struct error *err)
{
    autoptr(data_document) document = NULL;
    struct watch_body body = {0};
    autoreply reply = {0};
    const char *sandbox_id;

    if (rpc_read(call, watcher_fields, &body, &document, err) < 0 ||
        envd_enter(call, &sandbox_id, err) < 0)
        return -1;
    reply_init(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "events");
    json_list_begin(&reply.json);
    if (envd_watcher_take(call, sandbox_id, body.id ? body.id : "", &reply.json, err) < 0)
        return -1;
    json_list_end(&reply.json);
    json_map_end(&reply.json);
    return rpc_answer(call, &reply);
}

/* POST /filesystem.Filesystem/RemoveWatcher */
static int remove_watcher(struct call *call, struct error *err)
{
    autoptr(data_document) document = NULL;
    struct watch_body body = {0};
    const char *sandbox_id;

    if (rpc_read(call, watcher_fields, &body, &document, err) < 0 ||
        envd_enter(call, &sandbox_id, err) < 0 ||
        envd_watcher_remove(call, sandbox_id, body.id ? body.id : "", err) < 0)
        return -1;
    return rpc_answer_nothing(call);
}

static const struct route_answer stream_answers[] = {{200, .content = "application/connect+json"},
                                                     {0}};
#define ROW(method, lane, handler, summary)                                                        \
    {                                                                                              \
        "POST", "/filesystem.Filesystem/" method, lane, ACCESS_KEY, BODY_WHOLE, handler, summary,  \
            .needs = SCOPE_READ, .is_undescribed = true, .reach = REACH_SANDBOX,                   \
            .body_limit = E2B_MESSAGE_BYTES                                                        \
    }
const struct route envd_watch_routes[] = {
    {"POST", "/filesystem.Filesystem/WatchDir", ROUTE_SLOW, ACCESS_KEY, BODY_WHOLE, watch_directory,
     "tells what happens in a directory", .answers = stream_answers, .needs = SCOPE_READ,
     .is_undescribed = true, .reach = REACH_SANDBOX, .body_limit = E2B_MESSAGE_BYTES},
    ROW("CreateWatcher", ROUTE_SLOW, create_watcher, "begins to watch a directory"),
    ROW("GetWatcherEvents", ROUTE_SLOW, get_events, "what has happened since"),
    ROW("RemoveWatcher", ROUTE_QUICK, remove_watcher, "ends that"),
    {0},
};
