/* SPDX-License-Identifier: Apache-2.0 */
/* What waits for one sandbox, the database or a disk keeps nobody else: the monitor goes on hearing and ending. */
#include "core_fixture.h"

#include "core/execution/executions.h"
#include "core/sandbox/file.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandbox_box.h"
#include "loop/workers.h"
#include "store/store.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#define UNTIL(name) "while [ ! -e " name " ]; do sleep 0.02; done; "

static void wait_here(void *data)
{
    while (sem_wait(data) < 0)
        ;
}

/* What its command waits for. */
static void put_file(const char *sandbox, const char *name)
{
    const struct sandbox_file file = {.path = name, .data = "", .length = 0};
    size_t written = 0;
    struct error err = {0};

    CHECK_OK(file_write(core->sandboxes, &actor, sandbox, &file, 1, &written, &err), err);
}

/* A thread that has something which others have to wait for, until it is told to stop. */
struct holder {
    struct sandbox *sandbox; // whose box it has
    pthread_t thread;
    sem_t has_begun, is_enough;
};

static void hold(struct holder *holder, void *(*how)(void *holder))
{
    (void)sem_init(&holder->has_begun, 0, 0);
    (void)sem_init(&holder->is_enough, 0, 0);
    CHECK(pthread_create(&holder->thread, NULL, how, holder) == 0);
    wait_here(&holder->has_begun);
}

static void let_go(struct holder *holder)
{
    (void)sem_post(&holder->is_enough);
    (void)pthread_join(holder->thread, NULL);
}

static void *hold_box(void *data)
{
    struct holder *holder = data;
    autobox held = sandbox_share_box(holder->sandbox);

    (void)sem_post(&holder->has_begun);
    wait_here(&holder->is_enough);
    return NULL;
}

/* Nobody else writes meanwhile. */
static void *hold_database(void *data)
{
    struct holder *holder = data;
    autotransaction together = {0};
    struct error err = {0};

    CHECK_OK(store_begin(core->store, STORE_FAST, &together, &err), err);
    (void)sem_post(&holder->has_begun);
    wait_here(&holder->is_enough);
    return NULL;
}

CORE_TEST(a_blocked_database_keeps_neither_ends_nor_output)
{
    char one[ID_TEXT], other[ID_TEXT];
    autoclear(execution_info) ending = {0}, writing = {0}, end = {0};
    autoclear(execution_infos) found = {0};
    struct error err = {0};

    make_sandbox(one);
    make_sandbox(other);
    start_in(one, EXECUTION_COMMAND, UNTIL("go") "exit 7", &ending);
    start_in(other, EXECUTION_COMMAND, UNTIL("go") "echo hello; " UNTIL("stop"), &writing);
    struct holder holder = {0};
    hold(&holder, hold_database);
    put_file(one, "go");
    await_execution(ending.id, &end);
    CHECK_INT(end.exit.code, 7);
    put_file(other, "go");
    await_bytes(writing.stdout_stream, 6);
    let_go(&holder);
    const struct execution_filter filter = {.sandbox_id = one, .page = {.limit = 10}};
    CHECK_OK(execution_list(core->executions, &actor, &filter, &found, &err), err);
    CHECK_INT(found.count, 1); // and it is recorded once that is possible
    CHECK_INT(found.items[0].state, EXECUTION_COMPLETED);
    CHECK_INT(found.items[0].exit.code, 7);
    put_file(other, "stop");
}

CORE_TEST(a_box_in_use_keeps_no_other_sandboxs_output)
{
    char one[ID_TEXT], other[ID_TEXT];
    autoclear(execution_info) stubborn = {0}, writing = {0}, end = {0};

    make_sandbox(one);
    make_sandbox(other);
    start_in(one, EXECUTION_COMMAND, "trap '' TERM; " UNTIL("never"), &stubborn);
    start_in(other, EXECUTION_COMMAND, UNTIL("go") "echo hello; " UNTIL("stop"), &writing);
    autoptr(sandbox) sandbox = registry_find(core->sandboxes->registry, one);
    autoptr(execution) execution = executions_find(core->executions, stubborn.id);
    struct holder holder = {.sandbox = sandbox};
    hold(&holder, hold_box);
    execution->kill_ms = 1; // its patience is over: whoever kills it has to wait for the box
    while (execution->kill_ms != 0)
        (void)usleep(1000);
    put_file(other, "go");
    await_bytes(writing.stdout_stream, 6);
    let_go(&holder);
    await_execution(stubborn.id, &end);
    CHECK_INT(end.exit.signal, 9);
}

/* As sandbox_save_files has it while it copies. */
static void mark_copied(struct sandbox *sandbox, bool is_copied)
{
    autobox held = sandbox_share_box(sandbox);

    sandbox->is_copied = is_copied;
    lock_condition_wake(&sandbox->box_is_free);
}

CORE_TEST(output_and_ends_are_heard_while_files_are_copied)
{
    char id[ID_TEXT];
    autoclear(execution_info) running = {0}, end = {0};

    make_sandbox(id);
    start_in(id, EXECUTION_COMMAND, UNTIL("go") "echo hello; exit 3", &running);
    put_file(id, "go");
    autoptr(sandbox) sandbox = registry_find(core->sandboxes->registry, id);
    mark_copied(sandbox, true);
    await_bytes(running.stdout_stream, 6);
    await_execution(running.id, &end);
    CHECK_INT(end.exit.code, 3);
    mark_copied(sandbox, false);
}

CORE_TEST(large_removals_do_not_keep_sandboxes_from_ending)
{
    const struct sandbox_request request = {
        .mode = SANDBOX_INTERACTIVE, .usual.directory = "/home/me", .idle_timeout_ms = 1};
    autoclear(sandbox_info) made = {0};
    struct error err = {0};
    sem_t removed;

    (void)sem_init(&removed, 0, 0);
    for (int i = 0; i < 16; i++) // more than there are threads for it
        workers_run(core->remover, WORKERS_SLOW, wait_here, &removed);
    CHECK_OK(sandbox_create(core, &actor, &request, &made, NULL, &err), err);
    await_state(made.id, SANDBOX_ENDED);
    for (int i = 0; i < 16; i++)
        (void)sem_post(&removed);
}
