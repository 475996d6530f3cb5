/* SPDX-License-Identifier: Apache-2.0 */
/* Executions: commands in sandboxes. Start one, look at it, wait for it, list them, end it. */
#include "core/execution/execution.h"
#include "front/api/api_page.h"
#include "front/api/command_body.h"
#include "front/api/execution_answer.h"
#include "front/api/execution_wait.h"

#include <string.h>

// ---- start ----

struct terminal_body {
    int64_t rows, cols;
};
static const struct field terminal_fields[] = {
    {"rows", FIELD_INTEGER, offsetof(struct terminal_body, rows), .minimum = 1,
     .maximum = UINT16_MAX, .help = "default 24"},
    {"cols", FIELD_INTEGER, offsetof(struct terminal_body, cols), .minimum = 1,
     .maximum = UINT16_MAX, .help = "default 80"},
    {0},
};

struct start_body {
    struct command_body command;
    bool is_background, keeps_input_open, has_terminal;
    struct terminal_body terminal;
};
static const struct field start_fields[] = {
    COMMAND_FIELDS(struct start_body, command),
    {"background", FIELD_BOOL, offsetof(struct start_body, is_background),
     .help = "a job: it does not make the sandbox busy, and has no timeout unless one is given"},
    {"keepStdinOpen", FIELD_BOOL, offsetof(struct start_body, keeps_input_open),
     .help = "its standard input is what is sent to …/stdin, until that is closed"},
    {"terminal", FIELD_MAP, offsetof(struct start_body, terminal), .fields = terminal_fields,
     .has_offset = offsetof(struct start_body, has_terminal),
     .help = "it runs in a terminal of this size, what that shows being its stdout; a job as well"},
    {0},
};

static int answer_execution(struct call *call, int status, const struct execution_info *info)
{
    autoexecutionanswer answer = {0};

    execution_answer_init(&answer, info, call_base_url(call));
    return api_answer(call, status, execution_answer_fields, &answer);
}

static int fault(struct error *err, const char *field, const char *text)
{
    error_set(err, ERROR_INVALID, "%s: %s", field, text);
    return error_field(err, field);
}

static int fill_start(struct call *call, const struct start_body *body,
                      struct execution_request *out, struct error *err)
{
    bool is_behind = body->is_background || body->has_terminal;

    if (command_body_fill(call, &body->command, out, err) < 0)
        return -1;
    if (body->keeps_input_open && out->input)
        return fault(err, "keepStdinOpen", "cannot be given together with 'stdin'");
    if (body->has_terminal && out->input)
        return fault(err, "terminal", "cannot be given together with 'stdin': it is typed into");
    out->kind = body->has_terminal    ? EXECUTION_TERMINAL
                : body->is_background ? EXECUTION_JOB
                                      : EXECUTION_COMMAND;
    out->has_input = body->keeps_input_open && !body->has_terminal;
    out->terminal =
        (struct terminal_size){(uint16_t)body->terminal.rows, (uint16_t)body->terminal.cols};
    if (is_behind && !body->command.has_timeout)
        out->command.timeout_ms = 0;
    return call_once(call, &out->once, err);
}

/* POST /api/v1/sandboxes/{sandbox}/executions */
static int start(struct call *call, struct error *err)
{
    struct start_body body = {0};
    struct execution_request want = {0};
    autoclear(execution_info) info = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        fields_read(call->body, start_fields, &body, err) < 0 ||
        fill_start(call, &body, &want, err) < 0 ||
        execution_start(call->core->executions, &call->actor, id, &want, &info, err) < 0)
        return -1;
    return answer_execution(call, 201, &info);
}

// ---- look ----

static const struct parameter get_parameters[] = {
    {"waitMs", PARAMETER_MS, NULL, "answer when it has ended, or after so long"},
    {"maxOutputBytes", PARAMETER_AMOUNT, NULL,
     "of stdout and of stderr in the answer, once it has ended; default none", 0,
     EXECUTION_OUTPUT_MAX},
    {0},
};

/* GET /api/v1/executions/{execution} */
static int get(struct call *call, struct error *err)
{
    int64_t output_bytes = query_amount(call->query, "maxOutputBytes", 0);
    const struct execution_wait how = {.has_output = output_bytes > 0,
                                       .output_bytes = (size_t)output_bytes};
    const char *id;

    if (api_execution(call, 0, &id, err) < 0)
        return -1;
    return execution_wait(call, id, query_ms(call->query, "waitMs", 0), &how, err);
}

// ---- list ----

/* The states by their names, and two words for several. */
static const char *const state_words[] = {
    "queued", "running", "completed", "failed", "timed_out", "cancelled", "active", "ended", NULL};
static const char *const kind_words[] = {[EXECUTION_COMMAND] = "command",
                                         [EXECUTION_JOB] = "job",
                                         [EXECUTION_TERMINAL] = "terminal",
                                         [EXECUTION_CONTEXT] = "context",
                                         NULL};

static const struct parameter list_parameters[] = {
    API_PAGE_PARAMETERS,
    {"state", PARAMETER_WORD, state_words, "'active' is queued or running, 'ended' all others"},
    {"kind", PARAMETER_WORD, kind_words, "default: all"},
    {0},
};

static unsigned read_states(const char *word)
{
    const unsigned all = (1u << EXECUTION_STATES) - 1;

    if (!word)
        return 0;
    if (strcmp(word, "active") == 0)
        return EXECUTION_OPEN;
    if (strcmp(word, "ended") == 0)
        return all & ~EXECUTION_OPEN;
    for (unsigned state = 0; state < EXECUTION_STATES; state++) {
        if (strcmp(word, execution_state_names[state]) == 0)
            return execution_in(state);
    }
    return 0;
}

static enum execution_kind read_kind(const char *word)
{
    unsigned kind = EXECUTION_COMMAND;

    while (word && kind_words[kind] && strcmp(kind_words[kind], word) != 0)
        kind++;
    return kind;
}

static const struct answer_field list_fields[] = {
    API_LIST_FIELDS(execution_answer_fields, struct execution_answer), {0}};

static int answer_list(struct call *call, const struct execution_infos *found)
{
    struct execution_answer *items = call_alloc(call, found->count * sizeof *items);

    for (size_t i = 0; i < found->count; i++)
        execution_answer_init(&items[i], &found->items[i], call_base_url(call));
    int result = api_answer_page(call, list_fields, items, found->count, &found->next);
    for (size_t i = 0; i < found->count; i++)
        execution_answer_clear(&items[i]);
    return result;
}

static int list(struct call *call, const char *sandbox_id, struct error *err)
{
    const char *kind_word = query_text(call->query, "kind");
    enum execution_kind kind = read_kind(kind_word);
    struct execution_filter filter = {
        .sandbox_id = sandbox_id,
        .kind = kind_word ? &kind : NULL,
        .states = read_states(query_text(call->query, "state")),
    };
    autoclear(execution_infos) found = {0};

    if (api_page_read(call, &filter.page, err) < 0 ||
        execution_list(call->core->executions, &call->actor, &filter, &found, err) < 0)
        return -1;
    return answer_list(call, &found);
}

/* GET /api/v1/executions */
static int list_all(struct call *call, struct error *err)
{
    return list(call, NULL, err);
}

/* GET /api/v1/sandboxes/{sandbox}/executions */
static int list_of_sandbox(struct call *call, struct error *err)
{
    const char *id;

    return api_sandbox(call, 0, &id, err) < 0 ? -1 : list(call, id, err);
}

// ---- end ----

#define STOP_MS 15000 // longer than one that does not want to go is given

static const struct parameter stop_parameters[] = {
    {"force", PARAMETER_BOOL, NULL, "kill it at once instead of asking it to end first"},
    {0},
};

/* DELETE /api/v1/executions/{execution}: the answer is how it ended. */
static int stop(struct call *call, struct error *err)
{
    static const struct execution_wait how = {0};
    bool is_forced = query_bool(call->query, "force", false);
    autoclear(execution_info) info = {0};
    const char *id;

    if (api_execution(call, 0, &id, err) < 0 ||
        execution_stop(call->core->executions, &call->actor, id, NULL, is_forced, "stopped", &info,
                       err) < 0)
        return -1;
    return execution_wait(call, id, STOP_MS, &how, err);
}

// ---- routes ----

static const struct route_answer one_answers[] = {{200, execution_answer_fields}, {0}};
static const struct route_answer made_answers[] = {{201, execution_answer_fields}, {0}};
static const struct route_answer list_answers[] = {{200, list_fields}, {0}};

const struct route api_execution_routes[] = {
    {"POST", API_TOP "/sandboxes/{sandbox}/executions", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, start,
     .summary = "starts a command; a paused sandbox is woken for it", .fields = start_fields,
     .answers = made_answers, .needs = SCOPE_RUN},
    {"GET", API_TOP "/sandboxes/{sandbox}/executions", ROUTE_QUICK, ACCESS_KEY, BODY_NONE,
     list_of_sandbox, .summary = "executions of a sandbox, the newest first",
     .query = list_parameters, .answers = list_answers, .needs = SCOPE_READ},
    {"GET", API_TOP "/executions", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_all,
     .summary = "executions of all sandboxes, the newest first", .query = list_parameters,
     .answers = list_answers, .needs = SCOPE_READ},
    {"GET", API_TOP "/executions/{execution}", ROUTE_LOOP, ACCESS_KEY, BODY_NONE, get,
     .summary = "an execution, or how it ended", .query = get_parameters, .answers = one_answers,
     .needs = SCOPE_READ},
    {"DELETE", API_TOP "/executions/{execution}", ROUTE_CONTROL, ACCESS_KEY, BODY_NONE, stop,
     .summary = "ends an execution", .query = stop_parameters, .answers = one_answers,
     .needs = SCOPE_RUN},
    {0},
};
