/* SPDX-License-Identifier: Apache-2.0 */
/* burrow watch: a local directory and one of a sandbox kept in step, until Ctrl-C. */
#include "cli/commands.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cli/endpoint.h"
#include "cli/exit.h"
#include "cli/listing.h"
#include "cli/say.h"
#include "cli/watch_local.h"
#include "cli/watch_sync.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACE "/workspace"
#define MOST_BYTES ((uint64_t)4 << 30)
#define CALM_MS 100        // without a change, before both are brought in step
#define BUSY_MS 2000       // so long after the first change they are, calm or not
#define AGAIN_MS 1000      // between tries to reach the server, and to read a file that changes
#define RECORDS_AT_ONCE 64 // until it is looked for Ctrl-C

struct watching {
    struct sync sync;
    struct watch_local *local;
    struct burrow_stream *stream; // what happens there; NULL: not connected
    bool is_over;
    bool is_lost;           // and it was said
    uint64_t connect_at_ms; // not before
    uint64_t due_since_ms;  // 0: nothing is due
    uint64_t again_at_ms;   // when what changed while it was read is looked at; 0: nothing did
    uint64_t n_told;        // changes until it was said last that both are in step
};

static void watching_clear(struct watching *watching)
{
    watch_local_free(watching->local);
    burrow_stream_close(watching->stream);
    sync_clear(&watching->sync);
    closep(&watching->sync.root);
}

static bool leaves_out(void *context, const char *path)
{
    const struct watching *watching = context;

    return sync_ignores(&watching->sync, path);
}

static void on_path(void *context, const char *path)
{
    struct watching *watching = context;

    sync_touch(&watching->sync, SYNC_HERE, path);
}

// ---- the sandbox's stream ----

static int fail_ended(struct burrow_error *err)
{
    return say_fail(err, BURROW_BROKEN, "the server ended the connection");
}

static int connect_stream(struct watching *watching, struct burrow_error *err)
{
    const struct sync *sync = &watching->sync;
    autofree char *path = burrow_path("/sandboxes/%s/files/watch?recursive=true&path=%s",
                                      sync->sandbox, sync->path, NULL);
    const struct burrow_value *record;

    if (burrow_stream_open(sync->client, "GET", path, "application/x-ndjson", NULL,
                           &watching->stream, err) < 0)
        return -1;
    int got = burrow_stream_next(watching->stream, &record, err); // "started"
    return got == 0 ? fail_ended(err) : got == 1 ? 0 : -1;
}

/* Whether there is one that is not left out. */
static bool touch(struct watching *watching, const struct burrow_value *data, const char *name)
{
    const char *path = burrow_text(burrow_get(data, name));

    if (!path || sync_ignores(&watching->sync, path))
        return false;
    sync_touch(&watching->sync, SYNC_THERE, path);
    return true;
}

static int take_record(struct watching *watching, const struct burrow_value *record,
                       struct burrow_error *err)
{
    const char *event = burrow_text(burrow_get(record, "event"));
    const struct burrow_value *data = burrow_get(record, "data");
    const char *kind = burrow_text(burrow_get(data, "kind"));
    bool is_tree = kind && strcmp(kind, "directory") == 0;

    if (!event || strcmp(event, "keepAlive") == 0)
        return 0;
    if (strcmp(event, "ended") == 0) {
        const char *why = burrow_text(burrow_get(data, "detail"));
        return say_fail(err, BURROW_BROKEN, "%s", why ? why : "the sandbox's directory is gone");
    }
    bool is_ours = touch(watching, data, "path");
    is_ours |= touch(watching, data, "from");
    is_ours |= touch(watching, data, "to");
    bool is_odd = burrow_get(data, "pathBase64") || burrow_get(data, "fromBase64") ||
                  burrow_get(data, "toBase64");
    // what a directory brought along or took with it is not told
    if (strcmp(event, "overflow") == 0 || is_odd ||
        (is_ours && is_tree && strcmp(event, "changed") != 0))
        watching->sync.is_whole[SYNC_THERE] = true;
    return 0;
}

static int read_stream(struct watching *watching, struct burrow_error *err)
{
    const struct burrow_value *record;
    int got = 1;

    for (unsigned i = 0; i < RECORDS_AT_ONCE && got == 1; i++) {
        got = burrow_stream_next_now(watching->stream, &record, err);
        if (got == 1 && take_record(watching, record, err) < 0)
            return -1;
    }
    if (got == 0)
        return fail_ended(err);
    return got < 0 ? -1 : 0;
}

/* Whether trying again can help: the server is away for a while. */
static bool is_passing(const struct burrow_error *err)
{
    return err->kind == BURROW_UNREACHABLE || err->kind == BURROW_BROKEN ||
           err->kind == BURROW_TIMEOUT || err->status == 503;
}

static int lose(struct watching *watching, struct burrow_error *err)
{
    if (!is_passing(err))
        return -1;
    if (!watching->is_lost)
        say_note("%s; trying again", err->text);
    watching->is_lost = true;
    watching->connect_at_ms = clock_monotonic_ms() + AGAIN_MS;
    burrow_stream_close(take(watching->stream));
    return 0;
}

// ---- the loop ----

/* What happened in the meantime is not told: everything is looked at. */
static int reconnect(struct watching *watching, struct burrow_error *err)
{
    if (connect_stream(watching, err) < 0)
        return lose(watching, err);
    if (watching->is_lost)
        say_note("connected again");
    watching->is_lost = false;
    watching->sync.is_whole[SYNC_HERE] = watching->sync.is_whole[SYNC_THERE] = true;
    return 0;
}

static int wait_for(struct watching *watching, int timeout_ms, bool *has_events,
                    struct burrow_error *err)
{
    struct pollfd fds[] = {
        {.fd = endpoint_cancel_fd(), .events = POLLIN},
        {.fd = watch_local_fd(watching->local), .events = POLLIN},
        {.fd = watching->stream ? burrow_stream_fd(watching->stream) : -1, .events = POLLIN},
    };
    bool is_whole = false;

    if (watching->stream && burrow_stream_is_ready(watching->stream))
        timeout_ms = 0;
    *has_events = poll(fds, ARRAY_SIZE(fds), timeout_ms) > 0;
    watching->is_over |= fds[0].revents != 0;
    if (fds[1].revents && watch_local_read(watching->local, on_path, &is_whole, err) < 0)
        return -1;
    watching->sync.is_whole[SYNC_HERE] |= is_whole;
    if (watching->stream && read_stream(watching, err) < 0)
        return lose(watching, err);
    return 0;
}

static void tell_in_step(struct watching *watching)
{
    uint64_t n_changes = watching->sync.n_sent + watching->sync.n_taken;

    if (n_changes == watching->n_told || !sync_is_done(&watching->sync))
        return;
    watching->n_told = n_changes;
    if (!watching->sync.is_quiet)
        say_note("in step");
}

/* What changes without a pause is read once in a while, however much else there is to do. */
static void look_again(struct watching *watching, uint64_t now)
{
    if (!sync_waits(&watching->sync)) {
        watching->again_at_ms = 0;
    } else if (!watching->again_at_ms) {
        watching->again_at_ms = now + AGAIN_MS;
    } else if (now >= watching->again_at_ms) {
        watching->again_at_ms = 0;
        sync_look_again(&watching->sync);
    }
}

static int time_to_wait(const struct watching *watching, bool is_due, uint64_t now)
{
    if (is_due)
        return CALM_MS;
    if (!watching->stream)
        return watching->connect_at_ms > now ? (int)(watching->connect_at_ms - now) : 0;
    return watching->again_at_ms ? (int)(watching->again_at_ms - now) : -1;
}

/* Changes come in bursts: both are brought in step when there was none for a moment, or they do not end. */
static int step(struct watching *watching, struct burrow_error *err)
{
    bool has_events = false;

    bool is_time = clock_monotonic_ms() >= watching->connect_at_ms;
    if (!watching->stream && is_time && reconnect(watching, err) < 0)
        return -1;
    uint64_t now = clock_monotonic_ms();
    look_again(watching, now);
    bool is_due = watching->stream && sync_is_due(&watching->sync);
    watching->due_since_ms = !is_due ? 0 : watching->due_since_ms ? watching->due_since_ms : now;
    bool is_late = is_due && now - watching->due_since_ms >= BUSY_MS;
    if (wait_for(watching, time_to_wait(watching, is_due, now), &has_events, err) < 0)
        return -1;
    if (watching->is_over || (has_events && !is_late) || !is_due || !watching->stream)
        return 0;
    watching->due_since_ms = 0;
    if (sync_run(&watching->sync, err) < 0)
        return lose(watching, err);
    tell_in_step(watching);
    return 0;
}

static int open_all(struct watching *watching, const char *directory, struct burrow_error *err)
{
    watching->sync.root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (watching->sync.root < 0)
        return say_fail_sys(err, "open the directory '%s'", directory);
    if (burrow_directory_make(watching->sync.client, watching->sync.sandbox, watching->sync.path,
                              true, err) < 0)
        return -1;
    return watch_local_new(watching->sync.root, leaves_out, watching, &watching->local, err);
}

static int watch(struct invocation *invocation, struct burrow_error *err)
{
    const char *place = invocation->operands[1], *colon = strchr(place, ':');
    autofree char *sandbox = xstrndup(place, colon ? (size_t)(colon - place) : strlen(place));
    autofree char *path = xstrdup(colon && colon[1] ? colon + 1 : PLACE);
    autoclear(watching) watching = {
        .sync = {.client = invocation->client,
                 .sandbox = sandbox,
                 .path = path,
                 .root = -1,
                 .ignore = &invocation->ignore,
                 .has_git = invocation->has_git,
                 .is_quiet = invocation->is_quiet,
                 .most_bytes =
                     invocation->most_bytes == OPTION_UNSET ? MOST_BYTES : invocation->most_bytes},
    };

    if (*path != '/')
        return say_fail(err, BURROW_INVALID, "'%s' must be an absolute path in the sandbox", path);
    for (size_t length = strlen(path); length > 1 && path[length - 1] == '/';)
        path[--length] = '\0';
    if (open_all(&watching, invocation->operands[0], err) < 0)
        return -1;
    while (!watching.is_over) {
        if (step(&watching, err) < 0 && err->kind != BURROW_CANCELLED)
            return -1;
        watching.is_over |= err->kind == BURROW_CANCELLED; // Ctrl-C, in the middle of something
    }
    say_note("stopped; %llu sent, %llu taken, %llu conflicts",
             (unsigned long long)watching.sync.n_sent, (unsigned long long)watching.sync.n_taken,
             (unsigned long long)watching.sync.n_conflicts);
    return 0;
}

static const struct option_row watch_rows[] = {
    OPTION("ignore", 'i', OPTION_LIST, ignore, "PATTERN",
           "leave out names or paths like this: node_modules, '*.o' (repeatable)"),
    OPTION("git", 0, OPTION_FLAG, has_git, NULL,
           "take '.git' in as well; your own git obeys what the sandbox writes there"),
    OPTION("limit", 0, OPTION_SIZE, most_bytes, "SIZE",
           "the most that is taken from the sandbox (default 4Gi)"),
    OPTION("quiet", 'q', OPTION_FLAG, is_quiet, NULL, "say nothing of each change"),
    {0},
};
static const char *const watch_examples[] = {
    "$ burrow watch . work", "$ burrow watch ./site work:/srv/site -i node_modules", NULL};

const struct cli_command watch_commands[] = {
    {"", "watch", "DIR SANDBOX[:PATH]", "keep a local directory and a sandbox in step",
     "What changes on one side, comes or goes, does so on the other, until Ctrl-C; PATH is\n"
     "/workspace where none is named. At the start what only one side has goes to the other. "
     "Where\n"
     "both changed the same file, yours stays and goes there, and the sandbox's is kept beside it "
     "as\n"
     "NAME" SYNC_CONFLICT ", the next one as NAME" SYNC_CONFLICT
     "-2; what was changed wins over what\n"
     "was removed, and a directory goes only when nothing is in it any more. When the server goes "
     "away\n"
     "it is tried again, and then everything is compared. Nothing is written outside DIR, and\n"
     "everything in '.git' is left out without --git: programs of yours trust what is there.",
     watch_rows, watch_examples, COMMAND_SERVER | COMMAND_NO_JSON, watch},
    {0},
};
