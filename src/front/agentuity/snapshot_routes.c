/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots: taken of sandboxes, listed, tagged, deleted; and the public ones, for whoever asks. Builds are in snapshot_build.c. */
#include "core/snapshot/snapshot.h"
#include "front/agentuity/page.h"
#include "front/agentuity/snapshot_impl.h"

#include <string.h>

void snapshot_organisation(struct call *call, const struct snapshot_info *info,
                           struct organisation_info *out)
{
    struct actor owner = {0};
    struct error err = {0};

    if (!info->owner.organisation)
        return;
    (void)snprintf(owner.organisation, sizeof owner.organisation, "%s", info->owner.organisation);
    (void)account_organisation(call->core->accounts, &owner, out, &err);
}

struct snapshot_view snapshot_view_of(struct call *call, const struct snapshot_info *info,
                                      const struct organisation_info *organisation)
{
    return (struct snapshot_view){
        .info = info,
        .organisation = organisation->id ? organisation : NULL,
        .organisation_name = agentuity_settings_of(call)->organisation_name,
        .is_own = actor_sees(&call->actor, &info->owner),
    };
}

int snapshot_id_of(const struct call *call, const char **out, struct error *err)
{
    return call_id(call, 0, SNAPSHOT_PREFIX, "snapshot", out, err);
}

static int answer_snapshot(struct call *call, int status, const struct snapshot_info *info,
                           const struct snapshot_files *files)
{
    autoclear(organisation_info) organisation = {0};
    autoreply reply = {0};

    snapshot_organisation(call, info, &organisation);
    struct snapshot_view view = snapshot_view_of(call, info, &organisation);
    view.files = files;
    envelope_data(&reply);
    render_snapshot(&reply.json, &view);
    return envelope_send(&reply, call->response, status);
}

int snapshot_answer(struct call *call, int status, const struct snapshot_info *info)
{
    return answer_snapshot(call, status, info, NULL);
}

static int answer_whole(struct call *call, const struct snapshot_info *info, struct error *err)
{
    __attribute__((cleanup(snapshot_files_clear))) struct snapshot_files files = {0};

    if (snapshot_files(call->core->snapshots, info, &files, err) < 0)
        return -1;
    return answer_snapshot(call, 200, info, &files);
}

struct create_body {
    const char *name, *description, *tag;
    bool is_public;
};
static const struct field create_fields[] = {
    {"name", FIELD_TEXT, offsetof(struct create_body, name), .is_nullable = true, .maximum = 128,
     .help = "letters, digits, '_' and '-'; made up when absent"},
    {"description", FIELD_TEXT, offsetof(struct create_body, description), .is_nullable = true,
     .maximum = 4096},
    {"tag", FIELD_TEXT, offsetof(struct create_body, tag), .is_nullable = true, .maximum = 128,
     .help = "'latest' when absent; one in use is taken over"},
    {"public", FIELD_BOOL, offsetof(struct create_body, is_public), .is_nullable = true,
     .help = "listed and started from without belonging to the organisation"},
    {0},
};

/* POST /sandbox/{id}/snapshot */
static int create_snapshot(struct call *call, struct error *err)
{
    struct create_body body = {0};
    struct snapshot_request want;
    autoclear(snapshot_info) info = {0};
    const char *id;

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &id, err) < 0 ||
        fields_read(call->body, create_fields, &body, err) < 0)
        return -1;
    want = (struct snapshot_request){.name = body.name,
                                     .tag = body.tag,
                                     .description = body.description,
                                     .is_public = body.is_public};
    if (call_once(call, &want.once, err) < 0 ||
        snapshot_create(call->core->snapshots, &call->actor, id, &want, &info, err) < 0)
        return -1;
    return snapshot_answer(call, 201, &info);
}

static const char *const sorts[] = {"created", "name", "size", "files",
                                    NULL}; // as enum snapshot_sort
_Static_assert(SNAPSHOT_BY_CREATED == 0 && SNAPSHOT_BY_FILES == 3, "sorts are in order");

static enum snapshot_sort snapshot_sort_of(const struct query *query)
{
    const char *word = query_text(query, "sort");
    unsigned place = 0;

    while (word && sorts[place] && strcmp(sorts[place], word) != 0)
        place++;
    return place;
}

/* Rows are mostly of one organisation, which is then asked for once. */
struct organisations {
    struct organisation_info last;
};

static struct snapshot_view view_of(struct call *call, struct organisations *known,
                                    const struct snapshot_info *info)
{
    const char *id = info->owner.organisation;

    if (!known->last.id || !id || strcmp(known->last.id, id) != 0) {
        organisation_info_clear(&known->last);
        known->last = (struct organisation_info){0};
        snapshot_organisation(call, info, &known->last);
    }
    return snapshot_view_of(call, info, &known->last);
}

typedef void render(struct json_writer *json, const struct snapshot_view *view);

static int answer_list(struct call *call, const char *name, render *fn,
                       const struct snapshot_infos *found)
{
    struct organisations known = {0};
    autoreply reply = {0};

    envelope_data(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, name);
    json_list_begin(&reply.json);
    for (size_t i = 0; i < found->count; i++) {
        struct snapshot_view view = view_of(call, &known, &found->items[i]);
        fn(&reply.json, &view);
    }
    json_list_end(&reply.json);
    member_integer(&reply.json, "total", found->total);
    json_map_end(&reply.json);
    organisation_info_clear(&known.last);
    return envelope_send(&reply, call->response, 200);
}

static int list_snapshots_of(struct call *call, const struct actor *actor, struct error *err)
{
    const char *sandbox = actor ? query_text(call->query, "sandboxId") : NULL;
    struct snapshot_filter filter = {
        .sandbox_id = sandbox ? reference_of(sandbox, SANDBOX_PREFIX) : NULL,
        .is_public_only = !actor,
        .sort = snapshot_sort_of(call->query),
        .is_descending = page_is_descending(call->query, true),
    };
    autoclear(snapshot_infos) found = {0};

    if (page_read(call->query, &filter.page, err) < 0 ||
        snapshot_list(call->core->snapshots, actor, &filter, &found, err) < 0)
        return -1;
    return answer_list(call, "snapshots", render_snapshot, &found);
}

/* GET /sandbox/snapshots */
static int list_snapshots(struct call *call, struct error *err)
{
    return list_snapshots_of(call, &call->actor, err);
}

/* GET /sandbox/snapshots/public */
static int list_public_snapshots(struct call *call, struct error *err)
{
    return list_snapshots_of(call, NULL, err);
}

/* GET /sandbox/snapshots/{snapshotId}: by any reference, as sandboxes are started from. */
static int get_snapshot(struct call *call, struct error *err)
{
    const char *text = call->parameters[0];
    const char *reference = reference_of_snapshot(call, text, SNAPSHOT_PREFIX, ORGANISATION_PREFIX);
    autoclear(snapshot_info) named = {0};
    autoclear(snapshot_info) info = {0};

    if (!reference_is_id(text, SNAPSHOT_PREFIX) &&
        snapshot_resolve(call->core->snapshots, &call->actor, reference, &named, err) < 0)
        return -1;
    if (snapshot_get(call->core->snapshots, &call->actor, named.id ? named.id : reference, &info,
                     err) < 0)
        return -1;
    return answer_whole(call, &info, err);
}

/* GET /sandbox/snapshots/public/{ref} */
static int get_public_snapshot(struct call *call, struct error *err)
{
    const char *reference =
        reference_of_snapshot(call, call->parameters[0], SNAPSHOT_PREFIX, ORGANISATION_PREFIX);
    autoclear(snapshot_info) named = {0};
    autoclear(snapshot_info) info = {0};

    if (snapshot_resolve_public(call->core->snapshots, reference, &named, err) < 0 ||
        snapshot_get(call->core->snapshots, NULL, named.id, &info, err) < 0)
        return -1;
    return answer_whole(call, &info, err);
}

struct tag_body {
    const struct data_value *tag;
};
static const struct field tag_fields[] = {
    {"tag", FIELD_VALUE, offsetof(struct tag_body, tag), .is_needed = true,
     .help = "a text; null takes it away"},
    {0},
};

static int read_tag(const struct tag_body *body, const char **out, struct error *err)
{
    const struct data_value *value = body->tag;

    if (value->kind == VALUE_NULL) {
        *out = NULL;
        return 0;
    }
    if (value->kind != VALUE_STRING)
        return error_set(err, ERROR_INVALID, "tag: must be a string or null, not %s",
                         value_kind_name(value->kind));
    if (strlen(value->text) != value->length || !value->length)
        return error_set(err, ERROR_INVALID, "tag: must not be empty or contain NUL");
    *out = value->text;
    return 0;
}

/* PATCH /sandbox/snapshots/{snapshotId} */
static int set_snapshot_tag(struct call *call, struct error *err)
{
    struct tag_body body = {0};
    autoclear(snapshot_info) info = {0};
    const char *id, *tag = NULL;

    if (snapshot_id_of(call, &id, err) < 0 || fields_read(call->body, tag_fields, &body, err) < 0 ||
        read_tag(&body, &tag, err) < 0 ||
        snapshot_set_tag(call->core->snapshots, &call->actor, id, tag, &info, err) < 0)
        return -1;
    return snapshot_answer(call, 200, &info);
}

/* DELETE /sandbox/snapshots/{snapshotId} */
static int delete_snapshot(struct call *call, struct error *err)
{
    const char *id;

    if (snapshot_id_of(call, &id, err) < 0 ||
        snapshot_delete(call->core->snapshots, &call->actor, id, err) < 0)
        return -1;
    return envelope_bare(call);
}

#define LINEAGE_LIMIT 100
#define LINEAGE_MAX 1000

/* What the query names: a reference, or a name and its tag. */
static const char *lineage_reference(struct call *call)
{
    const char *snapshot = query_text(call->query, "snapshot");
    const char *name = query_text(call->query, "name");
    const char *tag = query_text(call->query, "tag");

    if (snapshot || !name)
        return snapshot;
    return tag ? call_print(call, "%s:%s", name, tag) : name;
}

int snapshot_id_named(struct call *call, const char *text, const char **id, struct error *err)
{
    autoclear(snapshot_info) info = {0};

    if (reference_is_id(text, SNAPSHOT_PREFIX)) {
        *id = reference_of(text, SNAPSHOT_PREFIX);
        return 0;
    }
    if (snapshot_resolve(call->core->snapshots, &call->actor,
                         reference_of_snapshot(call, text, SNAPSHOT_PREFIX, ORGANISATION_PREFIX),
                         &info, err) < 0)
        return -1;
    *id = call_print(call, "%s", info.id);
    return 0;
}

/* GET /sandbox/snapshots/lineage */
static int list_lineage(struct call *call, struct error *err)
{
    const char *text = lineage_reference(call);
    int64_t limit = query_integer(call->query, "limit", LINEAGE_LIMIT);
    autoclear(snapshot_infos) found = {0};
    const char *id;

    if (!text)
        return error_set(err, ERROR_INVALID, "snapshot: is needed, or a name");
    if (limit < 0)
        return error_set(err, ERROR_INVALID, "limit: must not be below 0");
    if (snapshot_id_named(call, text, &id, err) < 0 ||
        snapshot_lineage(call->core->snapshots, &call->actor, id,
                         (size_t)(limit < LINEAGE_MAX ? limit : LINEAGE_MAX), &found, err) < 0)
        return -1;
    return answer_list(call, "lineage", render_ancestor, &found);
}

static const struct parameter list_parameters[] = {
    {"sandboxId", PARAMETER_TEXT, NULL, "taken of this sandbox"},
    {"sort", PARAMETER_WORD, sorts, NULL},
    PAGE_DIRECTION_PARAMETER,
    PAGE_LIMIT_PARAMETER,
    PAGE_OFFSET_PARAMETER,
    {0},
};
static const struct parameter public_parameters[] = {
    {"sort", PARAMETER_WORD, sorts, NULL},
    PAGE_DIRECTION_PARAMETER,
    PAGE_LIMIT_PARAMETER,
    PAGE_OFFSET_PARAMETER,
    {0},
};
static const struct parameter lineage_parameters[] = {
    {"snapshot", PARAMETER_TEXT, NULL, "id, name:tag, tag or name"},
    {"name", PARAMETER_TEXT, NULL, "instead of it"},
    {"tag", PARAMETER_TEXT, NULL, "of that name"},
    {"limit", PARAMETER_INTEGER, NULL, "at most so many, 1000 at the most; 100 when not given"},
    {0},
};

const struct route agentuity_snapshot_routes[] = {
    {"POST", "/sandbox/{id}/snapshot", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, create_snapshot,
     "keeps a sandbox's files to start others from", .fields = create_fields,
     .answers = answers_snapshot_made, .needs = SCOPE_MANAGE},
    {"GET", "/sandbox/snapshots", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, list_snapshots, "snapshots",
     .query = list_parameters, .answers = answers_snapshots},
    {"GET", "/sandbox/snapshots/public", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, list_public_snapshots,
     "public snapshots", .query = public_parameters, .answers = answers_snapshots},
    {"GET", "/sandbox/snapshots/lineage", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_lineage,
     "a snapshot and what it was made from, up to the root", .query = lineage_parameters,
     .answers = answers_lineage},
    {"GET", "/sandbox/snapshots/public/{ref}", ROUTE_SLOW, ACCESS_OPEN, BODY_NONE,
     get_public_snapshot, "a public snapshot with its files", .answers = answers_snapshot},
    {"GET", "/sandbox/snapshots/{snapshotId}", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, get_snapshot,
     "a snapshot with its files", .answers = answers_snapshot},
    {"PATCH", "/sandbox/snapshots/{snapshotId}", ROUTE_QUICK, ACCESS_KEY, BODY_JSON,
     set_snapshot_tag, "gives a snapshot a tag or takes it away", .fields = tag_fields,
     .answers = answers_snapshot, .needs = SCOPE_MANAGE},
    {"DELETE", "/sandbox/snapshots/{snapshotId}", ROUTE_SLOW, ACCESS_KEY, BODY_NONE,
     delete_snapshot, "deletes a snapshot; sandboxes made from it live on", .answers = answers_bare,
     .needs = SCOPE_MANAGE},
    {0},
};
