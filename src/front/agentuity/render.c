/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes as JSON; see render.h. Commands and events are in render_execution.c and render_event.c. */
#include "front/agentuity/render.h"
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

void render_organisation(struct json_writer *json, const struct organisation_info *info,
                         const char *name)
{
    json_map_begin(json);
    member_id(json, "id", ORGANISATION_PREFIX, info->id);
    member_text(json, "name", name ? name : info->name);
    json_map_end(json);
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

static void write_duration(struct json_writer *json, const char *name, const char *spelled,
                           int64_t ms)
{
    char text[DURATION_TEXT];

    if (!spelled && ms > 0)
        spelled = duration_format((uint64_t)ms, text);
    member_text(json, name, spelled);
}

static void write_size(struct json_writer *json, const char *name, const char *spelled,
                       int64_t bytes)
{
    char text[SIZE_TEXT];

    if (!spelled && bytes > 0)
        spelled = size_format((uint64_t)bytes, text);
    member_text(json, name, spelled);
}

static void write_cpu(struct json_writer *json, const char *name, const char *spelled,
                      int64_t millicores)
{
    char text[SIZE_TEXT];

    if (!spelled && millicores > 0) {
        (void)snprintf(text, sizeof text, "%lldm", (long long)millicores);
        spelled = text;
    }
    member_text(json, name, spelled);
}

static void write_timeouts(struct json_writer *json, const struct sandbox_info *info,
                           const struct asked *asked)
{
    json_key(json, "timeout");
    json_map_begin(json);
    write_duration(json, "idle", asked_text(asked, "idle"), info->idle_timeout_ms);
    write_duration(json, "execution", asked_text(asked, "execution"), info->command.timeout_ms);
    write_duration(json, "paused", asked_text(asked, "paused"), info->paused_timeout_ms);
    json_map_end(json);
}

/* As asked for, no more and no less; one that asked for nothing is told what it got. */
static void write_resources(struct json_writer *json, const struct sandbox_info *info,
                            const struct asked *asked)
{
    const char *memory = asked_text(asked, "memory");
    const char *cpu = asked_text(asked, "cpu");
    const char *disk = asked_text(asked, "disk");
    bool is_told = !memory && !cpu && !disk;

    json_key(json, "resources");
    json_map_begin(json);
    write_size(json, "memory", memory, is_told ? info->limits.memory_bytes : 0);
    write_cpu(json, "cpu", cpu, is_told ? info->limits.cpu_millicores : 0);
    write_size(json, "disk", disk, is_told ? info->limits.disk_bytes : 0);
    json_map_end(json);
}

static const char *mode_name(enum sandbox_mode mode)
{
    return mode == SANDBOX_ONE_SHOT ? "oneshot" : "interactive";
}

static void write_sandbox_runtime(struct json_writer *json, const char *name)
{
    char id[24];

    if (!name)
        return;
    runtime_id(name, id);
    json_key(json, "runtime");
    json_map_begin(json);
    member_id(json, "id", RUNTIME_PREFIX, id);
    member_text(json, "name", name);
    json_map_end(json);
}

static void write_command(struct json_writer *json, const struct sandbox_info *info)
{
    if (!info->command.argv)
        return;
    json_key(json, "command");
    json_map_begin(json);
    member_texts(json, "exec", info->command.argv);
    member_text(json, "mode", mode_name(info->mode));
    json_map_end(json);
}

#define IDENTIFIER 12 // letters and digits of the id

static void write_sandbox_names(struct json_writer *json, const struct sandbox_info *info)
{
    char identifier[IDENTIFIER + 1];

    (void)snprintf(identifier, sizeof identifier, "%.*s", IDENTIFIER, info->id);
    member_text(json, "identifier", identifier);
    member_text(json, "name", info->name);
    member_text(json, "description", info->description);
}

/* Of one that is not remembered any more its id is all there is; clients want to know whose a private one is. */
static void write_origin(struct json_writer *json, const struct sandbox_view *view)
{
    struct snapshot_info unknown = {.id = view->info->snapshot};
    struct snapshot_view bare = {.info = &unknown};

    if (!view->info->snapshot)
        return;
    json_key(json, "snapshot");
    render_origin(json, view->snapshot ? view->snapshot : &bare);
}

/* What lists and single ones have in common. */
static void write_common(struct json_writer *json, const struct sandbox_view *view,
                         const struct asked *asked)
{
    const struct sandbox_info *info = view->info;

    member_id(json, "sandboxId", SANDBOX_PREFIX, info->id);
    member_text(json, "status", render_status(info->state));
    member_time(json, "createdAt", info->created_at);
    member_integer(json, "executions", info->used.executions);
    write_sandbox_names(json, info);
    member_text(json, "mode", mode_name(info->mode));
    member_text(json, "region", view->region);
    write_sandbox_runtime(json, info->runtime);
    write_origin(json, view);
    if (view->first)
        render_stream_urls(json, view->first, view->base_url);
    member_bool(json, "networkEnabled", info->has_network);
    write_timeouts(json, info, asked);
    write_command(json, info);
    if (view->organisation) {
        json_key(json, "org");
        render_organisation(json, view->organisation, view->organisation_name);
    }
}

void render_user(struct json_writer *json, const char *key_id)
{
    json_map_begin(json);
    member_id(json, "id", USER_PREFIX, key_id && *key_id ? key_id : "local");
    json_map_end(json);
}

static void write_project(struct json_writer *json, const char *project)
{
    if (!project)
        return;
    json_key(json, "project");
    json_map_begin(json);
    member_text(json, "id", project);
    member_text(json, "name", project);
    json_map_end(json);
}

static void write_rest(struct json_writer *json, const struct sandbox_info *info,
                       const struct asked *asked)
{
    int64_t exit_code = render_exit_code(info->mode, info->state, info->exit_code);

    if (exit_code != NO_EXIT_CODE)
        member_integer(json, "exitCode", exit_code);
    member_json(json, "metadata", info->metadata);
    member_json(json, "scopes", info->scopes);
    write_resources(json, info, asked);
    member_integer(json, "cpuTimeMs", info->used.cpu_ms);
    member_integer(json, "memoryByteSec", render_byte_seconds(info->used.memory_mib_ms));
    member_integer(json, "networkEgressBytes", info->used.egress_bytes);
    json_key(json, "user");
    render_user(json, info->key_id);
    write_project(json, info->owner.project);
}

void render_paused(struct json_writer *json, const struct sandbox_info *info)
{
    member_id(json, "sandboxId", SANDBOX_PREFIX, info->id);
    member_text(json, "status", render_status(info->state));
    if (info->paused_timeout_ms > 0)
        member_time(json, "terminatesAt", info->paused_at + info->paused_timeout_ms);
}

void render_sandbox_entry(struct json_writer *json, const struct sandbox_view *view)
{
    __attribute__((cleanup(asked_clear))) struct asked asked;

    asked_read(view->info->asked, &asked);
    json_map_begin(json);
    write_common(json, view, &asked);
    json_map_end(json);
}

void render_sandbox(struct json_writer *json, const struct sandbox_view *view)
{
    __attribute__((cleanup(asked_clear))) struct asked asked;

    asked_read(view->info->asked, &asked);
    json_map_begin(json);
    write_common(json, view, &asked);
    write_rest(json, view->info, &asked);
    json_map_end(json);
}
