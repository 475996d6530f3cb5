/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attached clients. Everything of a session is touched on the loop only, but for what a worker has
 * meanwhile; see follower.h.
 */
#include "front/api/attach_session.h"

#include "base/mem.h"
#include "core/execution/execution.h"
#include "core/stream/stream.h"
#include "front/api/api.h"
#include "front/api/attach_order.h"
#include "front/api/execution_answer.h"
#include "net/websocket.h"
#include "web/follower.h"
#include "web/router.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define SMALL_BYTES (16u << 10)    // copied: one packet with its head
#define MESSAGE_BYTES (256u << 10) // of output in one message at most
#define PIECES 8                   // sent before others get their turn
#define READ_AHEAD (4u << 20)

static const struct websocket_limits limits = {
    .message_bytes = 16u << 20, .text_bytes = 4096, .fragments = 4096, .ping_ms = 30000};

struct attach {
    struct follower base;
    char *base_url;
    char id[ID_TEXT];
    struct upgrade upgrade;
    struct websocket *socket; // NULL before and after
    struct output_sides sides;
    unsigned next; // the side whose turn it is
    struct watch *watch;
    struct buffer start;   // the first text; empty: sent
    struct buffer problem; // a failure that is to be told; likewise
    struct buffer end;     // the last text, once it is known

    bool is_channel_next; // the next byte of the message under way says which channel it is
    bool is_held;         // the client is not read from
    struct buffer input;  // that the execution did not take yet
    size_t input_at;      // how much of it, it did
    bool has_order;
    struct attach_order order;

    bool has_looked;  // a worker has looked at the execution
    bool is_failed;   // it could not
    int input_status; // what came of a worker's write; 0: there was none
    size_t input_taken;
    struct error failure; // of that or of an order; none: ERROR_NONE
};

static void advance(struct attach *attach);

static void attach_free(void *data)
{
    struct attach *attach = data;

    output_sides_clear(&attach->sides);
    free(attach->base_url);
    buffer_clear(&attach->start);
    buffer_clear(&attach->problem);
    buffer_clear(&attach->end);
    buffer_clear(&attach->input);
    free(attach);
}

// ---- texts to the client ----

struct text_answer {
    const char *type, *code, *detail;
    struct {
        uint64_t out, errors;
    } offsets;
    bool has_offsets, has_sizes;
    struct {
        uint64_t out, errors;
    } sizes;
    const struct execution_answer *execution;
};
#define AT(member) offsetof(struct text_answer, member)
static const struct answer_field offset_fields[] = {
    {"stdout", ANSWER_NATURAL, AT(offsets.out) - AT(offsets)},
    {"stderr", ANSWER_NATURAL, AT(offsets.errors) - AT(offsets)},
    {0},
};
static const struct answer_field size_fields[] = {
    {"stdout", ANSWER_NATURAL, AT(sizes.out) - AT(sizes)},
    {"stderr", ANSWER_NATURAL, AT(sizes.errors) - AT(sizes)},
    {0},
};
static const struct answer_field text_fields[] = {
    {"type", ANSWER_TEXT, AT(type)},
    {"offsets", ANSWER_MAP, AT(offsets), .has_offset = AT(has_offsets), .fields = offset_fields},
    {"sizes", ANSWER_MAP, AT(sizes), .has_offset = AT(has_sizes), .fields = size_fields},
    {"code", ANSWER_TEXT, AT(code)},
    {"detail", ANSWER_TEXT, AT(detail)},
    {"", ANSWER_BESIDE_AT, AT(execution), .fields = execution_answer_fields},
    {0},
};
#undef AT

static void write_text(const struct text_answer *answer, struct buffer *out)
{
    struct json_writer json;
    struct error ignored = {0};

    out->length = 0;
    json_writer_init(&json, out);
    answer_write(&json, text_fields, answer);
    (void)json_writer_finish(&json, &ignored); // there is nothing in it that could not be written
}

static uint64_t size_of(const struct output_place *side)
{
    struct stream_progress progress = {0};

    if (side->stream)
        stream_progress(side->stream, &progress);
    return progress.size_bytes;
}

static void write_state(struct attach *attach, const char *type, const struct execution_info *info,
                        struct buffer *out)
{
    autoexecutionanswer execution = {0};
    struct text_answer answer = {.type = type, .has_offsets = true, .execution = &execution};

    execution_answer_init(&execution, info, attach->base_url);
    answer.offsets.out = attach->sides.at[OUTPUT_STDOUT].offset;
    answer.offsets.errors = attach->sides.at[OUTPUT_STDERR].offset;
    answer.has_sizes = out == &attach->start; // at the end the offsets are there
    answer.sizes.out = size_of(&attach->sides.at[OUTPUT_STDOUT]);
    answer.sizes.errors = size_of(&attach->sides.at[OUTPUT_STDERR]);
    write_text(&answer, out);
}

/* Whether the text is out. */
static bool send_text(struct attach *attach, struct buffer *text)
{
    static const struct websocket_message plain = {.opcode = WEBSOCKET_TEXT};

    if (text->length == 0)
        return true;
    if (websocket_send(attach->socket, &plain, text->data, text->length) != RESPONSE_TAKEN)
        return false;
    buffer_clear(text);
    return true;
}

static void tell_failure(struct attach *attach, const struct error *err)
{
    write_text(
        &(struct text_answer){.type = "error", .code = api_problem_code(err), .detail = err->text},
        &attach->problem);
    (void)send_text(attach, &attach->problem);
}

// ---- looking at the execution ----

/* False: a worker has to. */
static bool look(struct attach *attach, bool is_quick)
{
    struct executions *executions = attach->base.waiting.core->executions;
    const struct actor *actor = &attach->base.waiting.actor;
    autoclear(execution_info) info = {0};
    struct error err = {0};

    if (is_quick && execution_get_quick(executions, actor, attach->id, NULL, &info, &err) != 1)
        return false;
    if (!is_quick && execution_get(executions, actor, attach->id, NULL, &info, &err) < 0) {
        attach->is_failed = true;
        return true;
    }
    if (!output_sides_open(&attach->sides, attach->base.waiting.core->streams, &info, is_quick))
        return false;
    if (execution_info_is_over(&info))
        write_state(attach, "exit", &info, &attach->end);
    return true;
}

// ---- workers ----

static void end_input(struct attach *attach, int status, size_t taken, const struct error *err);
static void resume(struct attach *attach);

static void on_worked(void *data)
{
    struct attach *attach = data;
    int input_status = attach->input_status;

    attach->input_status = 0;
    if (attach->socket && input_status)
        end_input(attach, input_status, attach->input_taken, &attach->failure);
    else if (attach->socket && attach->failure.reason)
        tell_failure(attach, &attach->failure);
    attach->failure = (struct error){0};
    if (attach->socket)
        advance(attach);
}

static void on_look_worker(void *data)
{
    struct attach *attach = data;

    (void)look(attach, false);
    attach->has_looked = true;
}

static void on_input_worker(void *data)
{
    struct attach *attach = data;
    const struct buffer *input = &attach->input;

    attach->input_taken = 0;
    int status = execution_write_input(
        attach->base.waiting.core->executions, &attach->base.waiting.actor, attach->id,
        input->data + attach->input_at, input->length - attach->input_at, &attach->input_taken,
        &attach->failure);
    attach->input_status = status < 0 ? -1 : 1;
}

static void on_order_worker(void *data)
{
    struct attach *attach = data;

    (void)attach_order_run(attach->base.waiting.core, &attach->base.waiting.actor, attach->id,
                           &attach->order,
                           &attach->failure); // what fails is told
    attach->has_order = false;
}

static void work(struct attach *attach, void (*fn)(void *data))
{
    if (!attach->base.is_working) // else on_worked comes back to it
        (void)follower_work(&attach->base, fn);
}

// ---- what the client sends ----

static void resume(struct attach *attach)
{
    if (!attach->is_held || attach->input.length || attach->has_order || attach->problem.length)
        return;
    attach->is_held = false;
    websocket_resume(attach->socket);
}

/* One that has not begun takes it later; what nobody will ever take is dropped, and that is said. */
static void end_input(struct attach *attach, int status, size_t taken, const struct error *err)
{
    struct buffer *input = &attach->input;

    if (status < 0 && error_is(err, ERROR_STATE))
        return;
    attach->input_at += taken;
    if (status >= 0 && attach->input_at < input->length)
        return; // the hub tells when there is room
    if (status < 0)
        tell_failure(attach, err);
    buffer_clear(input);
    attach->input_at = 0;
}

static void push_input(struct attach *attach)
{
    const struct buffer *input = &attach->input;
    struct error err = {0};
    size_t taken = 0;

    if (input->length == 0 || attach->base.is_working)
        return;
    int status = execution_write_input_quick(
        attach->base.waiting.core->executions, &attach->base.waiting.actor, attach->id,
        input->data + attach->input_at, input->length - attach->input_at, &taken, &err);
    if (status == 0)
        work(attach, on_input_worker);
    else
        end_input(attach, status, taken, &err);
}

/* Returns whether to read on. */
static bool hold(struct attach *attach)
{
    attach->is_held |= attach->input.length || attach->has_order || attach->problem.length;
    return !attach->is_held;
}

static bool on_binary(void *data, const char *bytes, size_t length, bool is_first, bool is_last)
{
    struct attach *attach = data;
    struct error ignored;

    attach->is_channel_next |= is_first;
    if (attach->is_channel_next && length) {
        attach->is_channel_next = false;
        if (*bytes != 0) {
            websocket_close(attach->socket, WEBSOCKET_POLICY, "a client sends on channel 0 only");
            return false;
        }
        bytes++;
        length--;
    }
    if (attach->is_channel_next && is_last) {
        websocket_close(attach->socket, WEBSOCKET_POLICY, "a message begins with its channel");
        return false;
    }
    (void)buffer_add(&attach->input, bytes, length, &ignored); // no maximum: a piece is one read
    push_input(attach);
    return hold(attach);
}

static bool on_text(void *data, const char *text, size_t length)
{
    struct attach *attach = data;
    struct error err = {0};

    if (attach_order_read(text, length, &attach->order, &err) < 0) {
        tell_failure(attach, &err);
    } else {
        attach->has_order = true;
        work(attach, on_order_worker);
    }
    return hold(attach);
}

// ---- what it writes ----

enum step { STEP_NOTHING, STEP_SENT, STEP_STUCK };

static enum step send_piece(struct attach *attach, unsigned index)
{
    struct output_place *side = &attach->sides.at[index];
    const struct websocket_message message = {
        .opcode = WEBSOCKET_BINARY, .prefix = &(uint8_t){(uint8_t)(index + 1)}, .prefix_length = 1};
    struct stream_progress progress;
    char bytes[SMALL_BYTES];
    enum response_room room;

    if (!side->stream)
        return STEP_NOTHING;
    stream_progress(side->stream, &progress);
    if (side->offset < progress.first_bytes)
        side->offset = progress.first_bytes; // the older is kept no more
    if (side->offset >= progress.size_bytes)
        return STEP_NOTHING;
    uint64_t rest = progress.size_bytes - side->offset;
    struct file_range range = {.fd = stream_fd(side->stream),
                               .offset = side->offset,
                               .length = rest < MESSAGE_BYTES ? rest : MESSAGE_BYTES};
    if (range.length <= sizeof bytes && websocket_is_drained(attach->socket) &&
        pread(range.fd, bytes, (size_t)range.length, (off_t)range.offset) == (ssize_t)range.length)
        room = websocket_send(attach->socket, &message, bytes, (size_t)range.length);
    else
        room = websocket_send_file(attach->socket, &message, &range);
    if (room != RESPONSE_TAKEN)
        return STEP_STUCK;
    side->offset += range.length;
    attach->has_looked = false; // what it says of offsets holds no more
    return STEP_SENT;
}

/* Of either side in turn. */
static enum step send_next(struct attach *attach)
{
    for (unsigned i = 0; i < OUTPUT_SIDES; i++) {
        unsigned index = (attach->next + i) % OUTPUT_SIDES;
        enum step step = send_piece(attach, index);
        if (step == STEP_NOTHING)
            continue;
        attach->next = step == STEP_SENT ? (index + 1) % OUTPUT_SIDES : index;
        return step;
    }
    return STEP_NOTHING;
}

/* All that is there has been sent. */
static void settle(struct attach *attach)
{
    bool has_looked = attach->has_looked; // a worker has, since something changed

    attach->has_looked = false;
    if (!has_looked && !look(attach, true)) {
        work(attach, on_look_worker);
        return;
    }
    if (output_sides_watch(&attach->sides, attach->base.waiting.core->hub, follower_wake, attach)) {
        follower_wake(attach);
        return;
    }
    bool is_over =
        attach->end.length && output_sides_are_told(&attach->sides); // else the rest is announced
    if (attach->is_failed)
        websocket_close(attach->socket, WEBSOCKET_FAILED, "the execution is known no more");
    else if (is_over && send_text(attach, &attach->end))
        websocket_close(attach->socket, WEBSOCKET_NORMAL, "it has ended");
    else if (router_is_draining(attach->base.waiting.router))
        websocket_close(attach->socket, WEBSOCKET_GOING_AWAY, "the server is restarting");
}

static void send_output(struct attach *attach)
{
    enum step step = STEP_SENT;

    if (!send_text(attach, &attach->start) || !send_text(attach, &attach->problem))
        return;
    for (unsigned i = 0; i < PIECES && step == STEP_SENT; i++)
        step = send_next(attach);
    if (step == STEP_SENT)
        follower_wake(attach);
    else if (step == STEP_NOTHING)
        settle(attach);
}

/* Behind STEP_STUCK, on_room goes on, or on_end comes. What a worker has is left alone until it is back. */
static void advance(struct attach *attach)
{
    if (attach->base.is_working)
        return;
    push_input(attach);
    if (attach->has_order)
        work(attach, on_order_worker);
    resume(attach);
    if (attach->base.is_working)
        return;
    send_output(attach);
    resume(attach);
}

static void on_change(void *data)
{
    struct attach *attach = data;

    if (attach->socket)
        advance(attach);
}

static void on_room(void *data)
{
    advance(data);
}

static const struct follower_kind kind = {
    .on_wake = on_change, .on_worked = on_worked, .on_retry = on_room, .free = attach_free};

static void on_end(void *data)
{
    struct attach *attach = data;

    attach->socket = NULL;
    watch_free(take(attach->watch));
    output_sides_unwatch(&attach->sides);
    follower_end(&attach->base);
}

static const struct websocket_events events = {
    .on_binary = on_binary, .on_text = on_text, .on_room = on_room, .on_end = on_end};

/* On the loop. Watches first, then looks. */
static void begin(void *data)
{
    struct attach *attach = data;
    struct waiting_call *waiting = &attach->base.waiting;

    attach->socket = websocket_open(&(struct websocket_request){
        .loop = waiting->loop,
        .response = waiting->response,
        .headers = attach->upgrade.headers,
        .limits = &limits,
        .events = &events,
        .data = attach,
    });
    if (!attach->socket) {
        follower_unref(&attach->base);
        return;
    }
    attach->watch = hub_watch(waiting->core->hub, attach->id, follower_wake, attach);
    (void)output_sides_watch(&attach->sides, waiting->core->hub, follower_wake, attach);
    advance(attach);
}

// ---- starting ----

static void read_ahead(struct output_place *side)
{
    struct stream_progress progress = {0};

    if (side->stream)
        stream_progress(side->stream, &progress);
    if (side->offset < progress.first_bytes)
        side->offset = progress.first_bytes;
    if (side->offset < progress.size_bytes)
        (void)posix_fadvise(stream_fd(side->stream), (off_t)side->offset, READ_AHEAD,
                            POSIX_FADV_WILLNEED);
}

static struct attach *attach_new(struct call *call, const struct attach_request *request)
{
    struct attach *attach = xnew(struct attach);

    follower_init(&attach->base, call, &kind);
    attach->base_url = xstrdup(call_base_url(call));
    (void)snprintf(attach->id, sizeof attach->id, "%s", request->info->id);
    upgrade_copy(&attach->upgrade, request->upgrade);
    return attach;
}

int attach_start(struct call *call, const struct attach_request *request, struct error *err)
{
    struct attach *attach = attach_new(call, request);

    (void)output_sides_open(&attach->sides, call->core->streams, request->info, false);
    if (output_sides_place(&attach->sides, request->offsets, err) < 0) {
        follower_unref(&attach->base);
        return error_field(err, "from");
    }
    for (unsigned i = 0; i < OUTPUT_SIDES; i++)
        read_ahead(&attach->sides.at[i]);
    write_state(attach, "started", request->info, &attach->start);
    loop_post(attach->base.waiting.loop, begin, attach);
    return 0;
}
