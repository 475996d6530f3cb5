/* SPDX-License-Identifier: Apache-2.0 */
/* The most that can be asked for on this server. */
#include "front/api/api.h"
#include "web/call.h"

#define AT(member) offsetof(struct core_settings, member)
#define LIMIT(name, member, text)                                                                  \
    {                                                                                              \
        name, ANSWER_INTEGER, offsetof(struct limits, member), .help = text                        \
    }
static const struct answer_field limit_fields[] = {
    LIMIT("memoryBytes", memory_bytes, "0 is no limit; likewise the others"),
    LIMIT("cpuMillicores", cpu_millicores, "thousandths of a processor"),
    LIMIT("diskBytes", disk_bytes, NULL),
    LIMIT("maxProcesses", max_processes, NULL),
    {0},
};

static const struct answer_field together_fields[] = {
    {"memoryBytes", ANSWER_INTEGER, AT(boxes_memory_bytes)},
    {"maxProcesses", ANSWER_INTEGER, AT(boxes_processes)},
    {"cpuWeight", ANSWER_INTEGER, AT(boxes_cpu_weight), .help = "others on the machine have 100"},
    {"sandboxes", ANSWER_UNSIGNED, AT(max_sandboxes), .help = "alive at once"},
    {"streams", ANSWER_INTEGER, AT(ceilings.total.streams),
     .help = "0 is no limit; likewise the others"},
    {"snapshots", ANSWER_INTEGER, AT(ceilings.total.snapshots)},
    {"checkpoints", ANSWER_INTEGER, AT(ceilings.total.checkpoints)},
    {0},
};

static const struct answer_field organisation_fields[] = {
    {"sandboxes", ANSWER_INTEGER, offsetof(struct counts, sandboxes),
     .help = "0 is no limit; likewise the others"},
    {"streams", ANSWER_INTEGER, offsetof(struct counts, streams)},
    {"snapshots", ANSWER_INTEGER, offsetof(struct counts, snapshots)},
    {"checkpoints", ANSWER_INTEGER, offsetof(struct counts, checkpoints)},
    {0},
};

static const struct answer_field ceiling_fields[] = {
    {"defaults", ANSWER_MAP, AT(limits), .is_needed = true, .fields = limit_fields,
     .help = "what a sandbox gets that asks for nothing"},
    {"sandbox", ANSWER_MAP, AT(ceilings.sandbox), .is_needed = true, .fields = limit_fields,
     .help = "the most that one can ask for"},
    {"idleTimeoutMs", ANSWER_INTEGER, AT(ceilings.idle_timeout_ms),
     .help = "the longest that one can ask for; 0 is any; likewise the next two"},
    {"executionTimeoutMs", ANSWER_INTEGER, AT(ceilings.execution_timeout_ms)},
    {"lifetimeMs", ANSWER_INTEGER, AT(ceilings.lifetime_ms)},
    {"fileBytes", ANSWER_INTEGER, AT(file_limit_bytes), .is_needed = true,
     .help = "of one file or archive that is read or written in one request"},
    {"server", ANSWER_MAP, 0, .is_needed = true, .fields = together_fields,
     .help = "the most that all sandboxes, or all organisations, can have together"},
    {"organisation", ANSWER_MAP, AT(ceilings.organisation), .is_needed = true,
     .fields = organisation_fields, .help = "the most that one organisation can have"},
    {0},
};
static const struct route_answer ceiling_answers[] = {{200, ceiling_fields}, {0}};

/* GET /api/v1/system/limits */
static int get_ceilings(struct call *call, struct error *err)
{
    (void)err;
    return api_answer(call, 200, ceiling_fields, &call->core->settings);
}

const struct route api_ceiling_routes[] = {
    {"GET", API_TOP "/system/limits", ROUTE_LOOP, ACCESS_KEY, BODY_NONE, get_ceilings,
     .summary = "the most that can be asked for on this server", .answers = ceiling_answers,
     .needs = SCOPE_READ},
    {0},
};
