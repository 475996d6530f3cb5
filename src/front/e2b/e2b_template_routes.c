/* SPDX-License-Identifier: Apache-2.0 */
/* The control plane: templates that were built, by name: which there are, their tags, who may use them, removal. */
#include "core/core.h"
#include "core/snapshot/snapshot.h"
#include "front/e2b/e2b_build.h"
#include "front/e2b/e2b_template.h"

#include <string.h>

#define TAGS_MOST 20
#define PAGES_MOST 100 // of snapshots that are looked through for one answer

// ---- which there are ----

/* Calls fn for all of the actor's snapshots (of this name; NULL: of all names) until it fails. */
static int each(struct call *call, const char *name,
                int (*fn)(void *data, const struct snapshot_info *info, struct error *err),
                void *data, struct error *err)
{
    struct snapshot_filter filter = {.name = name,
                                     .sort = SNAPSHOT_BY_NAME,
                                     .states = snapshot_in(SNAPSHOT_READY) |
                                               snapshot_in(SNAPSHOT_FAILED) |
                                               snapshot_in(SNAPSHOT_BUILDING),
                                     .page = {.limit = PAGE_MAX}};

    for (unsigned page = 0; page < PAGES_MOST; page++) {
        autoclear(snapshot_infos) found = {0};
        if (snapshot_list(call->core->snapshots, &call->actor, &filter, &found, err) < 0)
            return -1;
        for (size_t i = 0; i < found.count; i++) {
            if (fn(data, &found.items[i], err) < 0)
                return -1;
        }
        filter.page.offset += (int64_t)found.count;
        if (found.count == 0 || filter.page.offset >= found.total)
            break;
    }
    return 0;
}

/* One template: all snapshots of a name that were built. */
struct summary {
    struct call *call;
    const char *name;
    const char *build; // the newest that is ready; NULL: none is
    struct e2b_about about;
    bool is_public;
    int64_t builds, disk_bytes, created_at, updated_at;
    struct json_writer *json;
    size_t told;
};

static const char *build_of(const struct snapshot_info *info, const struct e2b_about *about)
{
    return about->build ? about->build : info->id;
}

static void add(struct summary *summary, const struct snapshot_info *info)
{
    struct call *call = summary->call;
    struct e2b_about about;

    summary->builds++;
    if (!summary->created_at || info->created_at < summary->created_at)
        summary->created_at = info->created_at;
    if (info->state != SNAPSHOT_READY || info->updated_at < summary->updated_at)
        return;
    e2b_about_read(call, info->metadata, &about);
    summary->about = about;
    summary->build = call_print(call, "%s", build_of(info, &about));
    summary->updated_at = info->updated_at;
    summary->is_public = info->is_public;
    summary->disk_bytes = info->size_bytes;
}

static void write_names(struct json_writer *json, const char *name)
{
    static const char *const members[] = {"aliases", "names"};

    for (size_t i = 0; i < 2; i++) {
        json_key(json, members[i]);
        json_list_begin(json);
        json_string(json, name);
        json_list_end(json);
    }
}

static void write_common(struct json_writer *json, const struct summary *summary)
{
    e2b_member_text(json, "templateID", summary->name);
    write_names(json, summary->name);
    e2b_member_bool(json, "public", summary->is_public);
    e2b_member_time(json, "createdAt", summary->created_at);
    e2b_member_time(json, "updatedAt", summary->updated_at);
    json_key(json, "lastSpawnedAt");
    json_null(json);
    e2b_member_number(json, "spawnCount", 0);
}

static void write_size(struct call *call, struct json_writer *json, const struct e2b_about *about,
                       int64_t disk_bytes)
{
    const struct limits *usual = &call->core->settings.limits;
    int64_t cpu = about->cpu_count ? about->cpu_count : (usual->cpu_millicores + 999) / 1000;

    e2b_member_number(json, "cpuCount", cpu > 0 ? cpu : 1);
    e2b_member_number(json, "memoryMB",
                      about->memory_mb ? about->memory_mb : usual->memory_bytes >> 20);
    e2b_member_number(json, "diskSizeMB", (disk_bytes + (1 << 20) - 1) >> 20);
    e2b_member_text(json, "envdVersion", E2B_ENVD_VERSION);
}

static void tell(struct summary *summary)
{
    struct json_writer *json = summary->json;

    if (!summary->name || !summary->build)
        return;
    json_map_begin(json);
    write_common(json, summary);
    write_size(summary->call, json, &summary->about, summary->disk_bytes);
    e2b_member_number(json, "buildCount", summary->builds);
    e2b_member_text(json, "buildID", summary->build);
    e2b_member_text(json, "buildStatus", "ready");
    json_key(json, "createdBy");
    json_null(json);
    json_map_end(json);
}

static int on_snapshot(void *data, const struct snapshot_info *info, struct error *err)
{
    struct summary *summary = data;

    (void)err;
    if (info->sandbox_id) // taken of a sandbox: GET /snapshots has those
        return 0;
    if (!summary->name || strcmp(summary->name, info->name) != 0) {
        tell(summary);
        *summary = (struct summary){.call = summary->call,
                                    .json = summary->json,
                                    .name = call_print(summary->call, "%s", info->name)};
    }
    add(summary, info);
    return 0;
}

/* GET /templates */
static int list_templates(struct call *call, struct error *err)
{
    autoreply reply = {0};

    reply_init(&reply);
    json_list_begin(&reply.json);
    struct summary summary = {.call = call, .json = &reply.json};
    if (each(call, NULL, on_snapshot, &summary, err) < 0)
        return -1;
    tell(&summary);
    json_list_end(&reply.json);
    return e2b_answer(call, &reply, 200);
}

static int missing(const char *name, struct error *err)
{
    return error_refuse(err, ERROR_NOT_FOUND, "template", "template '%.80s' not found", name);
}

static int on_count(void *data, const struct snapshot_info *info, struct error *err)
{
    (void)err;
    add(data, info);
    return 0;
}

static int on_build(void *data, const struct snapshot_info *info, struct error *err)
{
    static const char *const names[] = {
        [SNAPSHOT_BUILDING] = "building", [SNAPSHOT_READY] = "ready", [SNAPSHOT_FAILED] = "error"};
    struct summary *summary = data;
    struct e2b_about about;

    (void)err;
    e2b_about_read(summary->call, info->metadata, &about);
    json_map_begin(summary->json);
    e2b_member_text(summary->json, "buildID", build_of(info, &about));
    e2b_member_text(summary->json, "status", names[info->state]);
    write_size(summary->call, summary->json, &about, info->size_bytes);
    e2b_member_time(summary->json, "createdAt", info->created_at);
    e2b_member_time(summary->json, "updatedAt", info->updated_at);
    if (info->state != SNAPSHOT_BUILDING)
        e2b_member_time(summary->json, "finishedAt", info->updated_at);
    json_map_end(summary->json);
    return 0;
}

/* GET /templates/{id} */
static int get_template(struct call *call, struct error *err)
{
    struct summary summary = {.call = call};
    const char *tag;
    autoreply reply = {0};

    e2b_template_split(call, call->parameters[0], &summary.name, &tag);
    if (each(call, summary.name, on_count, &summary, err) < 0)
        return -1;
    if (!summary.builds)
        return missing(summary.name, err);
    reply_init(&reply);
    summary.json = &reply.json;
    json_map_begin(&reply.json);
    write_common(&reply.json, &summary);
    json_key(&reply.json, "builds");
    json_list_begin(&reply.json);
    if (each(call, summary.name, on_build, &summary, err) < 0)
        return -1;
    json_list_end(&reply.json);
    json_map_end(&reply.json);
    return e2b_answer(call, &reply, 200);
}

// ---- changes ----

struct change {
    struct call *call;
    bool is_public;
    const char **ids; // NULL-terminated
    size_t count;
};

static int on_id(void *data, const struct snapshot_info *info, struct error *err)
{
    struct change *change = data;

    (void)err;
    const char **ids = call_alloc(change->call, (change->count + 2) * sizeof *ids);
    for (size_t i = 0; i < change->count; i++)
        ids[i] = change->ids[i];
    ids[change->count++] = call_print(change->call, "%s", info->id);
    change->ids = ids;
    return 0;
}

static int on_ready_id(void *data, const struct snapshot_info *info, struct error *err)
{
    return info->state == SNAPSHOT_READY ? on_id(data, info, err) : 0;
}

struct update_body {
    bool is_public, has_public;
};
static const struct field update_fields[] = {
    {"public", FIELD_BOOL, offsetof(struct update_body, is_public), .is_nullable = true,
     .has_offset = offsetof(struct update_body, has_public)},
    {0},
};

/* PATCH /v2/templates/{id} */
static int update_template(struct call *call, struct error *err)
{
    struct change change = {.call = call};
    struct update_body body = {0};
    const char *name, *tag;
    autoreply reply = {0};

    e2b_template_split(call, call->parameters[0], &name, &tag);
    if (fields_read(call->body, update_fields, &body, err) < 0 ||
        each(call, name, on_ready_id, &change, err) < 0)
        return -1;
    if (!change.count)
        return missing(name, err);
    for (size_t i = 0; body.has_public && i < change.count; i++) {
        if (snapshot_set_public(call->core->snapshots, &call->actor, change.ids[i], body.is_public,
                                err) < 0)
            return -1;
    }
    reply_init(&reply);
    json_map_begin(&reply.json);
    write_names(&reply.json, name);
    json_map_end(&reply.json);
    return e2b_answer(call, &reply, 200);
}

/* DELETE /templates/{id}: a snapshot, or all of a template. */
static int delete_template(struct call *call, struct error *err)
{
    const char *name, *tag;
    struct change change = {.call = call};
    autoclear(snapshot_info) info = {0};

    e2b_template_split(call, call->parameters[0], &name, &tag);
    if (!tag && each(call, name, on_id, &change, err) < 0)
        return -1;
    for (size_t i = 0; i < change.count; i++) {
        if (snapshot_delete(call->core->snapshots, &call->actor, change.ids[i], err) < 0 &&
            !error_is(err, ERROR_NOT_FOUND))
            return -1;
        *err = (struct error){0};
    }
    if (change.count)
        return e2b_answer_empty(call, 204);
    if (e2b_snapshot_find(call, call->parameters[0], &info, err) < 0)
        return error_is(err, ERROR_INVALID) ? error_restate(err, ERROR_NOT_FOUND, "snapshot") : -1;
    if (snapshot_delete(call->core->snapshots, &call->actor, info.id, err) < 0)
        return -1;
    return e2b_answer_empty(call, 204);
}

// ---- tags ----

struct tags_body {
    const char *target, *name;
    const char **tags;
};
static const struct field assign_fields[] = {
    {"target", FIELD_TEXT, offsetof(struct tags_body, target), .is_needed = true, .maximum = 300},
    {"tags", FIELD_TEXTS, offsetof(struct tags_body, tags), .is_needed = true, .minimum = 1,
     .maximum = TAGS_MOST},
    {0},
};
static const struct field remove_fields[] = {
    {"name", FIELD_TEXT, offsetof(struct tags_body, name), .is_needed = true, .maximum = 300},
    {"tags", FIELD_TEXTS, offsetof(struct tags_body, tags), .is_needed = true, .minimum = 1,
     .maximum = TAGS_MOST},
    {0},
};

/* The ready one of this name and tag. */
static int find_tagged(struct call *call, const char *name, const char *tag,
                       struct snapshot_info *out, struct error *err)
{
    if (snapshot_resolve(call->core->snapshots, &call->actor, call_print(call, "%s:%s", name, tag),
                         out, err) == 0)
        return 0;
    return error_is(err, ERROR_NOT_FOUND) || error_is(err, ERROR_INVALID)
               ? missing(call_print(call, "%s:%s", name, tag), err)
               : -1;
}

/* POST /templates/tags */
static int assign_tags(struct call *call, struct error *err)
{
    struct tags_body body = {0};
    const char *name, *tag;
    autoclear(snapshot_info) info = {0};
    struct e2b_about about;
    autoreply reply = {0};

    if (fields_read(call->body, assign_fields, &body, err) < 0)
        return -1;
    e2b_template_split(call, body.target, &name, &tag);
    if (find_tagged(call, name, tag ? tag : "default", &info, err) < 0)
        return -1;
    e2b_about_read(call, info.metadata, &about);
    for (const char **at = body.tags; *at; at++) {
        if (snapshot_add_tag(call->core->snapshots, &call->actor, info.id, *at, err) < 0)
            return -1;
    }
    reply_init(&reply);
    json_map_begin(&reply.json);
    e2b_member_text(&reply.json, "buildID", build_of(&info, &about));
    json_key(&reply.json, "tags");
    json_list_begin(&reply.json);
    for (const char **at = body.tags; *at; at++)
        json_string(&reply.json, *at);
    json_list_end(&reply.json);
    json_map_end(&reply.json);
    return e2b_answer(call, &reply, 201);
}

/* DELETE /templates/tags. What has no tag any more can be named by nobody: it goes. */
static int remove_tags(struct call *call, struct error *err)
{
    struct tags_body body = {0};
    const char *name, *tag;

    if (fields_read(call->body, remove_fields, &body, err) < 0)
        return -1;
    e2b_template_split(call, body.name, &name, &tag);
    for (unsigned round = 0; round < 2; round++) { // all of them are there, or none goes
        for (const char **at = body.tags; *at; at++) {
            autoclear(snapshot_info) info = {0};
            if (find_tagged(call, name, *at, &info, err) < 0 ||
                (round == 1 &&
                 snapshot_delete(call->core->snapshots, &call->actor, info.id, err) < 0))
                return -1;
        }
    }
    return e2b_answer_empty(call, 204);
}

static int on_tag(void *data, const struct snapshot_info *info, struct error *err)
{
    struct summary *summary = data;
    struct e2b_about about;

    (void)err;
    summary->builds++;
    if (!info->tag || info->state != SNAPSHOT_READY)
        return 0;
    e2b_about_read(summary->call, info->metadata, &about);
    json_map_begin(summary->json);
    e2b_member_text(summary->json, "tag", info->tag);
    e2b_member_text(summary->json, "buildID", build_of(info, &about));
    e2b_member_time(summary->json, "createdAt", info->updated_at);
    json_map_end(summary->json);
    return 0;
}

/* GET /templates/{id}/tags */
static int list_tags(struct call *call, struct error *err)
{
    struct summary summary = {.call = call};
    const char *tag;
    autoreply reply = {0};

    e2b_template_split(call, call->parameters[0], &summary.name, &tag);
    reply_init(&reply);
    summary.json = &reply.json;
    json_list_begin(&reply.json);
    if (each(call, summary.name, on_tag, &summary, err) < 0)
        return -1;
    if (!summary.builds)
        return missing(summary.name, err);
    json_list_end(&reply.json);
    return e2b_answer(call, &reply, 200);
}

#define ROW(method, path, lane, body, handler, summary, scope)                                     \
    {                                                                                              \
        method, path, lane, ACCESS_KEY, body, handler, summary,                                    \
            .needs = scope, .is_undescribed = true, .reach = REACH_COMMON                          \
    }
const struct route e2b_template_routes[] = {
    ROW("GET", "/templates", ROUTE_SLOW, BODY_NONE, list_templates, "templates that were built",
        SCOPE_READ),
    ROW("GET", "/v2/templates", ROUTE_SLOW, BODY_NONE, list_templates, "templates that were built",
        SCOPE_READ),
    ROW("GET", "/templates/{id}", ROUTE_SLOW, BODY_NONE, get_template, "one with its builds",
        SCOPE_READ),
    ROW("PATCH", "/templates/{id}", ROUTE_SLOW, BODY_JSON, update_template, "who may use it",
        SCOPE_MANAGE),
    ROW("PATCH", "/v2/templates/{id}", ROUTE_SLOW, BODY_JSON, update_template, "who may use it",
        SCOPE_MANAGE),
    ROW("DELETE", "/templates/{id}", ROUTE_SLOW, BODY_NONE, delete_template,
        "removes a snapshot or a template", SCOPE_MANAGE),
    ROW("POST", "/templates/tags", ROUTE_SLOW, BODY_JSON, assign_tags, "gives a build more tags",
        SCOPE_MANAGE),
    ROW("DELETE", "/templates/tags", ROUTE_SLOW, BODY_JSON, remove_tags, "takes tags away",
        SCOPE_MANAGE),
    ROW("GET", "/templates/{id}/tags", ROUTE_SLOW, BODY_NONE, list_tags, "tags of a template",
        SCOPE_READ),
    {0},
};
