/* SPDX-License-Identifier: Apache-2.0 */
/* Executions as runs; see run_view.h. */
#include "front/aionis/run_view.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/stream/stream.h"
#include "base/strings.h"
#include "front/aionis/answer.h"
#include "front/aionis/refused.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define QUICK_BYTES (32u << 10) // of both outputs: more is not read on the loop

// ---- how it went ----

const char *run_status(const struct execution_info *info)
{
    switch (info->state) {
    case EXECUTION_QUEUED:
        return "queued";
    case EXECUTION_RUNNING:
        return "running";
    case EXECUTION_COMPLETED:
        return info->exit.code == 0 && info->exit.signal == 0 ? "succeeded" : "failed";
    case EXECUTION_TIMED_OUT:
        return "timeout";
    case EXECUTION_CANCELLED:
        return "canceled";
    default:
        return info->exit.cause == EXECUTION_BOX_ENDED ? "timeout" : "failed";
    }
}

static bool was_started(const struct execution_info *info)
{
    return info->started_at > 0;
}

/* What stands for a command that never came to be: the negative errno where the protocol knows one. */
static int64_t result_code_of(const struct execution_info *info)
{
    if (info->state == EXECUTION_COMPLETED && info->exit.signal == 0)
        return info->exit.code;
    if (info->state == EXECUTION_FAILED && info->exit.cause == EXECUTION_NOT_FOUND)
        return -ENOENT;
    return SUMMARY_NO_CODE;
}

/* The program's name as it was looked for. */
static const char *program_of(const struct execution_info *info)
{
    return info->command.argv && info->command.argv[0] ? info->command.argv[0] : "";
}

static char *describe_failure(const struct execution_info *info)
{
    const char *name = program_of(info);

    switch (info->exit.cause) {
    case EXECUTION_NOT_FOUND:
        return xasprintf("spawn %s ENOENT", name);
    case EXECUTION_BOX_ENDED:
        return xstrdup("executor_stale_recovered");
    default:
        return info->error ? xstrdup(info->error) : xasprintf("spawn %s EACCES", name);
    }
}

static char *describe_error(const struct execution_info *info)
{
    switch (info->state) {
    case EXECUTION_COMPLETED:
        if (info->exit.signal)
            return xstrdup("non_zero_exit_code:null");
        return info->exit.code ? xasprintf("non_zero_exit_code:%lld", (long long)info->exit.code)
                               : NULL;
    case EXECUTION_FAILED:
        return describe_failure(info);
    case EXECUTION_TIMED_OUT:
        return xstrdup("execution_timeout");
    case EXECUTION_CANCELLED:
        return xstrdup(was_started(info) ? "canceled_by_request" : "canceled_before_execution");
    default:
        return NULL;
    }
}

// ---- the executor's report ----

static void put_signal(struct json_writer *json, const struct execution_info *info)
{
    bool was_killed = info->state == EXECUTION_TIMED_OUT || info->state == EXECUTION_CANCELLED;
    int number = was_killed && info->exit.signal == 0 ? SIGKILL : (int)info->exit.signal;
    const char *name = number ? sigabbrev_np(number) : NULL;
    char text[32];

    (void)snprintf(text, sizeof text, "SIG%s", name ? name : "RTMIN");
    put_text(json, "signal", number ? text : NULL);
}

static void put_report(struct json_writer *json, const struct run_view *view)
{
    const struct execution_info *info = view->info;
    const char *name = program_of(info);

    put_text(json, "executor", AIONIS_EXECUTOR);
    if (view->error && strcmp(view->error, REFUSED_NAME) == 0)
        return;
    put_text(json, "command", name);
    if (view->error && strcmp(view->error, REFUSED_COMMAND) == 0)
        return;
    json_key(json, "argv");
    json_raw(json, view->stored.argv, strlen(view->stored.argv));
    put_signal(json, info);
    put_bool(json, "timed_out", info->state == EXECUTION_TIMED_OUT);
    put_bool(json, "canceled", info->state == EXECUTION_CANCELLED);
}

static void put_recovery(struct json_writer *json, const struct run_view *view)
{
    json_key(json, "recovery");
    json_map_begin(json);
    put_bool(json, "stale_recovered", true);
    put_integer(json, "stale_after_ms", (int64_t)view->settings->stale_ms);
    json_map_end(json);
}

static void write_result(struct json_writer *json, const struct run_view *view)
{
    const struct execution_info *info = view->info;

    json_map_begin(json);
    if (info->state == EXECUTION_CANCELLED && !was_started(info))
        put_bool(json, "canceled", true);
    else if (info->state == EXECUTION_FAILED && info->exit.cause == EXECUTION_BOX_ENDED)
        put_recovery(json, view);
    else if (execution_info_is_over(info))
        put_report(json, view);
    json_map_end(json);
}

// ---- what it wrote ----

static int read_bytes(struct stream *stream, uint64_t most, struct buffer *out)
{
    struct stream_progress progress;
    struct error ignored = {0};

    stream_progress(stream, &progress);
    uint64_t wanted = progress.size_bytes < most ? progress.size_bytes : most;
    if (buffer_reserve(out, wanted, &ignored) < 0)
        return -1;
    ssize_t got = fd_read_full_at(stream_fd(stream), out->data, wanted, 0);
    buffer_grew(out, got < 0 ? 0 : (size_t)got);
    return 0;
}

/* `produced` is how much there was of it, once that is known. A character that the cap or the moment cut in two is left out. */
static bool read_output(struct core *core, const struct execution_info *info, const char *id,
                        int64_t produced, bool is_quick, struct buffer *out)
{
    autobuffer bytes = {0};

    if (!id)
        return true;
    autoptr(stream) stream = stream_open_kept(core->streams, id, is_quick);
    if (!stream)
        return !is_quick;
    if (read_bytes(stream, (uint64_t)info->output_cap_bytes, &bytes) < 0)
        return !is_quick;
    bool is_cut = !execution_info_is_over(info) || (int64_t)bytes.length < produced;
    if (is_cut)
        bytes.length = wide_whole(bytes.data, bytes.length);
    wide_decode(bytes.data, bytes.length, out);
    return true;
}

bool run_view_init(struct run_view *view, struct core *core, const struct aionis_settings *settings,
                   const struct execution_info *info, bool is_quick)
{
    struct json_writer json;
    struct error ignored = {0};

    *view = (struct run_view){.settings = settings,
                              .info = info,
                              .status = run_status(info),
                              .exit_code = result_code_of(info)};
    if (is_quick && info->exit.stdout_bytes + info->exit.stderr_bytes > QUICK_BYTES)
        return false;
    if (!read_output(core, info, info->stdout_stream, info->exit.stdout_bytes, is_quick,
                     &view->standard_output) ||
        !read_output(core, info, info->stderr_stream, info->exit.stderr_bytes, is_quick,
                     &view->standard_error))
        return false;
    view->is_truncated = execution_info_is_over(info) && info->exit.is_truncated;
    view->error = describe_error(info);
    stored_run_read(info, &view->stored);
    json_writer_init(&json, &view->result);
    write_result(&json, view);
    (void)json_writer_finish(&json, &ignored);
    return true;
}

void run_view_clear(struct run_view *view)
{
    buffer_clear(&view->standard_output);
    buffer_clear(&view->standard_error);
    buffer_clear(&view->result);
    stored_run_clear(&view->stored);
    free(view->error);
}

// ---- writing ----

static struct wide_text wide(const struct buffer *buffer)
{
    return (struct wide_text){buffer->data ? buffer->data : "", buffer->length};
}

void run_write_action(struct json_writer *json, const struct run_view *view)
{
    json_map_begin(json);
    put_text(json, "kind", "command");
    json_key(json, "argv");
    json_raw(json, view->stored.argv, strlen(view->stored.argv));
    json_map_end(json);
}

void run_write_summary(struct json_writer *json, const struct run_view *view)
{
    bool is_over = execution_info_is_over(view->info);
    const struct summary summary = {
        .standard_output = is_over ? wide(&view->standard_output) : (struct wide_text){"", 0},
        .standard_error = is_over ? wide(&view->standard_error) : (struct wide_text){"", 0},
        .result = &view->result,
        .exit_code = view->exit_code,
        .error = view->error,
        .is_truncated = view->is_truncated,
    };

    summary_write(json, &summary);
}

void run_write_output_summary(struct json_writer *json, const struct run_view *view)
{
    const struct summary summary = {
        .standard_output = wide(&view->standard_output),
        .standard_error = wide(&view->standard_error),
        .exit_code = SUMMARY_NO_CODE,
        .is_truncated = view->is_truncated,
    };

    summary_write(json, &summary);
}

void run_write_exit_code(struct json_writer *json, const struct run_view *view)
{
    if (view->exit_code == SUMMARY_NO_CODE)
        put_null(json, "exit_code");
    else
        put_integer(json, "exit_code", view->exit_code);
}

static void put_tail(struct json_writer *json, const char *name, const struct buffer *text,
                     size_t bytes)
{
    autobuffer tail = {0};

    wide_tail(wide(text), bytes, &tail);
    json_key(json, name);
    json_exact(json, tail.data ? tail.data : "", tail.length);
}

void run_write_tails(struct json_writer *json, const struct run_view *view, size_t bytes)
{
    put_tail(json, "stdout", &view->standard_output, bytes);
    put_tail(json, "stderr", &view->standard_error, bytes);
}

/* While it runs it is seen to be alive, as often as the protocol promises. */
static int64_t updated_at(const struct run_view *view)
{
    const struct execution_info *info = view->info;
    int64_t interval = (int64_t)view->settings->heartbeat_ms;

    if (info->state != EXECUTION_RUNNING || interval == 0)
        return info->updated_at;
    int64_t beats = ((int64_t)clock_wall_ms() - info->started_at) / interval;
    int64_t last = info->started_at + (beats > 0 ? beats : 0) * interval;
    return last > info->updated_at ? last : info->updated_at;
}

void run_write_times(struct json_writer *json, const struct run_view *view)
{
    put_time(json, "started_at", view->info->started_at);
    put_time(json, "finished_at", view->info->ended_at);
    put_time(json, "created_at", view->info->created_at);
    put_time(json, "updated_at", updated_at(view));
}

static void put_output(struct json_writer *json, const struct run_view *view)
{
    bool is_over = execution_info_is_over(view->info);

    json_key(json, "output");
    json_map_begin(json);
    run_write_tails(json, view, is_over ? SIZE_MAX : 0);
    put_bool(json, "truncated", view->is_truncated);
    json_map_end(json);
}

void run_write(struct json_writer *json, const struct run_view *view)
{
    const struct execution_info *info = view->info;

    json_map_begin(json);
    put_id(json, "run_id", info->id);
    put_id(json, "session_id", info->sandbox_id);
    put_text(json, "project_id", view->stored.project_id);
    put_text(json, "planner_run_id", view->stored.planner_run_id);
    put_text(json, "decision_id", view->stored.decision_id);
    json_key(json, "action");
    run_write_action(json, view);
    put_text(json, "mode", view->stored.mode);
    put_text(json, "status", view->status);
    put_integer(json, "timeout_ms", view->stored.timeout_ms);
    put_output(json, view);
    run_write_exit_code(json, view);
    put_text(json, "error", view->error);
    put_bool(json, "cancel_requested", info->stop_at != 0);
    put_text(json, "cancel_reason", info->stop_reason);
    json_key(json, "result");
    json_raw(json, view->result.data, view->result.length);
    json_key(json, "result_summary");
    run_write_summary(json, view);
    run_write_times(json, view);
    json_map_end(json);
}
