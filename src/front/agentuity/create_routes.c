/* SPDX-License-Identifier: Apache-2.0 */
/* POST /sandbox: makes a sandbox with everything asked for, and starts its first command. */
#include "core/runtime/runtime.h"
#include "core/create.h"
#include "core/sandbox/sandbox.h"
#include "core/snapshot/snapshot.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/body_parts.h"
#include "front/agentuity/render.h"
#include "web/delivery.h"
#include "web/preview_url.h"

#include <string.h>

struct resources_body {
    struct size_field memory, cpu, disk;
};
static const struct field resources_fields[] = {
    {"memory", FIELD_SIZE, offsetof(struct resources_body, memory), .help = "'512Mi', '1G'"},
    {"cpu", FIELD_CPU, offsetof(struct resources_body, cpu), .help = "'500m', '2'"},
    {"disk", FIELD_SIZE, offsetof(struct resources_body, disk), .help = "'2Gi'"},
    {0},
};

struct network_body {
    bool is_enabled;
    int64_t port;
};
static const struct field network_fields[] = {
    {"enabled", FIELD_BOOL, offsetof(struct network_body, is_enabled), .help = "a way out"},
    {"port", FIELD_INTEGER, offsetof(struct network_body, port), .minimum = 1024, .maximum = 65535,
     .help = "is reached from outside by the url of the answer; opens no way out"},
    {0},
};

struct timeout_body {
    struct duration_field idle, execution, paused;
};
static const struct field timeout_fields[] = {
    {"idle", FIELD_DURATION, offsetof(struct timeout_body, idle),
     .help = "ends after so long without use"},
    {"execution", FIELD_DURATION, offsetof(struct timeout_body, execution),
     .help = "of each command"},
    {"paused", FIELD_DURATION, offsetof(struct timeout_body, paused),
     .help = "ends after being paused so long"},
    {0},
};

struct command_body {
    const char **exec;
    const char *mode;
    struct field_list files;
};
static const char *const modes[] = {"oneshot", "interactive", NULL};
static const struct field command_fields[] = {
    {"exec", FIELD_TEXTS, offsetof(struct command_body, exec), .is_needed = true,
     .help = "program and arguments"},
    {"mode", FIELD_TEXT, offsetof(struct command_body, mode), .words = modes,
     .help = "oneshot: the sandbox ends with it"},
    {"files", FIELD_LIST, offsetof(struct command_body, files), .fields = body_file_fields,
     .item_size = sizeof(struct file_body), .maximum = BODY_FILES_MAX},
    {0},
};

struct create_body {
    const char *name, *description;
    const char *runtime, *runtime_id, *snapshot, *project;
    struct resources_body resources;
    struct field_list env;
    struct network_body network;
    struct stream_body stream;
    struct timeout_body timeout;
    struct command_body command;
    bool has_command;
    struct field_list files;
    const char **dependencies, **packages;
    const struct data_value *metadata;
    const char **scopes;
};
static const struct field create_fields[] = {
    {"name", FIELD_TEXT, offsetof(struct create_body, name), .maximum = 256},
    {"description", FIELD_TEXT, offsetof(struct create_body, description), .maximum = 4096},
    {"runtime", FIELD_TEXT, offsetof(struct create_body, runtime),
     .help = "a name from the list of runtimes"},
    {"runtimeId", FIELD_TEXT, offsetof(struct create_body, runtime_id), .help = "an id from there"},
    {"snapshot", FIELD_TEXT, offsetof(struct create_body, snapshot),
     .help = "id, name:tag, tag or name of a snapshot, instead of a runtime"},
    {"projectId", FIELD_TEXT, offsetof(struct create_body, project), .maximum = 256,
     .help = "to filter lists by"},
    {"resources", FIELD_MAP, offsetof(struct create_body, resources), .fields = resources_fields},
    {"env", FIELD_TEXT_MAP, offsetof(struct create_body, env), .help = "variables of all commands"},
    {"network", FIELD_MAP, offsetof(struct create_body, network), .fields = network_fields},
    {"stream", FIELD_MAP, offsetof(struct create_body, stream), .fields = body_stream_fields,
     .help = "of the first command"},
    {"timeout", FIELD_MAP, offsetof(struct create_body, timeout), .fields = timeout_fields},
    {"command", FIELD_MAP, offsetof(struct create_body, command), .fields = command_fields,
     .has_offset = offsetof(struct create_body, has_command),
     .help = "started when the sandbox is up"},
    {"files", FIELD_LIST, offsetof(struct create_body, files), .fields = body_file_fields,
     .item_size = sizeof(struct file_body), .maximum = BODY_FILES_MAX,
     .help = "written before the command starts"},
    {"dependencies", FIELD_TEXTS, offsetof(struct create_body, dependencies),
     .help = "apt packages that are installed first"},
    {"packages", FIELD_TEXTS, offsetof(struct create_body, packages),
     .help = "packages that npm or bun installs globally first"},
    {"metadata", FIELD_OBJECT, offsetof(struct create_body, metadata),
     .help = "kept and given back"},
    {"scopes", FIELD_TEXTS, offsetof(struct create_body, scopes), .help = "kept and given back"},
    {0},
};

/* Ends a text that was written into `text` and keeps it with the call. */
static const char *keep_json(struct call *call, struct json_writer *json, const struct buffer *text)
{
    struct error err = {0};

    return json_writer_finish(json, &err) < 0 ? NULL : call_print(call, "%s", text->data);
}

#define KEPT_MAX ((size_t)1 << 20) // of what is only kept to be given back

static int write_metadata(struct call *call, const struct data_value *value, const char **out,
                          struct error *err)
{
    autobuffer text = {.maximum = KEPT_MAX};
    struct json_writer json;

    if (!value)
        return 0;
    json_writer_init(&json, &text);
    json_value(&json, value);
    *out = keep_json(call, &json, &text);
    return *out ? 0 : error_set(err, ERROR_INVALID, "metadata: may be at most 1 MiB");
}

static int write_scopes(struct call *call, const char **scopes, const char **out, struct error *err)
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
    *out = keep_json(call, &json, &text);
    return *out ? 0 : error_set(err, ERROR_INVALID, "scopes: may be at most 1 MiB");
}

/* Sizes and durations are said back as they were spelled; render.c reads it. */
static const char *write_asked(struct call *call, const struct create_body *body)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    member_text(&json, "memory", body->resources.memory.text);
    member_text(&json, "cpu", body->resources.cpu.text);
    member_text(&json, "disk", body->resources.disk.text);
    member_text(&json, "idle", body->timeout.idle.text);
    member_text(&json, "execution", body->timeout.execution.text);
    member_text(&json, "paused", body->timeout.paused.text);
    json_map_end(&json);
    return keep_json(call, &json, &text);
}

static int64_t timeout_of(const struct duration_field *field)
{
    return field->text ? (int64_t)field->ms : SANDBOX_DEFAULT;
}

static int no_runtime(const char *id, struct error *err)
{
    return error_refuse(err, ERROR_NOT_FOUND, "runtime", "runtimeId: there is no runtime '%.64s'",
                        id);
}

static int fill_snapshot(struct call *call, const struct create_body *body,
                         struct sandbox_request *out, struct error *err)
{
    autoclear(snapshot_info) info = {0};

    if (body->runtime || body->runtime_id)
        return error_set(err, ERROR_INVALID, "snapshot: cannot be given together with a runtime");
    if (!body->snapshot[0])
        return error_set(err, ERROR_INVALID, "snapshot: must not be empty");
    if (snapshot_resolve(
            call->core->snapshots, &call->actor,
            reference_of_snapshot(call, body->snapshot, SNAPSHOT_PREFIX, ORGANISATION_PREFIX),
            &info, err) < 0)
        return -1;
    out->snapshot = call_print(call, "%s", info.id);
    return 0;
}

static int fill_runtime(struct call *call, const struct create_body *body,
                        struct sandbox_request *out, struct error *err)
{
    const size_t length = strlen(RUNTIME_PREFIX);
    const char *id = body->runtime_id;

    out->runtime = body->runtime;
    if (!id)
        return 0;
    char *name = call_alloc(call, RUNTIME_REFERENCE_TEXT);
    out->runtime = name;
    if (strncmp(id, RUNTIME_PREFIX, length) != 0)
        return no_runtime(id, err);
    if (runtime_resolve(call->core->runtimes, id + length, name, err) == 0)
        return 0;
    return error_is(err, ERROR_NOT_FOUND) ? no_runtime(id, err) : -1;
}

/* An explicit 0 is too little; in a request to the core 0 means that nothing was said. */
static int64_t limit_of(const struct size_field *field)
{
    if (!field->text)
        return 0;
    return field->value ? (int64_t)field->value : -1;
}

static const struct network_change *network_of(struct call *call, const struct create_body *body)
{
    struct network_change *change = call_alloc(call, sizeof *change);

    *change = (struct network_change){.has_enabled = true, .is_enabled = true};
    return body->network.is_enabled ? change : NULL;
}

static void fill_limits(const struct create_body *body, struct sandbox_request *out)
{
    out->limits.memory_bytes = limit_of(&body->resources.memory);
    out->limits.cpu_millicores = limit_of(&body->resources.cpu);
    out->limits.disk_bytes = limit_of(&body->resources.disk);
    out->idle_timeout_ms = timeout_of(&body->timeout.idle);
    out->usual.timeout_ms = timeout_of(&body->timeout.execution);
    out->paused_timeout_ms = timeout_of(&body->timeout.paused);
    out->on_idle = SANDBOX_IDLE_ENDS;
    out->max_executions = 1;
}

static int fill_command(const struct create_body *body, struct execution_request *command,
                        struct error *err)
{
    const char *const *argv = (const char *const *)body->command.exec;

    *command = (struct execution_request){
        .kind = EXECUTION_COMMAND, .command = {.argv = argv, .timeout_ms = EXECUTION_DEFAULT}};
    if (body_check_command(argv, "command.exec", err) < 0)
        return -1;
    return body_streams(&body->stream, "stream", command, err);
}

static int fill_request(struct call *call, const struct create_body *body,
                        struct sandbox_request *out, struct error *err)
{
    bool is_one_shot = body->command.mode && strcmp(body->command.mode, "oneshot") == 0;

    *out = (struct sandbox_request){
        .name = body->name,
        .description = body->description,
        .asked = write_asked(call, body),
        .mode = is_one_shot ? SANDBOX_ONE_SHOT : SANDBOX_INTERACTIVE,
        .home = AGENTUITY_HOME,
        .usual.directory = AGENTUITY_HOME,
        .when_unbuilt = CREATE_GO_ON,
        .dependencies = (const char *const *)body->dependencies,
        .packages = (const char *const *)body->packages,
    };
    fill_limits(body, out);
    out->network = network_of(call, body);
    body_files(call, &body->files, &body->command.files, &out->files, &out->n_files);
    if (write_metadata(call, body->metadata, &out->metadata, err) < 0 ||
        write_scopes(call, body->scopes, &out->scopes, err) < 0 ||
        body_env(call, &body->env, &out->usual.env, err) < 0)
        return -1;
    return body->snapshot ? fill_snapshot(call, body, out, err)
                          : fill_runtime(call, body, out, err);
}

/* The core knows limits by their bare names: "memory: a sandbox needs at least 4Mi", about "memory". */
static int fail_create(struct error *err)
{
    struct error bare = *err;

    if (err->noun && limits_has_name(err->noun))
        return error_refuse(err, bare.reason, bare.noun, "resources.%s", bare.text);
    return -1;
}

struct created {
    const char *id, *status, *execution, *url;
    const char *output_stream, *error_stream;
    struct answer_joined output_url, error_url;
};
#define AT(member) offsetof(struct created, member)
static const struct answer_field created_fields[] = {
    {"sandboxId", ANSWER_ID, AT(id), .is_needed = true, .prefix = SANDBOX_PREFIX},
    {"status", ANSWER_TEXT, AT(status), .is_needed = true},
    {"executionId", ANSWER_ID, AT(execution), .prefix = EXECUTION_PREFIX,
     .help = "of the first command; likewise the streams"},
    {"stdoutStreamUrl", ANSWER_JOINED, AT(output_url), .prefix = "/stream/" STREAM_PREFIX,
     .help = "where its output can be read"},
    {"stderrStreamUrl", ANSWER_JOINED, AT(error_url), .prefix = "/stream/" STREAM_PREFIX},
    {"url", ANSWER_TEXT, AT(url), .help = "where network.port is reached"},
    {"stdoutStreamId", ANSWER_ID, AT(output_stream), .prefix = STREAM_PREFIX},
    {"stderrStreamId", ANSWER_ID, AT(error_stream), .prefix = STREAM_PREFIX},
    {0},
};
#undef AT
static const struct route_answer answers_created[] = {{201, created_fields, &answers_data}, {0}};

static int answer_create(struct call *call, const struct sandbox_info *info,
                         const struct execution_info *first)
{
    // One that was made by an earlier sending of the same request may be gone by now; the client knows no such answer.
    enum sandbox_state state = info->state == SANDBOX_DELETED ? SANDBOX_ENDED : info->state;
    struct created created = {.id = info->id, .status = render_status(state)};
    struct port_info port;

    if (port_first(call->core->ports, info->id, &port))
        created.url = preview_url(call, &port);

    if (first) {
        const char *url = call_base_url(call);
        created.execution = first->id;
        created.output_stream = first->stdout_stream;
        created.error_stream = first->stderr_stream;
        created.output_url = (struct answer_joined){url, first->stdout_stream};
        created.error_url = (struct answer_joined){url, first->stderr_stream};
    }
    return envelope_answer(call, 201, created_fields, &created);
}

/* POST /sandbox */
static int create_sandbox(struct call *call, struct error *err)
{
    struct create_body body = {0};
    struct execution_request command;
    struct sandbox_request want;
    autoclear(sandbox_info) info = {0};
    autoclear(execution_info) first = {0};

    if (fields_read(call->body, create_fields, &body, err) < 0 ||
        fill_request(call, &body, &want, err) < 0 || call_once(call, &want.once, err) < 0)
        return -1;
    if (body.has_command && fill_command(&body, &command, err) < 0)
        return -1;
    want.command = body.has_command ? &command : NULL;
    const struct port_request port = {.port = body.network.port, .protocol = PORT_HTTP};
    struct port_info exposed;
    want.ports = &port;
    want.n_ports = body.network.port != 0;
    want.exposed = &exposed;
    call->actor.project = body.project;
    if (sandbox_create(call->core, &call->actor, &want, &info, &first, err) < 0)
        return fail_create(err);
    call_about_sandbox(call, SANDBOX_PREFIX, info.id);
    if (!want.once)
        delivery_watch(call, info.id);
    return answer_create(call, &info, want.command ? &first : NULL);
}

const struct route agentuity_create_routes[] = {
    {"POST", "/sandbox", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, create_sandbox,
     "makes a sandbox, and starts its first command when one is given", .fields = create_fields,
     .answers = answers_created},
    {0},
};
