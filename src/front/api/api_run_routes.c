/* SPDX-License-Identifier: Apache-2.0 */
/* One call that runs a command, in a sandbox of its own or in one that is there, and answers with how it ended. */
#include "core/create.h"
#include "core/execution/execution.h"
#include "core/snapshot/snapshot.h"
#include "front/api/api.h"
#include "front/api/command_body.h"
#include "front/api/execution_answer.h"
#include "front/api/execution_wait.h"
#include "front/api/output_follow.h"
#include "front/api/sandbox_body.h"
#include "web/reference.h"

#define WAIT_MS ((int64_t)366 * 24 * 3600 * 1000) // longer than any command takes

struct run_body {
    struct command_body command;
    const char *sandbox, *runtime, *snapshot, *name, *project;
    const char **dependencies, **packages, **scopes;
    struct field_list labels, mounts;
    struct limits limits;
    bool has_limits;
    struct network_body network;
    bool has_network;
    bool has_changes, keeps_input_open;
    int64_t output_bytes;
};
static const struct field run_fields[] = {
    COMMAND_FIELDS(struct run_body, command),
    {"keepStdinOpen", FIELD_BOOL, offsetof(struct run_body, keeps_input_open),
     .help =
         "its standard input is what is sent to …/stdin of the execution, until that is closed; "
         "for answers that are streamed, whose first record names it"},
    {"sandbox", FIELD_TEXT, offsetof(struct run_body, sandbox), .maximum = 256,
     .help =
         "a sandbox that is there: its id or name. Default: one of its own, which ends with the "
         "command"},
    {"runtime", FIELD_TEXT, offsetof(struct run_body, runtime), .maximum = 256,
     .help = "what its own sandbox starts from"},
    {"snapshot", FIELD_TEXT, offsetof(struct run_body, snapshot), .maximum = 512,
     .help = "id, name:tag, tag or name of a snapshot, instead of a runtime"},
    {"dependencies", FIELD_TEXTS, offsetof(struct run_body, dependencies), .maximum = 256,
     .help = "apt packages that are installed over it first, and kept for the next time"},
    {"packages", FIELD_TEXTS, offsetof(struct run_body, packages), .maximum = 256,
     .help = "packages that npm or bun installs globally first, where the runtime has one"},
    {"name", FIELD_TEXT, offsetof(struct run_body, name), .maximum = 256,
     .help = "of its own sandbox"},
    {"labels", FIELD_TEXT_MAP, offsetof(struct run_body, labels), .maximum = 256,
     .help = "of its own sandbox, to find it by"},
    {"project", FIELD_TEXT, offsetof(struct run_body, project), .minimum = 1, .maximum = 256,
     .help = "of its own sandbox, to filter lists by"},
    {"scopes", FIELD_TEXTS, offsetof(struct run_body, scopes), .maximum = 1000,
     .help = "of its own sandbox, kept and given back"},
    {"limits", FIELD_MAP, offsetof(struct run_body, limits), .fields = sandbox_limits_fields,
     .has_offset = offsetof(struct run_body, has_limits), .help = "of its own sandbox"},
    {"network", FIELD_MAP, offsetof(struct run_body, network), .fields = network_body_fields,
     .has_offset = offsetof(struct run_body, has_network), .help = "of its own sandbox"},
    {"mounts", FIELD_LIST, offsetof(struct run_body, mounts), .fields = mount_body_fields,
     .item_size = sizeof(struct mount_wish), .maximum = MOUNT_WISHES_MAX,
     .help = "of its own sandbox: directories of the server's machine"},
    {"filesChanged", FIELD_BOOL, offsetof(struct run_body, has_changes),
     .help = "whether the answer lists the files that differ from what the sandbox started from"},
    {"maxOutputBytes", FIELD_AMOUNT, offsetof(struct run_body, output_bytes), .minimum = 0,
     .maximum = EXECUTION_OUTPUT_MAX,
     .help = "of stdout and of stderr in the answer; default 1Mi. The rest has an address"},
    {0},
};

static int fault(struct error *err, const char *field, const char *text)
{
    error_set(err, ERROR_INVALID, "%s: %s", field, text);
    return error_field(err, field);
}

/* What is for a sandbox of its own cannot be changed of one that is there. */
static int check_body(const struct run_body *body, struct error *err)
{
    static const char words[] = "is for a run in a sandbox of its own, not for one in 'sandbox'";

    if (body->snapshot && body->runtime)
        return fault(err, "snapshot", "cannot be given together with 'runtime'");
    if (body->keeps_input_open && (body->command.input || body->command.input_bytes.data))
        return fault(err, "keepStdinOpen", "cannot be given together with 'stdin'");
    if (!body->sandbox)
        return 0;
    if (body->runtime)
        return fault(err, "runtime", words);
    if (body->snapshot)
        return fault(err, "snapshot", words);
    if (body->dependencies)
        return fault(err, "dependencies", words);
    if (body->packages)
        return fault(err, "packages", words);
    if (body->name)
        return fault(err, "name", words);
    if (body->labels.count)
        return fault(err, "labels", words);
    if (body->project)
        return fault(err, "project", words);
    if (body->scopes)
        return fault(err, "scopes", words);
    if (body->mounts.count)
        return fault(err, "mounts", words);
    if (body->has_network)
        return fault(err, "network", words);
    return body->has_limits ? fault(err, "limits", words) : 0;
}

// ---- starting ----

struct run {
    const struct run_body *body;
    struct execution_request command;
    struct execution_info execution;
    bool ends_with_client;
};

static void run_clear(struct run *run)
{
    execution_info_clear(&run->execution);
}
#define autorun __attribute__((cleanup(run_clear))) struct run

static int start_there(struct call *call, struct run *run, struct error *err)
{
    const char *id = NULL;

    if (api_sandbox_of(call, run->body->sandbox, &id, err) < 0)
        return -1;
    return execution_start(call->core->executions, &call->actor, id, &run->command, &run->execution,
                           err);
}

static int find_snapshot(struct call *call, const char *text, const char **id, struct error *err)
{
    autoclear(snapshot_info) info = {0};

    if (!text)
        return 0;
    if (snapshot_resolve(call->core->snapshots, &call->actor, reference_of(text, SNAPSHOT_PREFIX),
                         &info, err) < 0)
        return -1;
    *id = call_print(call, "%s", info.id);
    return 0;
}

/* Its files are gone with a one-shot sandbox: one whose files are looked at afterwards is ended by whoever looks. */
static int start_alone(struct call *call, struct run *run, struct error *err)
{
    const struct run_body *body = run->body;
    struct sandbox_request want = {
        .name = body->name,
        .is_name_unique = true,
        .labels = sandbox_body_pairs(call, &body->labels),
        .mode = body->has_changes ? SANDBOX_INTERACTIVE : SANDBOX_ONE_SHOT,
        .runtime = body->runtime,
        .dependencies = (const char *const *)body->dependencies,
        .packages = (const char *const *)body->packages,
        .limits = body->limits,
        .network = network_body_change(call, &body->network, false),
        .mounts = body->mounts.items,
        .n_mounts = body->mounts.count,
        .command = &run->command,
        .once = run->command.once,
    };
    autoclear(sandbox_info) info = {0};

    api_sandbox_defaults(&want);
    call->actor.project = body->project;
    run->command.once = NULL;
    run->ends_with_client = !want.once;
    if (find_snapshot(call, body->snapshot, &want.snapshot, err) < 0 ||
        sandbox_body_scopes(call, body->scopes, &want.scopes, err) < 0)
        return -1;
    if (sandbox_create(call->core, &call->actor, &want, &info, &run->execution, err) < 0)
        return sandbox_body_fail(err);
    return 0;
}

// ---- answering ----

static int follow(struct call *call, const struct run *run, enum event_format format,
                  struct error *err)
{
    const struct output_follow_request request = {
        .info = &run->execution,
        .format = format,
        .tells_start = true,
        .has_changes = run->body->has_changes,
        .is_alone = !run->body->sandbox,
        .ends_with_client = run->ends_with_client,
    };

    return output_follow_start(call, &request, err);
}

static int answer(struct call *call, const struct run *run, struct error *err)
{
    const struct execution_wait how = {
        .has_output = true,
        .output_bytes = (size_t)run->body->output_bytes,
        .has_changes = run->body->has_changes,
        .is_alone = !run->body->sandbox,
        .ends_with_client = run->ends_with_client,
        .is_patient = true,
    };

    return execution_wait(call, run->execution.id, WAIT_MS, &how, err);
}

/* POST /api/v1/run */
static int run_command(struct call *call, struct error *err)
{
    struct run_body body = {.output_bytes = EXECUTION_OUTPUT_USUAL};
    autorun run = {.body = &body, .command.kind = EXECUTION_COMMAND};
    enum event_format format = event_format_wanted(call);

    if (fields_read(call->body, run_fields, &body, err) < 0 || check_body(&body, err) < 0 ||
        (!body.sandbox &&
         actor_refuse_token(&call->actor, "run anything elsewhere (name it as 'sandbox')", err) <
             0) ||
        command_body_fill(call, &body.command, &run.command, err) < 0 ||
        call_once(call, &run.command.once, err) < 0)
        return -1;
    if (body.keeps_input_open && format == EVENT_FORMAT_NONE)
        return fault(err, "keepStdinOpen",
                     "needs an answer that is streamed: Accept: application/x-ndjson");
    run.command.has_input = body.keeps_input_open;
    if ((body.sandbox ? start_there : start_alone)(call, &run, err) < 0)
        return -1;
    call_about_sandbox(call, SANDBOX_PREFIX, run.execution.sandbox_id);
    return format == EVENT_FORMAT_NONE ? answer(call, &run, err) : follow(call, &run, format, err);
}

static const struct route_answer run_answers[] = {
    {200, execution_answer_fields},
    {200, .content = "text/event-stream"},
    {200, .content = "application/x-ndjson"},
    {0},
};

const struct route api_run_routes[] = {
    {"POST", API_TOP "/run", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, run_command,
     .summary = "runs a command and answers when it has ended, or streams what it writes",
     .fields = run_fields, .answers = run_answers, .needs = SCOPE_RUN},
    {0},
};
