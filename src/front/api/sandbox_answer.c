/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes as this front tells them; see sandbox_answer.h. */
#include "front/api/sandbox_answer.h"

#include "base/auto.h"
#include "front/api/api_ids.h"
#include "front/api/mount_body.h"
#include "front/api/port_body.h"

static const char *const modes[] = {
    [SANDBOX_INTERACTIVE] = "interactive", [SANDBOX_ONE_SHOT] = "one_shot"};
static const char *const on_idle[] = {
    [SANDBOX_IDLE_ENDS] = "end",
    [SANDBOX_IDLE_DROPS_BOX] = "keep_files",
    [SANDBOX_IDLE_PAUSES] = "pause",
};

#define LIMIT_AT(member) offsetof(struct limits, member)
static const struct answer_field limits_fields[] = {
    {"memoryBytes", ANSWER_INTEGER, LIMIT_AT(memory_bytes), .help = "0: none; likewise the others"},
    {"cpuMillicores", ANSWER_INTEGER, LIMIT_AT(cpu_millicores),
     .help = "thousandths of a processor"},
    {"diskBytes", ANSWER_INTEGER, LIMIT_AT(disk_bytes)},
    {"maxProcesses", ANSWER_INTEGER, LIMIT_AT(max_processes)},
    {0},
};

#define AT(member) offsetof(struct sandbox_entry, member)
const struct answer_field sandbox_entry_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = SANDBOX_PREFIX},
    {"name", ANSWER_TEXT, AT(name)},
    {"description", ANSWER_TEXT, AT(description)},
    {"labels", ANSWER_PAIRS, AT(labels), .is_needed = true},
    {"project", ANSWER_TEXT, AT(project)},
    {"state", ANSWER_WORD, AT(state), .is_needed = true, .words = sandbox_state_names,
     .n_words = SANDBOX_STATES},
    {"reason", ANSWER_TEXT, AT(reason), .help = "a word: why it is in this state"},
    {"error", ANSWER_TEXT, AT(error), .help = "of a failed one"},
    {"mode", ANSWER_WORD, AT(mode), .is_needed = true, .words = modes,
     .n_words = ARRAY_SIZE(modes)},
    {"runtime", ANSWER_TEXT, AT(runtime), .is_needed = true},
    {"snapshotId", ANSWER_ID, AT(snapshot), .prefix = SNAPSHOT_PREFIX,
     .help = "what it was made from, where that was a snapshot"},
    {"limits", ANSWER_MAP, AT(limits), .is_needed = true, .fields = limits_fields},
    {"idleTimeoutMs", ANSWER_INTEGER, AT(idle_timeout_ms), .help = "0: never; likewise the others"},
    {"executionTimeoutMs", ANSWER_INTEGER, AT(execution_timeout_ms)},
    {"pausedTimeoutMs", ANSWER_INTEGER, AT(paused_timeout_ms)},
    {"onIdle", ANSWER_WORD, AT(on_idle), .is_needed = true, .words = on_idle,
     .n_words = ARRAY_SIZE(on_idle)},
    {"expiresAt", ANSWER_TIME, AT(expires_at)},
    {"createdAt", ANSWER_TIME, AT(created_at), .is_needed = true},
    {"updatedAt", ANSWER_TIME, AT(updated_at), .is_needed = true},
    {"startedAt", ANSWER_TIME, AT(started_at)},
    {"pausedAt", ANSWER_TIME, AT(paused_at)},
    {"endedAt", ANSWER_TIME, AT(ended_at)},
    {"executions", ANSWER_INTEGER, AT(executions),
     .help = "how many commands were started in it, without jobs"},
    {"executionId", ANSWER_ID, AT(execution_id), .prefix = EXECUTION_PREFIX,
     .help = "of its first command"},
    {"exitCode", ANSWER_INTEGER, AT(exit_code), .has_offset = AT(has_exit_code),
     .help = "of a one-shot one"},
    {0},
};
#undef AT

#define USED_AT(member) offsetof(struct sandbox_usage, member)
static const struct answer_field usage_fields[] = {
    {"cpuMs", ANSWER_INTEGER, USED_AT(cpu_ms)},
    {"memoryByteSeconds", ANSWER_INTEGER, USED_AT(memory_byte_seconds),
     .help = "bytes of memory, for each second in which they were used"},
    {"egressBytes", ANSWER_INTEGER, USED_AT(egress_bytes)},
    {0},
};
static const struct answer_field network_fields[] = {
    {"enabled", ANSWER_BOOL, 0, .is_needed = true},
    {0},
};

#define AT(member) offsetof(struct sandbox_answer, member)
#define WHOLE                                                                                      \
    {"", ANSWER_BESIDE, AT(entry), .fields = sandbox_entry_fields},                                \
        {"metadata", ANSWER_JSON, AT(metadata), .json_type = "object", .help = "as it was given"}, \
        {"scopes", ANSWER_JSON, AT(scopes), .is_list = true, .json_type = "string"},               \
        {"env", ANSWER_PAIRS, AT(env), .is_needed = true},                                         \
        {"directory", ANSWER_TEXT, AT(directory), .help = "where commands start"},                 \
        {"user", ANSWER_TEXT, AT(user), .help = "whom they run as; not there: root"},              \
        {"network", ANSWER_MAP, AT(has_network), .is_needed = true, .fields = network_fields},     \
        {"mounts",                                                                                 \
         ANSWER_LIST,                                                                              \
         AT(mounts),                                                                               \
         .is_needed = true,                                                                        \
         .fields = mount_answer_fields,                                                            \
         .item_size = sizeof(struct mount_wish),                                                   \
         .help = "directories of the server's machine"},                                           \
        {"leftOut", ANSWER_TEXTS, AT(left_out),                                                    \
         .help = "of a fork, when it is made: " MOUNT_LEFT_OUT_HELP},                              \
        {"ports",                                                                                  \
         ANSWER_LIST,                                                                              \
         AT(ports),                                                                                \
         .has_offset = AT(has_ports),                                                              \
         .fields = port_answer_fields,                                                             \
         .item_size = sizeof(struct port_answer),                                                  \
         .help = "those it was made with, told by the request that makes it; later by .../ports"}, \
    {                                                                                              \
        "usage", ANSWER_MAP, AT(used), .is_needed = true, .fields = usage_fields                   \
    }
const struct answer_field sandbox_answer_fields[] = {WHOLE, {0}};
const struct answer_field sandbox_wait_fields[] = {
    WHOLE,
    {"reached", ANSWER_BOOL, AT(is_reached), .is_needed = true,
     .help = "whether it is in one of the states that were waited for; false: the time was up"},
    {0},
};
#undef AT

static const char *const none[] = {NULL};

struct sandbox_entry sandbox_entry_of(const struct sandbox_info *info)
{
    return (struct sandbox_entry){
        .id = info->id,
        .name = info->name,
        .description = info->description,
        .project = info->owner.project,
        .runtime = info->runtime,
        .snapshot = info->snapshot,
        .execution_id = info->execution_id,
        .reason = info->reason,
        .error = info->error,
        .labels = info->labels ? info->labels : none,
        .mode = info->mode,
        .state = info->state,
        .created_at = info->created_at,
        .updated_at = info->updated_at,
        .started_at = info->started_at,
        .paused_at = info->paused_at,
        .ended_at = info->ended_at,
        .expires_at = info->expires_at,
        .limits = info->limits,
        .idle_timeout_ms = info->idle_timeout_ms,
        .execution_timeout_ms = info->command.timeout_ms,
        .paused_timeout_ms = info->paused_timeout_ms,
        .on_idle = info->on_idle,
        .has_exit_code = info->exit_code != NO_EXIT_CODE,
        .exit_code = info->exit_code,
        .executions = info->used.executions,
    };
}

void sandbox_answer_init(struct sandbox_answer *answer, const struct sandbox_info *info)
{
    *answer = (struct sandbox_answer){
        .entry = sandbox_entry_of(info),
        .metadata = info->metadata,
        .scopes = info->scopes,
        .env = info->command.env ? info->command.env : none,
        .directory = info->command.directory,
        .user = info->command.user,
        .has_network = info->network.is_enabled,
        .used = {info->used.cpu_ms, usage_byte_seconds(info->used.memory_mib_ms),
                 info->used.egress_bytes},
    };
    mount_wishes_unpack(info->mounts, &answer->wishes);
    answer->mounts = (struct answer_list){answer->wishes.items, answer->wishes.count};
}

void sandbox_answer_clear(struct sandbox_answer *answer)
{
    mount_wishes_clear(&answer->wishes);
}
