/* SPDX-License-Identifier: Apache-2.0 */
/* A command as events in envelopes: start, data, keepalive, end. */
#include "base/base64.h"
#include "base/clock.h"
#include "base/mem.h"
#include "front/e2b/connect_rpc.h"
#include "front/e2b/envd_process.h"
#include "web/output_frames.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t envd_now_ms(void)
{
    return clock_wall_ms();
}

/* What the events of one follower need. */
struct events {
    bool is_terminal;
};

static void write_start(void *data, const struct execution_info *info,
                        const struct output_sides *sides, struct buffer *out)
{
    char text[64];

    (void)data;
    (void)sides;
    (void)snprintf(text, sizeof text, "{\"event\":{\"start\":{\"pid\":%" PRId64 "}}}",
                   info->number);
    rpc_envelope_add(out, text);
}

static size_t write_piece(void *data, const struct output_piece *piece, struct buffer *out)
{
    const struct events *events = data;
    const char *side = events->is_terminal            ? "pty"
                       : piece->side == OUTPUT_STDOUT ? "stdout"
                                                      : "stderr";
    struct error ignored = {0};
    size_t begun = rpc_envelope_begin(out);

    (void)buffer_addf(out, &ignored, "{\"event\":{\"data\":{\"%s\":\"", side);
    size_t length = base64_length(piece->length);
    if (buffer_reserve(out, length + 1, &ignored) == 0) {
        base64_encode(piece->bytes, piece->length, out->data + out->length);
        buffer_grew(out, length);
    }
    (void)buffer_add_text(out, "\"}}}", &ignored);
    rpc_envelope_end(out, begun, 0);
    return piece->length;
}

/* As Go spells them. */
static const char *signal_text(int64_t number, char text[32])
{
    static const struct {
        int number;
        const char *text;
    } names[] = {
        {SIGHUP, "hangup"},
        {SIGINT, "interrupt"},
        {SIGQUIT, "quit"},
        {SIGILL, "illegal instruction"},
        {SIGTRAP, "trace/breakpoint trap"},
        {SIGABRT, "aborted"},
        {SIGBUS, "bus error"},
        {SIGFPE, "floating point exception"},
        {SIGKILL, "killed"},
        {SIGUSR1, "user defined signal 1"},
        {SIGSEGV, "segmentation fault"},
        {SIGUSR2, "user defined signal 2"},
        {SIGPIPE, "broken pipe"},
        {SIGALRM, "alarm clock"},
        {SIGTERM, "terminated"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (names[i].number == number)
            return names[i].text;
    }
    (void)snprintf(text, 32, "signal %" PRId64, number);
    return text;
}

static void write_exit(const struct execution_info *info, struct json_writer *json)
{
    bool is_stopped = info->exit.cause == EXECUTION_STOPPED ||
                      info->exit.cause == EXECUTION_BOX_ENDED ||
                      info->exit.cause == EXECUTION_MEMORY;
    int64_t signal = info->exit.signal ? info->exit.signal : is_stopped ? SIGKILL : 0;
    int64_t code = signal ? -1 : info->exit.code;
    char text[64], name[32];

    if (signal)
        (void)snprintf(text, sizeof text, "signal: %s", signal_text(signal, name));
    else
        (void)snprintf(text, sizeof text, "exit status %" PRId64, code);
    json_map_begin(json);
    e2b_member_number(json, "exitCode", code);
    e2b_member_bool(json, "exited", !signal);
    e2b_member_text(json, "status", text);
    if (code != 0)
        e2b_member_text(json, "error", text);
    json_map_end(json);
}

static void write_end_event(const struct execution_info *info, struct buffer *out)
{
    struct json_writer json;
    struct error ignored = {0};
    size_t begun = rpc_envelope_begin(out);

    json_writer_init(&json, out);
    json_map_begin(&json);
    json_key(&json, "event");
    json_map_begin(&json);
    json_key(&json, "end");
    write_exit(info, &json);
    json_map_end(&json);
    json_map_end(&json);
    (void)json_writer_finish(&json, &ignored);
    rpc_envelope_end(out, begun, 0);
}

static bool write_end(void *data, const struct waiting_call *waiting,
                      const struct execution_info *info, bool is_quick, struct buffer *out)
{
    const char *why = info->error ? info->error : "it could not be started";

    (void)data;
    (void)waiting;
    (void)is_quick;
    switch (info->exit.cause) {
    case EXECUTION_TIMEOUT:
        rpc_envelope_add_end(out, RPC_DEADLINE_EXCEEDED, "the command took longer than it may");
        return true;
    case EXECUTION_NOT_FOUND:
    case EXECUTION_NOT_RUN:
        rpc_envelope_add_end(out, RPC_INVALID_ARGUMENT, why);
        return true;
    default:
        break;
    }
    if (info->state == EXECUTION_FAILED && info->exit.cause == EXECUTION_NOT_ENDED) {
        rpc_envelope_add_end(out, RPC_INTERNAL, why);
        return true;
    }
    write_end_event(info, out);
    rpc_envelope_add_end(out, RPC_OK, NULL);
    return true;
}

static void write_keep_alive(void *data, struct buffer *out)
{
    (void)data;
    rpc_envelope_add(out, "{\"event\":{\"keepalive\":{}}}");
}

static void write_late(void *data, struct buffer *out)
{
    (void)data;
    rpc_envelope_add_end(out, RPC_DEADLINE_EXCEEDED, "the time for this call is over");
}

static const struct output_frames frames = {
    .start = write_start,
    .piece = write_piece,
    .end = write_end,
    .keep_alive = write_keep_alive,
    .late = write_late,
    .free = free,
};

int envd_follow(struct call *call, const struct envd_following *following, struct error *err)
{
    struct events *events = xnew(struct events);
    const uint64_t from = following->is_from_now ? OUTPUT_FROM_NOW : 0;
    const struct output_frames_request request = {
        .info = following->info,
        .frames = &frames,
        .data = events,
        .headers = rpc_stream_headers,
        .offsets = {from, from},
        .keep_alive_ms = (uint64_t)rpc_keep_alive_ms(call),
        .deadline_ms = (uint64_t)following->deadline_ms,
    };

    events->is_terminal = following->info->kind == EXECUTION_TERMINAL;
    return output_frames_start(call, &request, err);
}
