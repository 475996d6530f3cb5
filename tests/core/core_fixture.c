/* SPDX-License-Identifier: Apache-2.0 */
/* See core_fixture.h. */
#include "core_fixture.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/lock.h"
#include "core/event/hub.h"
#include "engine/box.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include <time.h>

#define PATIENCE_MS 60000

struct core *core;
struct actor actor;
char core_data_dir[200];

static void clean_up(void)
{
    struct error err = {0};
    if (!core_data_dir[0])
        return;
    core_free(core);
    core = NULL;
    // Whatever still lives is ended by an engine of its own.
    struct engine_options options = {.data_dir = core_data_dir};
    struct engine *engine = NULL;
    unsigned *slots = NULL;
    size_t count = 0;
    if (engine_open(&options, &engine, &err) == 0 &&
        engine_list_staying(engine, &slots, &count, &err) == 0) {
        for (size_t i = 0; i < count; i++) {
            struct box *box = NULL;
            if (box_adopt(engine, slots[i], NULL, &box, &err) == 0)
                (void)box_end(box, &err);
            box_free(box);
        }
    }
    free(slots);
    engine_free(engine);
    // Boxes of a core that was killed may still be ending.
    int result = -1;
    for (int i = 0; result < 0 && i < 200; i++) {
        result = engine_detach(core_data_dir, &err);
        if (result < 0)
            (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    if (result < 0)
        (void)fprintf(stderr, "# %s\n", err.text);
    (void)fd_remove_tree(AT_FDCWD, core_data_dir, &err);
    core_data_dir[0] = '\0';
}

static void open_core(void)
{
    struct core_settings settings = core_settings_default;
    struct error err = {0};

    settings.data_dir = core_data_dir;
    settings.default_runtime = "host:latest";
    settings.spare_one_shot = 2;
    settings.spare_kept = 1;
    settings.archive_program = getenv("BURROW_ARCHIVE");
    CHECK_OK(core_open(&settings, &core, &err), err);
    accounts_local_actor(core->accounts, &actor);
}

void begin_core_test(void)
{
    static bool is_first = true;
    const char *base = getenv("BURROW_TEST_DIR");

    if (geteuid() != 0)
        SKIP("sandboxes need root");
    clean_up();
    if (is_first) {
        (void)atexit(clean_up);
        (void)signal(SIGPIPE, SIG_IGN);
        is_first = false;
    }
    (void)snprintf(core_data_dir, sizeof core_data_dir, "%s/core-XXXXXX", base ? base : "/tmp");
    CHECK(mkdtemp(core_data_dir) != NULL);
    open_core();
}

void end_core_test(void)
{
    clean_up();
}

void open_core_again(void)
{
    open_core();
}

void reopen_core(void)
{
    core_free(core);
    core = NULL;
    open_core();
}

static struct sandbox_request plain_request(void)
{
    return (struct sandbox_request){
        .mode = SANDBOX_INTERACTIVE,
        .home = "/home/me",
        .usual.directory = "/home/me",
        .max_executions = 1,
        .idle_timeout_ms = SANDBOX_DEFAULT,
        .usual.timeout_ms = SANDBOX_DEFAULT,
        .paused_timeout_ms = SANDBOX_DEFAULT,
    };
}

void make_sandbox(char id[ID_TEXT])
{
    struct sandbox_request request = plain_request();
    autoclear(sandbox_info) made = {0};
    struct error err = {0};

    CHECK_OK(sandbox_create(core, &actor, &request, &made, NULL, &err), err);
    (void)snprintf(id, ID_TEXT, "%s", made.id);
}

void run_once(const char *script, struct sandbox_info *sandbox, struct execution_info *execution)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct execution_request command = {.command.argv = argv,
                                        .command.timeout_ms = EXECUTION_DEFAULT};
    struct sandbox_request request = plain_request();
    struct error err = {0};

    request.mode = SANDBOX_ONE_SHOT;
    request.command = &command;
    CHECK_OK(sandbox_create(core, &actor, &request, sandbox, execution, &err), err);
}

void start_in(const char *sandbox, enum execution_kind kind, const char *script,
              struct execution_info *out)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct execution_request request = {
        .kind = kind, .command.argv = argv, .command.timeout_ms = EXECUTION_DEFAULT};
    struct error err = {0};

    CHECK_OK(execution_start(core->executions, &actor, sandbox, &request, out, &err), err);
}

struct news {
    struct lock lock;
    struct lock_condition has_come;
    unsigned count;
};

static void on_news(void *data)
{
    struct news *news = data;

    autolock(&news->lock);
    news->count++;
    lock_condition_wake(&news->has_come);
}

/* False: none has come in time. */
static bool await_news(struct news *news, unsigned *seen, uint64_t until_ms)
{
    autolock(&news->lock);
    while (news->count == *seen) {
        if (!lock_condition_wait(&news->has_come, &news->lock, until_ms))
            return false;
    }
    *seen = news->count;
    return true;
}

/* Looks whenever there is news of `id`, until it is so. */
static bool await(const char *id, bool (*is_so)(void *data), void *data)
{
    uint64_t until_ms = clock_monotonic_ms() + PATIENCE_MS;
    struct news news = {0};
    unsigned seen = 0;
    bool is_done;

    lock_init(&news.lock, LOCK_FRONT);
    lock_condition_init(&news.has_come);
    struct watch *watch = hub_watch(core->hub, id, on_news, &news);
    while (!(is_done = is_so(data)) && await_news(&news, &seen, until_ms))
        ;
    watch_free(watch);
    lock_condition_clear(&news.has_come);
    lock_clear(&news.lock);
    return is_done;
}

struct waited {
    const char *id;
    enum sandbox_state state;
    struct execution_info execution;
};

static bool has_ended(void *data)
{
    struct waited *waited = data;
    struct error err = {0};
    execution_info_clear(&waited->execution);
    CHECK_OK(execution_get(core->executions, &actor, waited->id, NULL, &waited->execution, &err),
             err);
    return execution_info_is_over(&waited->execution);
}

void await_execution(const char *id, struct execution_info *out)
{
    struct waited waited = {.id = id};
    CHECK(await(id, has_ended, &waited));
    *out = waited.execution;
}

static bool has_state(void *data)
{
    struct waited *waited = data;
    struct sandbox_status status;
    struct error err = {0};
    CHECK_OK(sandbox_status(core->sandboxes, &actor, waited->id, &status, &err), err);
    return status.state == waited->state;
}

void await_state(const char *sandbox, enum sandbox_state state)
{
    struct waited waited = {.id = sandbox, .state = state};
    CHECK(await(sandbox, has_state, &waited));
}

struct growing {
    struct stream *stream;
    uint64_t bytes;
};

static bool has_bytes(void *data)
{
    struct growing *growing = data;
    struct stream_progress progress;

    stream_progress(growing->stream, &progress);
    return progress.size_bytes >= growing->bytes;
}

void await_bytes(const char *id, uint64_t bytes)
{
    autoptr(stream) stream = NULL;
    struct error err = {0};

    CHECK_OK(stream_open(core->streams, id, &stream, &err), err);
    struct growing growing = {stream, bytes};
    CHECK(await(id, has_bytes, &growing));
}

const char *content_of(const char *id)
{
    static char text[1 << 16];
    autoptr(stream) stream = NULL;
    struct stream_progress progress;
    struct error err = {0};

    CHECK_OK(stream_open(core->streams, id, &stream, &err), err);
    stream_progress(stream, &progress);
    CHECK(progress.is_complete);
    ssize_t length = pread(stream_fd(stream), text, sizeof text - 1, 0);
    CHECK(length >= 0);
    text[length] = '\0';
    return text;
}
