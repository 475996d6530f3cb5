/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of sandboxes; see sandbox_body.h. */
#include "front/api/sandbox_body.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/snapshot/snapshot.h"
#include "front/api/api.h"
#include "web/instant.h"
#include "web/reference.h"

#include <string.h>

#define KEPT_MAX ((size_t)1 << 20) // of what is only kept to be given back
#define LONGEST_MS (INT64_C(3660) * 24 * 3600 * 1000)
#define MOST_BYTES (INT64_C(1) << 50)

static const char *const mode_words[] = {"interactive", "one_shot", NULL};
static const char *const on_idle_words[] = {
    [SANDBOX_IDLE_ENDS] = "end",
    [SANDBOX_IDLE_DROPS_BOX] = "keep_files",
    [SANDBOX_IDLE_PAUSES] = "pause",
    NULL,
};

static const char *check_time(const char *text)
{
    struct error ignored = {0};
    int64_t ms;

    return instant_parse(text, "", &ms, &ignored) < 0 ? "must be a time like 2026-01-02T03:04:05Z"
                                                      : NULL;
}

#define AT(member) offsetof(struct sandbox_body, member)
#define LIMIT_AT(member) offsetof(struct limits, member)
const struct field sandbox_limits_fields[] = {
    {"memoryBytes", FIELD_AMOUNT, LIMIT_AT(memory_bytes), .minimum = 1, .maximum = MOST_BYTES},
    {"cpuMillicores", FIELD_MILLIS, LIMIT_AT(cpu_millicores), .minimum = 1, .maximum = 1024000,
     .help = "thousandths of a processor"},
    {"diskBytes", FIELD_AMOUNT, LIMIT_AT(disk_bytes), .minimum = 1, .maximum = MOST_BYTES,
     .help = "how much it may write"},
    {"maxProcesses", FIELD_INTEGER, LIMIT_AT(max_processes), .minimum = 1, .maximum = 4000000,
     .help = "processes and threads"},
    {0},
};

#define TIME_FIELD(name_, member, help_)                                                           \
    {                                                                                              \
        name_, FIELD_MS, AT(member##_ms), .has_offset = AT(has_##member), .minimum = 0,            \
                                          .maximum = LONGEST_MS, .help = help_                     \
    }

/* What can be said when one is made, and later. */
#define SETTING_FIELDS(is_change)                                                                    \
    {"name",                                                                                         \
     FIELD_TEXT,                                                                                     \
     AT(name),                                                                                       \
     .is_nullable = (is_change),                                                                     \
     .maximum = 256,                                                                                 \
     .help = "letters, digits, '.', '_' and '-'; no other living sandbox may have it. Stands for "   \
             "the id wherever one is wanted"},                                                       \
        {"description", FIELD_TEXT, AT(description), .is_nullable = (is_change), .maximum = 4096},   \
        {"labels",       FIELD_TEXT_MAP,                                                             \
         AT(labels),     .is_nullable = (is_change),                                                 \
         .maximum = 256, .help = (is_change) ? "these are set; null removes one" : "to find it by"}, \
        {"metadata", FIELD_OBJECT, AT(metadata), .is_nullable = (is_change),                         \
         .help = "any JSON object, kept and given back"},                                            \
        {"env", FIELD_TEXT_MAP, AT(env), .is_nullable = (is_change),                                 \
         .help = (is_change) ? "variables of commands started afterwards; null removes one"          \
                             : "variables of all its commands"},                                     \
        {"limits", FIELD_MAP, AT(limits), .fields = sandbox_limits_fields},                          \
        TIME_FIELD("idleTimeoutMs", idle_timeout,                                                    \
                   "how long it may be unused; 0: for ever. Default: ten minutes, unless the "       \
                   "server is set otherwise"),                                                       \
        TIME_FIELD("executionTimeoutMs", execution_timeout, "of each command; 0: none"),             \
        TIME_FIELD("pausedTimeoutMs", paused_timeout, "how long it may be paused; 0: for ever"),     \
        {"onIdle", FIELD_TEXT, AT(on_idle), .words = on_idle_words,                                  \
         .help =                                                                                     \
             "what happens when it was unused for that long: it ends, keeps its files without "      \
             "processes until it is used again, or is paused"},                                      \
        {"expiresAt",                                                                                \
         FIELD_TEXT,                                                                                 \
         AT(expires_at),                                                                             \
         .is_nullable = (is_change),                                                                 \
         .maximum = 64,                                                                              \
         .check = check_time,                                                                        \
         .help = "when it ends, once no command runs in it"},                                        \
    {                                                                                                \
        "network", FIELD_MAP, AT(network), .fields = network_body_fields                             \
    }

const struct field sandbox_create_fields[] = {
    SETTING_FIELDS(false),
    {"project", FIELD_TEXT, AT(project), .minimum = 1, .maximum = 256,
     .help = "to filter lists by"},
    {"mode", FIELD_TEXT, AT(mode), .words = mode_words,
     .help = "one_shot: it ends with its command. Default: interactive"},
    {"scopes", FIELD_TEXTS, AT(scopes), .maximum = 1000, .help = "kept and given back"},
    {"runtime", FIELD_TEXT, AT(runtime), .minimum = 1, .maximum = 256,
     .help = "a name from the list of runtimes"},
    {"dependencies", FIELD_TEXTS, AT(dependencies), .maximum = 256,
     .help = "apt packages that are installed over it first"},
    {"packages", FIELD_TEXTS, AT(packages), .maximum = 256,
     .help = "packages that npm or bun installs globally first, where the runtime has one"},
    {"snapshot", FIELD_TEXT, AT(snapshot), .minimum = 1, .maximum = 512,
     .help = "id, name:tag, tag or name of a snapshot, instead of a runtime"},
    {"directory", FIELD_TEXT, AT(directory), .maximum = 4096,
     .help = "where commands start, absolute; made where it is missing. Default: /workspace"},
    {"user", FIELD_TEXT, AT(user), .minimum = 1, .maximum = 256,
     .help = "whom they run as: name or number, in the sandbox. Default: root"},
    {"files", FIELD_LIST, AT(first.files), .fields = command_file_fields,
     .item_size = sizeof(struct command_file), .maximum = COMMAND_FILES_MAX,
     .help = "written before a command starts"},
    {"command", FIELD_TEXTS, AT(first.command), .minimum = 1,
     .help = "program and arguments, started when it is up; no shell. This or 'script'"},
    {"ports", FIELD_LIST, AT(ports), .fields = port_body_fields,
     .item_size = sizeof(struct port_body), .maximum = PORTS_OF_SANDBOX,
     .help = "that are reached from outside; also with 'network' off"},
    {"mounts", FIELD_LIST, AT(mounts), .fields = mount_body_fields,
     .item_size = sizeof(struct mount_wish), .maximum = MOUNT_WISHES_MAX,
     .help = "directories of the server's machine; in no snapshot, checkpoint, difference or fork "
             "of it"},
    {"script", FIELD_TEXT, AT(first.script), .maximum = COMMAND_SCRIPT_MAX,
     .help = "text that 'sh -c' runs"},
    {0},
};
const struct field sandbox_change_fields[] = {SETTING_FIELDS(true), {0}};
#undef AT

static int fault(struct error *err, const char *field, const char *text)
{
    (void)error_set(err, ERROR_INVALID, "%s: %s", field, text);
    return error_field(err, field);
}

/* null takes away what there was: it is said, and absent. */
static bool is_said(const struct call *call, const char *name)
{
    return value_get(call->body, name) != NULL;
}

static int write_metadata(struct call *call, const struct data_value *value, const char **out,
                          struct error *err)
{
    autobuffer text = {.maximum = KEPT_MAX};
    struct json_writer json;

    if (!value)
        return 0;
    json_writer_init(&json, &text);
    json_value(&json, value);
    if (json_writer_finish(&json, err) < 0)
        return fault(err, "metadata", "may be at most 1 MiB");
    *out = call_print(call, "%s", text.data);
    return 0;
}

int sandbox_body_scopes(struct call *call, const char **scopes, const char **out, struct error *err)
{
    autobuffer text = {.maximum = KEPT_MAX};
    struct json_writer json;

    if (!scopes)
        return 0;
    json_writer_init(&json, &text);
    json_list_begin(&json);
    for (; *scopes; scopes++)
        json_string(&json, *scopes);
    json_list_end(&json);
    if (json_writer_finish(&json, err) < 0)
        return fault(err, "scopes", "may be at most 1 MiB");
    *out = call_print(call, "%s", text.data);
    return 0;
}

/* "NAME=VALUE", ended by NULL; NULL for none. */
const char *const *sandbox_body_pairs(struct call *call, const struct field_list *pairs)
{
    const struct text_pair *pair = pairs->items;

    if (pairs->count == 0)
        return NULL;
    const char **list = call_alloc(call, (pairs->count + 1) * sizeof *list);
    for (size_t i = 0; i < pairs->count; i++)
        list[i] = call_print(call, "%s=%s", pair[i].name, pair[i].value);
    return list;
}

static int check_variables(const struct field_list *pairs, struct error *err)
{
    const struct text_pair *pair = pairs->items;

    for (size_t i = 0; i < pairs->count; i++) {
        if (!*pair[i].name || strchr(pair[i].name, '='))
            return fault(err, "env", "the name of a variable must not be empty or contain '='");
    }
    return 0;
}

/* Its files, and what it starts with; without a command the files alone. */
static int fill_first(struct call *call, const struct sandbox_body *body,
                      struct sandbox_request *out, struct execution_request *command,
                      struct error *err)
{
    if (!body->first.command && !body->first.script) {
        if (out->mode == SANDBOX_ONE_SHOT)
            return fault(err, "command", "is needed: a sandbox of mode one_shot ends with it");
        return command_body_files(call, &body->first.files, &out->files, &out->n_files, err);
    }
    *command = (struct execution_request){.kind = EXECUTION_COMMAND};
    out->command = command;
    return command_body_fill(call, &body->first, command, err);
}

static int fill_ports(struct call *call, const struct sandbox_body *body,
                      struct sandbox_request *out, struct error *err)
{
    const struct port_body *bodies = body->ports.items;
    size_t count = body->ports.count;

    if (count == 0)
        return 0;
    struct port_request *requests = call_alloc(call, count * sizeof *requests);
    for (size_t i = 0; i < count; i++) {
        if (port_body_request(call, &bodies[i], &requests[i], err) < 0)
            return error_field(err, call_print(call, "ports[%zu].%s", i, err->field));
    }
    out->ports = requests;
    out->n_ports = count;
    out->exposed = call_alloc(call, count * sizeof *out->exposed);
    return 0;
}

static int fill_origin(struct call *call, const struct sandbox_body *body,
                       struct sandbox_request *out, struct error *err)
{
    autoclear(snapshot_info) info = {0};

    out->runtime = body->runtime;
    if (!body->snapshot)
        return 0;
    if (body->runtime)
        return fault(err, "snapshot", "cannot be given together with 'runtime'");
    if (snapshot_resolve(call->core->snapshots, &call->actor,
                         reference_of(body->snapshot, SNAPSHOT_PREFIX), &info, err) < 0)
        return error_field(err, "snapshot");
    out->snapshot = call_print(call, "%s", info.id);
    return 0;
}

static enum sandbox_on_idle on_idle_of(const char *word)
{
    unsigned i = 0;

    while (word && on_idle_words[i] && strcmp(on_idle_words[i], word) != 0)
        i++;
    return i;
}

static int64_t time_of(const char *text)
{
    struct error ignored = {0};
    int64_t ms = 0;

    if (text)
        (void)instant_parse(text, "", &ms, &ignored); // was checked
    return ms;
}

static void fill_times(const struct sandbox_body *body, struct sandbox_request *out)
{
    if (body->has_idle_timeout)
        out->idle_timeout_ms = body->idle_timeout_ms;
    if (body->has_execution_timeout)
        out->usual.timeout_ms = body->execution_timeout_ms;
    if (body->has_paused_timeout)
        out->paused_timeout_ms = body->paused_timeout_ms;
    out->expires_at = time_of(body->expires_at);
    out->on_idle = on_idle_of(body->on_idle);
}

int sandbox_body_create(struct call *call, struct sandbox_request *out,
                        struct execution_request *command, struct error *err)
{
    struct sandbox_body body = {.on_idle = on_idle_words[SANDBOX_IDLE_ENDS]};

    if (fields_read(call->body, call->route->fields, &body, err) < 0 ||
        check_variables(&body.env, err) < 0)
        return -1;
    *out = (struct sandbox_request){
        .name = body.name,
        .is_name_unique = true,
        .description = body.description,
        .labels = sandbox_body_pairs(call, &body.labels),
        .mode = body.mode && strcmp(body.mode, mode_words[SANDBOX_ONE_SHOT]) == 0
                    ? SANDBOX_ONE_SHOT
                    : SANDBOX_INTERACTIVE,
        .limits = body.limits,
        .network = network_body_change(call, &body.network, false),
        .dependencies = (const char *const *)body.dependencies,
        .packages = (const char *const *)body.packages,
        .mounts = body.mounts.items,
        .n_mounts = body.mounts.count,
    };
    api_sandbox_defaults(out);
    fill_times(&body, out);
    out->usual.env = sandbox_body_pairs(call, &body.env);
    call->actor.project = body.project;
    if (body.directory && *body.directory != '/')
        return fault(err, "directory", "must be an absolute path");
    if (body.expires_at && out->expires_at <= (int64_t)clock_wall_ms())
        return fault(err, "expiresAt", "must be to come");
    if (body.directory)
        out->usual.directory = body.directory;
    out->usual.user = body.user;
    if (write_metadata(call, body.metadata, &out->metadata, err) < 0 ||
        sandbox_body_scopes(call, body.scopes, &out->scopes, err) < 0 ||
        fill_first(call, &body, out, command, err) < 0 || fill_ports(call, &body, out, err) < 0)
        return -1;
    return fill_origin(call, &body, out, err);
}

static const struct env_change *read_changes(struct call *call, const struct field_list *pairs)
{
    const struct text_pair *pair = pairs->items;
    struct env_change *changes = call_alloc(call, (pairs->count + 1) * sizeof *changes);

    for (size_t i = 0; i < pairs->count; i++)
        changes[i] = (struct env_change){.name = pair[i].name, .value = pair[i].value};
    return changes;
}

int sandbox_body_change(struct call *call, struct sandbox_changes *out, struct error *err)
{
    struct sandbox_body body = {0};

    if (fields_read(call->body, call->route->fields, &body, err) < 0 ||
        check_variables(&body.env, err) < 0)
        return -1;
    *out = (struct sandbox_changes){
        .has_name = is_said(call, "name"),
        .name = body.name,
        .is_name_unique = true,
        .has_description = is_said(call, "description"),
        .description = body.description,
        .has_metadata = is_said(call, "metadata"),
        .labels = read_changes(call, &body.labels),
        .n_labels = body.labels.count,
        .env = read_changes(call, &body.env),
        .n_env = body.env.count,
        .limits = body.limits,
        .has_idle_timeout = body.has_idle_timeout,
        .idle_timeout_ms = body.idle_timeout_ms,
        .has_execution_timeout = body.has_execution_timeout,
        .execution_timeout_ms = body.execution_timeout_ms,
        .has_paused_timeout = body.has_paused_timeout,
        .paused_timeout_ms = body.paused_timeout_ms,
        .has_expires_at = is_said(call, "expiresAt"),
        .expires_at = time_of(body.expires_at),
        .has_on_idle = body.on_idle != NULL,
        .on_idle = on_idle_of(body.on_idle),
        .network = network_body_change(call, &body.network, false),
    };
    return write_metadata(call, body.metadata, &out->metadata, err);
}

int sandbox_body_fail(struct error *err)
{
    static const struct {
        const char *noun, *field;
    } names[] = {
        {"memory", "limits.memoryBytes"},
        {"cpu", "limits.cpuMillicores"},
        {"disk", "limits.diskBytes"},
        {"max-processes", "limits.maxProcesses"},
        {"labels", "labels"},
        {"name", "name"},
        {"env", "env"},
        {"runtime", "runtime"},
        {"expiresAt", "expiresAt"},
        {"network.enabled", "network.enabled"},
        {"network.allow", "network.allow"},
        {"network.deny", "network.deny"},
        {"network.secrets", "network.secrets"},
        {"mounts", "mounts"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (!err->field[0] && error_is_about(err, names[i].noun))
            return error_field(err, names[i].field);
    }
    return -1;
}
