/* SPDX-License-Identifier: Apache-2.0 */
/* A writer killed at any moment: what it was told is kept is there, and nothing is there by halves.
 */
#include "base/id.h"
#include "base/mem.h"
#include "fixture.h"
#include "store/usage.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// One sandbox with its execution and two events, as one; then something of its own.
static int write_one(struct store *store, const char *id, struct error *err)
{
    struct sandbox_record sandbox = fixture_sandbox(id);
    char execution_id[ID_TEXT], first[ID_TEXT], second[ID_TEXT];
    struct execution_record execution = fixture_execution(id_make(execution_id), id);
    struct event_record created = fixture_event(id_make(first), id);
    struct event_record started = fixture_event(id_make(second), id);
    autotransaction together = {0};

    if (store_begin(store, STORE_FAST, &together, err) < 0 ||
        store_sandbox_put(store, &sandbox, err) < 0 ||
        store_execution_add(store, &execution, err) < 0 ||
        store_event_add(store, &created, err) < 0 || store_event_add(store, &started, err) < 0 ||
        store_commit(&together, err) < 0)
        return -1;
    struct usage_sample sample = {
        .sandbox_id = id, .more = {.cpu_ms = 1}, .counted_cpu_ms = 1, .now = NOW};
    return store_usage_add(store, &sample, err);
}

// Writes `count` (or for ever), says each id once it is kept, and waits to be killed.
static void write_many(int out, int count)
{
    struct store *store = NULL;
    struct error err = {0};
    char id[ID_TEXT];

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); // a test that fails leaves nobody who writes for ever
    if (store_open(fixture_directory(), &store, &err) < 0)
        _exit(2);
    for (int i = 0; count == 0 || i < count; i++)
        if (write_one(store, id_make(id), &err) < 0 || write(out, id, ID_LENGTH) != ID_LENGTH)
            _exit(3);
    for (;;)
        (void)pause();
}

// Starts a writer and kills it after `count` answers: somewhere in its next writes, unless it
// `stops` there. *ids: all it has answered.
static void kill_writer(int count, bool stops, char **ids, size_t *n_ids)
{
    int ends[2];
    size_t length = 0, wanted = (size_t)count * ID_LENGTH;
    int status = 0;

    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        write_many(ends[1], stops ? count : 0);
    }
    (void)close(ends[1]);
    *ids = xcalloc(1, 1 << 20);
    ssize_t got = 1;
    bool is_killed = false;
    while (got > 0) {
        got = read(ends[0], *ids + length, (1 << 20) - length);
        length += got > 0 ? (size_t)got : 0;
        if (length >= wanted && !is_killed) {
            (void)kill(pid, SIGKILL);
            is_killed = true; // what is in the pipe was answered too
        }
    }
    (void)close(ends[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    *n_ids = length / ID_LENGTH;
}

static void check_whole(struct store *store)
{
    CHECK_INT(fixture_number(store, "SELECT count(*) = 1 AND max(integrity_check) = 'ok' "
                                    "FROM pragma_integrity_check"),
              1);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM sandboxes WHERE process_count <> 1 OR "
                                    "execution_count <> 1"),
              0);
    int64_t sandboxes = fixture_number(store, "SELECT count(*) FROM sandboxes");
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM executions"), sandboxes);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM events"), 2 * sandboxes);
    CHECK_INT(fixture_number(store, "SELECT coalesce(sum(executions), 0) FROM usage"), sandboxes);
    CHECK_INT(fixture_number(store, "SELECT coalesce(sum(cpu_ms), 0) FROM usage"),
              fixture_number(store, "SELECT coalesce(sum(cpu_ms), 0) FROM sandboxes"));
}

static void check_answered(struct store *store, const char *ids, size_t n_ids)
{
    struct error err = {0};

    for (size_t i = 0; i < n_ids; i++) {
        autofree char *id = xstrndup(ids + i * ID_LENGTH, ID_LENGTH);
        autosandbox got = {0};
        CHECK_OK(store_sandbox_get(store, id, &got, &err), err);
        CHECK_INT(got.cpu_ms, 1);
    }
}

TEST(what_was_answered_survives_a_writer_killed_at_any_point)
{
    int64_t before = 0;

    fixture_store();
    for (int round = 0; round < 30; round++) {
        autofree char *ids = NULL;
        size_t n_ids = 0;
        fixture_close(); // no thread of ours while forking
        kill_writer(1 + (round * 37) % 101, false, &ids, &n_ids);
        struct store *store = fixture_open();
        check_whole(store);
        check_answered(store, ids, n_ids);
        int64_t now = fixture_number(store, "SELECT count(*) FROM sandboxes");
        // At most the one that was being written is there without an answer.
        CHECK(now - before == (int64_t)n_ids || now - before == (int64_t)n_ids + 1);
        before = now;
    }
}

TEST(another_process_that_is_killed_takes_nothing_with_it)
{
    struct store *store = fixture_store();
    autofree char *ids = NULL;
    size_t n_ids = 0;
    struct error err = {0};
    char id[ID_TEXT];

    fixture_close();
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0)
        write_many(ends[1], 0);
    (void)close(ends[1]);
    store = fixture_open();
    for (int i = 0; i < 50; i++) // beside the other process
        CHECK_OK(write_one(store, id_make(id), &err), err);
    ids = xcalloc(1, 1 << 20);
    ssize_t got = read(ends[0], ids, 1 << 20);
    (void)kill(pid, SIGKILL);
    CHECK(waitpid(pid, NULL, 0) == pid);
    (void)close(ends[0]);
    n_ids = got > 0 ? (size_t)got / ID_LENGTH : 0;
    for (int i = 0; i < 50; i++) // its locks are gone with it
        CHECK_OK(write_one(store, id_make(id), &err), err);
    check_whole(store);
    check_answered(store, ids, n_ids);
}

// Copies the database and the first `length` bytes of its log to `into`, as a power cut might leave
// them.
static void cut_short(const char *from, const char *into, off_t length)
{
    autofree char *log = xasprintf("%s-wal", from), *cut = xasprintf("%s-wal", into);
    autofree char *command = xasprintf("cp %s %s && cp %s %s", from, into, log, cut);

    CHECK(system(command) == 0);
    CHECK(truncate(cut, length) == 0);
}

TEST(a_log_cut_short_loses_whole_transactions_only)
{
    autofree char *ids = NULL;
    size_t n_ids = 0;
    struct stat status;

    fixture_store();
    fixture_close();
    // So few that the log is not copied back, which would bring it to the disk first.
    kill_writer(20, true, &ids, &n_ids);
    autofree char *log = xasprintf("%s-wal", fixture_path());
    autofree char *elsewhere = xasprintf("%s/cut", fixture_directory());
    autofree char *copy = xasprintf("%s/burrow.db", elsewhere);
    CHECK(mkdir(elsewhere, 0700) == 0);
    CHECK(stat(log, &status) == 0);
    CHECK(status.st_size > 0);
    int64_t last = INT64_MAX;
    for (int part = 40; part >= 0; part--) {
        struct store *store = NULL;
        struct error err = {0};
        cut_short(fixture_path(), copy, status.st_size * part / 40 - (part % 3) * 7 * (part > 0));
        CHECK_OK(store_open(elsewhere, &store, &err), err);
        check_whole(store);
        int64_t now = fixture_number(store, "SELECT count(*) FROM sandboxes");
        CHECK(now <= last);
        last = now;
        store_free(store);
    }
}
