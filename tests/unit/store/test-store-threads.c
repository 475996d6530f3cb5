/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads on one store: nothing is lost, nothing happens twice, and lists are always of one
 * moment. */
#include "base/id.h"
#include "base/mem.h"
#include "base/thread.h"
#include "fixture.h"
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8
#define ROUNDS 60

// SQLite is built without ThreadSanitizer, which would take its atomic accesses for races.
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "ignore_noninstrumented_modules=1";
}

struct worker {
    struct store *store;
    pthread_barrier_t *start;
    int number;
    int wins;          // of the sandbox everybody wants
    struct error err;  // of the first call that failed
    const char *where; // NULL: none did
};

static bool note(struct worker *worker, const char *where)
{
    worker->where = where;
    return false;
}

// A sandbox of its own with an execution and events, partly together and partly one by one.
static bool make_own(struct worker *worker, int round)
{
    char id[ID_TEXT], execution_id[ID_TEXT], event_id[ID_TEXT];
    struct sandbox_record sandbox = fixture_sandbox(id_make(id));
    struct execution_record execution = fixture_execution(id_make(execution_id), id);
    struct event_record event = fixture_event(id_make(event_id), id);
    autotransaction together = {0};

    sandbox.mode = round % 10 ? SANDBOX_ONE_SHOT : SANDBOX_INTERACTIVE;
    if (store_begin(worker->store, STORE_FAST, &together, &worker->err) < 0 ||
        store_sandbox_put(worker->store, &sandbox, &worker->err) < 0 ||
        store_execution_add(worker->store, &execution, &worker->err) < 0)
        return note(worker, "make a sandbox");
    if (round % 7 == 0)
        return true; // rolled back
    if (store_commit(&together, &worker->err) < 0 ||
        store_event_add(worker->store, &event, &worker->err) < 0)
        return note(worker, "finish a sandbox");
    return true;
}

// Takes the shared sandbox if it is idle, runs something in it, and lets it go.
static bool want_shared(struct worker *worker)
{
    struct sandbox_record shared = fixture_sandbox("shared");
    char id[ID_TEXT];
    struct execution_record execution = fixture_execution(id_make(id), "shared");

    shared.state = SANDBOX_RUNNING;
    if (store_sandbox_update(worker->store, &shared, SANDBOX_PART_STATE, sandbox_in(SANDBOX_IDLE),
                             &worker->err) < 0)
        return error_is(&worker->err, ERROR_CONFLICT) || note(worker, "take the shared one");
    worker->wins++;
    if (store_execution_add(worker->store, &execution, &worker->err) < 0)
        return note(worker, "run in the shared one");
    shared.state = SANDBOX_IDLE;
    if (store_sandbox_update(worker->store, &shared, SANDBOX_PART_STATE,
                             sandbox_in(SANDBOX_RUNNING), &worker->err) < 0)
        return note(worker, "give the shared one back");
    return true;
}

// The page fits the total, although others write between the two statements.
static bool look(struct worker *worker)
{
    struct sandbox_filter filter = {
        .owner.organisation = ORGANISATION, .is_descending = true, .page = {100, 0}};
    autosandboxes list = {0};

    if (store_sandbox_list(worker->store, &filter, &list, &worker->err) < 0)
        return note(worker, "list");
    if (list.count != (size_t)(list.total < 100 ? list.total : 100))
        return note(worker, "fit the page to the total");
    return true;
}

static void *work(void *data)
{
    struct worker *worker = data;

    pthread_barrier_wait(worker->start);
    for (int round = 0; round < ROUNDS; round++)
        if (!make_own(worker, round) || !want_shared(worker) || !look(worker))
            break;
    return NULL;
}

TEST(eight_threads_write_and_read_at_once)
{
    struct store *store = fixture_store();
    struct sandbox_record shared = fixture_sandbox("shared");
    struct worker workers[THREADS] = {0};
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    struct error err = {0};
    int wins = 0;

    shared.state = SANDBOX_IDLE;
    CHECK_OK(store_sandbox_put(store, &shared, &err), err);
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.store = store, .start = &start, .number = i};
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    for (int i = 0; i < THREADS; i++) {
        if (workers[i].where)
            test_fail(__FILE__, __LINE__, "thread %d could not %s: %s", i, workers[i].where,
                      workers[i].err.text);
        wins += workers[i].wins;
    }
    CHECK(wins > 0);
    int kept = THREADS * (ROUNDS - (ROUNDS + 6) / 7);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM sandboxes"), kept + 1);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM events"), kept);
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM executions"), kept + wins);
    CHECK_INT(fixture_number(store, "SELECT sum(executions) FROM usage"), kept + wins);
    CHECK_INT(fixture_number(store, "SELECT process_count FROM sandboxes WHERE id = 'shared'"),
              wins);
    CHECK_INT(
        fixture_number(store, "SELECT max(number) FROM executions WHERE sandbox_id = 'shared'"),
        wins);
}

static void *claim(void *data)
{
    struct worker *worker = data;

    pthread_barrier_wait(worker->start);
    for (int i = 0; i < 200; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "s%d", i);
        struct sandbox_record sandbox = fixture_sandbox(id);
        sandbox.mode = SANDBOX_ONE_SHOT;
        if (store_sandbox_put(worker->store, &sandbox, &worker->err) == 0)
            worker->wins++;
        else if (!error_is(&worker->err, ERROR_CONFLICT))
            worker->where = "put";
    }
    return NULL;
}

TEST(of_many_who_put_the_same_id_one_wins)
{
    struct store *store = fixture_store();
    struct worker workers[THREADS] = {0};
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    int wins = 0;

    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.store = store, .start = &start};
        CHECK(pthread_create(&threads[i], NULL, claim, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(!workers[i].where);
        wins += workers[i].wins;
    }
    pthread_barrier_destroy(&start);
    CHECK_INT(wins, 200);
}

static void *touch(void *data)
{
    struct worker *worker = data;
    autosandbox got = {0};

    if (store_sandbox_get(worker->store, "shared", &got, &worker->err) < 0)
        worker->where = "get";
    return NULL;
}

static int open_files(void)
{
    autodir dir = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(dir))
        count++;
    return count;
}

TEST(threads_that_end_leave_no_connection_behind)
{
    struct store *store = fixture_store();
    struct sandbox_record shared = fixture_sandbox("shared");
    struct error err = {0};

    CHECK_OK(store_sandbox_put(store, &shared, &err), err);
    int before = 0;
    for (int i = 0; i < 50; i++) {
        struct worker worker = {.store = store};
        if (i == 1)
            before = open_files(); // SQLite puts one aside until the file is closed by all
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, touch, &worker) == 0);
        pthread_join(thread, NULL);
        CHECK(!worker.where);
    }
    CHECK_INT(open_files(), before);
}

struct holder {
    struct worker worker;
    pthread_barrier_t *done;
};

static void *hold(void *data)
{
    struct holder *holder = data;

    touch(&holder->worker);
    pthread_barrier_wait(holder->done);
    pthread_barrier_wait(holder->done);
    return NULL;
}

TEST(a_store_may_be_closed_before_the_threads_that_used_it_end)
{
    struct store *store = fixture_store();
    struct sandbox_record shared = fixture_sandbox("shared");
    pthread_barrier_t done;
    struct holder holder = {.worker = {.store = store}, .done = &done};
    pthread_t thread;
    struct error err = {0};

    CHECK_OK(store_sandbox_put(store, &shared, &err), err);
    pthread_barrier_init(&done, NULL, 2);
    CHECK(pthread_create(&thread, NULL, hold, &holder) == 0);
    pthread_barrier_wait(&done);
    fixture_close();
    pthread_barrier_wait(&done);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&done);
    CHECK(!holder.worker.where);
}

TEST(a_thread_that_runs_a_loop_may_not_wait_for_the_store)
{
    struct store *store = fixture_store();
    int status = 0;

    pid_t child = fork();
    if (child == 0) {
        struct error err = {0};
        autosandbox record = {0};
        (void)freopen("/dev/null", "w", stderr); // what assert says
        thread_mark_loop(true);
        (void)store_sandbox_get(store, "sandbox1", &record, &err);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
