/* SPDX-License-Identifier: Apache-2.0 */
/* The core over a store that others use too: rows of another node, and writers that are in the way. Needs root. */
#include "busy.h"
#include "core/core.h"
#include "core/sandbox/sandboxes.h"
#include "core/stream/streams.h"
#include "engine/box.h"
#include "store/store.h"
#include "state_fixture.h"
#include "store/checkpoints.h"
#include "store/events.h"
#include "store/idempotency.h"

#define OTHER "0123456789abcdefghjkmnpqrs"

static void put_row_of(const char *node, enum sandbox_state state, const char *sandbox_id,
                       const char *execution_id, const char *stream_id)
{
    const char *const no_env[] = {NULL}, *const argv[] = {"true", NULL};
    struct sandbox_record sandbox = {.id = sandbox_id,
                                     .node = node,
                                     .owner.organisation = actor.organisation,
                                     .runtime = "host:latest",
                                     .command.env = no_env,
                                     .state = state,
                                     .ended_at = state == SANDBOX_ENDED,
                                     .exit_code = NO_EXIT_CODE,
                                     .box_slot = 1,
                                     .scratch = "box-of-another-node",
                                     .idle_timeout_ms = 1,
                                     .active_at = 1,
                                     .created_at = 1,
                                     .updated_at = 1};
    struct execution_record execution = {.id = execution_id,
                                         .node = node,
                                         .sandbox_id = sandbox_id,
                                         .owner = sandbox.owner,
                                         .command.argv = argv,
                                         .command.timeout_ms = 1,
                                         .stdout_stream = stream_id,
                                         .state = EXECUTION_RUNNING,
                                         .exit.code = NO_EXIT_CODE,
                                         .created_at = 1,
                                         .updated_at = 1};
    struct stream_record stream = {.id = stream_id,
                                   .node = node,
                                   .sandbox_id = sandbox_id,
                                   .execution_id = execution_id,
                                   .owner = sandbox.owner,
                                   .kind = STREAM_STDOUT,
                                   .name = "stdout",
                                   .file = stream_id,
                                   .expires_at = 1,
                                   .created_at = 1,
                                   .updated_at = 1};
    struct error err = {0};

    CHECK_OK(store_sandbox_put(core->store, &sandbox, &err), err);
    CHECK_OK(store_execution_add(core->store, &execution, &err), err);
    CHECK_OK(store_stream_put(core->store, &stream, NULL, 0, &err), err);
}

static void put_other(const char *sandbox_id, const char *execution_id, const char *stream_id)
{
    struct layer_record layer = {.name = "layer-of-another-node", .node = OTHER};
    struct error err = {0};

    put_row_of(OTHER, SANDBOX_RUNNING, sandbox_id, execution_id, stream_id);
    CHECK_OK(store_layer_put(core->store, &layer, &err), err);
}

CORE_TEST(a_start_leaves_rows_of_another_node_alone)
{
    char own[ID_TEXT], id[ID_TEXT], execution_id[ID_TEXT], stream_id[ID_TEXT];
    autosandbox sandbox = {0}, mine = {0};
    autoexecution execution = {0};
    autostream stream = {0};
    struct error err = {0};
    unsigned removed = 0;

    make_sandbox(own);
    put_other(id_make(id), id_make(execution_id), id_make(stream_id));
    reopen_core();
    CHECK_OK(streams_purge(core->streams, (int64_t)1 << 60, 100, &removed, &err), err);
    CHECK_OK(store_sandbox_get(core->store, id, &sandbox, &err), err);
    CHECK_INT(sandbox.state, SANDBOX_RUNNING);
    CHECK_INT(sandbox.box_slot, 1);
    CHECK_INT(sandbox.updated_at, 1);
    CHECK_STR(sandbox.node, OTHER);
    CHECK_OK(store_execution_get(core->store, execution_id, &execution, &err), err);
    CHECK_INT(execution.state, EXECUTION_RUNNING);
    CHECK_INT(execution.updated_at, 1);
    CHECK_OK(store_stream_get(core->store, stream_id, &stream, &err), err);
    CHECK_INT(stream.state, STREAM_OPEN);
    CHECK(store_layer_use(core->store, "layer-of-another-node", "me", &err) == 0); // still there
    CHECK_OK(store_sandbox_get(core->store, own, &mine, &err), err);
    CHECK_STR(mine.node, store_node(core->store));
    CHECK_STR(shell_in(own, "echo alive"), "alive\n");
}

/* As a crash leaves it between the end of a one-shot sandbox and that of its jobs. */
CORE_TEST(a_start_ends_executions_whose_sandbox_is_over)
{
    char id[ID_TEXT], execution_id[ID_TEXT], stream_id[ID_TEXT];
    autosandbox sandbox = {0};
    autoexecution execution = {0};
    autostream stream = {0};
    struct error err = {0};

    put_row_of(NULL, SANDBOX_ENDED, id_make(id), id_make(execution_id), id_make(stream_id));
    reopen_core();
    CHECK_OK(store_execution_get(core->store, execution_id, &execution, &err), err);
    CHECK_INT(execution.state, EXECUTION_CANCELLED);
    CHECK(execution.ended_at > 1);
    CHECK_OK(store_stream_get(core->store, stream_id, &stream, &err), err);
    CHECK_INT(stream.state, STREAM_COMPLETE);
    CHECK_OK(store_sandbox_get(core->store, id, &sandbox, &err), err);
    CHECK_INT(sandbox.state, SANDBOX_ENDED);
}

CORE_TEST(another_nodes_sandbox_is_not_ended_from_here)
{
    char id[ID_TEXT], execution_id[ID_TEXT], stream_id[ID_TEXT];
    autosandbox sandbox = {0};
    struct error err = {0};

    put_other(id_make(id), id_make(execution_id), id_make(stream_id));
    CHECK(sandbox_delete(core->sandboxes, &actor, id, &err) < 0);
    CHECK_OK(store_sandbox_get(core->store, id, &sandbox, &err), err);
    CHECK_INT(sandbox.state, SANDBOX_RUNNING);
}

// Numbers without gaps and doubles: what was rolled back left nothing.
static void check_events(const char *id)
{
    struct event_filter filter = {.sandbox_id = id, .page = {.limit = 100}};
    autoevents list = {0};
    struct error err = {0};

    CHECK_OK(store_event_list(core->store, &filter, &list, &err), err);
    CHECK(list.count > 0);
    for (size_t i = 0; i < list.count; i++)
        CHECK_INT(list.rows[i].number, (long long)i + 1);
}

CORE_TEST(a_life_goes_on_with_others_in_the_way)
{
    char id[ID_TEXT], snapshot[ID_TEXT], copy[ID_TEXT], path[300];
    autoclear(sandbox_info) once = {0};
    autosandbox found = {0};
    autoclear(execution_info) ran = {0}, ended = {0};
    struct error err = {0};

    (void)snprintf(path, sizeof path, "%s/burrow.db", core_data_dir);
    busy_watch(path, "events");
    busy_watch(path, "layer_uses");
    busy_every(5); // more than any transaction asks for
    make_sandbox(id);
    for (int i = 0; i < 3; i++)
        CHECK_STR(shell_in(id, "echo again | tee file"), "again\n");
    keep_checkpoint(id, "here");
    keep_snapshot(id, "kept", snapshot);
    make_sandbox_from(snapshot, copy);
    CHECK_STR(shell_in(copy, "cat file"), "again\n");
    run_once("echo once", &once, &ran);
    await_execution(ran.id, &ended);
    CHECK_STR(content_of(ended.stdout_stream), "once\n");
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, id, &err), err);
    CHECK_OK(store_sandbox_get(core->store, id, &found, &err), err);
    CHECK_INT(found.state, SANDBOX_DELETED);
    CHECK(busy_failed() > 3);
    busy_every(0);
    check_events(id);
    check_events(copy);
}
