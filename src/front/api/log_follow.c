/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Followers of logs; see log_follow.h. Everything of one is touched on the loop only, but for what a worker has
 * meanwhile; see follower.h.
 */
#include "front/api/log_follow.h"

#include "base/mem.h"
#include "core/event/hub.h"
#include "core/sandbox/sandbox.h"
#include "front/api/log_answer.h"
#include "web/follower.h"
#include "web/router.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE (32u << 10)        // bytes of output in one turn of a worker
#define BATCH_MAXIMUM (1u << 20) // the same as records

struct log_follow {
    struct follower base;
    enum event_format format;
    char sandbox_id[ID_TEXT];
    enum log_side side;
    bool has_side;
    // On the loop:
    struct loop_timer quiet;
    struct watch *watch;                             // of the sandbox
    struct watch *watches[LOG_FOLLOWED * LOG_SIDES]; // of streams
    char watched[LOG_FOLLOWED * LOG_SIDES][ID_TEXT];
    size_t n_watches;
    bool is_changed;  // something has happened since a worker looked
    bool is_finished; // nothing more will be appended
    // The worker's while it has it:
    struct log_state state;
    struct buffer batch; // records
    bool is_cut, is_over, has_failed;
};

// ---- ids ----

const char *log_state_write(const struct log_state *state, char text[LOG_STATE_TEXT])
{
    size_t used = (size_t)snprintf(text, LOG_STATE_TEXT, "%" PRId64, state->next);

    for (size_t i = 0; i < state->n_open; i++) {
        const struct log_place *place = &state->open[i].place;
        used += (size_t)snprintf(text + used, LOG_STATE_TEXT - used,
                                 ";%" PRId64 ".%" PRIu64 ".%" PRIu64, place->number,
                                 place->offsets[LOG_STDOUT], place->offsets[LOG_STDERR]);
    }
    return text;
}

/* A number, and the mark behind it, or the end of the text; nothing ends with a mark. */
static bool read_number(const char **at, char mark, int64_t *out)
{
    char *end;

    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *out = strtoll(*at, &end, 10);
    if (errno || (*end && (*end != mark || !end[1])))
        return false;
    *at = *end ? end + 1 : end;
    return true;
}

bool log_state_read(const char *text, struct log_state *out)
{
    int64_t offsets[LOG_SIDES];

    *out = (struct log_state){0};
    if (strlen(text) >= LOG_STATE_TEXT || !read_number(&text, ';', &out->next))
        return false;
    while (*text) {
        struct log_place *place = &out->open[out->n_open].place;
        if (out->n_open == LOG_FOLLOWED || !read_number(&text, '.', &place->number) ||
            !read_number(&text, '.', &offsets[0]) || !read_number(&text, ';', &offsets[1]))
            return false;
        place->offsets[LOG_STDOUT] = (uint64_t)offsets[0];
        place->offsets[LOG_STDERR] = (uint64_t)offsets[1];
        out->n_open++;
    }
    return true;
}

// ---- on a worker ----

static int write_record(struct log_follow *follow, const struct log_state *state, const char *event,
                        const struct answer_field *fields, const void *from, struct error *err)
{
    autobuffer data = {0};
    struct json_writer json;
    char id[LOG_STATE_TEXT];

    json_writer_init(&json, &data);
    answer_write(&json, fields, from);
    if (json_writer_finish(&json, err) < 0)
        return -1;
    const struct event_record record = {log_state_write(state, id), event, data.data, data.length};
    return event_format_add(follow->format, &record, &follow->batch, err);
}

/* Only the last one says that all were told: who goes on from an earlier one is told some again, and nothing is left out. */
static int write_pieces(struct log_follow *follow, const struct execution_log *log,
                        const struct log_state *before, struct error *err)
{
    for (size_t i = 0; i < log->count; i++) {
        const struct log_piece_answer answer = log_piece_answer_of(log, &log->pieces[i]);
        bool is_last = i + 1 == log->count;
        if (write_record(follow, is_last ? &follow->state : before,
                         log_side_names[log->pieces[i].side], log_piece_fields, &answer, err) < 0)
            return -1;
    }
    return 0;
}

static int read_log(struct log_follow *follow, const struct log_place *from, bool is_one,
                    struct execution_log *out, struct error *err)
{
    const struct log_request request = {
        .sandbox_id = follow->sandbox_id,
        .from = *from,
        .side = follow->has_side ? &follow->side : NULL,
        .maximum = PIECE,
        .is_one = is_one,
        .max_open = is_one ? 0 : LOG_FOLLOWED - follow->state.n_open,
    };

    return execution_log_read(follow->base.waiting.core->executions, &follow->base.waiting.actor,
                              &request, out, err);
}

/* More of one that had not ended. It leaves the list when it has, and all of it was read. */
static int read_open(struct log_follow *follow, size_t *index, struct error *err)
{
    struct log_state *state = &follow->state;
    const struct log_state before = *state;
    struct log_open *open = &state->open[*index];
    autoclear(execution_log) log = {0};

    if (read_log(follow, &open->place, true, &log, err) < 0)
        return -1;
    if (log.is_cut) {
        open->place = log.next;
        follow->is_cut = true;
        ++*index;
    } else if (log.n_open > 0) {
        *open = log.open[0];
        ++*index;
    } else {
        memmove(open, open + 1, (--state->n_open - *index) * sizeof *open);
    }
    return write_pieces(follow, &log, &before, err);
}

/* Those that were started since. One that is read in part is kept as if it had not ended. */
static int read_new(struct log_follow *follow, struct error *err)
{
    struct log_state *state = &follow->state;
    const struct log_state before = *state;
    const struct log_place from = {.number = state->next};
    autoclear(execution_log) log = {0};

    if (state->n_open == LOG_FOLLOWED)
        return 0;
    if (read_log(follow, &from, false, &log, err) < 0)
        return -1;
    for (size_t i = 0; i < log.n_open; i++)
        state->open[state->n_open++] = log.open[i];
    bool is_inside = log.is_cut && log.next.number == log.unread &&
                     (log.next.offsets[LOG_STDOUT] || log.next.offsets[LOG_STDERR]);
    if (is_inside)
        state->open[state->n_open++] = (struct log_open){.place = log.next};
    state->next = log.unread + is_inside;
    follow->is_cut |= log.is_cut;
    return write_pieces(follow, &log, &before, err);
}

static const struct answer_field end_fields[] = {
    {"state", ANSWER_WORD, 0, .is_needed = true, .words = sandbox_state_names,
     .n_words = SANDBOX_STATES},
    {0},
};

static int read_batch(struct log_follow *follow, struct error *err)
{
    struct waiting_call *waiting = &follow->base.waiting;
    struct sandbox_status status;
    size_t i = 0;

    // First whether it is over, then what there is: nothing is written behind the end.
    if (sandbox_status(waiting->core->sandboxes, &waiting->actor, follow->sandbox_id, &status,
                       err) < 0)
        return -1;
    follow->is_cut = false;
    while (i < follow->state.n_open) {
        if (read_open(follow, &i, err) < 0)
            return -1;
    }
    if (read_new(follow, err) < 0)
        return -1;
    follow->is_over =
        (sandbox_in(status.state) & SANDBOX_OVER) && !follow->is_cut && follow->state.n_open == 0;
    return follow->is_over
               ? write_record(follow, &follow->state, "end", end_fields, &status.state, err)
               : 0;
}

// ---- on the loop ----

static void advance(struct log_follow *follow);

static void follow_free(void *data)
{
    struct log_follow *follow = data;

    buffer_clear(&follow->batch);
    free(follow);
}

static void finish(struct log_follow *follow, bool is_whole)
{
    if (follow->is_finished)
        return;
    follow->is_finished = true;
    response_finish(follow->base.waiting.response, is_whole);
    watch_free(take(follow->watch));
    for (size_t i = 0; i < follow->n_watches; i++)
        watch_free(follow->watches[i]);
    follow->n_watches = 0;
    loop_timer_clear(&follow->quiet);
}

static void on_change(void *data)
{
    struct log_follow *follow = data;

    follow->is_changed = true;
    advance(follow);
}

static bool is_watched(const struct log_follow *follow, const char *id)
{
    for (size_t i = 0; i < follow->n_watches; i++) {
        if (strcmp(follow->watched[i], id) == 0)
            return true;
    }
    return false;
}

static bool is_open(const struct log_follow *follow, const char *id)
{
    for (size_t i = 0; i < follow->state.n_open * LOG_SIDES; i++) {
        if (strcmp(follow->state.open[i / LOG_SIDES].streams[i % LOG_SIDES], id) == 0)
            return true;
    }
    return false;
}

/* Streams of those that have not ended, and no others. What came before one was watched is looked for once more. */
static void watch_open(struct log_follow *follow)
{
    size_t kept = 0;

    for (size_t i = 0; i < follow->n_watches; i++) {
        if (!is_open(follow, follow->watched[i])) {
            watch_free(follow->watches[i]);
            continue;
        }
        follow->watches[kept] = follow->watches[i];
        memmove(follow->watched[kept++], follow->watched[i], ID_TEXT);
    }
    follow->n_watches = kept;
    for (size_t i = 0; i < follow->state.n_open * LOG_SIDES; i++) {
        const char *id = follow->state.open[i / LOG_SIDES].streams[i % LOG_SIDES];
        if (!*id || is_watched(follow, id))
            continue;
        memcpy(follow->watched[follow->n_watches], id, ID_TEXT);
        follow->watches[follow->n_watches++] =
            hub_watch(follow->base.waiting.core->hub, id, follower_wake, follow);
        follow->is_changed = true;
    }
}

/* A worker is done with it. */
static void on_read(void *data)
{
    struct log_follow *follow = data;

    if (follow->has_failed)
        finish(follow, false);
    if (!follow->is_finished)
        watch_open(follow);
    advance(follow);
}

static void on_worker(void *data)
{
    struct log_follow *follow = data;
    struct error err = {0};

    follow->has_failed = read_batch(follow, &err) < 0;
}

/* Sends what a worker has read. False: there is no room. */
static bool send_batch(struct log_follow *follow)
{
    if (follow->batch.length == 0)
        return true;
    if (response_append(follow->base.waiting.response, follow->batch.data, follow->batch.length) !=
        RESPONSE_TAKEN)
        return false;
    buffer_clear(&follow->batch);
    follow->batch = (struct buffer){.maximum = BATCH_MAXIMUM};
    loop_timer_set(&follow->quiet, EVENT_KEEP_ALIVE_MS);
    return true;
}

/* Behind a full response on_room goes on; behind one that is gone, on_end comes. */
static void advance(struct log_follow *follow)
{
    if (follow->is_finished || follow->base.is_working || !send_batch(follow))
        return;
    if (follow->is_over)
        finish(follow, true);
    else if (router_is_draining(follow->base.waiting.router))
        finish(follow, false);
    else if (follow->is_changed || follow->is_cut)
        follow->is_changed = !follower_work(&follow->base, on_worker);
}

static void go_on(void *data)
{
    advance(data);
}

static const struct follower_kind kind = {
    .on_wake = on_change, .on_worked = on_read, .on_retry = go_on, .free = follow_free};

/* Nothing was told for a while. */
static void on_quiet(void *data)
{
    struct log_follow *follow = data;

    follower_keep_alive(&follow->base, follow->format);
    loop_timer_set(&follow->quiet, EVENT_KEEP_ALIVE_MS);
    follow->is_changed = true; // what nobody announced, as the start of one that was queued
    advance(follow);
}

static void on_gone(void *data)
{
    finish(data, false);
}

static void on_end(void *data, bool is_delivered)
{
    struct log_follow *follow = data;

    (void)is_delivered;
    finish(follow, false);
    follower_end(&follow->base);
}

static const struct response_events events = {
    .on_gone = on_gone, .on_room = go_on, .on_end = on_end};

static void begin(void *data)
{
    struct log_follow *follow = data;
    struct waiting_call *waiting = &follow->base.waiting;

    loop_timer_init(&follow->quiet, waiting->loop, on_quiet, follow);
    loop_timer_set(&follow->quiet, EVENT_KEEP_ALIVE_MS);
    follow->watch = hub_watch(waiting->core->hub, follow->sandbox_id, follower_wake, follow);
    follow->is_changed = true;
    (void)response_begin(waiting->response, 200, event_format_headers(follow->format),
                         RESPONSE_LENGTH_UNKNOWN);
    response_watch(waiting->response, &events, follow);
    advance(follow);
}

void log_follow_start(struct call *call, const char *sandbox_id, enum event_format format,
                      const struct log_state *state, const enum log_side *side)
{
    struct log_follow *follow = xnew(struct log_follow);

    follower_init(&follow->base, call, &kind);
    follow->format = format;
    (void)snprintf(follow->sandbox_id, sizeof follow->sandbox_id, "%s", sandbox_id);
    follow->has_side = side != NULL;
    follow->side = side ? *side : LOG_STDOUT;
    follow->state = *state;
    follow->batch.maximum = BATCH_MAXIMUM;
    loop_post(follow->base.waiting.loop, begin, follow);
}
