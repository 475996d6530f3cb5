/* SPDX-License-Identifier: Apache-2.0 */
/* burrow execution, burrow job, burrow ps, burrow logs: what ran in sandboxes, and what it wrote. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/base64.h"
#include "base/mem.h"
#include "cli/listing.h"
#include "cli/columns.h"
#include "cli/endpoint.h"
#include "cli/exit.h"
#include "cli/invocation.h"
#include "cli/last_lines.h"
#include "cli/remote_run.h"
#include "cli/sandbox_options.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct column list_columns[] = {{"ID", "id", COLUMN_TEXT},
                                             {"STATE", "state", COLUMN_STATE},
                                             {">EXIT", "exitCode", COLUMN_TEXT},
                                             {">TOOK", "durationMs", COLUMN_DURATION},
                                             {"STARTED", "startedAt", COLUMN_AGO},
                                             {"COMMAND", "command", COLUMN_WORDS},
                                             {0}};
static const struct column job_columns[] = {{"ID", "id", COLUMN_TEXT},
                                            {"STATUS", "state", COLUMN_JOB},
                                            {">EXIT", "exitCode", COLUMN_TEXT},
                                            {">TOOK", "durationMs", COLUMN_DURATION},
                                            {"STARTED", "startedAt", COLUMN_AGO},
                                            {"COMMAND", "command", COLUMN_WORDS},
                                            {0}};
static const struct column running_columns[] = {{"ID", "id", COLUMN_TEXT},
                                                {"SANDBOX", "sandboxId", COLUMN_TEXT},
                                                {"KIND", "kind", COLUMN_TEXT},
                                                {"STATE", "state", COLUMN_STATE},
                                                {"STARTED", "startedAt", COLUMN_AGO},
                                                {"COMMAND", "command", COLUMN_WORDS},
                                                {0}};
#define FIELDS                                                                                     \
    {"command", "command", COLUMN_WORDS}, {"exit code", "exitCode", COLUMN_TEXT},                  \
        {"cause", "cause", COLUMN_TEXT}, {"error", "error", COLUMN_TEXT},                          \
        {"took", "durationMs", COLUMN_DURATION}, {"started", "startedAt", COLUMN_AGO},             \
        {"ended", "endedAt", COLUMN_AGO}, {"stdout", "stdout.url", COLUMN_TEXT},                   \
    {                                                                                              \
        "stderr", "stderr.url", COLUMN_TEXT                                                        \
    }
static const struct column execution_fields[] = {{"id", "id", COLUMN_TEXT},
                                                 {"sandbox", "sandboxId", COLUMN_TEXT},
                                                 {"kind", "kind", COLUMN_TEXT},
                                                 {"state", "state", COLUMN_TEXT},
                                                 FIELDS,
                                                 {0}};
static const struct column job_fields[] = {{"id", "id", COLUMN_TEXT},
                                           {"sandbox", "sandboxId", COLUMN_TEXT},
                                           {"status", "state", COLUMN_JOB},
                                           FIELDS,
                                           {0}};

static uint64_t limit_of(const struct invocation *invocation)
{
    return invocation->limit > 0 ? (uint64_t)invocation->limit : 0;
}

static int list_executions(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path =
        burrow_path("/sandboxes/%s/executions?limit=100", invocation->operands[0], NULL);

    return columns_list(invocation, path, limit_of(invocation), list_columns, err);
}

/* SANDBOX JOB: a job of another sandbox is not the one that is meant. */
static int check_sandbox(struct invocation *invocation, const struct burrow_value *job,
                         struct burrow_error *err)
{
    const char *named = invocation->operands[0], *owner = value_text(job, "sandboxId");
    autoanswer answer = NULL;

    if (strcmp(named, owner) == 0)
        return 0;
    if (strncmp(named, "sbx_", 4) != 0) {
        if (burrow_sandbox_get(invocation->client, named, &answer, err) < 0)
            return -1;
        if (strcmp(value_text(burrow_answer_value(answer), "id"), owner) == 0)
            return 0;
    }
    return say_fail(err, BURROW_NOT_FOUND, "there is no job '%s' in sandbox '%s'",
                    invocation->operands[1], named);
}

/* EXECUTION, or SANDBOX JOB. */
static int ask_execution(struct invocation *invocation, struct burrow_answer **out,
                         struct burrow_error *err)
{
    const char *id = invocation->operands[invocation->n_operands - 1];
    autofree char *path = burrow_path("/executions/%s", id, NULL);

    if (burrow_ask(invocation->client, "GET", path, NULL, out, err) < 0)
        return -1;
    return invocation->n_operands < 2 ? 0
                                      : check_sandbox(invocation, burrow_answer_value(*out), err);
}

static int get_as(struct invocation *invocation, const struct column *fields,
                  struct burrow_error *err)
{
    autoanswer answer = NULL;

    if (ask_execution(invocation, &answer, err) < 0)
        return -1;
    return columns_fields(invocation, burrow_answer_value(answer), fields, err);
}

static int get_execution(struct invocation *invocation, struct burrow_error *err)
{
    return get_as(invocation, execution_fields, err);
}

static int get_job(struct invocation *invocation, struct burrow_error *err)
{
    return get_as(invocation, job_fields, err);
}

static int ps(struct invocation *invocation, struct burrow_error *err)
{
    const char *sandbox = invocation_operand(invocation, 0);
    const char *state = invocation->is_all ? "" : "&state=active";
    autofree char *one =
        sandbox ? burrow_path("/sandboxes/%s/executions?limit=100", sandbox, NULL) : NULL;
    autofree char *path = xasprintf("%s%s", one ? one : "/executions?limit=100", state);

    return columns_list(invocation, path, 1000, running_columns, err);
}

// ---- jobs ----

static int create_job(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/executions", invocation->operands[0], NULL);
    autobuffer text = {0};
    struct json_writer json;
    autoanswer answer = NULL;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    remote_write_words(&json, invocation->words);
    json_key(&json, "background");
    json_bool(&json, true);
    say_put_text(&json, "directory", invocation->workdir);
    if (invocation->timeout_ms != OPTION_UNSET) {
        json_key(&json, "timeoutMs");
        json_integer(&json, (int64_t)invocation->timeout_ms);
    }
    if (remote_write_env(&json, &invocation->env, err) < 0)
        return -1;
    json_map_end(&json);
    if (say_finish(&json, err) < 0 ||
        burrow_ask(invocation->client, "POST", path, text.data, &answer, err) < 0)
        return -1;
    const struct burrow_value *value = burrow_answer_value(answer);
    if (invocation->is_json)
        return columns_fields(invocation, value, job_fields, err);
    say_done("started job %s", value_text(value, "id"));
    return 0;
}

static int list_jobs(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path =
        burrow_path("/sandboxes/%s/executions?limit=100&kind=job", invocation->operands[0], NULL);
    size_t wanted = limit_of(invocation) ? limit_of(invocation) : 50;
    autoclear(items) jobs = {0};

    if (items_gather(invocation, path, wanted, NULL, &jobs, err) < 0)
        return -1;
    return columns_print(invocation, jobs.items, jobs.count < wanted ? jobs.count : wanted,
                         job_columns, err);
}

static int stop_job(struct invocation *invocation, struct burrow_error *err)
{
    const char *id = invocation->operands[invocation->n_operands - 1];
    autofree char *path =
        burrow_path("/executions/%s?force=%s", id, invocation->is_forced ? "true" : "false", NULL);
    autofree char *sentence = xasprintf("stopped %s", id);
    autoanswer job = NULL;

    if (invocation->n_operands > 1 && ask_execution(invocation, &job, err) < 0)
        return -1;
    return columns_act(invocation, "DELETE", path, NULL, sentence, err);
}

// ---- output ----

/* In pieces that a pipe with room takes whole, so that Ctrl-C ends it also while nobody reads. */
static int write_out(int fd, const char *data, size_t length, struct burrow_error *err)
{
    while (length) {
        struct pollfd fds[] = {{.fd = fd, .events = POLLOUT},
                               {.fd = endpoint_cancel_fd(), .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return say_fail_sys(err, "write output");
        if (fds[1].revents)
            return say_fail(err, BURROW_CANCELLED, "interrupted");
        ssize_t wrote = fds[0].revents ? write(fd, data, length < PIPE_BUF ? length : PIPE_BUF) : 0;
        if (wrote < 0 && errno != EINTR && errno != EAGAIN)
            return say_fail_sys(err, "write output");
        data += wrote > 0 ? wrote : 0;
        length -= wrote > 0 ? (size_t)wrote : 0;
    }
    return 0;
}

/*
 * Where output goes: all of it, or of what there was the last lines alone. Of an execution that is so much of either side; of a sandbox so much
 * of all, since its log has many executions.
 */
struct printer {
    bool has_tail, is_log;
    uint64_t until[2]; // bytes of what there was; a log's are the first
    uint64_t told[2];  // that have come
    struct last_lines lines;
    struct burrow_error *err;
};

static void printer_clear(struct printer *printer)
{
    last_lines_clear(&printer->lines);
}

static int on_line(void *context, unsigned side, const char *data, size_t length)
{
    const struct printer *printer = context;

    return write_out(side ? STDERR_FILENO : STDOUT_FILENO, data, length, printer->err);
}

static int print_tail(struct printer *printer, struct burrow_error *err)
{
    printer->has_tail = false;
    printer->err = err;
    return last_lines_give(&printer->lines, on_line, printer);
}

/* What there was is all there, with this piece of it; how much of the piece is behind it. */
static bool is_past(struct printer *printer, unsigned side, uint64_t at, size_t length,
                    size_t *rest)
{
    unsigned place = printer->is_log ? 0 : side;
    uint64_t end = (printer->is_log ? printer->told[0] : at) + length;
    uint64_t until = printer->until[place];

    printer->told[place] = end;
    *rest = end <= until ? 0 : end - until < length ? (size_t)(end - until) : length;
    return printer->told[0] >= printer->until[0] && printer->told[1] >= printer->until[1];
}

/* `at`: in its side, where that is of one execution. */
static int print_bytes(struct printer *printer, unsigned side, uint64_t at, const char *data,
                       size_t length, struct burrow_error *err)
{
    size_t rest = length;

    if (printer->has_tail) {
        bool is_tail_over = is_past(printer, side, at, length, &rest);
        rest = is_tail_over ? rest : 0; // else what is new is of the last lines too
        last_lines_add(&printer->lines, side, data, length - rest);
        if (is_tail_over && print_tail(printer, err) < 0)
            return -1;
    }
    return write_out(side ? STDERR_FILENO : STDOUT_FILENO, data + length - rest, rest, err);
}

/* As it is: what a command wrote goes to standard output and standard error, which the user may have sent anywhere. */
static int print_piece(struct printer *printer, const struct burrow_value *data, const char *side,
                       struct burrow_error *err)
{
    const struct burrow_value *text = burrow_get(data, "text");
    const struct burrow_value *base64 = burrow_get(data, "textBase64");
    uint64_t at = (uint64_t)burrow_integer(burrow_get(data, "offset"), 0);
    unsigned number = strcmp(side, "stderr") == 0;
    size_t bad, length;

    if (text &&
        print_bytes(printer, number, at, burrow_text(text), burrow_text_length(text), err) < 0)
        return -1;
    if (!base64)
        return 0;
    length = burrow_text_length(base64);
    autofree char *bytes = xcalloc(1, base64_room(length) + 1);
    ssize_t got = base64_decode(burrow_text(base64), length, bytes, &bad);
    return got > 0 ? print_bytes(printer, number, at, bytes, (size_t)got, err) : 0;
}

static void want_tail(struct printer *printer, const struct invocation *invocation)
{
    printer->has_tail = invocation->tail >= 0 && (printer->until[0] || printer->until[1]);
    printer->lines.most = printer->has_tail ? (uint64_t)invocation->tail : 0;
}

static int follow(struct invocation *invocation, const char *path, struct printer *printer,
                  struct burrow_error *err)
{
    struct burrow_stream *stream = NULL;
    const struct burrow_value *record;
    bool is_cut = false;
    int got = 1, result = 0;

    burrow_set_timeout(invocation->client, -1);
    if (burrow_stream_open(invocation->client, "GET", path, "application/x-ndjson", NULL, &stream,
                           err) < 0)
        return -1;
    while (result == 0 && (got = burrow_stream_next(stream, &record, err)) == 1) {
        const char *event = value_text(record, "event");
        const struct burrow_value *data = burrow_get(record, "data");
        const char *side = *value_text(data, "stream") ? value_text(data, "stream") : event;
        if (strcmp(event, "exit") == 0) {
            is_cut = burrow_truth(burrow_get(data, "outputLost"));
            break;
        }
        if (strcmp(side, "stdout") == 0 || strcmp(side, "stderr") == 0)
            result = print_piece(printer, data, side, err);
    }
    burrow_stream_close(stream);
    if (result < 0 || got < 0 || print_tail(printer, err) < 0)
        return -1;
    if (is_cut)
        say_note(SAY_CUT);
    return 0;
}

#define WAIT_MS "30000" // the server waits for a minute at most

/* With all it wrote; who follows waits for its end, since there is one value. */
static int print_whole(struct invocation *invocation, const char *id, struct burrow_error *err)
{
    autofree char *path = burrow_path("/executions/%s?maxOutputBytes=1Mi&waitMs=%s", id,
                                      invocation->is_following ? WAIT_MS : "0", NULL);

    for (;;) {
        autoanswer answer = NULL;
        if (burrow_ask(invocation->client, "GET", path, NULL, &answer, err) < 0)
            return -1;
        const struct burrow_value *value = burrow_answer_value(answer);
        if (!invocation->is_following || burrow_get(value, "exitCode"))
            return say_value(value, err);
    }
}

static int refuse_tail(struct burrow_error *err)
{
    return say_fail(err, BURROW_INVALID, "--tail is of lines, and --json has none: leave one out");
}

/* How much it has written by now on one side. */
static int count_side(struct invocation *invocation, const char *id, const char *side,
                      uint64_t *bytes, struct burrow_error *err)
{
    autofree char *path = burrow_path("/executions/%s/output?length=1&stream=%s", id, side, NULL);
    struct burrow_stream *stream = NULL;

    if (burrow_stream_open(invocation->client, "GET", path, NULL, NULL, &stream, err) < 0)
        return err->status == 409 || err->status == 410
                   ? 0
                   : -1; // it waits for its turn, or that is gone
    const char *size = burrow_stream_header(stream, "Output-Bytes");
    *bytes = size ? strtoull(size, NULL, 10) : 0;
    burrow_stream_close(stream);
    return 0;
}

/* Both may be one, which is told as stdout. */
static int count_output(struct invocation *invocation, const char *id, uint64_t bytes[2],
                        struct burrow_error *err)
{
    static const char *const sides[] = {"stdout", "stderr"};
    autofree char *path = burrow_path("/executions/%s", id, NULL);
    autoanswer answer = NULL;

    if (burrow_ask(invocation->client, "GET", path, NULL, &answer, err) < 0)
        return -1;
    for (unsigned i = 0; i < ARRAY_SIZE(sides); i++) {
        bytes[i] = 0;
        if (burrow_get(burrow_answer_value(answer), sides[i]) &&
            count_side(invocation, id, sides[i], &bytes[i], err) < 0)
            return -1;
    }
    return 0;
}

static int print_output(struct invocation *invocation, const char *id, struct burrow_error *err)
{
    autofree char *path = burrow_path("/executions/%s/output?follow=%s", id,
                                      invocation->is_following ? "true" : "false", NULL);
    autoclear(printer) printer = {.until = {UINT64_MAX, UINT64_MAX}};

    if (invocation->is_json && invocation->tail >= 0)
        return refuse_tail(err);
    if (invocation->is_json)
        return print_whole(invocation, id, err);
    if (invocation->tail >= 0 && invocation->is_following &&
        count_output(invocation, id, printer.until, err) < 0)
        return -1;
    want_tail(&printer, invocation);
    return follow(invocation, path, &printer, err);
}

static int job_logs(struct invocation *invocation, struct burrow_error *err)
{
    autoanswer job = NULL;

    if (invocation->n_operands > 1 && ask_execution(invocation, &job, err) < 0)
        return -1;
    return print_output(invocation, invocation->operands[invocation->n_operands - 1], err);
}

static int on_piece(void *context, const struct burrow_value *item, struct burrow_error *err)
{
    return print_piece(context, item, value_text(item, "stream"), err);
}

static int count_piece(void *context, const struct burrow_value *item, struct burrow_error *err)
{
    const struct burrow_value *base64 = burrow_get(item, "textBase64");
    size_t length = burrow_text_length(base64);
    uint64_t *bytes = context;

    (void)err;
    *bytes += burrow_text_length(burrow_get(item, "text")) + length / 4 * 3;
    for (; length && burrow_text(base64)[length - 1] == '='; length--)
        --*bytes;
    return 0;
}

/* All pages as one list. */
static int print_pieces(struct invocation *invocation, const char *pages, struct burrow_error *err)
{
    autoclear(items) pieces = {0};
    autobuffer text = {0};
    struct json_writer json;

    if (invocation->is_following)
        return say_fail(err, BURROW_INVALID,
                        "what is followed has no end, and --json is one value: leave one out, or "
                        "follow one execution");
    if (items_gather(invocation, pages, SIZE_MAX, NULL, &pieces, err) < 0)
        return -1;
    json_writer_init(&json, &text);
    json_list_begin(&json);
    for (size_t i = 0; i < pieces.count; i++)
        say_put(&json, NULL, pieces.items[i]);
    json_list_end(&json);
    return say_written(&json, &text, err);
}

/* Of a sandbox: what all its commands wrote; of an execution: its own. */
static int logs(struct invocation *invocation, struct burrow_error *err)
{
    const char *id = invocation->operands[0];

    if (strncmp(id, "exe_", 4) == 0 || strncmp(id, "job_", 4) == 0 || strncmp(id, "trm_", 4) == 0)
        return print_output(invocation, id, err);
    autofree char *path = burrow_path("/sandboxes/%s/logs", id, NULL);
    autofree char *pages = xasprintf("%s?maxBytes=1Mi", path);
    autoclear(printer) printer = {.is_log = true};
    uint64_t past = invocation->is_following ? 0 : UINT64_MAX;

    if (invocation->is_json && invocation->tail >= 0)
        return refuse_tail(err);
    if (invocation->is_json)
        return print_pieces(invocation, pages, err);
    if (invocation->tail >= 0 && invocation->is_following &&
        burrow_list(invocation->client, pages, 0, count_piece, &past, err) < 0)
        return -1;
    printer.until[0] = past;
    want_tail(&printer, invocation);
    if (invocation->is_following)
        return follow(invocation, path, &printer, err);
    return burrow_list(invocation->client, pages, 0, on_piece, &printer, err) < 0
               ? -1
               : print_tail(&printer, err);
}

static const struct option_row limit_rows[] = {LIMIT_ROW, {0}};
static const struct option_row all_rows[] = {
    OPTION("all", 'a', OPTION_FLAG, is_all, NULL, "also those that have ended"), {0}};
static const struct option_row job_rows[] = {
    OPTION("timeout", 0, OPTION_DURATION, timeout_ms, "DURATION",
           "end it after so long (default: never)"),
    OPTION("env", 'e', OPTION_LIST, env, "KEY=VALUE", "set a variable (repeatable)"),
    OPTION("workdir", 'w', OPTION_TEXT, workdir, "PATH", "where it runs"),
    {0}};
static const struct option_row force_rows[] = {
    OPTION("force", 'f', OPTION_FLAG, is_forced, NULL, "SIGKILL at once, instead of SIGTERM first"),
    {0}};
static const struct option_row follow_rows[] = {
    OPTION("follow", 'f', OPTION_FLAG, is_following, NULL, "go on as it comes"),
    {"tail", 'n', OPTION_INTEGER, offsetof(struct invocation, tail), "N",
     "of what there is, the last so many lines alone", NULL, 0, 1000000},
    {0}};
static const char *const execution_examples[] = {"$ burrow execution list work --limit 5",
                                                 "$ burrow execution get exe_abc", NULL};
static const char *const ps_examples[] = {"$ burrow ps", "$ burrow ps work --all", NULL};
static const char *const job_examples[] = {"$ burrow job create work -- npm run build",
                                           "$ burrow job logs work job_xyz -f", NULL};
static const char *const logs_examples[] = {"$ burrow logs work -f --tail 20",
                                            "$ burrow logs exe_abc", NULL};

const struct cli_command job_commands[] = {
    {"execution", "list ls", "SANDBOX", "list what ran in a sandbox", NULL, limit_rows,
     execution_examples, COMMAND_SERVER, list_executions},
    {"execution", "get show info", "EXECUTION", "tell how a command ended", NULL, NULL,
     execution_examples, COMMAND_SERVER, get_execution},
    {"execution", "logs", "EXECUTION", "print what it wrote", NULL, follow_rows, logs_examples,
     COMMAND_SERVER, job_logs},
    {"execution", "stop kill destroy", "EXECUTION", "end it", NULL, force_rows, execution_examples,
     COMMAND_SERVER, stop_job},
    {"job", "create new", "SANDBOX", "start a command in the background", NULL, job_rows,
     job_examples, COMMAND_SERVER | COMMAND_WORDS, create_job},
    {"job", "list ls", "SANDBOX", "list a sandbox's jobs", NULL, limit_rows, job_examples,
     COMMAND_SERVER, list_jobs},
    {"job", "get show info", "SANDBOX JOB", "tell about a job", NULL, NULL, job_examples,
     COMMAND_SERVER, get_job},
    {"job", "destroy delete stop kill rm del remove", "SANDBOX JOB", "stop a job", NULL, force_rows,
     job_examples, COMMAND_SERVER, stop_job},
    {"job", "logs", "SANDBOX JOB", "print what a job wrote", NULL, follow_rows, job_examples,
     COMMAND_SERVER, job_logs},
    {"", "ps", "[SANDBOX]", "list the commands that run now", NULL, all_rows, ps_examples,
     COMMAND_SERVER, ps},
    {"", "logs", "SANDBOX|EXECUTION", "print what commands wrote", NULL, follow_rows, logs_examples,
     COMMAND_SERVER, logs},
    {0},
};
