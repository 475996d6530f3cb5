/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals, input, sizes and signals through the core, and what of them survives a restart. */
#include "core_fixture.h"

#include <signal.h>
#include <string.h>
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
