/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads that do everything to the same and to different sandboxes at once, with restarts in between. Nothing is checked while
 * they are at it but what must hold for each of them alone; what must hold for all is checked when they are done. Says most under
 * ThreadSanitizer (tools/check).
 */
#include "core_fixture.h"

#include "core/sandbox/registry.h"
#include "core/sandbox/sandbox_object.h"
#include "engine/box.h"

#include <pthread.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8
#define ROUNDS 5
#define STEPS 100 // of each thread in each round
#define PLACES 12
#define PAGE 100
#define FOLLOWED_MS 150

/* What all threads see: sandboxes and commands that may be gone by the time they are used. */
static struct {
    pthread_mutex_t lock;
    char sandboxes[PLACES][ID_TEXT];
    char commands[PLACES][ID_TEXT];
    char streams[PLACES][ID_TEXT];
} board = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct player {
    pthread_t thread;
    unsigned seed;
    unsigned done;   // calls that succeeded
    char fault[300]; // the first; longjmp is the main thread's
};

__attribute__((format(printf, 2, 3))) static void blame(struct player *player, const char *format,
                                                        ...)
{
    va_list args;
    if (player->fault[0])
        return;
    va_start(args, format);
    (void)vsnprintf(player->fault, sizeof player->fault, format, args);
    va_end(args);
}

static unsigned pick(struct player *player, unsigned count)
{
    return (unsigned)rand_r(&player->seed) % count;
}

static void post(char (*list)[ID_TEXT], unsigned place, const char *id, char old[ID_TEXT])
{
    (void)pthread_mutex_lock(&board.lock);
    if (old)
        memcpy(old, list[place], ID_TEXT);
    (void)snprintf(list[place], ID_TEXT, "%s", id ? id : "");
    (void)pthread_mutex_unlock(&board.lock);
}

/* False: nothing is there. */
static bool look(struct player *player, char (*list)[ID_TEXT], char id[ID_TEXT])
{
    unsigned place = pick(player, PLACES);
    (void)pthread_mutex_lock(&board.lock);
    memcpy(id, list[place], ID_TEXT);
    (void)pthread_mutex_unlock(&board.lock);
    return *id != '\0';
}

/* Others may have ended, taken or filled what a call was about; nothing else may go wrong. */
static bool judge(struct player *player, const char *what, int result, const struct error *err)
{
    bool is_fair = error_is(err, ERROR_NOT_FOUND) || error_is(err, ERROR_GONE) ||
                   error_is(err, ERROR_CONFLICT);
    if (result == 0)
        player->done++;
    else if (!is_fair)
        blame(player, "%s: %s", what, err->text);
    return result == 0;
}

static void delete_it(struct player *player, const char *id)
{
    struct error err = {0};
    if (*id)
        (void)judge(player, "delete", sandbox_delete(core->sandboxes, &actor, id, &err), &err);
}

static void create(struct player *player)
{
    static const int64_t idle_ms[] = {60000, 60000, 60000, 250};
    struct sandbox_request request = {.home = "/h",
                                      .usual.directory = "/h",
                                      .max_executions = pick(player, 3),
                                      .idle_timeout_ms = idle_ms[pick(player, 4)]};
    autoclear(sandbox_info) made = {0};
    char old[ID_TEXT];
    struct error err = {0};

    if (!judge(player, "create", sandbox_create(core, &actor, &request, &made, NULL, &err), &err))
        return;
    post(board.sandboxes, pick(player, PLACES), made.id, old);
    delete_it(player, old); // so that there are never more than there are places
}

/* Its own: nobody else knows of it, so all about it is certain. */
static void run_to_the_end(struct player *player)
{
    char script[60], expected[20];
    unsigned number = pick(player, 100);
    const char *argv[] = {"sh", "-c", script, NULL};
    struct execution_request command = {.command.argv = argv};
    struct sandbox_request request = {
        .mode = SANDBOX_ONE_SHOT, .command = &command, .usual.directory = "/h"};
    autoclear(sandbox_info) made = {0};
    autoclear(execution_info) first = {0};
    autoclear(execution_info) end = {0};
    struct error err = {0};

    (void)snprintf(script, sizeof script, "echo %u; exit %u", number, number);
    (void)snprintf(expected, sizeof expected, "%u\n", number);
    if (sandbox_create(core, &actor, &request, &made, &first, &err) < 0) {
        blame(player, "run: %s", err.text);
        return;
    }
    await_execution(first.id, &end);
    autoptr(stream) output = NULL;
    struct stream_progress progress = {0};
    char text[20] = "";
    if (stream_open(core->streams, end.stdout_stream, &output, &err) == 0) {
        stream_progress(output, &progress);
        (void)!pread(stream_fd(output), text, sizeof text - 1, 0);
    }
    if (end.exit.code != number || !progress.is_complete || strcmp(text, expected) != 0)
        blame(player, "a run of '%s' ended with %d and '%s'", script, (int)end.exit.code, text);
    player->done++;
}

static void execute(struct player *player)
{
    static const char *const scripts[] = {"echo x",
                                          "exit 3",
                                          "sleep 600",
                                          "echo a; sleep 0.05; echo b >&2",
                                          "trap '' TERM; sleep 600",
                                          "env"};
    const char *argv[] = {"sh", "-c", scripts[pick(player, 6)], NULL};
    struct execution_request request = {.kind = pick(player, 2) ? EXECUTION_JOB : EXECUTION_COMMAND,
                                        .command.argv = argv,
                                        .command.timeout_ms = pick(player, 4) ? 0 : 100};
    autoclear(execution_info) made = {0};
    char id[ID_TEXT];
    struct error err = {0};

    if (!look(player, board.sandboxes, id) ||
        !judge(player, "execute",
               execution_start(core->executions, &actor, id, &request, &made, &err), &err))
        return;
    unsigned place = pick(player, PLACES);
    post(board.commands, place, made.id, NULL);
    post(board.streams, place, made.stdout_stream, NULL);
}

/* A command that reads what two calls append, while others may end its sandbox. */
static void feed(struct player *player)
{
    const struct stream_request wanted = {.name = "input"};
    autoclear(stream_info) input = {0};
    autoclear(execution_info) made = {0};
    char id[ID_TEXT];
    struct error err = {0};

    if (!look(player, board.sandboxes, id))
        return;
    if (stream_create(core->streams, &actor, &wanted, &input, &err) < 0) {
        blame(player, "make a stream: %s", err.text);
        return;
    }
    const char *argv[] = {"cat", NULL};
    struct execution_request request = {
        .kind = EXECUTION_JOB, .command.argv = argv, .stdin_stream = input.id};
    (void)judge(player, "append", stream_append(core->streams, &actor, input.id, "one ", 4, &err),
                &err);
    if (!judge(player, "execute",
               execution_start(core->executions, &actor, id, &request, &made, &err), &err))
        return;
    post(board.commands, pick(player, PLACES), made.id, NULL);
    (void)judge(player, "append", stream_append(core->streams, &actor, input.id, "two", 3, &err),
                &err);
    if (pick(player, 2)) // else it is read until somebody ends its command
        (void)judge(player, "complete", stream_complete(core->streams, &actor, input.id, &err),
                    &err);
}

static void stop(struct player *player)
{
    autoclear(execution_info) stopped = {0};
    char id[ID_TEXT];
    struct error err = {0};

    if (look(player, board.commands, id))
        (void)judge(player, "stop",
                    execution_stop(core->executions, &actor, id, NULL, pick(player, 2), "asked",
                                   &stopped, &err),
                    &err);
}

static void remove_one(struct player *player)
{
    char id[ID_TEXT];

    if (look(player, board.sandboxes, id))
        delete_it(player, id);
}

static void abandon(struct player *player)
{
    char id[ID_TEXT];

    if (look(player, board.sandboxes, id) && pick(player, 4) == 0)
        sandbox_abandon(core->sandboxes, id);
}

static void set_env(struct player *player)
{
    const struct env_change changes[] = {{"A", pick(player, 2) ? "1" : NULL},
                                         {"B", "some longer value"}};
    autoclear(sandbox_info) changed = {0};
    char id[ID_TEXT];
    struct error err = {0};

    if (look(player, board.sandboxes, id))
        (void)judge(player, "set env",
                    sandbox_set_env(core->sandboxes, &actor, id, changes, 2, &changed, &err), &err);
}

static void read_one(struct player *player)
{
    autoclear(sandbox_info) sandbox = {0};
    autoclear(execution_info) command = {0};
    struct sandbox_status status;
    char id[ID_TEXT];
    struct error err = {0};

    if (look(player, board.sandboxes, id)) {
        (void)judge(player, "get", sandbox_get(core->sandboxes, &actor, id, true, &sandbox, &err),
                    &err);
        (void)judge(player, "status", sandbox_status(core->sandboxes, &actor, id, &status, &err),
                    &err);
    }
    if (look(player, board.commands, id))
        (void)judge(player, "get command",
                    execution_get(core->executions, &actor, id, NULL, &command, &err), &err);
}

static void list_all(struct player *player)
{
    struct sandbox_filter filter = {.page = {.limit = 20}};
    struct execution_filter commands = {.page = {.limit = 20}};
    struct event_filter events = {.page = {.limit = 20}};
    autoclear(sandbox_infos) sandboxes = {0};
    autoclear(execution_infos) executions = {0};
    autoclear(event_infos) happened = {0};
    char id[ID_TEXT];
    struct core_health health;
    struct error err = {0};

    (void)judge(player, "list", sandbox_list(core->sandboxes, &actor, &filter, &sandboxes, &err),
                &err);
    (void)judge(player, "list commands",
                execution_list(core->executions, &actor, &commands, &executions, &err), &err);
    if (look(player, board.sandboxes, id)) {
        events.sandbox_id = id;
        (void)judge(player, "list events",
                    event_list(core->sandboxes, &actor, &events, &happened, &err), &err);
    }
    core_health(core, &health);
}

static void on_box_events(void *data)
{
    _Atomic unsigned *count = data;
    ++*count;
}

/* Follows for a while, and drops it. What was there stays there. */
static void follow(struct player *player)
{
    const struct timespec moment = {.tv_nsec = 5 * 1000 * 1000};
    struct stream_progress before = {0}, now = {0};
    autoptr(stream) stream = NULL;
    _Atomic unsigned count = 0;
    char id[ID_TEXT];
    struct error err = {0};

    if (!look(player, board.streams, id) ||
        !judge(player, "open", stream_open(core->streams, id, &stream, &err), &err))
        return;
    struct watch *watch = hub_watch(core->hub, id, on_box_events, (void *)&count);
    for (int ms = 0; ms < FOLLOWED_MS && !now.is_complete; ms += 5) {
        before = now;
        stream_progress(stream, &now);
        if (now.size_bytes < before.size_bytes)
            blame(player, "stream '%s' has become shorter", id);
        (void)nanosleep(&moment, NULL);
    }
    watch_free(watch);
}

static void *play(void *data)
{
    static void (*const moves[])(struct player *) = {
        create, create,   execute, execute, execute,    run_to_the_end, feed,    stop,
        stop,   read_one, set_env, follow,  remove_one, list_all,       abandon, read_one};
    struct player *player = data;

    for (int i = 0; i < STEPS && !player->fault[0]; i++)
        moves[pick(player, sizeof moves / sizeof *moves)](player);
    return NULL;
}

/* BURROW_TEST_SEED is for those who look for more. */
static unsigned first_seed(void)
{
    const char *given = getenv("BURROW_TEST_SEED");
    return given ? (unsigned)strtoul(given, NULL, 10) : 1;
}

static void play_round(unsigned round)
{
    struct player players[THREADS] = {0};
    unsigned done = 0;

    for (unsigned i = 0; i < THREADS; i++) {
        players[i].seed = first_seed() + 1000 * round + i;
        CHECK_INT(pthread_create(&players[i].thread, NULL, play, &players[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        (void)pthread_join(players[i].thread, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK_STR(players[i].fault, "");
        done += players[i].done;
    }
    CHECK(done > THREADS * STEPS / 4); // they did not only miss each other
}

/* A page of all sandboxes that there ever were, in these states. */
static void list(unsigned states, int64_t offset, struct sandbox_infos *out)
{
    struct sandbox_filter filter = {.states = states, .page = {.offset = offset, .limit = PAGE}};
    struct error err = {0};

    sandbox_infos_clear(out);
    CHECK_OK(sandbox_list(core->sandboxes, &actor, &filter, out, &err), err);
}

static void check_events(const char *sandbox)
{
    struct event_filter filter = {.sandbox_id = sandbox, .page = {.limit = 1000}};
    autoclear(event_infos) events = {0};
    unsigned created = 0, ended = 0, deleted = 0;
    struct error err = {0};

    CHECK_OK(event_list(core->sandboxes, &actor, &filter, &events, &err), err);
    for (size_t i = 0; i < events.count; i++) {
        created += strcmp(events.items[i].type, EVENT_CREATE) == 0;
        ended += strcmp(events.items[i].type, EVENT_TERMINATED) == 0;
        deleted += strcmp(events.items[i].type, EVENT_DESTROY) == 0;
    }
    CHECK_INT(created, 1);
    CHECK(ended <= 1);
    CHECK(deleted <= 1);
    CHECK(ended + deleted >= 1);
}

static void delete_all(void)
{
    autoclear(sandbox_infos) alive = {0};
    struct error err = {0};

    list(SANDBOX_ALIVE, 0, &alive);
    CHECK_INT(alive.count, alive.total);
    for (size_t i = 0; i < alive.count; i++) {
        if (sandbox_delete(core->sandboxes, &actor, alive.items[i].id, &err) < 0)
            CHECK_INT(error_kind(&err), ERROR_NOT_FOUND); // idle just now
    }
}

/* Whatever has ended is counted nowhere any more. */
static void check_memory(void)
{
    struct sandbox **all = NULL;
    size_t count = registry_all(core->sandboxes->registry, &all);

    for (size_t i = 0; i < count; i++) {
        sandbox_settle(all[i]); // ends are shown first and recorded then
        (void)lock_take(&all[i]->record_lock);
        bool is_clean = !all[i]->executions && all[i]->n_executions == 0 && all[i]->n_jobs == 0;
        lock_release(&all[i]->record_lock);
        sandbox_free(all[i]);
        CHECK(is_clean);
    }
    free(all);
    CHECK_INT(registry_count(core->sandboxes->registry), 0);
}

static void check_commands(void)
{
    int64_t total = 1;
    struct error err = {0};

    for (int64_t at = 0; at < total; at += PAGE) {
        struct execution_filter filter = {.page = {.offset = at, .limit = PAGE}};
        autoclear(execution_infos) commands = {0};
        CHECK_OK(execution_list(core->executions, &actor, &filter, &commands, &err), err);
        for (size_t i = 0; i < commands.count; i++)
            CHECK(execution_info_is_over(&commands.items[i]));
        total = commands.total;
    }
    CHECK(total > 0);
}

static void check_rows(void)
{
    autoclear(sandbox_infos) some = {0};
    int64_t total = 1;

    list(SANDBOX_ALIVE, 0, &some);
    CHECK_INT(some.total, 0);
    for (int64_t at = 0; at < total; at += PAGE) {
        list(SANDBOX_OVER, at, &some);
        for (size_t i = 0; i < some.count; i++)
            check_events(some.items[i].id);
        total = some.total;
    }
    check_commands();
}

/* No box without a sandbox, none of the pool's, no trace of either. */
static void check_nothing_is_left(void)
{
    struct engine_options options = {.data_dir = core_data_dir};
    struct engine *engine = NULL;
    unsigned *slots = NULL;
    size_t count = 0;
    struct error err = {0};

    core_free(core);
    core = NULL;
    CHECK_OK(engine_open(&options, &engine, &err), err);
    CHECK_OK(engine_list_staying(engine, &slots, &count, &err), err);
    free(slots);
    engine_free(engine);
    CHECK_INT(count, 0);
    CHECK_OK(engine_detach(core_data_dir, &err), err);
}

CORE_TEST(threads_that_do_everything_at_once_leave_everything_in_order)
{
    memset(board.sandboxes, 0, sizeof board.sandboxes);
    for (unsigned round = 0; round < ROUNDS; round++) {
        play_round(round);
        if (round + 1 < ROUNDS)
            reopen_core(); // with whatever is running
    }
    delete_all();
    check_memory();
    check_rows();
    check_nothing_is_left();
}

/* All that ends or changes one sandbox, at the same moment. */
struct meeting {
    pthread_barrier_t gate;
    char sandbox[ID_TEXT];
    char command[ID_TEXT];
    _Atomic unsigned deleted;
};

static void *meet_delete(void *data)
{
    struct meeting *meeting = data;
    struct error err = {0};

    (void)pthread_barrier_wait(&meeting->gate);
    if (sandbox_delete(core->sandboxes, &actor, meeting->sandbox, &err) == 0)
        meeting->deleted++;
    return NULL;
}

static void *meet_stop(void *data)
{
    struct meeting *meeting = data;
    autoclear(execution_info) stopped = {0};
    struct error err = {0};

    (void)pthread_barrier_wait(&meeting->gate);
    (void)execution_stop(core->executions, &actor, meeting->command, NULL, true, "asked", &stopped,
                         &err);
    return NULL;
}

static void *meet_execute(void *data)
{
    struct meeting *meeting = data;
    const char *argv[] = {"sleep", "600", NULL};
    struct execution_request request = {.kind = EXECUTION_JOB, .command.argv = argv};
    autoclear(execution_info) made = {0};
    struct error err = {0};

    (void)pthread_barrier_wait(&meeting->gate);
    (void)execution_start(core->executions, &actor, meeting->sandbox, &request, &made, &err);
    return NULL;
}

static void *meet_abandon(void *data)
{
    struct meeting *meeting = data;

    (void)pthread_barrier_wait(&meeting->gate);
    sandbox_abandon(core->sandboxes, meeting->sandbox);
    return NULL;
}

CORE_TEST(one_of_those_who_delete_at_once_succeeds)
{
    static void *(*const guests[])(void *) = {meet_delete,  meet_delete,  meet_stop,
                                              meet_execute, meet_abandon, meet_delete};
    enum { GUESTS = sizeof guests / sizeof *guests };
    pthread_t threads[GUESTS];

    for (int i = 0; i < 8; i++) {
        struct meeting meeting = {0};
        autoclear(execution_info) first = {0};
        autoclear(execution_info) end = {0};
        CHECK_INT(pthread_barrier_init(&meeting.gate, NULL, GUESTS), 0);
        make_sandbox(meeting.sandbox);
        start_in(meeting.sandbox, EXECUTION_COMMAND, "sleep 600", &first);
        (void)snprintf(meeting.command, sizeof meeting.command, "%s", first.id);
        for (int guest = 0; guest < GUESTS; guest++)
            CHECK_INT(pthread_create(&threads[guest], NULL, guests[guest], &meeting), 0);
        for (int guest = 0; guest < GUESTS; guest++)
            (void)pthread_join(threads[guest], NULL);
        (void)pthread_barrier_destroy(&meeting.gate);
        CHECK_INT(meeting.deleted, 1);
        await_execution(first.id, &end);
        CHECK_INT(end.state, EXECUTION_CANCELLED);
    }
    check_memory();
    check_rows();
    check_nothing_is_left();
}

CORE_TEST(a_core_closes_while_a_command_reads_its_input)
{
    const struct stream_request wanted = {.name = "input"};
    const char *argv[] = {"cat", NULL};
    autoclear(stream_info) input = {0};
    autoclear(execution_info) made = {0};
    autoclear(execution_info) end = {0};
    char id[ID_TEXT];
    struct error err = {0};

    make_sandbox(id);
    CHECK_OK(stream_create(core->streams, &actor, &wanted, &input, &err), err);
    struct execution_request request = {.command.argv = argv, .stdin_stream = input.id};
    CHECK_OK(execution_start(core->executions, &actor, id, &request, &made, &err), err);
    CHECK_OK(stream_append(core->streams, &actor, input.id, "hello", 5, &err), err);
    reopen_core();
    await_execution(made.id, &end); // what it had not read yet never comes
    CHECK_INT(end.state, EXECUTION_FAILED);
}

CORE_TEST(a_stop_outlives_a_restart)
{
    autoclear(execution_info) job = {0};
    autoclear(execution_info) stopped = {0};
    autoclear(execution_info) end = {0};
    char id[ID_TEXT];
    struct error err = {0};

    make_sandbox(id);
    start_in(id, EXECUTION_JOB, "trap '' TERM; sleep 600 & while :; do wait; done", &job);
    CHECK_OK(execution_stop(core->executions, &actor, job.id, NULL, false, "asked", &stopped, &err),
             err);
    reopen_core();
    await_execution(job.id, &end);
    CHECK_INT(end.state, EXECUTION_CANCELLED);
}
