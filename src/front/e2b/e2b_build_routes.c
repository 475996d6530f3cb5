/* SPDX-License-Identifier: Apache-2.0 */
/* The control plane: building templates. Announced, files uploaded, begun, asked how far it is. A template's id is its name, a build's that of its snapshot. */
#include "base/clock.h"
#include "base/mem.h"
#include "core/account/key.h"
#include "core/core.h"
#include "core/seal.h"
#include "core/snapshot/snapshot.h"
#include "front/e2b/e2b_build.h"
#include "front/e2b/e2b_template.h"
#include "web/collect.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TAGS_MOST 20
#define LOG_MOST 500 // lines of one answer
#define UPLOAD_PURPOSE "e2b-upload"
#define NO_KEY "0"    // in its place: the machine's own root
#define UPLOAD_S 3600 // a URL is good for so long

// ---- POST /v3/templates ----

struct announce_body {
    const char *name, *alias;
    const char **tags;
    int64_t cpu_count, memory_mb, free_disk_mb;
};
#define AT(member) offsetof(struct announce_body, member)
static const struct field announce_fields[] = {
    {"name", FIELD_TEXT, AT(name), .is_nullable = true, .maximum = 300},
    {"alias", FIELD_TEXT, AT(alias), .is_nullable = true, .maximum = 300},
    {"tags", FIELD_TEXTS, AT(tags), .is_nullable = true, .maximum = TAGS_MOST},
    {"cpuCount", FIELD_INTEGER, AT(cpu_count), .is_nullable = true, .minimum = 1, .maximum = 1024},
    {"memoryMB", FIELD_INTEGER, AT(memory_mb), .is_nullable = true, .minimum = 128,
     .maximum = (int64_t)16 << 20},
    {"minFreeDiskMb", FIELD_INTEGER, AT(free_disk_mb), .is_nullable = true, .minimum = 0,
     .maximum = (int64_t)1 << 30},
    {0},
};
#undef AT

void e2b_template_split(struct call *call, const char *reference, const char **name,
                        const char **tag)
{
    const char *slash = strrchr(reference, '/');
    const char *begin = slash ? slash + 1 : reference;
    size_t length = strcspn(begin, ":");

    *name = call_print(call, "%.*s", (int)length, begin);
    *tag = begin[length] ? begin + length + 1 : NULL;
}

static void write_list(struct json_writer *json, const char *name, const char *const *strings)
{
    json_key(json, name);
    json_list_begin(json);
    for (; strings && *strings; strings++)
        json_string(json, *strings);
    json_list_end(json);
}

/* Each once, that of the name first; "default" where none is said. */
static int tags_of(struct call *call, const char *first, const char **more, const char ***out,
                   struct error *err)
{
    const char **tags = call_alloc(call, (TAGS_MOST + 3) * sizeof *tags);
    size_t count = 0;

    if (first)
        tags[count++] = first;
    for (; more && *more; more++) {
        size_t at = 0;
        while (at < count && strcmp(tags[at], *more) != 0)
            at++;
        if (at == count)
            tags[count++] = *more;
    }
    if (count == 0)
        tags[count++] = "default";
    for (size_t i = 0; i < count; i++) {
        if (!*tags[i] || strlen(tags[i]) > 128 || strpbrk(tags[i], " /:") || *tags[i] == '.' ||
            *tags[i] == '-')
            return error_set(err, ERROR_INVALID,
                             "tag '%.80s': letters, digits, '.', '_' and '-', at most 128",
                             tags[i]);
    }
    *out = tags;
    return 0;
}

static int announce(struct call *call, struct error *err)
{
    struct announce_body body = {0};
    const char *name, *tag, **tags = NULL;
    autoclear(snapshot_info) info = {0};
    autoreply reply = {0};
    bool is_unchanged = false;

    if (fields_read(call->body, announce_fields, &body, err) < 0)
        return -1;
    const char *asked = body.name && *body.name ? body.name : body.alias;
    if (!asked || !*asked)
        return error_set(err, ERROR_INVALID, "name: is needed");
    e2b_template_split(call, asked, &name, &tag);
    if (tags_of(call, tag, body.tags, &tags, err) < 0)
        return -1;
    struct e2b_about about = {.cpu_count = body.cpu_count, .memory_mb = body.memory_mb, .tags = ""};
    for (size_t i = 0; tags[i]; i++)
        about.tags = call_print(call, "%s%s%s", about.tags, i ? " " : "", tags[i]);
    const struct limits limits = e2b_limits(&about);
    if (limits_check(&limits, err) < 0 ||
        limits_check_most(&limits, &call->core->settings.ceilings.sandbox, "this server", true,
                          err) < 0)
        return -1;
    const struct snapshot_build build = {.name = name,
                                         .tag = tags[0],
                                         .content_hash = SNAPSHOT_BY_STEPS,
                                         .is_forced = true,
                                         .metadata = e2b_about_write(call, &about)};
    if (snapshot_build_begin(call->core->snapshots, &call->actor, &build, &is_unchanged, &info,
                             err) < 0)
        return -1;
    const char *const names[] = {name, NULL};
    reply_init(&reply);
    json_map_begin(&reply.json);
    e2b_member_text(&reply.json, "templateID", name);
    e2b_member_text(&reply.json, "buildID", info.id);
    e2b_member_bool(&reply.json, "public", false);
    write_list(&reply.json, "names", names);
    write_list(&reply.json, "aliases", names);
    write_list(&reply.json, "tags", (const char *const *)tags);
    json_map_end(&reply.json);
    return e2b_answer(call, &reply, 202);
}

// ---- files ----

/* What a URL says of who may upload what until when. */
struct upload_right {
    char owner[RECIPE_OWNER];
    char key_id[ID_TEXT]; // that asked for it, and has to be good still; "": the machine's own root
    char hash[RECIPE_HASH];
    uint64_t over; // recipe_upload_put: what was there when it was given, which it may replace
    int64_t until_s;
};

static const char *print_right(struct call *call, const struct upload_right *right)
{
    return call_print(call, "%s-%s-%" PRIu64 "-%" PRId64, right->owner,
                      *right->key_id ? right->key_id : NO_KEY, right->over, right->until_s);
}

static const char *text_to_seal(struct call *call, const struct upload_right *right)
{
    return call_print(call, "%s:%s", print_right(call, right), right->hash);
}

static const char *seal_upload(struct call *call, const struct upload_right *right)
{
    char *seal = call_alloc(call, SEAL_TEXT);

    seal_make(call->core, UPLOAD_PURPOSE, text_to_seal(call, right), seal);
    return call_print(call, "%s-%s", print_right(call, right), seal);
}

/* GET /templates/{id}/files/{hash} */
static int find_files(struct call *call, struct error *err)
{
    const char *hash = call->parameters[1], *name, *tag;
    struct upload_right right = {.until_s = (int64_t)(clock_wall_ms() / 1000) + UPLOAD_S};
    autoreply reply = {0};

    e2b_template_split(call, call->parameters[0], &name, &tag);
    if (recipe_upload_check(hash, err) < 0 ||
        snapshot_build_go_on(call->core->snapshots, &call->actor, name, err) < 0)
        return -1;
    recipe_upload_owner(&call->actor, right.owner);
    (void)snprintf(right.key_id, sizeof right.key_id, "%s", call->actor.key_id);
    (void)snprintf(right.hash, sizeof right.hash, "%s", hash);
    bool is_there = recipe_upload_is_there(call->core, right.owner, hash, &right.over);
    const char *token = seal_upload(call, &right);
    reply_init(&reply);
    json_map_begin(&reply.json);
    e2b_member_bool(&reply.json, "present", is_there);
    e2b_member_text(&reply.json, "url",
                    call_print(call, "%s/templates/files/%s/%s", call_base_url(call), hash, token));
    json_map_end(&reply.json);
    return e2b_answer(call, &reply, 201);
}

struct upload {
    struct waiting_call waiting;
    struct upload_right right;
};

static void upload_free(struct upload *upload)
{
    if (!upload)
        return;
    waiting_call_clear(&upload->waiting);
    free(upload);
}
DEFINE_AUTOPTR(upload)

static void on_collected_files(void *data, struct collected *body, const struct error *failure)
{
    autoptr(upload) upload = data;
    struct waiting_call *waiting = &upload->waiting;
    const struct upload_right *right = &upload->right;
    struct error err = {0};

    if (!failure && recipe_upload_put(waiting->core, right->owner, right->hash, right->over,
                                      body->fd, &err) < 0)
        failure = &err;
    if (failure) {
        waiting_call_fail(waiting, failure);
        return;
    }
    struct call call = waiting_call_get(waiting);
    (void)e2b_answer_empty(&call, 200);
}

static int refuse_url(struct error *err)
{
    return error_refuse(err, ERROR_UNAUTHORIZED, "url",
                        "the URL is not one that this server gave, or its time is up");
}

/* What the URL gives, as long as its key is good. */
static int read_right(struct call *call, const char *hash, const char *token,
                      struct upload_right *out, struct error *err)
{
    int end = 0;

    if (sscanf(token, "%32[0-9a-f]-%26[0-9a-z]-%20" SCNu64 "-%19" SCNd64 "-%n", out->owner,
               out->key_id, &out->over, &out->until_s, &end) < 4 ||
        !end)
        return refuse_url(err);
    if (strcmp(out->key_id, NO_KEY) == 0)
        out->key_id[0] = '\0';
    (void)snprintf(out->hash, sizeof out->hash, "%s", hash);
    if (!seal_is(call->core, UPLOAD_PURPOSE, text_to_seal(call, out), token + end) ||
        out->until_s < (int64_t)(clock_wall_ms() / 1000))
        return refuse_url(err);
    if (key_check_again(call->core->accounts, out->key_id, SCOPE_MANAGE, err) < 0)
        return error_wrap(err, "the key that asked for this URL");
    return 0;
}

/* PUT /templates/files/{hash}/{token}: by whoever was given this URL. */
static int take_files(struct call *call, struct error *err)
{
    const char *hash = call->parameters[0], *token = call->parameters[1];
    struct upload_right right = {0};

    if (recipe_upload_check(hash, err) < 0 || read_right(call, hash, token, &right, err) < 0)
        return -1;
    struct upload *upload = xnew(struct upload);
    waiting_call_init(&upload->waiting, call);
    upload->right = right;
    collect_start(&upload->waiting, (uint64_t)call->core->settings.file_limit_bytes,
                  on_collected_files, upload);
    return 0;
}

// ---- POST /v2/templates/{id}/builds/{build} ----

/* The build that the path names, of the template that it names. */
static int find_build(struct call *call, struct snapshot_info *out, struct error *err)
{
    const char *id = call->parameters[1];
    const char *name, *tag;

    e2b_template_split(call, call->parameters[0], &name, &tag);
    if (!id_is_valid(id) || snapshot_look(call->core->snapshots, &call->actor, id, out, err) < 0 ||
        out->deleted_at || strcmp(out->name, name) != 0)
        return error_refuse(err, ERROR_NOT_FOUND, "build", "template '%.80s' has no build '%.64s'",
                            name, id);
    return 0;
}

/* Those beside the first. */
static const char *const *other_tags(struct call *call, const char *packed)
{
    const char **tags = call_alloc(call, (TAGS_MOST + 3) * sizeof *tags);
    size_t count = 0;
    char *rest = NULL;
    char *text = call_print(call, "%s", packed ? packed : "");

    for (char *word = strtok_r(text, " ", &rest); word && count < TAGS_MOST + 2;
         word = strtok_r(NULL, " ", &rest))
        tags[count++] = word;
    return count ? (const char *const *)tags + 1 : (const char *const *)tags;
}

static int begin(struct call *call, struct error *err)
{
    struct e2b_build body = {0};
    struct e2b_about about;
    autoclear(snapshot_info) info = {0};
    struct recipe recipe;

    if (fields_read(call->body, e2b_build_fields, &body, err) < 0 ||
        find_build(call, &info, err) < 0)
        return -1;
    e2b_about_read(call, info.metadata, &about);
    if (e2b_recipe(call, &body, &about, &recipe, err) < 0)
        return -1;
    recipe.outcome.other_tags = other_tags(call, about.tags);
    about.tags = NULL;
    about.build = info.id;
    recipe.outcome.metadata = e2b_about_write(call, &about);
    if (recipe_start(call->core, &call->actor, info.id, &recipe, err) < 0)
        return -1;
    return e2b_answer_empty(call, 202);
}

// ---- how far it is ----

static const char *const level_names[] = {"debug", "info", "warn", "error", NULL};

struct telling {
    struct call *call;
    struct json_writer *json;
    int least; // level
};

static const char *step_name(struct call *call, int step)
{
    return step == RECIPE_STEP_LAST ? "finalize"
           : step == 0              ? "base"
                                    : call_print(call, "%d", step);
}

static void tell_line(void *data, const struct recipe_line *line)
{
    struct telling *telling = data;

    if ((int)line->level < telling->least)
        return;
    json_map_begin(telling->json);
    e2b_member_time(telling->json, "timestamp", line->at);
    e2b_member_text(telling->json, "level", level_names[line->level]);
    e2b_member_text(telling->json, "message", line->text);
    e2b_member_text(telling->json, "step", step_name(telling->call, line->step));
    json_map_end(telling->json);
}

static int write_log(struct call *call, struct json_writer *json, const char *name, const char *id,
                     int64_t from, struct error *err)
{
    const char *level = query_text(call->query, "level");
    struct telling telling = {.call = call, .json = json};

    for (int i = 0; level && level_names[i]; i++) {
        if (strcmp(level_names[i], level) == 0)
            telling.least = i;
    }
    json_key(json, name);
    json_list_begin(json);
    if (recipe_log_read(call->core, id, from, query_integer(call->query, "limit", LOG_MOST),
                        tell_line, &telling, err) < 0)
        return -1;
    json_list_end(json);
    return 0;
}

static void write_reason(struct call *call, struct json_writer *json,
                         const struct recipe_status *status)
{
    json_key(json, "reason");
    json_map_begin(json);
    e2b_member_text(json, "message",
                    call_print(call, "%s%s: %s", status->step > 0 ? "step " : "",
                               step_name(call, status->step), status->error));
    e2b_member_text(json, "step", step_name(call, status->step));
    json_key(json, "logEntries");
    json_list_begin(json);
    json_list_end(json);
    json_map_end(json);
}

/* GET /templates/{id}/builds/{build}/status */
static int get_status(struct call *call, struct error *err)
{
    static const char *const names[] = {[RECIPE_WAITING] = "waiting",
                                        [RECIPE_RUNNING] = "building",
                                        [RECIPE_READY] = "ready",
                                        [RECIPE_FAILED] = "error"};
    autoclear(snapshot_info) info = {0};
    autoclear(recipe_status) status = {0};
    autoreply reply = {0};

    // The state first: what was logged before it is told with it.
    if (find_build(call, &info, err) < 0 ||
        recipe_status(call->core, &call->actor, info.id, &status, err) < 0)
        return -1;
    reply_init(&reply);
    json_map_begin(&reply.json);
    e2b_member_text(&reply.json, "templateID", info.name);
    e2b_member_text(&reply.json, "buildID", info.id);
    e2b_member_text(&reply.json, "status", names[status.state]);
    write_list(&reply.json, "logs", NULL);
    if (write_log(call, &reply.json, "logEntries", info.id,
                  query_integer(call->query, "logsOffset", 0), err) < 0)
        return -1;
    if (status.state == RECIPE_FAILED)
        write_reason(call, &reply.json, &status);
    json_map_end(&reply.json);
    return e2b_answer(call, &reply, 200);
}

/* GET /templates/{id}/builds/{build}/logs */
static int get_logs(struct call *call, struct error *err)
{
    autoclear(snapshot_info) info = {0};
    autoreply reply = {0};

    if (find_build(call, &info, err) < 0)
        return -1;
    reply_init(&reply);
    json_map_begin(&reply.json);
    if (write_log(call, &reply.json, "logs", info.id, 0, err) < 0)
        return -1;
    json_map_end(&reply.json);
    return e2b_answer(call, &reply, 200);
}

static const struct parameter log_query[] = {
    {"logsOffset", PARAMETER_INTEGER, .minimum = 0, .maximum = INT32_MAX},
    {"limit", PARAMETER_INTEGER, .minimum = 1, .maximum = LOG_MOST},
    {0},
};

#define ROW(method, path, lane, body, handler, summary, scope)                                     \
    {                                                                                              \
        method, path, lane, ACCESS_KEY, body, handler, summary,                                    \
            .needs = scope, .is_undescribed = true, .reach = REACH_COMMON                          \
    }
const struct route e2b_build_routes[] = {
    ROW("POST", "/v3/templates", ROUTE_SLOW, BODY_JSON, announce, "announces a build",
        SCOPE_MANAGE),
    ROW("POST", "/v2/templates", ROUTE_SLOW, BODY_JSON, announce, "announces a build",
        SCOPE_MANAGE),
    ROW("GET", "/templates/{id}/files/{hash}", ROUTE_QUICK, BODY_NONE, find_files,
        "where files are to be put", SCOPE_MANAGE),
    {"PUT", "/templates/files/{hash}/{token}", ROUTE_QUICK, ACCESS_OPEN, BODY_STREAM, take_files,
     "files of a step, by whoever was given this URL", .is_undescribed = true},
    ROW("POST", "/v2/templates/{id}/builds/{build}", ROUTE_SLOW, BODY_JSON, begin, "begins a build",
        SCOPE_MANAGE),
    {"GET", "/templates/{id}/builds/{build}/status", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_status,
     "how far it is", .query = log_query, .needs = SCOPE_READ, .is_undescribed = true,
     .reach = REACH_COMMON},
    {"GET", "/templates/{id}/builds/{build}/logs", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_logs,
     "what it has told", .query = log_query, .needs = SCOPE_READ, .is_undescribed = true,
     .reach = REACH_COMMON},
    {0},
};
