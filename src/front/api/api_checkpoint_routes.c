/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: moments of a sandbox's files to go back to. */
#include "core/snapshot/checkpoint.h"
#include "front/api/api.h"
#include "front/api/mount_body.h"
#include "web/reference.h"

#define AT(member) offsetof(struct checkpoint_info, member)
static const struct answer_field checkpoint_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = CHECKPOINT_PREFIX},
    {"sandboxId", ANSWER_ID, AT(sandbox_id), .is_needed = true, .prefix = SANDBOX_PREFIX},
    {"name", ANSWER_TEXT, AT(name), .is_needed = true},
    {"parent", ANSWER_ID, AT(parent), .prefix = "", .help = "name of the one before it"},
    {"sizeBytes", ANSWER_INTEGER, AT(size_bytes)},
    {"createdAt", ANSWER_TIME, AT(created_at), .is_needed = true},
    {0},
};
#undef AT

struct made_answer {
    struct checkpoint_info info;
    const char *const *left_out;
};
static const struct answer_field made_fields[] = {
    {"", ANSWER_BESIDE, offsetof(struct made_answer, info), .fields = checkpoint_fields},
    {"leftOut", ANSWER_TEXTS, offsetof(struct made_answer, left_out), .help = MOUNT_LEFT_OUT_HELP},
    {0},
};
static const struct route_answer made_answers[] = {{201, made_fields}, {0}};
static const struct answer_field list_fields[] = {
    {"items", ANSWER_LIST, .is_needed = true, .fields = checkpoint_fields,
     .item_size = sizeof(struct checkpoint_info), .help = "all of them, the oldest first"},
    {0},
};
static const struct route_answer list_answers[] = {{200, list_fields}, {0}};

struct checkpoint_body {
    const char *name;
};
static const struct field body_fields[] = {
    {"name", FIELD_TEXT, offsetof(struct checkpoint_body, name), .is_needed = true, .minimum = 1,
     .maximum = 256, .help = "no two of a sandbox have the same"},
    {0},
};

/* POST /api/v1/sandboxes/{sandbox}/checkpoints */
static int make_checkpoint(struct call *call, struct error *err)
{
    struct checkpoint_body body = {0};
    autoclear(checkpoint_info) info = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 || fields_read(call->body, body_fields, &body, err) < 0)
        return -1;
    if (checkpoint_create(call->core->snapshots, &call->actor, id, body.name, &info, err) < 0)
        return -1;
    const struct made_answer answer = {info, mount_targets(call, id)};
    return api_answer(call, 201, made_fields, &answer);
}

/* GET /api/v1/sandboxes/{sandbox}/checkpoints */
static int list_checkpoints(struct call *call, struct error *err)
{
    autoclear(checkpoint_infos) found = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        checkpoint_list(call->core->snapshots, &call->actor, id, &found, err) < 0)
        return -1;
    struct answer_list items = {found.items, found.count};
    return api_answer(call, 200, list_fields, &items);
}

typedef int change(struct snapshots *snapshots, const struct actor *actor, const char *sandbox_id,
                   const char *reference, struct error *err);

/* Of the checkpoint that the path names, by id or name. */
static int apply(struct call *call, change *fn, struct error *err)
{
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        fn(call->core->snapshots, &call->actor, id,
           reference_of(call->parameters[1], CHECKPOINT_PREFIX), err) < 0)
        return -1;
    return api_answer_empty(call);
}

/* POST /api/v1/sandboxes/{sandbox}/checkpoints/{checkpoint}/restore */
static int restore(struct call *call, struct error *err)
{
    return apply(call, checkpoint_restore, err);
}

/* DELETE /api/v1/sandboxes/{sandbox}/checkpoints/{checkpoint} */
static int forget(struct call *call, struct error *err)
{
    return apply(call, checkpoint_remove, err);
}

static const struct route_answer empty_answers[] = {{204, NULL}, {0}};

#define CHECKPOINTS API_TOP "/sandboxes/{sandbox}/checkpoints"
const struct route api_checkpoint_routes[] = {
    {"POST", CHECKPOINTS, ROUTE_SLOW, ACCESS_KEY, BODY_JSON, make_checkpoint,
     .summary = "keeps a sandbox's files as they are now", .fields = body_fields,
     .answers = made_answers, .needs = SCOPE_RUN},
    {"GET", CHECKPOINTS, ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_checkpoints,
     .summary = "checkpoints of a sandbox, the oldest first", .answers = list_answers,
     .needs = SCOPE_READ},
    {"POST", CHECKPOINTS "/{checkpoint}/restore", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, restore,
     .summary = "ends what runs in a sandbox and gives it the files of a checkpoint",
     .answers = empty_answers, .needs = SCOPE_RUN},
    {"DELETE", CHECKPOINTS "/{checkpoint}", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, forget,
     .summary = "removes a checkpoint", .answers = empty_answers, .needs = SCOPE_RUN},
    {0},
};
