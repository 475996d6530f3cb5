/* SPDX-License-Identifier: Apache-2.0 */
/* What the server's data takes on the disk, and giving back what nobody uses. */
#include "core/space.h"
#include "front/api/api.h"
#include "web/call.h"

static const struct answer_field use_fields[] = {
    {"count", ANSWER_NATURAL, offsetof(struct space_use, count)},
    {"bytes", ANSWER_NATURAL, offsetof(struct space_use, bytes)},
    {0},
};

#define PART(name, part)                                                                           \
    {                                                                                              \
        name, ANSWER_MAP, (part) * sizeof(struct space_use), .is_needed = true,                    \
                                                             .fields = use_fields                  \
    }
static const struct answer_field part_fields[SPACE_PARTS + 1] = {
    PART("runtimes", SPACE_RUNTIMES),       PART("snapshots", SPACE_SNAPSHOTS),
    PART("checkpoints", SPACE_CHECKPOINTS), PART("sandboxes", SPACE_SANDBOXES),
    PART("streams", SPACE_STREAMS),         PART("database", SPACE_DATABASE),
    PART("unused", SPACE_UNUSED),
};

static uint64_t sum_of(const struct space_use parts[SPACE_PARTS])
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < SPACE_PARTS; i++)
        sum += parts[i].bytes;
    return sum;
}

// ---- GET /api/v1/system/df ----

struct space_answer {
    struct space space;
    uint64_t used_bytes;
};
static const struct answer_field volume_fields[] = {
    {"bytes", ANSWER_NATURAL, offsetof(struct space, volume_bytes)},
    {"freeBytes", ANSWER_NATURAL, offsetof(struct space, free_bytes)},
    {0},
};
static const struct answer_field space_fields[] = {
    {"volume", ANSWER_MAP, offsetof(struct space_answer, space), .is_needed = true,
     .fields = volume_fields},
    {"parts", ANSWER_MAP, offsetof(struct space_answer, space.parts), .is_needed = true,
     .fields = part_fields},
    {"usedBytes", ANSWER_NATURAL, offsetof(struct space_answer, used_bytes)},
    {0},
};
static const struct route_answer space_answers[] = {{200, space_fields}, {0}};

static int get_space(struct call *call, struct error *err)
{
    struct space_answer answer = {0};

    if (space_get(call->core, &call->actor, &answer.space, err) < 0)
        return -1;
    answer.used_bytes = sum_of(answer.space.parts);
    return api_answer(call, 200, space_fields, &answer);
}

// ---- POST /api/v1/system/prune ----

struct prune_body {
    bool is_trial;
};
static const struct field prune_body_fields[] = {
    {"dryRun", FIELD_BOOL, offsetof(struct prune_body, is_trial), .is_nullable = true,
     .help = "only tell what would go"},
    {0},
};

struct prune_answer {
    bool is_trial;
    struct space_use freed[SPACE_PARTS];
    uint64_t freed_bytes;
};
static const struct answer_field prune_fields[] = {
    {"dryRun", ANSWER_BOOL, offsetof(struct prune_answer, is_trial)},
    {"freed", ANSWER_MAP, offsetof(struct prune_answer, freed), .is_needed = true,
     .fields = part_fields},
    {"freedBytes", ANSWER_NATURAL, offsetof(struct prune_answer, freed_bytes)},
    {0},
};
static const struct route_answer prune_answers[] = {{200, prune_fields}, {0}};

static int prune(struct call *call, struct error *err)
{
    struct prune_body body = {0};
    struct prune_answer answer = {0};

    if (fields_read(call->body, prune_body_fields, &body, err) < 0)
        return -1;
    struct space_pruning pruning = {.is_trial = body.is_trial};
    if (space_prune(call->core, &call->actor, &pruning, answer.freed, err) < 0)
        return -1;
    answer.is_trial = body.is_trial;
    answer.freed_bytes = sum_of(answer.freed);
    return api_answer(call, 200, prune_fields, &answer);
}

const struct route api_space_routes[] = {
    {"GET", API_TOP "/system/df", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, get_space,
     .summary = "what runtimes, snapshots, checkpoints, sandboxes and streams take on the disk",
     .answers = space_answers, .needs = SCOPE_ADMIN},
    {"POST", API_TOP "/system/prune", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, prune,
     .summary = "gives back what nothing uses", .fields = prune_body_fields,
     .answers = prune_answers, .needs = SCOPE_ADMIN},
    {0},
};
