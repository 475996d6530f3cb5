/* SPDX-License-Identifier: Apache-2.0 */
/* Which node this is (src/store/node.c), and what that means: rows of other nodes are left alone. */
#include "base/id.h"
#include "base/mem.h"
#include "fixture.h"
#include "store/chains.h"
#include "store/idempotency.h"
#include "store/snapshots.h"
#include "store/space_counts.h"
#include "store/store_impl.h"
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(a_data_directory_gets_one_identity_for_good)
{
    char first[ID_TEXT];

    fixture_fresh();
    (void)snprintf(first, sizeof first, "%s", store_node(fixture_open()));
    CHECK(id_is_valid(first));
    CHECK_STR(store_node(fixture_open()), first);
    fixture_fresh();
    CHECK(strcmp(store_node(fixture_open()), first) != 0);
}

// What a process of its own calls the node.
static pid_t ask(int out)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct store *store = NULL;
        struct error err = {0};
        const char *node =
            store_open(fixture_directory(), &store, &err) < 0 ? err.text : store_node(store);
        (void)!write(out, node, ID_LENGTH);
        _exit(0);
    }
    return pid;
}

TEST(processes_that_start_at_once_agree_on_it)
{
    pid_t pids[4];
    char said[4][ID_TEXT] = {0};
    int ends[2];

    fixture_fresh();
    CHECK(pipe(ends) == 0);
    for (int i = 0; i < 4; i++)
        pids[i] = ask(ends[1]);
    for (int i = 0; i < 4; i++) {
        CHECK(read(ends[0], said[i], ID_LENGTH) == ID_LENGTH);
        CHECK(waitpid(pids[i], NULL, 0) == pids[i]);
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
    CHECK(id_is_valid(said[0]));
    for (int i = 1; i < 4; i++)
        CHECK_STR(said[i], said[0]);
}

TEST(an_identity_that_is_none_is_refused)
{
    struct store *store = NULL;
    struct error err = {0};

    fixture_fresh();
    autofree char *path = xasprintf("%s/node", fixture_directory());
    FILE *file = fopen(path, "w");
    CHECK(file && fputs("nonsense\n", file) >= 0 && fclose(file) == 0);
    CHECK(store_open(fixture_directory(), &store, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK(strstr(err.text, path));
}

TEST(the_store_knows_what_it_takes_on_the_disk)
{
    struct stat status;

    CHECK(!store_exists(fixture_fresh()));
    struct store *store = fixture_store();
    CHECK(store_exists(fixture_directory()));
    CHECK(stat(fixture_path(), &status) == 0);
    CHECK(store_disk_bytes(store) > (uint64_t)status.st_blocks * 512);
}

// ---- rows of another node ----

#define OTHER "0123456789abcdefghjkmnpqrs"

// One of each kind that ended or expired long ago, and one that is alive.
static void put_rows(struct store *store, const char *node, const char *mark)
{
    struct error err = {0};

    for (int is_over = 0; is_over < 2; is_over++) {
        autofree char *id = xasprintf("%s%d", mark, is_over);
        autofree char *execution_id = xasprintf("%s-execution", id);
        struct sandbox_record sandbox = fixture_sandbox(id);
        struct execution_record execution = fixture_execution(execution_id, id);
        struct stream_record stream = fixture_stream(id);
        sandbox.node = execution.node = stream.node = node;
        sandbox.state = is_over ? SANDBOX_ENDED : SANDBOX_RUNNING;
        sandbox.ended_at = is_over ? NOW : 0;
        sandbox.keep_ms = 1;
        execution.state = is_over ? EXECUTION_COMPLETED : EXECUTION_RUNNING;
        execution.ended_at = is_over ? NOW : 0;
        stream.expires_at = NOW;
        CHECK_OK(store_sandbox_put(store, &sandbox, &err), err);
        CHECK_OK(store_execution_add(store, &execution, &err), err);
        CHECK_OK(store_stream_put(store, &stream, NULL, 0, &err), err);
    }
}

// An execution of a living sandbox that is over, a snapshot that is being built, another on many layers, a layer nobody needs.
static void put_state(struct store *store, const char *node, const char *mark)
{
    struct error err = {0};
    autofree char *alive = xasprintf("%s0", mark), *past = xasprintf("%s-past", mark);
    autofree char *building = xasprintf("%s-building", mark), *ready = xasprintf("%s-ready", mark);
    autofree char *unused = xasprintf("%s-unused", mark), *held = xasprintf("%s-held", mark);
    struct execution_record execution = fixture_execution(past, alive);
    struct snapshot_record snapshot = {.id = building,
                                       .owner.organisation = ORGANISATION,
                                       .node = node,
                                       .name = mark,
                                       .runtime = "base:latest",
                                       .layers = "",
                                       .env = "",
                                       .file_count = SNAPSHOT_NOT_COUNTED,
                                       .created_at = NOW,
                                       .updated_at = NOW};
    struct layer_record layer = {.name = unused, .node = node, .merged_of = "a\nb\n"};

    execution.node = node;
    execution.state = EXECUTION_COMPLETED;
    execution.ended_at = NOW;
    CHECK_OK(store_execution_add(store, &execution, &err), err);
    CHECK_OK(store_snapshot_put(store, &snapshot, &err), err);
    snapshot.id = ready;
    snapshot.state = SNAPSHOT_READY;
    CHECK_OK(store_snapshot_put(store, &snapshot, &err), err);
    CHECK_OK(store_layer_put(store, &layer, &err), err);
    layer.name = held;
    CHECK_OK(store_layer_put(store, &layer, &err), err);
    CHECK_OK(store_layer_use(store, held, "somebody who is no more", &err), err);
    CHECK_OK(store_layer_use(store, held, ready, &err), err);
}

static void claim(struct store *store, const char *key)
{
    struct idempotency_record record = {
        .organisation = ORGANISATION, .realm = "r", .key = key, .created_at = NOW};
    autoidempotency out = {0};
    struct error err = {0};
    bool is_new = false;

    CHECK_OK(store_idempotency_claim(store, &record, &is_new, &out, &err), err);
    CHECK(is_new);
    CHECK_STR(out.node, store_node(store));
}

static void run(struct store *store, const char *text)
{
    struct error err = {0};
    CHECK_OK(store_run_alone(store, STORE_FAST, text, NULL, 0, NULL, &err), err);
}

static void put_both(struct store *store)
{
    put_rows(store, OTHER, "other");
    put_state(store, OTHER, "other");
    claim(store, "other");
    run(store, "UPDATE idempotency SET node = '" OTHER "'");
    put_rows(store, NULL, "own");
    put_state(store, NULL, "own");
    claim(store, "own");
}

TEST(what_a_start_looks_for_is_of_this_node)
{
    struct store *store = fixture_store();
    autosandboxes alive = {0};
    autoexecutions open = {0};
    autolayers unused = {0}, all = {0};
    autolayer merged = {0};
    autosnapshots building = {0};
    struct snapshot_filter filter = {
        .is_here = true, .states = snapshot_in(SNAPSHOT_BUILDING), .page = {.limit = 10}};
    struct error err = {0};

    put_both(store);
    CHECK_OK(store_sandbox_list_alive(store, &alive, &err), err);
    CHECK_INT(alive.count, 1);
    CHECK_STR(alive.rows[0].id, "own0");
    CHECK_STR(alive.rows[0].node, store_node(store));
    CHECK_OK(store_execution_list_open(store, &open, &err), err);
    CHECK_INT(open.count, 1);
    CHECK_STR(open.rows[0].id, "own0-execution");
    CHECK_OK(store_layer_list(store, true, &unused, &err), err);
    CHECK_INT(unused.count, 1);
    CHECK_STR(unused.rows[0].name, "own-unused");
    CHECK_OK(store_layer_list(store, false, &all, &err), err);
    CHECK_INT(all.count, 2);
    CHECK_OK(store_chain_find(store, "a\nb\n", &merged, &err), err);
    CHECK_STR(merged.node, store_node(store));
    CHECK_OK(store_snapshot_list(store, &filter, &building, &err), err);
    CHECK_INT(building.count, 1);
    CHECK_STR(building.rows[0].id, "own-building");
}

TEST(what_is_done_now_and_then_is_about_this_node)
{
    struct store *store = fixture_store();
    autostreams expired = {0};
    autochains long_ones = {0}, uncounted = {0};
    struct store_space space;
    struct error err = {0};

    put_both(store);
    CHECK_OK(store_stream_list_expired(store, NOW + 1, 10, &expired, &err), err);
    CHECK_INT(expired.count, 2);
    CHECK_STR(expired.rows[0].id, "own0");
    CHECK_OK(store_chain_list_long(store, 0, &long_ones, &err), err);
    CHECK_INT(long_ones.count, 1);
    CHECK_STR(long_ones.ids[0], "own-ready");
    CHECK_OK(store_chain_list_uncounted(store, NULL, &uncounted, &err), err);
    CHECK_INT(uncounted.count, 1);
    CHECK_STR(uncounted.ids[0], "own-ready");
    CHECK_OK(store_space_get(store, &space, &err), err);
    CHECK_INT(space.sandboxes, 1);
    CHECK_INT(space.streams, 2);
    CHECK_INT(space.snapshots, 1);
    CHECK_INT(space.layers[LAYER_FOR_SNAPSHOTS] + space.layers[LAYER_FOR_NOBODY], 2);
}

#define ROWS_OF(where)                                                                             \
    "SELECT (SELECT count(*) FROM sandboxes WHERE node " where ") + "                              \
    "(SELECT count(*) FROM executions WHERE node " where ") + "                                    \
    "(SELECT count(*) FROM streams WHERE node " where ") + "                                       \
    "(SELECT count(*) FROM snapshots WHERE node " where ") + "                                     \
    "(SELECT count(*) FROM layers WHERE node " where ") + "                                        \
    "(SELECT count(*) FROM idempotency WHERE node " where ") + "                                   \
    "(SELECT count(*) FROM layer_uses WHERE layer IN (SELECT name FROM layers WHERE node " where   \
    "))"

TEST(nothing_of_another_node_is_forgotten_or_given_back)
{
    struct store *store = fixture_store();
    int64_t removed = 0, day = 86400000;
    struct error err = {0};

    put_both(store);
    run(store, "DELETE FROM streams"); // else nothing would be forgotten
    int64_t before = fixture_number(store, ROWS_OF("= '" OTHER "'"));
    int64_t own = fixture_number(store, ROWS_OF("<> '" OTHER "'"));
    CHECK(before > 5 && own == before);
    CHECK_OK(store_execution_purge(store, NOW + day, 100, &removed, &err), err);
    CHECK_INT(removed, 1);
    CHECK_OK(store_sandbox_purge(store, NOW + day, 1, 100, &removed, &err), err);
    CHECK_INT(removed, 1);
    CHECK_OK(store_layer_forget_users(store, &err), err);
    CHECK_OK(store_idempotency_release_all(store, &removed, &err), err);
    CHECK_INT(removed, 1);
    claim(store, "again");
    CHECK_OK(store_idempotency_purge(store, NOW + day, 100, 100, &removed, &err), err);
    CHECK_INT(removed, 1);
    CHECK_INT(fixture_number(store, ROWS_OF("= '" OTHER "'")), before);
    CHECK(fixture_number(store, ROWS_OF("<> '" OTHER "'")) < own);
}

TEST(rows_from_before_there_were_nodes_are_this_ones)
{
    struct embedded_file first[] = {
        store_migrations[0], store_migrations[1], store_migrations[2], {0}};
    autoptr(store) old = NULL;
    struct error err = {0};

    fixture_fresh();
    CHECK_OK(store_open_bare(fixture_directory(), &old, &err), err);
    CHECK_OK(store_migrate(old, first, &err), err);
    run(old, "INSERT INTO layers (name, size_bytes, created_at) VALUES ('l', 1, 1)");
    store_free(take(old));
    struct store *store = fixture_open();
    autolayers all = {0};
    CHECK_OK(store_layer_list(store, false, &all, &err), err);
    CHECK_INT(all.count, 1);
    CHECK_STR(all.rows[0].node, store_node(store));
}
