/* SPDX-License-Identifier: Apache-2.0 */
/* Code in sandboxes, as in a notebook: contexts, and runs in them. */
#include "core/code/code.h"
#include "front/api/api.h"
#include "front/api/code_answer.h"
#include "front/api/sandbox_body.h"
#include "web/reference.h"

#define CODE_TIMEOUT_MS ((int64_t)5 * 60 * 1000)

// ---- contexts ----

#define AT(member) offsetof(struct context_view, member)
/* A context as it is told. */
struct context_view {
    const char *id, *sandbox_id, *execution_id, *directory;
    enum code_language language;
    bool is_running;
    int64_t created_at;
};
static const struct answer_field context_fields[] = {
    {"id", ANSWER_ID, AT(id), .is_needed = true, .prefix = CONTEXT_PREFIX},
    {"sandboxId", ANSWER_ID, AT(sandbox_id), .is_needed = true, .prefix = SANDBOX_PREFIX},
    {"language", ANSWER_WORD, AT(language), .is_needed = true, .words = code_language_names,
     .n_words = CODE_LANGUAGES},
    {"directory", ANSWER_TEXT, AT(directory), .help = "where it began"},
    {"executionId", ANSWER_ID, AT(execution_id), .is_needed = true, .prefix = EXECUTION_PREFIX,
     .help = "its interpreter"},
    {"running", ANSWER_BOOL, AT(is_running), .is_needed = true,
     .help = "else its interpreter has ended, and the next run starts a new one"},
    {"createdAt", ANSWER_TIME, AT(created_at), .is_needed = true},
    {0},
};
#undef AT
static const struct answer_field list_fields[] = {
    {"items", ANSWER_LIST, .is_needed = true, .fields = context_fields,
     .item_size = sizeof(struct context_view), .help = "all of them"},
    {0},
};
static const struct route_answer made_answers[] = {{201, context_fields}, {0}};
static const struct route_answer get_answers[] = {{200, context_fields}, {0}};
static const struct route_answer list_answers[] = {{200, list_fields}, {0}};
static const struct route_answer empty_answers[] = {{204, NULL}, {0}};

static struct context_view view_of(const struct context_info *info)
{
    return (struct context_view){.id = info->id,
                                 .sandbox_id = info->sandbox_id,
                                 .execution_id = info->execution_id,
                                 .directory = info->directory,
                                 .language = info->language,
                                 .is_running = info->is_running,
                                 .created_at = info->created_at};
}

struct context_body {
    const char *language, *directory;
};
static const struct field context_body_fields[] = {
    {"language", FIELD_TEXT, offsetof(struct context_body, language), .maximum = 32,
     .help = "python (default), javascript, typescript, bash, r or java"},
    {"directory", FIELD_TEXT, offsetof(struct context_body, directory), .maximum = 4096,
     .help = "where it begins, absolute. Default: the sandbox's"},
    {0},
};

static int read_language(const char *text, enum code_language *out, struct error *err)
{
    *out = CODE_PYTHON;
    if (!text || code_language_find(text, out))
        return 0;
    error_set(err, ERROR_INVALID, "language: there is no '%s'; there are " CODE_LANGUAGE_LIST,
              text);
    return error_field(err, "language");
}

static int check_directory(const char *text, struct error *err)
{
    if (!text || *text == '/')
        return 0;
    error_set(err, ERROR_INVALID, "directory: '%s' is not absolute", text);
    return error_field(err, "directory");
}

/* POST /api/v1/sandboxes/{sandbox}/contexts */
static int make_context(struct call *call, struct error *err)
{
    struct context_body body = {0};
    struct context_request want = {0};
    autoclear(context_info) info = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        fields_read(call->body, context_body_fields, &body, err) < 0 ||
        read_language(body.language, &want.language, err) < 0 ||
        check_directory(body.directory, err) < 0)
        return -1;
    want.directory = body.directory;
    if (context_create(call->core->contexts, &call->actor, id, &want, &info, err) < 0)
        return -1;
    const struct context_view view = view_of(&info);
    return api_answer(call, 201, context_fields, &view);
}

/* GET /api/v1/sandboxes/{sandbox}/contexts */
static int list_contexts(struct call *call, struct error *err)
{
    autoclear(context_infos) found = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        context_list(call->core->contexts, &call->actor, id, &found, err) < 0)
        return -1;
    struct context_view *views = call_alloc(call, (found.count + 1) * sizeof *views);
    for (size_t i = 0; i < found.count; i++)
        views[i] = view_of(&found.items[i]);
    struct answer_list items = {views, found.count};
    return api_answer(call, 200, list_fields, &items);
}

/* GET /api/v1/sandboxes/{sandbox}/contexts/{context} */
static int get_context(struct call *call, struct error *err)
{
    autoclear(context_info) info = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        context_get(call->core->contexts, &call->actor, id,
                    reference_of(call->parameters[1], CONTEXT_PREFIX), &info, err) < 0)
        return -1;
    const struct context_view view = view_of(&info);
    return api_answer(call, 200, context_fields, &view);
}

typedef int change(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
                   const char *id, struct error *err);

static int apply(struct call *call, change *fn, struct error *err)
{
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        fn(call->core->contexts, &call->actor, id,
           reference_of(call->parameters[1], CONTEXT_PREFIX), err) < 0)
        return -1;
    return api_answer_empty(call);
}

/* POST /api/v1/sandboxes/{sandbox}/contexts/{context}/restart */
static int restart(struct call *call, struct error *err)
{
    return apply(call, context_restart, err);
}

/* POST /api/v1/sandboxes/{sandbox}/contexts/{context}/interrupt */
static int interrupt(struct call *call, struct error *err)
{
    return apply(call, context_interrupt, err);
}

/* DELETE /api/v1/sandboxes/{sandbox}/contexts/{context} */
static int forget(struct call *call, struct error *err)
{
    return apply(call, context_remove, err);
}

// ---- runs ----

struct code_body {
    const char *code, *language, *context, *directory;
    struct field_list env;
    int64_t timeout_ms;
};
static const struct field code_fields[] = {
    {"code", FIELD_TEXT, offsetof(struct code_body, code), .is_needed = true,
     .maximum = CODE_LENGTH,
     .help = "what is run; the value of its last expression is the main result"},
    {"language", FIELD_TEXT, offsetof(struct code_body, language), .maximum = 32,
     .help = "python (default), javascript, typescript, bash, r or java: in the context that each "
             "has of "
             "its own"},
    {"context", FIELD_TEXT, offsetof(struct code_body, context), .maximum = 64,
     .help = "a context that was made; instead of 'language'"},
    {"directory", FIELD_TEXT, offsetof(struct code_body, directory), .maximum = 4096,
     .help = "where the language's own context begins, when this run is its first"},
    {"env", FIELD_TEXT_MAP, offsetof(struct code_body, env), .help = "variables for this run"},
    {"timeoutMs", FIELD_MS, offsetof(struct code_body, timeout_ms), .minimum = 0,
     .help = "after which it is interrupted; 0: never. Default: five minutes"},
    {0},
};

static int read_body(struct call *call, struct code_body *body, struct code_request *out,
                     struct error *err)
{
    if (fields_read(call->body, code_fields, body, err) < 0 ||
        read_language(body->language, &out->language, err) < 0 ||
        check_directory(body->directory, err) < 0)
        return -1;
    if (body->context && body->language) {
        error_set(err, ERROR_INVALID, "language: cannot be given together with 'context'");
        return error_field(err, "language");
    }
    out->code = body->code;
    out->length = strlen(body->code);
    out->context_id = body->context ? reference_of(body->context, CONTEXT_PREFIX) : NULL;
    out->directory = body->directory;
    out->env = sandbox_body_pairs(call, &body->env);
    return out->env ? strings_check_env(out->env, err) : 0;
}

/* POST /api/v1/sandboxes/{sandbox}/code */
static int run_code(struct call *call, struct error *err)
{
    struct code_body body = {.timeout_ms = CODE_TIMEOUT_MS};
    struct code_request want = {0};
    struct code_run run;
    const char *id;
    void *state;

    if (api_sandbox(call, 0, &id, err) < 0 || read_body(call, &body, &want, err) < 0 ||
        code_start(call->core->contexts, &call->actor, id, &want, &run, err) < 0)
        return -1;
    const struct code_format *format = code_answer_format(event_format_wanted(call), &state);
    code_follow_start(call, &run, body.timeout_ms, format, state);
    return 0;
}

static const struct route_answer run_answers[] = {
    {200, code_answer_fields},
    {200, .content = "text/event-stream"},
    {200, .content = "application/x-ndjson"},
    {0},
};

#define CONTEXTS API_TOP "/sandboxes/{sandbox}/contexts"
const struct route api_code_routes[] = {
    {"POST", API_TOP "/sandboxes/{sandbox}/code", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, run_code,
     .summary =
         "runs code and answers with its output, its value and how it failed, or streams them",
     .fields = code_fields, .answers = run_answers, .needs = SCOPE_RUN, .reach = REACH_SANDBOX},
    {"POST", CONTEXTS, ROUTE_SLOW, ACCESS_KEY, BODY_JSON, make_context,
     .summary = "makes a context: an interpreter that keeps what code defines",
     .fields = context_body_fields, .answers = made_answers, .needs = SCOPE_RUN,
     .reach = REACH_SANDBOX},
    {"GET", CONTEXTS, ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_contexts,
     .summary = "contexts of a sandbox whose interpreter runs", .answers = list_answers,
     .needs = SCOPE_READ, .reach = REACH_SANDBOX},
    {"GET", CONTEXTS "/{context}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_context,
     .summary = "a context", .answers = get_answers, .needs = SCOPE_READ, .reach = REACH_SANDBOX},
    {"POST", CONTEXTS "/{context}/restart", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, restart,
     .summary = "a new interpreter for a context; what was defined is gone",
     .answers = empty_answers, .needs = SCOPE_RUN, .reach = REACH_SANDBOX},
    {"POST", CONTEXTS "/{context}/interrupt", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, interrupt,
     .summary = "interrupts what runs in a context, as Ctrl-C does", .answers = empty_answers,
     .needs = SCOPE_RUN, .reach = REACH_SANDBOX},
    {"DELETE", CONTEXTS "/{context}", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, forget,
     .summary = "ends a context", .answers = empty_answers, .needs = SCOPE_RUN,
     .reach = REACH_SANDBOX},
    {0},
};
