/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals, input, sizes and signals through the core, and what of them survives a restart. */
#include "core_fixture.h"

#include "core/event/hub.h"
#include "engine/box.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
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
