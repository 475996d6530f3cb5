/* SPDX-License-Identifier: Apache-2.0 */
/* burrow code: code in a sandbox, as in a notebook. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/mem.h"
#include "cli/listing.h"
#include "cli/exit.h"
#include "cli/invocation.h"
#include "cli/say.h"
#include "cli/sandbox_options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CODE_MAX ((size_t)4 << 20)

static int read_input(struct buffer *out, struct burrow_error *err)
{
    struct error error = {0};
    char piece[16384];
    ssize_t n;

    while ((n = read(STDIN_FILENO, piece, sizeof piece)) > 0) {
        if (out->length + (size_t)n > CODE_MAX || buffer_add(out, piece, (size_t)n, &error) < 0)
            return say_fail(err, BURROW_LIMIT, "standard input: has more than 4 MiB of code");
    }
    return n < 0 ? say_fail_sys(err, "read standard input") : 0;
}

static int write_body(const struct invocation *invocation, const char *code, struct buffer *text,
                      struct burrow_error *err)
{
    struct json_writer json;

    json_writer_init(&json, text);
    json_map_begin(&json);
    say_put_text(&json, "code", code);
    if (invocation->file && strncmp(invocation->file, "ctx_", 4) == 0)
        say_put_text(&json, "context", invocation->file);
    else
        say_put_text(&json, "language", invocation->format);
    if (invocation->timeout_ms != OPTION_UNSET) {
        json_key(&json, "timeoutMs");
        json_integer(&json, (int64_t)invocation->timeout_ms);
    }
    json_map_end(&json);
    return say_finish(&json, err);
}

/* As it is: it goes where the user has sent it. */
static void print_text(const struct burrow_value *value, FILE *out)
{
    if (burrow_text(value))
        (void)fwrite(burrow_text(value), 1, burrow_text_length(value), out);
    (void)fflush(out);
}

static void print_result(const struct burrow_value *data)
{
    const char *plain = burrow_text(burrow_get(burrow_get(data, "data"), "text/plain"));

    if (plain)
        (void)printf("%s\n", plain);
    if (burrow_get(burrow_get(data, "data"), "image/png"))
        say_note("a picture (image/png) is in the answer: --json has it");
    (void)fflush(stdout);
}

static int follow(struct burrow_stream *stream, struct burrow_error *err)
{
    const struct burrow_value *record;
    int got, code = 0;

    while ((got = burrow_stream_next(stream, &record, err)) > 0) {
        const char *event = burrow_text(burrow_get(record, "event"));
        const struct burrow_value *data = burrow_get(record, "data");
        if (!event)
            continue;
        if (strcmp(event, "stdout") == 0)
            print_text(burrow_get(data, "text"), stdout);
        else if (strcmp(event, "stderr") == 0)
            print_text(burrow_get(data, "text"), stderr);
        else if (strcmp(event, "result") == 0)
            print_result(data);
        else if (strcmp(event, "error") == 0) {
            const char *trace = burrow_text(burrow_get(data, "traceback"));
            const char *name = burrow_text(burrow_get(data, "name"));
            const char *value = burrow_text(burrow_get(data, "value"));
            code = 1;
            if (trace && *trace)
                (void)fprintf(stderr, "%s", trace);
            else
                (void)fprintf(stderr, "%s: %s\n", name ? name : "error", value ? value : "");
        }
    }
    return got < 0 ? -1 : code;
}

static int run_code(struct invocation *invocation, struct burrow_error *err)
{
    const char *code = invocation_operand(invocation, 1);
    autofree char *path = burrow_path("/sandboxes/%s/code", invocation->operands[0], NULL);
    autobuffer input = {0}, text = {0};
    autoanswer answer = NULL;
    struct burrow_stream *stream = NULL;

    if ((!code || strcmp(code, "-") == 0) && read_input(&input, err) < 0)
        return -1;
    if (!code || strcmp(code, "-") == 0)
        code = input.data ? input.data : "";
    if (write_body(invocation, code, &text, err) < 0)
        return -1;
    burrow_set_timeout(invocation->client, -1);
    if (invocation->is_json) {
        if (burrow_ask(invocation->client, "POST", path, text.data, &answer, err) < 0 ||
            say_value(burrow_answer_value(answer), err) < 0)
            return -1;
        return burrow_get(burrow_answer_value(answer), "error") ? 1 : 0;
    }
    const struct burrow_body body = {.data = text.data, .length = text.length};
    if (burrow_stream_open(invocation->client, "POST", path, "application/x-ndjson", &body, &stream,
                           err) < 0)
        return -1;
    int result = follow(stream, err);
    burrow_stream_close(stream);
    return result;
}

static const struct option_row rows[] = {
    OPTION("language", 'l', OPTION_TEXT, format, "LANGUAGE",
           "python (default), javascript, typescript, bash, r or java"),
    OPTION("in", 0, OPTION_TEXT, file, "CONTEXT",
           "a context that was made over the API (ctx_…), instead of the language's own"),
    OPTION("timeout", 0, OPTION_DURATION, timeout_ms, "TIME",
           "after which the code is interrupted"),
    {0},
};
static const char *const examples[] = {"$ burrow code work 'x = 20; x + 1'",
                                       "$ burrow code work -l bash 'cd /tmp; pwd'",
                                       "$ burrow code work < analysis.py", NULL};

const struct cli_command code_commands[] = {
    {"", "code", "SANDBOX [CODE]", "run code that keeps what it defines, as in a notebook",
     "Without CODE it is read from standard input. Output is streamed; the value of the last "
     "expression is printed after it. The exit code is 1 when the code failed.",
     rows, examples, COMMAND_SERVER, run_code},
    {0},
};
