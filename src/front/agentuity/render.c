/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes as JSON; see render.h. Commands and events are in render_execution.c and render_event.c. */
#include "front/agentuity/render.h"
#include "base/strings.h"
#include "base/duration.h"
#include "base/size.h"
#include "core/runtime/runtime.h"
#include "data/json.h"
#include "front/agentuity/agentuity_impl.h"

#include <string.h>

static const char *const statuses[SANDBOX_STATES] = {
    [SANDBOX_CREATING] = "creating", [SANDBOX_IDLE] = "idle",       [SANDBOX_RUNNING] = "running",
    [SANDBOX_PAUSING] = "paused", // on its way there or back
    [SANDBOX_PAUSED] = "suspended",  [SANDBOX_RESUMING] = "paused", [SANDBOX_STOPPING] = "stopping",
    [SANDBOX_ENDED] = "terminated",  [SANDBOX_FAILED] = "failed",   [SANDBOX_DELETED] = "deleted",
};

const char *const render_statuses[] = {
    "creating",  "idle",       "running", "paused",  "stopping",
    "suspended", "terminated", "failed",  "deleted", NULL,
};

const char *render_status(enum sandbox_state state)
{
    return statuses[state];
}

unsigned render_states(const char *status)
{
    unsigned states = 0;

    for (unsigned i = 0; i < SANDBOX_STATES; i++) {
        if (strcmp(statuses[i], status) == 0)
            states |= sandbox_in(i);
    }
    return states;
}

#define EXIT_FAILED 1
#define EXIT_KILLED 137

int64_t render_exit_code(enum sandbox_mode mode, enum sandbox_state state, int64_t exit_code)
{
    if (!(SANDBOX_OVER & sandbox_in(state)))
        return NO_EXIT_CODE;
    if (mode != SANDBOX_ONE_SHOT || exit_code != NO_EXIT_CODE)
        return exit_code;
    return state == SANDBOX_FAILED ? EXIT_FAILED : EXIT_KILLED;
}

int64_t render_byte_seconds(int64_t mib_ms)
{
    const int64_t mib = 1 << 20;

    return mib_ms / 1000 * mib + mib_ms % 1000 * mib / 1000;
}

/* What was asked for, as it was spelled. */
struct asked {
    struct data_document *document; // NULL: nothing
};

static void asked_clear(struct asked *asked)
{
    data_document_free(asked->document);
}

static const char *asked_text(const struct asked *asked, const char *name)
{
    const struct data_value *value =
        asked->document ? value_get(asked->document->root, name) : NULL;

    return value && value->kind == VALUE_STRING ? value->text : NULL;
}

static void asked_read(const char *text, struct asked *asked)
{
    struct error err = {0};

    *asked = (struct asked){0};
    if (text && json_read("", text, strlen(text), NULL, &asked->document, &err) < 0)
        asked->document = NULL;
}

// ---- tables ----

struct timeouts {
    const char *idle, *execution, *paused;
    char room[3][DURATION_TEXT];
};
static const struct answer_field timeout_fields[] = {
    {"idle", ANSWER_TEXT, offsetof(struct timeouts, idle)},
    {"execution", ANSWER_TEXT, offsetof(struct timeouts, execution)},
    {"paused", ANSWER_TEXT, offsetof(struct timeouts, paused)},
    {0},
};

struct resources {
    const char *memory, *cpu, *disk;
    char room[3][SIZE_TEXT];
};
static const struct answer_field resource_fields[] = {
    {"memory", ANSWER_TEXT, offsetof(struct resources, memory)},
    {"cpu", ANSWER_TEXT, offsetof(struct resources, cpu)},
    {"disk", ANSWER_TEXT, offsetof(struct resources, disk)},
    {0},
};

static const struct answer_field runtime_fields[] = {
    {"id", ANSWER_ID, offsetof(struct named, id), .is_needed = true, .prefix = RUNTIME_PREFIX},
    {"name", ANSWER_TEXT, offsetof(struct named, name), .is_needed = true},
    {0},
};
const struct answer_field render_organisation_fields[] = {
    {"id", ANSWER_ID, offsetof(struct named, id), .is_needed = true, .prefix = ORGANISATION_PREFIX},
    {"name", ANSWER_TEXT, offsetof(struct named, name), .is_needed = true},
    {0},
};
static const struct answer_field project_fields[] = {
    {"id", ANSWER_TEXT, offsetof(struct named, id), .is_needed = true},
    {"name", ANSWER_TEXT, offsetof(struct named, name), .is_needed = true},
    {0},
};
const struct answer_field render_user_fields[] = {
    {"id", ANSWER_ID, offsetof(struct named, id), .is_needed = true, .prefix = USER_PREFIX},
    {0},
};

static const char *const modes[] = {
    [SANDBOX_INTERACTIVE] = "interactive", [SANDBOX_ONE_SHOT] = "oneshot"};

#define IDENTIFIER 12 // letters and digits of the id

/* What lists and single ones have in common; only single ones have the rest. */
struct sandbox_entry {
    const char *id;
    enum sandbox_state state;
    enum sandbox_mode mode;
    int64_t created_at, executions;
    char identifier_room[IDENTIFIER + 1], runtime_id[24];
    const char *identifier, *name, *description, *region, *url;
    int64_t port;
    bool has_port;
    bool has_runtime, has_snapshot, has_command, has_organisation, has_network;
    struct named runtime, organisation;
    const struct sandbox_view *view;
    struct answer_joined standard_output, standard_error;
    struct timeouts timeouts;
    struct {
        const char *const *argv;
        enum sandbox_mode mode;
    } command;
};

/* Of one that is not remembered any more its id is all there is; clients want to know whose a private one is. */
static void write_origin(struct json_writer *json, const void *member)
{
    const struct sandbox_view *view = *(const struct sandbox_view *const *)member;
    struct snapshot_info unknown = {.id = view->info->snapshot};
    struct snapshot_view bare = {.info = &unknown};

    render_origin(json, view->snapshot ? view->snapshot : &bare);
}

#define AT(member) offsetof(struct sandbox_entry, member)

static const struct answer_field command_fields[] = {
    {"exec", ANSWER_TEXTS, AT(command.argv) - AT(command), .is_needed = true},
    {"mode", ANSWER_WORD, AT(command.mode) - AT(command), .is_needed = true, .words = modes,
     .n_words = ARRAY_SIZE(modes)},
    {0},
};
const struct answer_field render_entry_fields[] = {
    {"sandboxId", ANSWER_ID, AT(id), .is_needed = true, .prefix = SANDBOX_PREFIX},
    {"status", ANSWER_WORD, AT(state), .is_needed = true, .words = statuses,
     .n_words = SANDBOX_STATES},
    {"createdAt", ANSWER_TIME, AT(created_at), .is_needed = true},
    {"executions", ANSWER_INTEGER, AT(executions)},
    {"identifier", ANSWER_TEXT, AT(identifier), .is_needed = true},
    {"name", ANSWER_TEXT, AT(name)},
    {"description", ANSWER_TEXT, AT(description)},
    {"mode", ANSWER_WORD, AT(mode), .is_needed = true, .words = modes,
     .n_words = ARRAY_SIZE(modes)},
    {"region", ANSWER_TEXT, AT(region), .is_needed = true},
    {"runtime", ANSWER_MAP, AT(runtime), .has_offset = AT(has_runtime), .fields = runtime_fields},
    {"snapshot", ANSWER_CUSTOM, AT(view), .has_offset = AT(has_snapshot), .write = write_origin,
     .fields = render_origin_fields, .help = "what it was made from"},
    {"stdoutStreamUrl", ANSWER_JOINED, AT(standard_output), .prefix = "/stream/" STREAM_PREFIX,
     .help = "of its first command"},
    {"stderrStreamUrl", ANSWER_JOINED, AT(standard_error), .prefix = "/stream/" STREAM_PREFIX},
    {"networkEnabled", ANSWER_BOOL, AT(has_network)},
    {"networkPort", ANSWER_INTEGER, AT(port), .has_offset = AT(has_port)},
    {"url", ANSWER_TEXT, AT(url), .help = "where its exposed port is reached"},
    {"timeout", ANSWER_MAP, AT(timeouts), .is_needed = true, .fields = timeout_fields},
    {"command", ANSWER_MAP, AT(command), .has_offset = AT(has_command), .fields = command_fields},
    {"org", ANSWER_MAP, AT(organisation), .has_offset = AT(has_organisation),
     .fields = render_organisation_fields},
    {0},
};
#undef AT

struct sandbox_whole {
    struct sandbox_entry entry;
    bool has_exit_code, has_project;
    int64_t exit_code, cpu_ms, memory_byte_seconds, egress_bytes;
    const char *metadata, *scopes;
    const char *const *dependencies, *const *packages;
    struct resources resources;
    struct named user, project;
};
#define AT(member) offsetof(struct sandbox_whole, member)
const struct answer_field render_sandbox_fields[] = {
    {"", ANSWER_BESIDE, AT(entry), .fields = render_entry_fields},
    {"exitCode", ANSWER_INTEGER, AT(exit_code), .has_offset = AT(has_exit_code)},
    {"metadata", ANSWER_JSON, AT(metadata), .help = "as it was given"},
    {"scopes", ANSWER_JSON, AT(scopes)},
    {"dependencies", ANSWER_TEXTS, AT(dependencies), .help = "apt packages over its runtime"},
    {"packages", ANSWER_TEXTS, AT(packages), .help = "those of npm"},
    {"resources", ANSWER_MAP, AT(resources), .is_needed = true, .fields = resource_fields},
    {"cpuTimeMs", ANSWER_INTEGER, AT(cpu_ms)},
    {"memoryByteSec", ANSWER_INTEGER, AT(memory_byte_seconds)},
    {"networkEgressBytes", ANSWER_INTEGER, AT(egress_bytes)},
    {"user", ANSWER_MAP, AT(user), .is_needed = true, .fields = render_user_fields},
    {"project", ANSWER_MAP, AT(project), .has_offset = AT(has_project), .fields = project_fields},
    {0},
};
#undef AT

// ---- filling them ----

static const char *duration_of(const char *spelled, int64_t ms, char room[DURATION_TEXT])
{
    return !spelled && ms > 0 ? duration_format((uint64_t)ms, room) : spelled;
}

static const char *size_of(const char *spelled, int64_t bytes, char room[SIZE_TEXT])
{
    return !spelled && bytes > 0 ? size_format((uint64_t)bytes, room) : spelled;
}

static const char *cpu_of(const char *spelled, int64_t millicores, char room[SIZE_TEXT])
{
    if (spelled || millicores <= 0)
        return spelled;
    (void)snprintf(room, SIZE_TEXT, "%lldm", (long long)millicores);
    return room;
}

static void fill_timeouts(struct timeouts *out, const struct sandbox_info *info,
                          const struct asked *asked)
{
    out->idle = duration_of(asked_text(asked, "idle"), info->idle_timeout_ms, out->room[0]);
    out->execution =
        duration_of(asked_text(asked, "execution"), info->command.timeout_ms, out->room[1]);
    out->paused = duration_of(asked_text(asked, "paused"), info->paused_timeout_ms, out->room[2]);
}

/* As asked for, no more and no less; one that asked for nothing is told what it got. */
static void fill_resources(struct resources *out, const struct sandbox_info *info,
                           const struct asked *asked)
{
    const char *memory = asked_text(asked, "memory");
    const char *cpu = asked_text(asked, "cpu");
    const char *disk = asked_text(asked, "disk");
    bool is_told = !memory && !cpu && !disk;

    out->memory = size_of(memory, is_told ? info->limits.memory_bytes : 0, out->room[0]);
    out->cpu = cpu_of(cpu, is_told ? info->limits.cpu_millicores : 0, out->room[1]);
    out->disk = size_of(disk, is_told ? info->limits.disk_bytes : 0, out->room[2]);
}

struct named render_organisation(const struct organisation_info *info, const char *name)
{
    return (struct named){info->id, name ? name : info->name};
}

struct named render_user(const char *key_id)
{
    return (struct named){.id = key_id && *key_id ? key_id : "local"};
}

static void fill_runtime(struct sandbox_entry *out, const char *name)
{
    out->has_runtime = name != NULL;
    if (!name)
        return;
    runtime_id(name, out->runtime_id);
    out->runtime = (struct named){out->runtime_id, name};
}

static void fill_entry(struct sandbox_entry *out, const struct sandbox_view *view,
                       const struct asked *asked)
{
    const struct sandbox_info *info = view->info;

    *out = (struct sandbox_entry){
        .id = info->id,
        .state = info->state,
        .mode = info->mode,
        .created_at = info->created_at,
        .executions = info->used.executions,
        .identifier = out->identifier_room,
        .name = info->name,
        .description = info->description,
        .region = view->region,
        .url = view->url,
        .port = view->port,
        .has_port = view->port != 0,
        .has_snapshot = info->snapshot != NULL,
        .has_network = info->network.is_enabled,
        .has_command = info->command.argv != NULL,
        .has_organisation = view->organisation != NULL,
        .view = view,
        .command = {info->command.argv, info->mode},
    };
    (void)snprintf(out->identifier_room, sizeof out->identifier_room, "%.*s", IDENTIFIER, info->id);
    fill_runtime(out, info->runtime);
    if (view->organisation)
        out->organisation = render_organisation(view->organisation, view->organisation_name);
    if (view->first) {
        out->standard_output = (struct answer_joined){view->base_url, view->first->stdout_stream};
        out->standard_error = (struct answer_joined){view->base_url, view->first->stderr_stream};
    }
    fill_timeouts(&out->timeouts, info, asked);
}

void render_sandbox_entry(struct json_writer *json, const struct sandbox_view *view)
{
    __attribute__((cleanup(asked_clear))) struct asked asked;
    struct sandbox_entry entry;

    asked_read(view->info->asked, &asked);
    fill_entry(&entry, view, &asked);
    answer_write(json, render_entry_fields, &entry);
}

void render_sandbox(struct json_writer *json, const struct sandbox_view *view)
{
    __attribute__((cleanup(asked_clear))) struct asked asked;
    const struct sandbox_info *info = view->info;
    autofree const char *const *dependencies = strings_list(info->dependencies);
    autofree const char *const *packages = strings_list(info->packages);
    struct sandbox_whole whole = {
        .dependencies = dependencies,
        .packages = packages,
        .exit_code = render_exit_code(info->mode, info->state, info->exit_code),
        .cpu_ms = info->used.cpu_ms,
        .memory_byte_seconds = render_byte_seconds(info->used.memory_mib_ms),
        .egress_bytes = info->used.egress_bytes,
        .metadata = info->metadata,
        .scopes = info->scopes,
        .user = render_user(info->key_id),
        .has_project = info->owner.project != NULL,
        .project = {info->owner.project, info->owner.project},
    };

    asked_read(info->asked, &asked);
    fill_entry(&whole.entry, view, &asked);
    fill_resources(&whole.resources, info, &asked);
    whole.has_exit_code = whole.exit_code != NO_EXIT_CODE;
    answer_write(json, render_sandbox_fields, &whole);
}

// ---- parts of it ----

struct state_answer {
    const char *id;
    enum sandbox_state state;
    int64_t terminates_at, exit_code;
    bool has_exit_code;
};
const struct answer_field render_paused_fields[] = {
    {"sandboxId", ANSWER_ID, offsetof(struct state_answer, id), .is_needed = true,
     .prefix = SANDBOX_PREFIX},
    {"status", ANSWER_WORD, offsetof(struct state_answer, state), .is_needed = true,
     .words = statuses, .n_words = SANDBOX_STATES},
    {"terminatesAt", ANSWER_TIME, offsetof(struct state_answer, terminates_at)},
    {0},
};
const struct answer_field render_state_fields[] = {
    {"sandboxId", ANSWER_ID, offsetof(struct state_answer, id), .is_needed = true,
     .prefix = SANDBOX_PREFIX},
    {"status", ANSWER_WORD, offsetof(struct state_answer, state), .is_needed = true,
     .words = statuses, .n_words = SANDBOX_STATES},
    {"exitCode", ANSWER_INTEGER, offsetof(struct state_answer, exit_code),
     .has_offset = offsetof(struct state_answer, has_exit_code)},
    {0},
};

void render_paused(struct json_writer *json, const struct sandbox_info *info)
{
    bool has_end = info->paused_timeout_ms > 0;
    struct state_answer answer = {
        .id = info->id,
        .state = info->state,
        .terminates_at = has_end ? info->paused_at + info->paused_timeout_ms : 0,
    };

    answer_write_members(json, render_paused_fields, &answer);
}

void render_state(struct json_writer *json, const char *id, enum sandbox_state state,
                  int64_t exit_code)
{
    struct state_answer answer = {.id = id,
                                  .state = state,
                                  .exit_code = exit_code,
                                  .has_exit_code = exit_code != NO_EXIT_CODE};

    answer_write(json, render_state_fields, &answer);
}
