/* SPDX-License-Identifier: Apache-2.0 */
/* What the server's data takes on the disk, and giving back what nobody uses. */
#include "core/space.h"
#include "web/call.h"
#include "front/ops/ops_impl.h"
#include "web/reply.h"

static const char *const names[SPACE_PARTS] = {
    [SPACE_RUNTIMES] = "runtimes",       [SPACE_SNAPSHOTS] = "snapshots",
    [SPACE_CHECKPOINTS] = "checkpoints", [SPACE_SANDBOXES] = "sandboxes",
    [SPACE_STREAMS] = "streams",         [SPACE_DATABASE] = "database",
    [SPACE_UNUSED] = "unused",
};

static void member_natural(struct json_writer *json, const char *name, uint64_t number)
{
    json_key(json, name);
    json_natural(json, number);
}

/* {"runtimes":{"count":…,"bytes":…},…}, and the sum of the bytes */
static uint64_t put_parts(struct json_writer *json, const struct space_use parts[SPACE_PARTS])
{
    uint64_t sum = 0;

    json_map_begin(json);
    for (unsigned i = 0; i < SPACE_PARTS; i++) {
        json_key(json, names[i]);
        json_map_begin(json);
        member_natural(json, "count", parts[i].count);
        member_natural(json, "bytes", parts[i].bytes);
        json_map_end(json);
        sum += parts[i].bytes;
    }
    json_map_end(json);
    return sum;
}

int ops_get_space(struct call *call, struct error *err)
{
    struct space space = {0};
    autoreply reply = {0};

    if (space_get(call->core, &call->actor, &space, err) < 0)
        return -1;
    reply_init(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "volume");
    json_map_begin(&reply.json);
    member_natural(&reply.json, "bytes", space.volume_bytes);
    member_natural(&reply.json, "freeBytes", space.free_bytes);
    json_map_end(&reply.json);
    json_key(&reply.json, "parts");
    uint64_t used = put_parts(&reply.json, space.parts);
    member_natural(&reply.json, "usedBytes", used);
    json_map_end(&reply.json);
    reply_send(&reply, call->response, 200);
    return 0;
}

struct prune_body {
    bool is_trial;
};
const struct field ops_prune_fields[] = {
    {"dryRun", FIELD_BOOL, offsetof(struct prune_body, is_trial), .is_nullable = true,
     .help = "only tell what would go"},
    {0},
};

int ops_prune(struct call *call, struct error *err)
{
    struct prune_body body = {0};
    struct space_use freed[SPACE_PARTS] = {0};
    autoreply reply = {0};

    if (fields_read(call->body, ops_prune_fields, &body, err) < 0)
        return -1;
    struct space_pruning pruning = {.is_trial = body.is_trial};
    if (space_prune(call->core, &call->actor, &pruning, freed, err) < 0)
        return -1;
    reply_init(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "dryRun");
    json_bool(&reply.json, body.is_trial);
    json_key(&reply.json, "freed");
    uint64_t sum = put_parts(&reply.json, freed);
    member_natural(&reply.json, "freedBytes", sum);
    json_map_end(&reply.json);
    reply_send(&reply, call->response, 200);
    return 0;
}
