/* SPDX-License-Identifier: Apache-2.0 */
/* The control plane: snapshots, forks, networks, names of templates; and what is not offered. */
#include "base/clock.h"
#include "core/core.h"
#include "core/fork.h"
#include "core/sandbox/sandbox.h"
#include "core/snapshot/snapshot.h"
#include "front/e2b/e2b_build.h"
#include "front/e2b/e2b_impl.h"
#include "front/e2b/e2b_network.h"
#include "front/e2b/e2b_template.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_S 300
#define FORKS_MOST 100
#define LIST_MOST 100

// ---- snapshots ----

static void write_snapshot(struct call *call, struct json_writer *json,
                           const struct snapshot_info *info, bool is_named)
{
    json_map_begin(json);
    e2b_member_text(json, "snapshotID", e2b_snapshot_name(call, info));
    json_key(json, "names");
    json_list_begin(json);
    if (is_named && info->name)
        json_string(json, e2b_snapshot_name(call, info));
    json_list_end(json);
    json_map_end(json);
}

struct snapshot_body {
    const char *name;
};
static const struct field snapshot_fields[] = {
    {"name", FIELD_TEXT, 0, .is_nullable = true, .maximum = 200},
    {0},
};

/* POST /sandboxes/{id}/snapshots */
static int create_snapshot(struct call *call, struct error *err)
{
    struct snapshot_body body = {0};
    struct snapshot_request request = {.tag = "default"};
    autoclear(sandbox_info) info = {0};
    autoclear(snapshot_info) snapshot = {0};
    autoreply reply = {0};

    if (fields_read(call->body, snapshot_fields, &body, err) < 0 || e2b_get(call, &info, err) < 0)
        return -1;
    if (body.name && *body.name)
        e2b_template_split(call, body.name, &request.name, &request.tag);
    if (!request.tag)
        request.tag = "default";
    request.env = info.command.env;
    if (snapshot_create(call->core->snapshots, &call->actor, info.id, &request, &snapshot, err) < 0)
        return -1;
    reply_init(&reply);
    write_snapshot(call, &reply.json, &snapshot, body.name && *body.name);
    return e2b_answer(call, &reply, 201);
}

/* GET /snapshots */
static int list_snapshots(struct call *call, struct error *err)
{
    const char *name = query_text(call->query, "name");
    const char *token = query_text(call->query, "nextToken");
    const int64_t limit = query_integer(call->query, "limit", LIST_MOST);
    struct snapshot_filter filter = {.sandbox_id = query_text(call->query, "sandboxID"),
                                     .is_descending = true,
                                     .page = {.limit = limit}};
    autoclear(snapshot_infos) found = {0};
    autoreply reply = {0};
    char next[24];
    struct http_header headers[3] = {{"Content-Type", "application/json"}};

    if (token && sscanf(token, "%" SCNd64, &filter.page.offset) != 1)
        return error_set(err, ERROR_INVALID, "nextToken: is not one that this server gave");
    if (snapshot_list(call->core->snapshots, &call->actor, &filter, &found, err) < 0)
        return -1;
    reply_init(&reply);
    json_list_begin(&reply.json);
    for (size_t i = 0; i < found.count; i++) {
        const struct snapshot_info *info = &found.items[i];
        if (!name || (info->name && (strcmp(info->name, name) == 0 ||
                                     strcmp(e2b_snapshot_name(call, info), name) == 0)))
            write_snapshot(call, &reply.json, info, true);
    }
    json_list_end(&reply.json);
    if (json_writer_finish(&reply.json, err) < 0)
        return -1;
    if (filter.page.offset + (int64_t)found.count < found.total) {
        (void)snprintf(next, sizeof next, "%" PRId64, filter.page.offset + (int64_t)found.count);
        headers[1] = (struct http_header){"X-Next-Token", next};
    }
    (void)response_send(call->response, 200, headers, reply.text.data, reply.text.length);
    return 0;
}

static const struct parameter snapshot_query[] = {
    {"limit", PARAMETER_INTEGER, .minimum = 1, .maximum = LIST_MOST},
    {0},
};

// ---- forks ----

struct fork_body {
    int64_t timeout, count;
};
static const struct field fork_fields[] = {
    {"timeout", FIELD_INTEGER, offsetof(struct fork_body, timeout), .is_nullable = true,
     .minimum = 1, .maximum = (int64_t)365 * 24 * 3600},
    {"count", FIELD_INTEGER, offsetof(struct fork_body, count), .is_nullable = true, .minimum = 1,
     .maximum = FORKS_MOST},
    {0},
};

static void write_fork(struct call *call, struct json_writer *json, const struct sandbox_info *info,
                       const struct error *err)
{
    json_map_begin(json);
    if (info) {
        json_key(json, "sandbox");
        e2b_write_made(call, json, info);
    } else {
        json_key(json, "error");
        json_map_begin(json);
        e2b_member_number(json, "code", error_status(err));
        e2b_member_text(json, "message", err->text);
        json_map_end(json);
    }
    json_map_end(json);
}

/* One whose ports cannot be reached is none of theirs. */
static int open_fork(struct call *call, const char *id, bool is_private, struct error *err)
{
    struct error ignored = {0};

    if (e2b_ports_open(call, id, is_private, err) == 0)
        return 0;
    (void)sandbox_delete(call->core->sandboxes, &call->actor, id, &ignored);
    return -1;
}

/* POST /sandboxes/{id}/fork */
static int fork_sandbox(struct call *call, struct error *err)
{
    struct fork_body body = {.timeout = TIMEOUT_S, .count = 1};
    struct e2b_kept kept;
    autoclear(sandbox_info) info = {0};
    autoreply reply = {0};

    if (fields_read(call->body, fork_fields, &body, err) < 0 || e2b_get(call, &info, err) < 0)
        return -1;
    e2b_kept_read(call, &info, &kept);
    reply_init(&reply);
    json_list_begin(&reply.json);
    for (int64_t i = 0; i < body.count; i++) {
        const struct sandbox_changes changes = {
            .has_expires_at = true, .expires_at = (int64_t)clock_wall_ms() + body.timeout * 1000};
        autoclear(sandbox_info) made = {0};
        struct error failed = {0};
        bool is_made =
            sandbox_fork(call->core, &call->actor, info.id, &changes, NULL, &made, &failed) == 0 &&
            open_fork(call, made.id, kept.is_private, &failed) == 0;
        write_fork(call, &reply.json, is_made ? &made : NULL, &failed);
    }
    json_list_end(&reply.json);
    return e2b_answer(call, &reply, 201);
}

// ---- network, templates ----

static int change_ports(struct call *call, const struct sandbox_info *info,
                        const struct e2b_network_body *body, struct error *err)
{
    struct e2b_kept kept;
    autoclear(sandbox_info) now = {0};

    if (!info->front_data || (!body->has_public && !body->mask_host))
        return 0;
    e2b_kept_read(call, info, &kept);
    if (body->has_public)
        kept.is_private = !body->is_public;
    if (body->mask_host)
        kept.mask_host = body->mask_host;
    const struct sandbox_changes changes = {.front_data = e2b_kept_write(call, &kept)};
    if (body->has_public && e2b_ports_open(call, info->id, kept.is_private, err) < 0)
        return -1;
    return sandbox_modify(call->core->sandboxes, &call->actor, info->id, &changes, &now, err);
}

/* PUT /sandboxes/{id}/network */
static int set_network(struct call *call, struct error *err)
{
    struct e2b_network_body body = {.internet = true};
    autoclear(sandbox_info) info = {0};

    if (fields_read(call->body, e2b_network_fields, &body, err) < 0 ||
        e2b_get(call, &info, err) < 0 || e2b_network_change(call, &info, &body, err) < 0 ||
        change_ports(call, &info, &body, err) < 0)
        return -1;
    return e2b_answer_empty(call, 204);
}

/* GET /templates/aliases/{alias} */
static int get_alias(struct call *call, struct error *err)
{
    struct e2b_template template;
    autoreply reply = {0};

    if (e2b_template_find(call, call->parameters[0], &template, err) < 0)
        return -1;
    reply_init(&reply);
    json_map_begin(&reply.json);
    e2b_member_text(&reply.json, "templateID", template.id);
    e2b_member_bool(&reply.json, "public", template.is_alias);
    json_map_end(&reply.json);
    return e2b_answer(call, &reply, 200);
}

// ---- what is not offered ----

static int refuse_templates(struct call *call, struct error *err)
{
    (void)err;
    e2b_answer_error(call, 501,
                     "templates are not built from Dockerfiles by the server here: use "
                     "Template.build of the SDK, which sends their steps");
    return 0;
}

static int refuse_volumes(struct call *call, struct error *err)
{
    (void)err;
    e2b_answer_error(call, 501,
                     "there are no volumes here: keep files in snapshots (createSnapshot), or "
                     "pause the sandbox");
    return 0;
}

static int refuse_secrets(struct call *call, struct error *err)
{
    (void)err;
    e2b_answer_error(call, 501,
                     "secrets are not kept over this protocol: pass them as envs, or use "
                     "network.secrets of /api/v1");
    return 0;
}

#define ROW(method, path, lane, body, handler, summary, scope)                                     \
    {                                                                                              \
        method, path, lane, ACCESS_KEY, body, handler, summary,                                    \
            .needs = scope, .is_undescribed = true, .reach = REACH_COMMON                          \
    }
const struct route e2b_snapshot_routes[] = {
    ROW("POST", "/sandboxes/{id}/snapshots", ROUTE_SLOW, BODY_JSON, create_snapshot,
        "keeps its files, to start others from", SCOPE_RUN),
    {"GET", "/snapshots", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, list_snapshots, "snapshots",
     .query = snapshot_query, .needs = SCOPE_READ, .is_undescribed = true, .reach = REACH_COMMON},
    ROW("POST", "/sandboxes/{id}/fork", ROUTE_SLOW, BODY_JSON, fork_sandbox, "makes others like it",
        SCOPE_RUN),
    ROW("POST", "/v2/sandboxes/{id}/fork", ROUTE_SLOW, BODY_JSON, fork_sandbox,
        "makes others like it", SCOPE_RUN),
    ROW("PUT", "/sandboxes/{id}/network", ROUTE_SLOW, BODY_JSON, set_network,
        "where it may connect to", SCOPE_RUN),
    ROW("GET", "/templates/aliases/{alias}", ROUTE_QUICK, BODY_NONE, get_alias,
        "what a name stands for", SCOPE_READ),
    {0},
};

const struct route e2b_refused_routes[] = {
    ROW("POST", "/templates", ROUTE_QUICK, BODY_NONE, refuse_templates, "is not offered",
        SCOPE_RUN),
    ROW("GET", "/volumes", ROUTE_QUICK, BODY_NONE, refuse_volumes, "is not offered", SCOPE_READ),
    ROW("POST", "/volumes", ROUTE_QUICK, BODY_NONE, refuse_volumes, "is not offered", SCOPE_RUN),
    ROW("GET", "/volumes/{id}", ROUTE_QUICK, BODY_NONE, refuse_volumes, "is not offered",
        SCOPE_READ),
    ROW("DELETE", "/volumes/{id}", ROUTE_QUICK, BODY_NONE, refuse_volumes, "is not offered",
        SCOPE_RUN),
    ROW("GET", "/secrets", ROUTE_QUICK, BODY_NONE, refuse_secrets, "is not offered", SCOPE_READ),
    ROW("POST", "/secrets", ROUTE_QUICK, BODY_NONE, refuse_secrets, "is not offered", SCOPE_RUN),
    {0},
};
