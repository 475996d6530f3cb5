/* SPDX-License-Identifier: Apache-2.0 */
/* burrow attach: a shell in a living sandbox, on the caller's terminal. The terminal is PID 1's: who leaves by the keys, or loses the connection, takes it up again later. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cli/detach_keys.h"
#include "cli/listing.h"
#include "cli/exit.h"
#include "cli/invocation.h"
#include "cli/remote_run.h"
#include "cli/say.h"
#include "cli/sandbox_options.h"
#include "cli/shown_output.h"
#include "cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE 16384
#define EOF_STEP_MS 250   // between ends of input
#define KEY_HELD_MS 500   // that may be the first of those that leave
#define EVENTS_AT_ONCE 16 // until it is looked for what was typed

static int signal_pipe[2] = {-1, -1};

static void on_signal(int number)
{
    int saved = errno;
    char byte = (char)number;

    (void)!write(signal_pipe[1], &byte, 1);
    errno = saved;
}

/* The terminal is given back before a signal ends this; the second one is not waited for. */
static void take_signals(void)
{
    static const int ending[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;

    (void)sigaction(SIGWINCH, &action, NULL);
    action.sa_flags |= (int)SA_RESETHAND;
    for (size_t i = 0; i < ARRAY_SIZE(ending); i++) {
        if (sigaction(ending[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            (void)sigaction(ending[i], &action, NULL);
    }
}

/* stdout or stderr. */
struct side {
    bool is_terminal;
    uint64_t again_bytes; // that are still to come of what was shown before
    struct shown_output shown;
};

struct attached {
    struct burrow_socket *socket;
    bool has_keys;    // those that leave
    bool is_terminal; // on the caller's side
    struct detach_keys keys;
    uint64_t held_until_ms; // some of them, of clock_monotonic_ms
    bool has_left, is_over, is_input_over;
    bool is_new; // whatever it shows, nobody has seen
    struct side sides[2];
    int exit_code;
    char *why;    // owned: the server's sentence about its end; NULL: none
    int ended_by; // a signal that came from outside; 0: none
};

static int send_input(struct attached *attached, struct burrow_error *err)
{
    char from[PIECE], to[PIECE + DETACH_KEYS_HELD];
    ssize_t n = read(STDIN_FILENO, from, sizeof from);

    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : say_fail_sys(err, "read standard input");
    if (n == 0) {
        attached->is_input_over = true;
        return burrow_socket_close_input(attached->socket, err);
    }
    if (!attached->has_keys)
        return burrow_socket_input(attached->socket, from, (size_t)n, err);
    size_t length = 0;
    attached->has_left = detach_keys_take(&attached->keys, from, (size_t)n, to, &length);
    attached->held_until_ms = clock_monotonic_ms() + KEY_HELD_MS;
    return length ? burrow_socket_input(attached->socket, to, length, err) : 0;
}

/* Who typed the first of the keys that leave and no other meant it for the program. */
static int hand_held_on(struct attached *attached, struct burrow_error *err)
{
    char held[DETACH_KEYS_HELD];

    if (!attached->keys.n_held || attached->has_left ||
        clock_monotonic_ms() < attached->held_until_ms)
        return 0;
    size_t length = detach_keys_hand_on(&attached->keys, held);
    return burrow_socket_input(attached->socket, held, length, err);
}

static int send_size(struct attached *attached, struct burrow_error *err)
{
    uint16_t rows, cols;

    terminal_size(STDIN_FILENO, &rows, &cols);
    return burrow_socket_resize(attached->socket, rows, cols, err);
}

static int read_signals(struct attached *attached, struct burrow_error *err)
{
    char numbers[64];
    ssize_t n = read(signal_pipe[0], numbers, sizeof numbers);
    bool is_resized = false;

    for (ssize_t i = 0; i < n; i++) {
        is_resized |= numbers[i] == SIGWINCH;
        if (numbers[i] != SIGWINCH)
            attached->ended_by = numbers[i];
    }
    return is_resized && !attached->ended_by ? send_size(attached, err) : 0;
}

/* What ended is shown again, whoever asks. */
static void take_start(struct attached *attached, const struct burrow_value *execution)
{
    static const char *const offsets[] = {"offsets.stdout", "offsets.stderr"};
    static const char *const sizes[] = {"sizes.stdout", "sizes.stderr"};
    bool is_over = burrow_get(execution, "exitCode") != NULL;

    for (size_t i = 0; i < ARRAY_SIZE(attached->sides); i++) {
        int64_t from = burrow_integer(burrow_get(execution, offsets[i]), 0);
        int64_t to = burrow_integer(burrow_get(execution, sizes[i]), 0);
        if (is_over)
            attached->sides[i].again_bytes = UINT64_MAX;
        else if (!attached->is_new && to > from)
            attached->sides[i].again_bytes = (uint64_t)(to - from);
    }
}

static int write_out(int fd, const void *data, size_t length, struct burrow_error *err)
{
    return fd_write_all(fd, data, length) < 0 ? say_fail_sys(err, "write output") : 0;
}

static int take_output(struct attached *attached, const struct burrow_event *event,
                       struct burrow_error *err)
{
    int fd = event->stream == 2 ? STDERR_FILENO : STDOUT_FILENO;
    struct side *side = &attached->sides[event->stream == 2];
    size_t again = event->length < side->again_bytes ? event->length : (size_t)side->again_bytes;
    autobuffer text = {0};

    if (!side->is_terminal)
        return write_out(fd, event->data, event->length, err);
    side->again_bytes -= again;
    if (again)
        shown_output_again(&side->shown, event->data, again, &text);
    if (again < event->length)
        shown_output_live(&side->shown, (const char *)event->data + again, event->length - again,
                          &text);
    return write_out(fd, text.data, text.length, err);
}

static void take_end(struct attached *attached, const struct burrow_value *execution)
{
    const char *why = burrow_text(burrow_get(execution, "error"));

    attached->exit_code = (int)burrow_integer(burrow_get(execution, "exitCode"), 1) & 255;
    attached->why = why && *why ? say_clean(why) : NULL;
    attached->is_over = true;
}

/* The caller's terminal, as it is without a program. Where there is none, nothing is known that would have to be undone. */
static void leave_screen(struct attached *attached)
{
    for (int i = 0; i < 2; i++) {
        autobuffer text = {0};
        struct burrow_error ignored; // the terminal may be gone
        shown_output_leave(&attached->sides[i].shown, &text);
        (void)write_out(i ? STDERR_FILENO : STDOUT_FILENO, text.data, text.length, &ignored);
    }
}

/* What is there of it: 1 where there may be more, which comes with the next turn; 0; -1. */
static int take_events(struct attached *attached, struct burrow_error *err)
{
    struct burrow_event event;
    int got = 1;

    for (unsigned i = 0; i < EVENTS_AT_ONCE; i++) {
        got = burrow_socket_next(attached->socket, 0, &event, err);
        if (got <= 0)
            break;
        if (event.kind == BURROW_MESSAGE_OUTPUT) {
            if (take_output(attached, &event, err) < 0)
                return -1;
        } else if (event.kind == BURROW_MESSAGE_STARTED) {
            take_start(attached, event.value);
        } else if (event.kind == BURROW_MESSAGE_EXIT) {
            take_end(attached, event.value);
            return 0;
        } else if (event.kind == BURROW_MESSAGE_CLOSED) {
            return say_fail(err, BURROW_BROKEN, "the server went away");
        }
    }
    return got;
}

/* For poll: until there is something to do that nobody asks for. */
static int patience_ms(const struct attached *attached)
{
    uint64_t now = clock_monotonic_ms();

    if (attached->is_input_over)
        return EOF_STEP_MS;
    if (!attached->keys.n_held)
        return -1;
    return attached->held_until_ms > now ? (int)(attached->held_until_ms - now) : 0;
}

static int relay(struct attached *attached, struct burrow_error *err)
{
    while (!attached->is_over && !attached->has_left && !attached->ended_by) {
        int more = take_events(attached, err);
        if (more < 0)
            return -1;
        if (attached->is_over)
            break;
        struct pollfd fds[] = {
            {.fd = burrow_socket_fd(attached->socket), .events = POLLIN},
            {.fd = attached->is_input_over ? -1 : STDIN_FILENO, .events = POLLIN},
            {.fd = signal_pipe[0], .events = POLLIN},
        };
        int got = poll(fds, 3, more ? 0 : patience_ms(attached));
        if (got < 0 && errno != EINTR)
            return say_fail_sys(err, "wait for input");
        // A terminal has no end of input that stays: a Ctrl-D is one for one read, and none for a shell that is still starting.
        if (got == 0 && !more && attached->is_input_over &&
            burrow_socket_close_input(attached->socket, err) < 0)
            return -1;
        // the size first: what is typed after a resize is for a program that knows of it
        if ((fds[2].revents && read_signals(attached, err) < 0) ||
            (fds[1].revents && send_input(attached, err) < 0) || hand_held_on(attached, err) < 0)
            return -1;
    }
    return 0;
}

// ---- which terminal ----

static int start(struct invocation *invocation, const char *sandbox, struct burrow_answer **out,
                 struct burrow_error *err)
{
    static char *shell[] = {"sh", "-c", "exec \"$(command -v bash || echo sh)\" -l", NULL};
    autofree char *path = burrow_path("/sandboxes/%s/executions", sandbox, NULL);
    autobuffer text = {0};
    struct json_writer json;
    uint16_t rows, cols;

    terminal_size(STDIN_FILENO, &rows, &cols);
    json_writer_init(&json, &text);
    json_map_begin(&json);
    remote_write_words(&json, invocation->words ? invocation->words : shell);
    json_key(&json, "terminal");
    json_map_begin(&json);
    json_key(&json, "rows");
    json_integer(&json, rows);
    json_key(&json, "cols");
    json_integer(&json, cols);
    json_map_end(&json);
    say_put_text(&json, "directory", invocation->workdir);
    say_put_text(&json, "user", invocation->user);
    if (invocation->timeout_ms != OPTION_UNSET) {
        json_key(&json, "timeoutMs");
        json_natural(&json, invocation->timeout_ms);
    }
    json_key(&json, "env");
    json_map_begin(&json);
    say_put_text(&json, "TERM", getenv("TERM") ? getenv("TERM") : "xterm-256color");
    json_map_end(&json);
    json_map_end(&json);
    if (say_finish(&json, err) < 0)
        return -1;
    return burrow_ask(invocation->client, "POST", path, text.data, out, err);
}

static bool is_execution(const char *text)
{
    return strncmp(text, "exe_", 4) == 0 || strncmp(text, "job_", 4) == 0;
}

static int tell_end(const struct attached *attached, const char *id, const char *sandbox)
{
    if (attached->has_left || (attached->ended_by && attached->has_keys))
        (void)fprintf(stderr, "\r\nburrow: left %s; it goes on. To come back: burrow attach %s\n",
                      id, id);
    if (attached->has_left || attached->ended_by)
        return attached->ended_by ? EXIT_SIGNAL + attached->ended_by : 0;
    if (attached->has_keys)
        (void)fputs("\r\n", stderr);
    if (attached->why)
        say_note("%s", attached->why);
    if (attached->has_keys)
        say_note("the terminal%s%s has ended", *sandbox ? " in " : "", sandbox);
    return attached->exit_code;
}

int attach_terminal(struct invocation *invocation, const char *what, bool can_leave,
                    struct burrow_error *err)
{
    bool is_new = !is_execution(what);
    autoanswer answer = NULL;
    struct attached attached = {
        .is_terminal = isatty(STDIN_FILENO),
        .has_keys = can_leave && isatty(STDIN_FILENO),
        .is_new = is_new,
        .sides = {{.is_terminal = isatty(STDOUT_FILENO)}, {.is_terminal = isatty(STDERR_FILENO)}}};
    autoterminal terminal = {0};
    char keys[DETACH_KEYS_TEXT];
    struct error error = {0};

    if (detach_keys_parse(invocation->detach_keys ? invocation->detach_keys : DETACH_KEYS_USUAL,
                          &attached.keys, &error) < 0)
        return say_fail(err, BURROW_INVALID, "--detach-keys: %s", error.text);
    if (is_new && start(invocation, what, &answer, err) < 0)
        return -1;
    const char *id = is_new ? burrow_text(burrow_get(burrow_answer_value(answer), "id")) : what;
    if (burrow_attach(invocation->client, id, NULL, &attached.socket, err) < 0)
        return -1;
    if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
        burrow_socket_close(attached.socket);
        return say_fail_sys(err, "make a pipe");
    }
    take_signals();
    if (attached.has_keys && is_new)
        say_note("%s leaves; the terminal goes on (%s)", detach_keys_name(&attached.keys, keys),
                 id);
    if (terminal_make_raw(&terminal, STDIN_FILENO, &error) < 0) {
        burrow_socket_close(attached.socket);
        return say_fail(err, BURROW_LOCAL, "%s", error.text);
    }
    int result = attached.is_terminal ? send_size(&attached, err) : 0;
    if (result == 0)
        result = relay(&attached, err);
    leave_screen(&attached);
    terminal_restore(&terminal);
    burrow_socket_close(attached.socket);
    if (result < 0 && (err->kind == BURROW_BROKEN || err->kind == BURROW_UNREACHABLE))
        return say_fail(err, BURROW_BROKEN,
                        "the connection ended; the terminal goes on: burrow attach %s", id);
    int code = result < 0 ? -1 : tell_end(&attached, id, is_new ? what : "");
    free(attached.why);
    return code;
}

static int attach(struct invocation *invocation, struct burrow_error *err)
{
    return attach_terminal(invocation, invocation->operands[0], true, err);
}

static const struct option_row rows[] = {
    OPTION("workdir", 'w', OPTION_TEXT, workdir, "DIR", "where the shell starts"),
    OPTION("user", 'u', OPTION_TEXT, user, "USER", "as whom it runs"),
    OPTION("detach-keys", 0, OPTION_TEXT, detach_keys, "KEYS",
           "what leaves: characters and ctrl-LETTER, with commas (default " DETACH_KEYS_USUAL ")"),
    {0},
};
static const char *const examples[] = {"$ burrow attach sbx_abc123",
                                       "$ burrow attach work -- python3",
                                       "$ burrow attach exe_xyz789", NULL};

const struct cli_command attach_commands[] = {
    {"", "attach", "SANDBOX|EXECUTION", "open a shell in a sandbox, or take up a terminal again",
     "With a sandbox, a new terminal with a login shell (or the command after --) is made in it. "
     "With an execution, an earlier terminal "
     "goes on, with what it last showed. Ctrl-P Ctrl-Q, or --detach-keys, leaves without ending "
     "it. The exit code is "
     "the shell's.",
     rows, examples,
     COMMAND_SERVER | COMMAND_WORDS | COMMAND_WORDS_OPTIONAL | COMMAND_NO_JSON | COMMAND_RUNNING,
     attach},
    {0},
};
