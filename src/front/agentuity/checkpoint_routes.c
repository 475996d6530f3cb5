/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: moments of a sandbox's files to go back to. */
#include "core/snapshot/checkpoint.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/render.h"

struct checkpoint_body {
    const char *name;
};
static const struct field checkpoint_fields[] = {
    {"name", FIELD_TEXT, offsetof(struct checkpoint_body, name), .is_needed = true, .maximum = 256,
     .help = "no two of a sandbox have the same"},
    {0},
};

/* POST /sandbox/{id}/checkpoint */
static int create_checkpoint(struct call *call, struct error *err)
{
    struct checkpoint_body body = {0};
    autoclear(checkpoint_info) info = {0};
    autoreply reply = {0};
    const char *id;

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &id, err) < 0 ||
        fields_read(call->body, checkpoint_fields, &body, err) < 0)
        return -1;
    if (!body.name[0])
        return error_set(err, ERROR_INVALID, "name: must not be empty");
    if (checkpoint_create(call->core->snapshots, &call->actor, id, body.name, &info, err) < 0)
        return -1;
    envelope_data(&reply);
    render_checkpoint(&reply.json, &info);
    return envelope_send(&reply, call->response, 201);
}

/* GET /sandbox/checkpoints/{id} */
static int list_checkpoints(struct call *call, struct error *err)
{
    autoclear(checkpoint_infos) found = {0};
    autoreply reply = {0};
    const char *id;

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &id, err) < 0 ||
        checkpoint_list(call->core->snapshots, &call->actor, id, &found, err) < 0)
        return -1;
    envelope_data(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "checkpoints");
    json_list_begin(&reply.json);
    for (size_t i = 0; i < found.count; i++)
        render_checkpoint(&reply.json, &found.items[i]);
    json_list_end(&reply.json);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

typedef int change(struct snapshots *snapshots, const struct actor *actor, const char *sandbox_id,
                   const char *reference, struct error *err);

/* Of the checkpoint that the path names, by id or name. */
static int apply_checkpoint(struct call *call, change *fn, struct error *err)
{
    const char *reference = reference_of(call->parameters[1], CHECKPOINT_PREFIX);
    const char *id;

    if (call_id(call, 0, SANDBOX_PREFIX, "sandbox", &id, err) < 0 ||
        fn(call->core->snapshots, &call->actor, id, reference, err) < 0)
        return -1;
    return envelope_bare(call);
}

/* POST /sandbox/{id}/checkpoint/{ref}/restore */
static int restore_checkpoint(struct call *call, struct error *err)
{
    return apply_checkpoint(call, checkpoint_restore, err);
}

/* DELETE /sandbox/{id}/checkpoint/{ref} */
static int delete_checkpoint(struct call *call, struct error *err)
{
    return apply_checkpoint(call, checkpoint_remove, err);
}

const struct route agentuity_checkpoint_routes[] = {
    {"POST", "/sandbox/{id}/checkpoint", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, create_checkpoint,
     "keeps a sandbox's files as they are now", .fields = checkpoint_fields,
     .answers = answers_checkpoint, .needs = SCOPE_MANAGE},
    {"GET", "/sandbox/checkpoints/{id}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_checkpoints,
     "checkpoints of a sandbox, the oldest first", .answers = answers_checkpoints},
    {"POST", "/sandbox/{id}/checkpoint/{ref}/restore", ROUTE_SLOW, ACCESS_KEY, BODY_NONE,
     restore_checkpoint, "ends what runs in a sandbox and gives it the files of a checkpoint",
     .answers = answers_bare, .needs = SCOPE_MANAGE},
    {"DELETE", "/sandbox/{id}/checkpoint/{ref}", ROUTE_SLOW, ACCESS_KEY, BODY_NONE,
     delete_checkpoint, "removes a checkpoint", .answers = answers_bare, .needs = SCOPE_MANAGE},
    {0},
};
