/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: run with output as it comes, start, wait, signal; see burrow.h. */
#include "client/client_impl.h"

#include "base/auto.h"
#include "base/base64.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_text(struct json_writer *json, const char *key, const char *text)
{
    if (!text)
        return;
    json_key(json, key);
    json_string(json, text);
}

void client_write_env(struct json_writer *json, const char *const *env)
{
    if (!env || !*env)
        return;
    json_key(json, "env");
    json_map_begin(json);
    for (; *env; env++) {
        const char *equals = strchr(*env, '=');
        autofree char *name = xstrndup(*env, equals ? (size_t)(equals - *env) : strlen(*env));
        json_key(json, name);
        json_string(json, equals ? equals + 1 : "");
    }
    json_map_end(json);
}

static int write_input(struct json_writer *json, const struct burrow_command *command,
                       struct burrow_error *err)
{
    if (!command->input)
        return 0;
    autofree char *text = malloc(base64_length(command->input_length) + 1);
    if (!text)
        return client_fail_sys(err, BURROW_LOCAL, "send input");
    base64_encode(command->input, command->input_length, text);
    json_key(json, "stdinBase64");
    json_string(json, text);
    return 0;
}

static int write_command(const struct burrow_command *command, bool is_background, bool is_run,
                         struct buffer *to, struct burrow_error *err)
{
    struct json_writer json;
    struct error error = {0};

    if (!command->argv || !command->argv[0])
        return client_fail(err, BURROW_INVALID, "there is no command to run");
    json_writer_init(&json, to);
    json_map_begin(&json);
    if (is_run)
        write_text(&json, "sandbox", command->sandbox);
    json_key(&json, "command");
    json_list_begin(&json);
    for (const char *const *word = command->argv; *word; word++)
        json_string(&json, *word);
    json_list_end(&json);
    client_write_env(&json, command->env);
    write_text(&json, "directory", command->directory);
    write_text(&json, "user", command->user);
    if (is_run) {
        write_text(&json, "runtime", command->runtime);
        write_text(&json, "snapshot", command->snapshot);
    }
    if (command->timeout_ms) {
        json_key(&json, "timeoutMs");
        json_integer(&json, command->timeout_ms);
    }
    if (is_background) {
        json_key(&json, "background");
        json_bool(&json, true);
    }
    int result = write_input(&json, command, err);
    json_map_end(&json);
    if (result == 0 && json_writer_finish(&json, &error) < 0)
        result = client_fail_from(err, BURROW_LOCAL, &error);
    return result;
}

static void copy(char *to, size_t size, const struct burrow_value *map, const char *name)
{
    const char *text = burrow_text(burrow_get(map, name));

    (void)snprintf(to, size, "%s", text ? text : "");
}

static void fill_result(const struct burrow_value *record, struct burrow_result *out)
{
    *out = (struct burrow_result){
        .exit_code = (int)burrow_integer(burrow_get(record, "exitCode"), 0),
        .duration_ms = burrow_integer(burrow_get(record, "durationMs"), 0),
        .output_lost = burrow_truth(burrow_get(record, "outputLost")),
    };
    copy(out->id, sizeof out->id, record, "id");
    copy(out->sandbox_id, sizeof out->sandbox_id, record, "sandboxId");
    copy(out->cause, sizeof out->cause, record, "cause");
    copy(out->error, sizeof out->error, record, "error");
}

static int tell_output(const struct burrow_value *record, int stream, burrow_on_output *on_output,
                       void *context, struct burrow_error *err)
{
    const struct burrow_value *text = burrow_get(record, "text");
    const struct burrow_value *base64 = burrow_get(record, "textBase64");
    size_t bad;
    int result = 0;

    if (!on_output)
        return 0;
    if (text) {
        result = on_output(context, stream, burrow_text(text), burrow_text_length(text));
    } else if (base64) {
        size_t length = burrow_text_length(base64);
        autofree char *bytes = malloc(base64_room(length) + 1);
        ssize_t got = bytes ? base64_decode(burrow_text(base64), length, bytes, &bad) : -1;
        if (got < 0)
            return client_fail(err, BURROW_PROTOCOL, "the server sent output that is no base64");
        result = on_output(context, stream, bytes, (size_t)got);
    }
    return result < 0 ? client_fail(err, BURROW_CANCELLED, "stopped by whoever reads the output")
                      : 0;
}

/* 1 when it has ended. */
static int take_record(const struct burrow_value *record, burrow_on_output *on_output,
                       void *context, struct burrow_result *out, struct burrow_error *err)
{
    const char *event = burrow_text(burrow_get(record, "event"));
    const struct burrow_value *data = burrow_get(record, "data");

    if (!event)
        return 0;
    if (strcmp(event, "stdout") == 0)
        return tell_output(data, 1, on_output, context, err);
    if (strcmp(event, "stderr") == 0)
        return tell_output(data, 2, on_output, context, err);
    bool is_over = strcmp(event, "exit") == 0;
    if (is_over || strcmp(event, "started") == 0)
        fill_result(data, out);
    return is_over;
}

int burrow_run(struct burrow_client *client, const struct burrow_command *command,
               burrow_on_output *on_output, void *context, struct burrow_result *out,
               struct burrow_error *err)
{
    autobuffer text = {0};
    struct burrow_stream *stream = NULL;
    const struct burrow_value *record;
    int result;

    if (write_command(command, false, true, &text, err) < 0)
        return -1;
    const struct burrow_body body = {.data = text.data, .length = text.length};
    int patience = client->patience.idle_ms;
    *out = (struct burrow_result){0};
    client->patience.idle_ms = -1; // a command may be quiet for as long as it likes
    result =
        burrow_stream_open(client, "POST", "/run", "application/x-ndjson", &body, &stream, err);
    while (result == 0) {
        result = burrow_stream_next(stream, &record, err);
        if (result == 0)
            result =
                client_fail(err, BURROW_BROKEN, "the server's answer ended before the command");
        if (result == 1)
            result = take_record(record, on_output, context, out, err);
    }
    client->patience.idle_ms = patience;
    burrow_stream_close(stream);
    return result == 1 ? 0 : -1;
}

int burrow_start(struct burrow_client *client, const struct burrow_command *command,
                 bool is_background, char out_id[BURROW_ID], struct burrow_error *err)
{
    autobuffer text = {0};
    struct burrow_answer *answer = NULL;

    if (!command->sandbox)
        return client_fail(err, BURROW_INVALID, "a command is started in a sandbox: name one");
    if (write_command(command, is_background, false, &text, err) < 0)
        return -1;
    autofree char *path = burrow_path("/sandboxes/%s/executions", command->sandbox, NULL);
    if (burrow_ask(client, "POST", path, text.data, &answer, err) < 0)
        return -1;
    int result = client_copy_id(burrow_answer_value(answer), "id", out_id, err);
    burrow_answer_free(answer);
    return result;
}

int burrow_wait(struct burrow_client *client, const char *execution, int64_t wait_ms,
                struct burrow_result *out, struct burrow_error *err)
{
    struct burrow_answer *answer = NULL;
    char wait[32];

    (void)snprintf(wait, sizeof wait, "%lld", (long long)(wait_ms < 0 ? 0 : wait_ms));
    autofree char *path = burrow_path("/executions/%s?waitMs=%s", execution, wait, NULL);
    int patience = client->patience.idle_ms;
    client->patience.idle_ms = -1;
    int result = burrow_ask(client, "GET", path, NULL, &answer, err);
    client->patience.idle_ms = patience;
    if (result < 0)
        return -1;
    const struct burrow_value *value = burrow_answer_value(answer);
    bool is_over = burrow_get(value, "exitCode") != NULL;
    fill_result(value, out);
    burrow_answer_free(answer);
    return is_over;
}

int burrow_signal(struct burrow_client *client, const char *execution, const char *signal,
                  struct burrow_error *err)
{
    autofree char *path = burrow_path("/executions/%s/signal", execution, NULL);
    autobuffer text = {0};
    struct json_writer json;
    struct error error = {0};

    json_writer_init(&json, &text);
    json_map_begin(&json);
    write_text(&json, "signal", signal);
    json_map_end(&json);
    if (json_writer_finish(&json, &error) < 0)
        return client_fail_from(err, BURROW_LOCAL, &error);
    return burrow_ask(client, "POST", path, text.data, NULL, err);
}
