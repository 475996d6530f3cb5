/* SPDX-License-Identifier: Apache-2.0 */
/* A command on a server as if it ran here; see remote_run.h. */
#include "cli/remote_run.h"

#include "base/auto.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "cli/built_wait.h"
#include "cli/endpoint.h"
#include "cli/exit.h"
#include "cli/listing.h"
#include "cli/pairs.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SMALL_INPUT ((off_t)64 << 10) // a file up to this goes with the request
#define INPUT_PIECE ((size_t)64 << 10)
#define FILES_MAX ((uint64_t)8 << 20) // together, in one request
#define RECORDS_AT_ONCE 64            // until it is looked for signals

struct relayed {
    struct burrow_client *client;
    const struct remote_run *run;
    struct burrow_stream *stream;
    struct burrow_upload *upload;
    char id[BURROW_ID];
    bool has_input, is_input_over, is_finishing;
    char *input; // read, and not yet sent
    size_t input_at, input_length;
    unsigned n_signals;
    uint64_t kill_at_ms; // 0: no
    bool is_mid_line[2];
    bool is_cut; // nobody reads the output any more
    struct buffer captured[2];
    struct json_writer *json;
    int exit_code;
    bool is_over;
};

// ---- signals ----

static int signal_pipe[2] = {-1, -1};

static void on_signal(int number)
{
    int saved = errno;
    char byte = (char)number;

    (void)!write(signal_pipe[1], &byte, 1);
    errno = saved;
}

static const int taken_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static int take_signals(struct burrow_error *err)
{
    struct sigaction action = {.sa_handler = on_signal}, before;

    if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return say_fail_sys(err, "make a pipe");
    for (size_t i = 0; i < ARRAY_SIZE(taken_signals); i++) {
        if (sigaction(taken_signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            (void)sigaction(taken_signals[i], &action, NULL);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    return 0;
}

// Those that a command can be ended by, as the server spells them.
static const char *const signal_names[] = {
    [SIGHUP] = "HUP",   [SIGINT] = "INT",   [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
    [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT", [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
    [SIGKILL] = "KILL", [SIGUSR1] = "USR1", [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
    [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM", [SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT",
    [SIGXCPU] = "XCPU", [SIGXFSZ] = "XFSZ", [SIGPROF] = "PROF", [SIGVTALRM] = "VTALRM",
    [SIGPOLL] = "POLL", [SIGPWR] = "PWR",   [SIGSYS] = "SYS",
};

static int signal_number(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_SIZE(signal_names); i++) {
        if (signal_names[i] && strcmp(signal_names[i], name) == 0)
            return (int)i;
    }
    return 0;
}

static int kill_it(struct relayed *relayed, struct burrow_error *err)
{
    autofree char *path = burrow_path("/executions/%s?force=true", relayed->id, NULL);

    relayed->kill_at_ms = 0;
    return burrow_ask(relayed->client, "DELETE", path, NULL, NULL, err);
}

/* Handed on over a connection of its own; the second time it is killed, whatever it thinks of that. */
static int hand_on(struct relayed *relayed, int number, struct burrow_error *err)
{
    if (!*relayed->id)
        return say_fail(err, BURROW_CANCELLED, "interrupted");
    if (++relayed->n_signals > RUN_PATIENCE)
        return say_fail(err, BURROW_CANCELLED, "interrupted; the command may still run");
    if (relayed->n_signals == RUN_PATIENCE)
        return kill_it(relayed, err);
    if (number == SIGTERM)
        relayed->kill_at_ms = clock_monotonic_ms() + RUN_GRACE_MS;
    return burrow_signal(relayed->client, relayed->id, signal_names[number], err);
}

/* For poll: until a command that was asked to end is killed. */
static int patience_ms(const struct relayed *relayed)
{
    uint64_t now = clock_monotonic_ms();

    return !relayed->kill_at_ms        ? -1
           : relayed->kill_at_ms > now ? (int)(relayed->kill_at_ms - now)
                                       : 0;
}

static void end_patience(struct relayed *relayed)
{
    struct burrow_error ignored; // it may have ended meanwhile

    if (relayed->kill_at_ms && clock_monotonic_ms() >= relayed->kill_at_ms)
        (void)kill_it(relayed, &ignored);
}

static int read_signals(struct relayed *relayed, struct burrow_error *err)
{
    char number;

    while (read(signal_pipe[0], &number, 1) == 1) {
        if (hand_on(relayed, number, err) < 0)
            return err->kind == BURROW_CANCELLED ? -1 : 0; // it may have ended meanwhile
    }
    return 0;
}

// ---- output ----

/* In pieces that a pipe with room takes whole, so that no write is waited for unless a signal can end it. */
static int write_out(struct relayed *relayed, int fd, const char *data, size_t length,
                     struct burrow_error *err)
{
    while (length && !relayed->is_cut) {
        struct pollfd fds[] = {{.fd = fd, .events = POLLOUT},
                               {.fd = signal_pipe[0], .events = POLLIN}};
        if (poll(fds, 2, patience_ms(relayed)) < 0 && errno != EINTR)
            return say_fail_sys(err, "write output");
        end_patience(relayed);
        if (fds[1].revents && read_signals(relayed, err) < 0)
            return -1;
        if (!fds[0].revents)
            continue;
        ssize_t wrote = write(fd, data, length < PIPE_BUF ? length : PIPE_BUF);
        if (wrote < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (wrote < 0 && errno == EPIPE) {
            relayed->is_cut = true;
            (void)hand_on(relayed, SIGPIPE, err); // it meets a broken pipe, as it would here
            return 0;
        }
        if (wrote < 0)
            return say_fail_sys(err, "write output");
        data += wrote;
        length -= (size_t)wrote;
    }
    return 0;
}

static int write_stamped(struct relayed *relayed, int fd, const char *data, size_t length,
                         struct burrow_error *err)
{
    bool *is_mid_line = &relayed->is_mid_line[fd - 1];
    char stamp[CLOCK_TEXT + 2];

    while (length) {
        const char *end = memchr(data, '\n', length);
        size_t part = end ? (size_t)(end + 1 - data) : length;
        (void)clock_format(clock_wall_ms(), stamp);
        (void)strcat(stamp, " ");
        if (!*is_mid_line && write_out(relayed, fd, stamp, strlen(stamp), err) < 0)
            return -1;
        if (write_out(relayed, fd, data, part, err) < 0)
            return -1;
        *is_mid_line = !end;
        data += part;
        length -= part;
    }
    return 0;
}

static int take_bytes(struct relayed *relayed, int fd, const char *data, size_t length,
                      struct burrow_error *err)
{
    const struct remote_run *run = relayed->run;
    struct error error = {0};

    if (run->is_json) {
        struct buffer *captured = &relayed->captured[fd - 1];
        size_t room = LIMITS_OUTPUT_BYTES - captured->length;
        if (buffer_add(captured, data, length < room ? length : room, &error) < 0)
            return say_fail(err, BURROW_LOCAL, "%s", error.text);
        return 0;
    }
    if (run->is_quiet)
        return 0;
    return (run->has_timestamps ? write_stamped : write_out)(relayed, fd, data, length, err);
}

static int take_output(struct relayed *relayed, int fd, const struct burrow_value *data,
                       struct burrow_error *err)
{
    const struct burrow_value *text = burrow_get(data, "text");
    const struct burrow_value *base64 = burrow_get(data, "textBase64");
    size_t bad;

    if (text)
        return take_bytes(relayed, fd, burrow_text(text), burrow_text_length(text), err);
    if (!base64)
        return 0;
    size_t length = burrow_text_length(base64);
    autofree char *bytes = malloc(base64_room(length) + 1);
    ssize_t got = bytes ? base64_decode(burrow_text(base64), length, bytes, &bad) : -1;
    if (got < 0)
        return say_fail(err, BURROW_PROTOCOL, "the server sent output that is no base64");
    return take_bytes(relayed, fd, bytes, (size_t)got, err);
}

// ---- the end ----

/* All that was written is told in bytes. */
static void put_captured(struct json_writer *json, const char *key, const char *flag,
                         const struct buffer *text, const struct burrow_value *output)
{
    json_key(json, key);
    json_bytes(json, text->data ? text->data : "", text->length);
    if (burrow_integer(burrow_get(output, "bytes"), 0) > (int64_t)text->length) {
        json_key(json, flag);
        json_bool(json, true);
    }
}

static void put_number(struct json_writer *json, const char *key, int64_t number)
{
    json_key(json, key);
    json_integer(json, number);
}

static void put_resources(struct json_writer *json, const struct burrow_value *used)
{
    json_key(json, "resources");
    json_map_begin(json);
    put_number(json, "cpuUserMs", burrow_integer(burrow_get(used, "cpuUserUs"), 0) / 1000);
    put_number(json, "cpuSystemMs", burrow_integer(burrow_get(used, "cpuSystemUs"), 0) / 1000);
    put_number(json, "maxRssBytes", burrow_integer(burrow_get(used, "maxMemoryBytes"), 0));
    json_map_end(json);
}

/* As a run on this machine tells it. */
static const char *cause_word(const struct burrow_value *end)
{
    const char *cause = burrow_text(burrow_get(end, "cause"));

    return cause && (strcmp(cause, "exited") == 0 || strcmp(cause, "stopped") == 0) ? "exit"
                                                                                    : cause;
}

static void put_runtime(struct relayed *relayed, struct json_writer *json, const char *sandbox)
{
    struct burrow_error ignored = {0};
    autoanswer answer = NULL;

    if (!relayed->run->has_runtime || !sandbox)
        return;
    autofree char *path = burrow_path("/sandboxes/%s", sandbox, NULL);
    if (burrow_ask(relayed->client, "GET", path, NULL, &answer, &ignored) == 0)
        say_put(json, "runtime", burrow_get(burrow_answer_value(answer), "runtime"));
}

/* As run_report.c has it for a run on this machine. */
static int tell_json(struct relayed *relayed, const struct burrow_value *end,
                     struct burrow_error *err)
{
    const char *sandbox = burrow_text(burrow_get(end, "sandboxId"));
    int number = signal_number(burrow_text(burrow_get(end, "signal")));
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    say_put(&json, "executionId", burrow_get(end, "id"));
    say_put_text(&json, "sandboxId", sandbox);
    put_runtime(relayed, &json, sandbox);
    put_number(&json, "exitCode", relayed->exit_code);
    if (number)
        put_number(&json, "signal", number);
    say_put(&json, "durationMs", burrow_get(end, "durationMs"));
    put_captured(&json, "stdout", "stdoutTruncated", &relayed->captured[0],
                 burrow_get(end, "stdout"));
    put_captured(&json, "stderr", "stderrTruncated", &relayed->captured[1],
                 burrow_get(end, "stderr"));
    say_put_text(&json, "cause", cause_word(end));
    say_put(&json, "message", burrow_get(end, "error"));
    put_resources(&json, burrow_get(end, "resources"));
    json_map_end(&json);
    return say_written(&json, &text, err);
}

static int take_end(struct relayed *relayed, const struct burrow_value *end,
                    struct burrow_error *err)
{
    const char *cause = burrow_text(burrow_get(end, "cause"));
    const char *why = burrow_text(burrow_get(end, "error"));
    int64_t code = burrow_integer(burrow_get(end, "exitCode"), EXIT_FAILED);

    relayed->is_over = true;
    relayed->exit_code = (int)code & 255;
    if (cause && strcmp(cause, "timeout") == 0)
        relayed->exit_code = EXIT_TIMEOUT;
    if (relayed->run->is_json)
        return tell_json(relayed, end, err);
    autofree char *clean = say_clean(why);
    if (why && *why)
        say_note("%s", clean);
    if (burrow_truth(burrow_get(end, "outputLost")) && !relayed->is_cut)
        say_note(SAY_CUT);
    if (relayed->is_cut)
        relayed->exit_code = EXIT_SIGNAL + SIGPIPE;
    return 0;
}

static int take_record(struct relayed *relayed, const struct burrow_value *record,
                       struct burrow_error *err)
{
    const char *event = burrow_text(burrow_get(record, "event"));
    const struct burrow_value *data = burrow_get(record, "data");
    const char *id = burrow_text(burrow_get(data, "id"));

    if (!event)
        return 0;
    if (strcmp(event, "stdout") == 0 || strcmp(event, "stderr") == 0)
        return take_output(relayed, strcmp(event, "stdout") == 0 ? 1 : 2, data, err);
    if (strcmp(event, "started") == 0 && id)
        (void)snprintf(relayed->id, sizeof relayed->id, "%s", id);
    return strcmp(event, "exit") == 0 ? take_end(relayed, data, err) : 0;
}

static int take_records(struct relayed *relayed, struct burrow_error *err)
{
    const struct burrow_value *record;

    for (unsigned i = 0; i < RECORDS_AT_ONCE && !relayed->is_over; i++) {
        int got = burrow_stream_next_now(relayed->stream, &record, err);
        if (got == 2)
            return 0;
        if (got < 0)
            return -1;
        if (got == 0)
            return say_fail(err, BURROW_BROKEN, "the server's answer ended before the command did");
        if (take_record(relayed, record, err) < 0)
            return -1;
    }
    return 0; // what is left of it comes with the next turn
}

// ---- input ----

static int open_input(struct relayed *relayed, struct burrow_error *err)
{
    autofree char *path = burrow_path("/executions/%s/stdin?close=true", relayed->id, NULL);

    relayed->input = malloc(INPUT_PIECE);
    if (!relayed->input)
        return say_fail_sys(err, "relay input");
    return burrow_upload_open(relayed->client, "POST", path, &relayed->upload, err);
}

/* A command that does not read its input is no failure. */
static void drop_input(struct relayed *relayed)
{
    relayed->is_input_over = true;
    relayed->is_finishing = false;
    burrow_upload_close(relayed->upload);
    relayed->upload = NULL;
}

static void send_input(struct relayed *relayed)
{
    struct burrow_error ignored;

    while (relayed->input_at < relayed->input_length) {
        ssize_t sent = burrow_upload_send(relayed->upload, relayed->input + relayed->input_at,
                                          relayed->input_length - relayed->input_at, &ignored);
        if (sent < 0)
            drop_input(relayed);
        if (sent <= 0)
            return;
        relayed->input_at += (size_t)sent;
    }
    if (relayed->is_finishing) {
        int done = burrow_upload_finish(relayed->upload, &ignored);
        if (done < 0)
            drop_input(relayed);
        if (done == 1) {
            relayed->is_finishing = false; // its answer is not waited for
            relayed->is_input_over = true;
        }
    } else if (burrow_upload_is_full(relayed->upload)) {
        (void)burrow_upload_send(relayed->upload, "", 0, &ignored);
    }
}

static void read_input(struct relayed *relayed)
{
    ssize_t got = read(STDIN_FILENO, relayed->input, INPUT_PIECE);

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    relayed->input_at = 0;
    relayed->input_length = got > 0 ? (size_t)got : 0;
    relayed->is_finishing = got <= 0;
    send_input(relayed);
}

// ---- the loop ----

static int step(struct relayed *relayed, struct burrow_error *err)
{
    if (*relayed->id && relayed->has_input && !relayed->upload && !relayed->is_input_over &&
        open_input(relayed, err) < 0)
        return -1;

    bool may_send = relayed->upload && !relayed->is_input_over;
    bool has_more = may_send && (relayed->input_at < relayed->input_length ||
                                 relayed->is_finishing || burrow_upload_is_full(relayed->upload));
    struct pollfd fds[] = {
        {.fd = burrow_stream_fd(relayed->stream), .events = POLLIN},
        {.fd = signal_pipe[0], .events = POLLIN},
        {.fd = may_send && !has_more ? STDIN_FILENO : -1, .events = POLLIN},
        {.fd = has_more ? burrow_upload_fd(relayed->upload) : -1, .events = POLLOUT},
    };

    end_patience(relayed);
    bool has_records = burrow_stream_is_ready(relayed->stream);
    if (poll(fds, ARRAY_SIZE(fds), has_records ? 0 : patience_ms(relayed)) < 0) {
        if (errno != EINTR)
            return say_fail_sys(err, "wait for the server");
        return 0;
    }
    if (fds[1].revents && read_signals(relayed, err) < 0)
        return -1;
    if ((has_records || fds[0].revents) && take_records(relayed, err) < 0)
        return -1;
    if (relayed->is_over)
        return 0;
    if (fds[2].revents)
        read_input(relayed);
    else if (fds[3].revents)
        send_input(relayed);
    return 0;
}

/* What there is on standard input: nothing, a little that goes with the request, or a stream. */
static int add_input(struct relayed *relayed, struct buffer *body, struct burrow_error *err)
{
    struct stat info;
    struct error error = {0};
    off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
    bool is_none = relayed->run->has_no_stdin || fstat(STDIN_FILENO, &info) < 0 ||
                   (S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3));

    if (is_none)
        return 0;
    if (S_ISREG(info.st_mode) && at >= 0 && info.st_size - at <= SMALL_INPUT) {
        autobuffer input = {.maximum = (size_t)1 << 20};
        if (fd_read_buffer(STDIN_FILENO, &input, &error) < 0)
            return say_fail(err, BURROW_LOCAL, "%s", error.text);
        autofree char *text = xcalloc(1, base64_length(input.length) + 1);
        base64_encode(input.data ? input.data : "", input.length, text);
        if (buffer_addf(body, &error, ",\"stdinBase64\":\"%s\"", text) < 0)
            return say_fail(err, BURROW_LOCAL, "%s", error.text);
        return 0;
    }
    relayed->has_input = true;
    if (buffer_add_text(body, ",\"keepStdinOpen\":true", &error) < 0)
        return say_fail(err, BURROW_LOCAL, "%s", error.text);
    return 0;
}

static int run_it(struct relayed *relayed, struct burrow_error *err)
{
    autobuffer text = {0};
    struct error error = {0};

    if (take_signals(err) < 0)
        return -1;
    if (buffer_add_text(&text, relayed->run->body, &error) < 0)
        return say_fail(err, BURROW_LOCAL, "%s", error.text);
    if (add_input(relayed, &text, err) < 0)
        return -1;
    if (buffer_add_text(&text, "}", &error) < 0)
        return say_fail(err, BURROW_LOCAL, "%s", error.text);
    const struct burrow_body body = {.data = text.data, .length = text.length};
    struct built_wait wait = {.is_quiet = relayed->run->is_quiet || relayed->run->is_json};
    burrow_set_timeout(relayed->client, -1);
    while (burrow_stream_open(relayed->client, "POST", "/run", "application/x-ndjson", &body,
                              &relayed->stream, err) < 0) {
        if (!built_wait_again(&wait, err) || read_signals(relayed, err) < 0)
            return -1;
    }
    (void)built_wait_again(&wait, err); // its line goes
    if (take_records(relayed, err) < 0) // what came with the head
        return -1;
    while (!relayed->is_over) {
        if (step(relayed, err) < 0)
            return -1;
    }
    return 0;
}

int remote_run(struct burrow_client *client, const struct remote_run *run, struct burrow_error *err)
{
    struct relayed relayed = {.client = client, .run = run};

    buffer_init(&relayed.captured[0], LIMITS_OUTPUT_BYTES);
    buffer_init(&relayed.captured[1], LIMITS_OUTPUT_BYTES);
    int result = run_it(&relayed, err);
    burrow_stream_close(relayed.stream);
    burrow_upload_close(relayed.upload);
    free(relayed.input);
    buffer_clear(&relayed.captured[0]);
    buffer_clear(&relayed.captured[1]);
    return result < 0 ? -1 : relayed.exit_code;
}

// ---- bodies ----

int remote_write_env(struct json_writer *json, const struct option_list *env,
                     struct burrow_error *err)
{
    if (env->count == 0)
        return 0;
    json_key(json, "env");
    json_map_begin(json);
    for (size_t i = 0; i < env->count; i++) {
        const char *item = env->items[i], *equals = strchr(item, '=');
        autofree char *name = xstrndup(item, equals ? (size_t)(equals - item) : strlen(item));
        const char *value = equals ? equals + 1 : getenv(name);
        if (!*name)
            return say_fail(err, BURROW_INVALID, "--env '%s' has no name: use KEY=VALUE", item);
        if (!value || pairs_have_later(env->items, env->count, i))
            continue; // as with `burrow run`: KEY alone takes yours, where there is one
        json_key(json, name);
        json_string(json, value);
    }
    json_map_end(json);
    return 0;
}

static int write_file(struct json_writer *json, const char *item, uint64_t *left,
                      struct burrow_error *err)
{
    const char *colon = strchr(item, ':');
    autobuffer content = {.maximum = FILES_MAX};
    struct error error = {0};
    struct stat info;
    char mode[8];

    if (!colon || colon == item || !colon[1])
        return say_fail(err, BURROW_INVALID,
                        "--file '%s' is not PATH:LOCAL (path in the sandbox, colon, local file)",
                        item);
    autofree char *path = xstrndup(item, (size_t)(colon - item));
    autofd fd = open(colon + 1, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0)
        return say_fail_sys(err, "read the file '%s'", colon + 1);
    if (fd_read_buffer(fd, &content, &error) < 0 && !error_is(&error, ERROR_LIMIT))
        return say_fail(err, BURROW_LOCAL, "read the file '%s': %s", colon + 1, error.text);
    if (error_is(&error, ERROR_LIMIT) || content.length > *left)
        return say_fail(
            err, BURROW_LIMIT,
            "files given with --file may have 8 MiB together: 'burrow fs cp' copies larger "
            "ones");
    *left -= content.length;
    autofree char *text = xcalloc(1, base64_length(content.length) + 1);
    base64_encode(content.data ? content.data : "", content.length, text);
    (void)snprintf(mode, sizeof mode, "%s", info.st_mode & 0100 ? "0755" : "0644");
    json_map_begin(json);
    say_put_text(json, "path", path);
    say_put_text(json, "contentBase64", text);
    say_put_text(json, "mode", mode);
    json_map_end(json);
    return 0;
}

int remote_write_files(struct json_writer *json, const struct option_list *files,
                       struct burrow_error *err)
{
    uint64_t left = FILES_MAX;

    if (files->count == 0)
        return 0;
    json_key(json, "files");
    json_list_begin(json);
    for (size_t i = 0; i < files->count; i++) {
        if (write_file(json, files->items[i], &left, err) < 0)
            return -1;
    }
    json_list_end(json);
    return 0;
}

void remote_write_strings(struct json_writer *json, const char *key, const struct option_list *list)
{
    if (list->count == 0)
        return;
    json_key(json, key);
    json_list_begin(json);
    for (size_t i = 0; i < list->count; i++)
        json_string(json, list->items[i]);
    json_list_end(json);
}

void remote_write_words(struct json_writer *json, char **words)
{
    json_key(json, "command");
    json_list_begin(json);
    for (; *words; words++)
        json_string(json, *words);
    json_list_end(json);
}
