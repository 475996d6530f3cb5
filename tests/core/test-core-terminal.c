/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals, input, sizes and signals through the core, and what of them survives a restart. */
#include "core_fixture.h"

#include "core/event/hub.h"
#include "engine/box.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* `sh -c script` at a terminal. */
static void open_terminal(const char *sandbox, const char *script, struct execution_info *out)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct execution_request request = {.kind = EXECUTION_TERMINAL,
                                        .command = {.argv = argv, .timeout_ms = EXECUTION_DEFAULT},
                                        .terminal = {.rows = 30, .cols = 100}};
    struct error err = {0};

    CHECK_OK(execution_start(core->executions, &actor, sandbox, &request, out, &err), err);
}

static void start_with_input(const char *sandbox, enum execution_kind kind, const char *script,
                             struct execution_info *out)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct execution_request request = {.kind = kind,
                                        .command = {.argv = argv, .timeout_ms = EXECUTION_DEFAULT},
                                        .has_input = true};
    struct error err = {0};

    CHECK_OK(execution_start(core->executions, &actor, sandbox, &request, out, &err), err);
}

/* All of it. */
static void type(const char *id, const char *text)
{
    struct error err = {0};
    size_t taken = 0;

    CHECK_OK(execution_write_input(core->executions, &actor, id, text, strlen(text), &taken, &err),
             err);
    CHECK_INT(taken, strlen(text));
}

static void close_input(const char *id)
{
    struct error err = {0};
    CHECK_OK(execution_close_input(core->executions, &actor, id, &err), err);
}

CORE_TEST(a_command_reads_input_until_it_is_closed)
{
    char id[ID_TEXT];
    autoclear(execution_info) first = {0};
    autoclear(execution_info) end = {0};

    make_sandbox(id);
    start_with_input(id, EXECUTION_COMMAND, "cat; echo end", &first);
    type(first.id, "one\n");
    await_bytes(first.stdout_stream, 4);
    type(first.id, "two\n");
    close_input(first.id);
    close_input(first.id);
    await_execution(first.id, &end);
    CHECK_INT(end.exit.code, 0);
    CHECK_STR(content_of(end.stdout_stream), "one\ntwo\nend\n");
}

CORE_TEST(a_terminal_echoes_is_resized_and_ends)
{
    char id[ID_TEXT];
    autoclear(execution_info) first = {0};
    autoclear(execution_info) end = {0};
    struct error err = {0};

    make_sandbox(id);
    open_terminal(id, "stty size; echo $TERM; read a; stty size; read b; echo bye $a $b", &first);
    CHECK_INT(first.kind, EXECUTION_TERMINAL);
    CHECK(first.stderr_stream == NULL);
    await_bytes(first.stdout_stream, strlen("30 100\r\nxterm-256color\r\n"));
    CHECK_OK(
        execution_resize(core->executions, &actor, first.id, (struct terminal_size){50, 132}, &err),
        err);
    type(first.id, "x\n");
    await_bytes(first.stdout_stream, strlen("30 100\r\nxterm-256color\r\nx\r\n50 132\r\n"));
    type(first.id, "y\n");
    await_execution(first.id, &end);
    CHECK_INT(end.exit.code, 0);
    CHECK_STR(content_of(end.stdout_stream),
              "30 100\r\nxterm-256color\r\nx\r\n50 132\r\ny\r\nbye x y\r\n");
}

static size_t fill_input(const char *id)
{
    static const char zeros[32768];
    struct error err = {0};
    size_t all = 0, taken;

    do {
        CHECK_OK(
            execution_write_input(core->executions, &actor, id, zeros, sizeof zeros, &taken, &err),
            err);
        all += taken;
    } while (taken == sizeof zeros);
    return all;
}

static atomic_uint n_announced;

static void on_announce(void *data)
{
    (void)data;
    atomic_fetch_add(&n_announced, 1);
}

CORE_TEST(a_process_that_does_not_read_stops_its_writer_and_loses_nothing)
{
    char id[ID_TEXT];
    autoclear(execution_info) first = {0};
    autoclear(execution_info) go = {0};
    autoclear(execution_info) end = {0};
    char expected[32];
    size_t all;

    make_sandbox(id);
    start_with_input(id, EXECUTION_JOB, "while [ ! -e go ]; do sleep 0.02; done; wc -c", &first);
    all = fill_input(first.id);
    CHECK(all >= BOX_INPUT_BYTES && all < 1 << 20);
    n_announced = 0;
    struct watch *watch = hub_watch(core->hub, first.id, on_announce, NULL);
    start_in(id, EXECUTION_COMMAND, "touch go", &go);
    while (n_announced == 0)
        (void)usleep(2000);
    watch_free(watch);
    type(first.id, "some more");
    all += strlen("some more");
    close_input(first.id);
    await_execution(first.id, &end);
    (void)snprintf(expected, sizeof expected, "%zu\n", all);
    CHECK_STR(content_of(end.stdout_stream), expected);
}

/* Until what it showed contains `text`. */
static void await_text(const char *stream_id, const char *text)
{
    autoptr(stream) stream = NULL;
    struct error err = {0};
    char shown[4096] = "";

    CHECK_OK(stream_open(core->streams, stream_id, &stream, &err), err);
    for (int i = 0; i < 30000 && !strstr(shown, text); i++) {
        ssize_t got = pread(stream_fd(stream), shown, sizeof shown - 1, 0);
        shown[got > 0 ? got : 0] = '\0';
        (void)usleep(2000);
    }
    if (!strstr(shown, text))
        test_fail(__FILE__, __LINE__, "the terminal only shows '%s'", shown);
}

CORE_TEST(a_terminal_and_an_input_go_on_after_a_restart)
{
    char id[ID_TEXT];
    autoclear(execution_info) terminal = {0};
    autoclear(execution_info) command = {0};
    autoclear(execution_info) end = {0};
    struct error err = {0};
    size_t taken;

    make_sandbox(id);
    open_terminal(id,
                  "trap 'echo winch' WINCH; until [ \"$a\" = bye ]; do "
                  "read a && echo got $a && stty size; done; cat",
                  &terminal);
    start_with_input(id, EXECUTION_COMMAND, "cat", &command);
    type(terminal.id, "one\n");
    type(command.id, "one\n");
    await_text(terminal.stdout_stream, "got one\r\n30 100\r\n");
    reopen_core();
    CHECK_INT(
        execution_write_input_quick(core->executions, &actor, terminal.id, "x", 1, &taken, &err),
        0); // nobody has opened it here yet
    CHECK_OK(execution_resize(core->executions, &actor, terminal.id,
                              (struct terminal_size){40, 120}, &err),
             err);
    type(terminal.id, "two\n");
    await_text(terminal.stdout_stream, "got two\r\n40 120\r\n");
    await_text(terminal.stdout_stream, "winch");
    CHECK_INT(execution_write_input_quick(core->executions, &actor, terminal.id, "three\n", 6,
                                          &taken, &err),
              1);
    CHECK_INT(taken, 6);
    await_text(terminal.stdout_stream, "got three\r\n");
    type(command.id, "two\n");
    close_input(command.id);
    await_execution(command.id, &end);
    CHECK_INT(end.state, EXECUTION_COMPLETED);
    CHECK_STR(content_of(end.stdout_stream), "one\ntwo\n");
    type(terminal.id, "bye\n");
    close_input(terminal.id); // Ctrl-D
    execution_info_clear(&end);
    await_execution(terminal.id, &end);
    CHECK_INT(end.state, EXECUTION_COMPLETED);
    CHECK_INT(end.kind, EXECUTION_TERMINAL);
}

CORE_TEST(terminals_do_not_make_a_sandbox_busy_and_are_bounded)
{
    char id[ID_TEXT];
    struct execution_info terminals[EXECUTION_MAX_TERMINALS] = {0};
    autoclear(execution_info) refused = {0};
    autoclear(execution_info) command = {0};
    autoclear(execution_info) end = {0};
    autoclear(execution_infos) listed = {0};
    autoclear(execution_info) stopped = {0};
    const enum execution_kind kinds[] = {EXECUTION_COMMAND, EXECUTION_JOB, EXECUTION_TERMINAL};
    const int64_t expected[] = {0, 0, EXECUTION_MAX_TERMINALS};
    const char *argv[] = {"sh", NULL};
    struct execution_request request = {.kind = EXECUTION_TERMINAL, .command.argv = argv};
    struct error err = {0};

    make_sandbox(id);
    for (int i = 0; i < EXECUTION_MAX_TERMINALS; i++)
        open_terminal(id, "read a", &terminals[i]);
    CHECK(execution_start(core->executions, &actor, id, &request, &refused, &err) < 0);
    CHECK_INT(err.reason, ERROR_FULL);
    CHECK(error_is_about(&err, "terminal"));
    await_state(id, SANDBOX_IDLE);
    for (size_t i = 0; i < 3; i++) {
        struct execution_filter filter = {
            .sandbox_id = id, .kind = &kinds[i], .page = {.limit = 100}};
        execution_infos_clear(&listed);
        CHECK_OK(execution_list(core->executions, &actor, &filter, &listed, &err), err);
        CHECK_INT(listed.total, expected[i]);
    }
    start_in(id, EXECUTION_COMMAND, "echo beside", &command);
    await_execution(command.id, &end);
    CHECK_INT(end.exit.code, 0);
    execution_info_clear(&end);
    CHECK_OK(execution_stop(core->executions, &actor, terminals[0].id, NULL, false, NULL, &stopped,
                            &err),
             err);
    await_execution(terminals[0].id, &end);
    CHECK_INT(end.state, EXECUTION_CANCELLED);
    CHECK_INT(end.exit.signal, SIGHUP);
    CHECK_OK(execution_start(core->executions, &actor, id, &request, &refused, &err), err);
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, id, &err), err);
    execution_info_clear(&end);
    await_execution(terminals[1].id, &end); // with its sandbox
    CHECK_INT(end.state, EXECUTION_CANCELLED);
    for (int i = 0; i < EXECUTION_MAX_TERMINALS; i++)
        execution_info_clear(&terminals[i]);
}

CORE_TEST(what_cannot_be_done_says_why)
{
    char id[ID_TEXT];
    autoclear(execution_info) plain = {0};
    autoclear(execution_info) closed = {0};
    autoclear(execution_info) end = {0};
    autoclear(execution_info) other = {0};
    struct actor stranger = {.organisation = "11111111111111111111111111"};
    const char *argv[] = {"true", NULL};
    struct execution_request bad = {
        .kind = EXECUTION_TERMINAL, .command.argv = argv, .has_timestamps = true};
    struct error err = {0};
    size_t taken;

    make_sandbox(id);
    start_in(id, EXECUTION_JOB, "echo up; sleep 600", &plain);
    CHECK(execution_write_input(core->executions, &actor, plain.id, "x", 1, &taken, &err) < 0);
    CHECK_INT(err.reason, ERROR_COMPLETE);
    CHECK(execution_resize(core->executions, &actor, plain.id, (struct terminal_size){1, 1}, &err) <
          0);
    CHECK_INT(err.reason, ERROR_STATE);
    CHECK(execution_resize(core->executions, &actor, plain.id, (struct terminal_size){0, 1}, &err) <
          0);
    CHECK_INT(err.reason, ERROR_INVALID);
    CHECK(execution_signal(core->executions, &actor, plain.id, 99, false, &err) < 0);
    CHECK_INT(err.reason, ERROR_INVALID);
    CHECK(execution_signal(core->executions, &stranger, plain.id, SIGTERM, false, &err) < 0);
    CHECK_INT(err.reason, ERROR_NOT_FOUND);
    CHECK(execution_write_input(core->executions, &stranger, plain.id, "x", 1, &taken, &err) < 0);
    CHECK_INT(err.reason, ERROR_NOT_FOUND);
    CHECK(execution_close_input(core->executions, &actor, "nobody", &err) < 0);
    CHECK_INT(err.reason, ERROR_NOT_FOUND);
    CHECK(execution_start(core->executions, &actor, id, &bad, &other, &err) < 0);
    CHECK_INT(err.reason, ERROR_INVALID);
    CHECK_OK(execution_signal(core->executions, &actor, plain.id, SIGTERM, false, &err), err);
    await_execution(plain.id, &end);
    CHECK_INT(end.state, EXECUTION_COMPLETED);
    CHECK_INT(end.exit.signal, SIGTERM);
    CHECK(execution_signal(core->executions, &actor, plain.id, SIGTERM, false, &err) < 0);
    CHECK_INT(err.reason, ERROR_ENDED);
    start_with_input(id, EXECUTION_JOB, "exec <&-; echo closed; sleep 600", &closed);
    await_bytes(closed.stdout_stream, 7);
    int result;
    do // until PID 1 has seen that nobody reads
        result = execution_write_input(core->executions, &actor, closed.id, "x", 1, &taken, &err);
    while (result == 0);
    CHECK_INT(err.reason, ERROR_COMPLETE);
}

CORE_TEST(a_terminal_goes_on_after_a_pause_and_without_its_files_for_a_while)
{
    char id[ID_TEXT];
    autoclear(execution_info) first = {0};
    autoclear(execution_info) end = {0};
    autoclear(sandbox_info) info = {0};
    struct error err = {0};

    make_sandbox(id);
    open_terminal(
        id, "echo up; read a; exec <&- >&- 2>&-; sleep 0.05; exec >/dev/tty; echo back $a", &first);
    await_text(first.stdout_stream, "up\r\n");
    CHECK_OK(sandbox_pause(core->sandboxes, &actor, id, &info, &err), err);
    type(first.id, "typed\n");
    CHECK_OK(sandbox_resume(core->sandboxes, &actor, id, &err), err);
    await_execution(first.id, &end);
    CHECK_STR(content_of(end.stdout_stream), "up\r\ntyped\r\nback typed\r\n");
}

struct told {
    char id[ID_TEXT];
    char stream[ID_TEXT];
};

/* A server of its own, until it is killed. */
_Noreturn static void serve_terminal(const char *sandbox, int tell_fd)
{
    autoclear(execution_info) first = {0};
    struct told told = {0};

    open_core_again();
    open_terminal(sandbox, "while read a; do echo got $a; stty size; done; echo ended", &first);
    type(first.id, "one\n");
    await_text(first.stdout_stream, "got one\r\n");
    (void)snprintf(told.id, sizeof told.id, "%s", first.id);
    (void)snprintf(told.stream, sizeof told.stream, "%s", first.stdout_stream);
    type(first.id, "last words\n");
    CHECK_INT(write(tell_fd, &told, sizeof told), sizeof told);
    for (;;)
        (void)pause();
}

CORE_TEST(a_terminal_goes_on_after_kill_9)
{
    char id[ID_TEXT];
    autoclear(execution_info) end = {0};
    struct error err = {0};
    struct told told = {0};
    int ends[2];

    make_sandbox(id);
    core_free(take(core));
    CHECK_INT(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0)
        serve_terminal(id, ends[1]);
    (void)close(ends[1]);
    CHECK_INT(read(ends[0], &told, sizeof told), sizeof told);
    CHECK_INT(kill(child, SIGKILL), 0);
    CHECK_INT(waitpid(child, NULL, 0), child);
    (void)close(ends[0]);
    open_core_again();
    await_text(told.stream, "got last words\r\n");
    CHECK_OK(
        execution_resize(core->executions, &actor, told.id, (struct terminal_size){9, 33}, &err),
        err);
    type(told.id, "two\n");
    await_text(told.stream, "got two\r\n9 33\r\n");
    close_input(told.id);
    await_execution(told.id, &end);
    CHECK_INT(end.state, EXECUTION_COMPLETED);
    CHECK(strstr(content_of(end.stdout_stream), "ended\r\n"));
}
