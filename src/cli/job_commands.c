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

static int get_as(struct invocation *invocation, const struct column *fields,
                  struct burrow_error *err)
{
    const char *id = invocation->operands[invocation->n_operands - 1];
    autofree char *path = burrow_path("/executions/%s", id, NULL);
    autoanswer answer = NULL;

    if (burrow_ask(invocation->client, "GET", path, NULL, &answer, err) < 0)
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

/* As it is: what a command wrote goes to standard output and standard error, which the user may have sent anywhere. */
static int write_piece(const struct burrow_value *data, int fd, struct burrow_error *err)
{
    const struct burrow_value *text = burrow_get(data, "text");
    const struct burrow_value *base64 = burrow_get(data, "textBase64");
    size_t bad, length;

    if (text && write_out(fd, burrow_text(text), burrow_text_length(text), err) < 0)
        return -1;
    if (!base64)
        return 0;
    length = burrow_text_length(base64);
    autofree char *bytes = xcalloc(1, base64_room(length) + 1);
    ssize_t got = base64_decode(burrow_text(base64), length, bytes, &bad);
    return got > 0 ? write_out(fd, bytes, (size_t)got, err) : 0;
}

static int follow(struct invocation *invocation, const char *path, struct burrow_error *err)
{
    struct burrow_stream *stream = NULL;
    const struct burrow_value *record;
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
            if (burrow_truth(burrow_get(data, "outputLost")))
                say_note(SAY_CUT);
            break;
        }
        if (strcmp(side, "stdout") == 0 || strcmp(side, "stderr") == 0)
            result =
                write_piece(data, strcmp(side, "stderr") == 0 ? STDERR_FILENO : STDOUT_FILENO, err);
    }
    burrow_stream_close(stream);
    return result < 0 || got < 0 ? -1 : 0;
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

static int print_output(struct invocation *invocation, const char *id, struct burrow_error *err)
{
    autofree char *path = burrow_path("/executions/%s/output?follow=%s", id,
                                      invocation->is_following ? "true" : "false", NULL);

    return invocation->is_json ? print_whole(invocation, id, err) : follow(invocation, path, err);
}

static int job_logs(struct invocation *invocation, struct burrow_error *err)
{
    return print_output(invocation, invocation->operands[invocation->n_operands - 1], err);
}

static int on_piece(void *context, const struct burrow_value *item, struct burrow_error *err)
{
    bool is_error = strcmp(value_text(item, "stream"), "stderr") == 0;

    (void)context;
    return write_piece(item, is_error ? STDERR_FILENO : STDOUT_FILENO, err);
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
    if (!invocation->is_json && invocation->is_following)
        return follow(invocation, path, err);
    autofree char *pages = xasprintf("%s?maxBytes=1Mi", path);
    return invocation->is_json ? print_pieces(invocation, pages, err)
                               : burrow_list(invocation->client, pages, 0, on_piece, NULL, err);
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
    OPTION("follow", 'f', OPTION_FLAG, is_following, NULL, "go on as it comes"), {0}};
static const char *const execution_examples[] = {"$ burrow execution list work --limit 5",
                                                 "$ burrow execution get exe_abc", NULL};
static const char *const ps_examples[] = {"$ burrow ps", "$ burrow ps work --all", NULL};
static const char *const job_examples[] = {"$ burrow job create work -- npm run build",
                                           "$ burrow job logs work job_xyz -f", NULL};
static const char *const logs_examples[] = {"$ burrow logs work -f", "$ burrow logs exe_abc", NULL};

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
