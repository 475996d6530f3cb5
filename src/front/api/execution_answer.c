/* SPDX-License-Identifier: Apache-2.0 */
/* Executions as JSON; see execution_answer.h. */
#include "front/api/execution_answer.h"

#include "base/fd.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "core/stream/stream.h"
#include "front/api/api.h"

#include <signal.h>
#include <string.h>

#define QUICK_BYTES (32u << 10) // of both outputs: more is not read on the loop

static const char *const kinds[] = {
    [EXECUTION_COMMAND] = "command",
    [EXECUTION_JOB] = "job",
    [EXECUTION_TERMINAL] = "terminal",
    [EXECUTION_CONTEXT] = "context",
};
static const char *const causes[] = {
    [EXECUTION_EXITED] = "exited",   [EXECUTION_TIMEOUT] = "timeout",
    [EXECUTION_MEMORY] = "memory",   [EXECUTION_NOT_FOUND] = "not_found",
    [EXECUTION_NOT_RUN] = "not_run", [EXECUTION_BOX_ENDED] = "sandbox_ended",
    [EXECUTION_STOPPED] = "stopped",
};

#define AT(member) offsetof(struct output_answer, member)
static const struct answer_field output_fields[] = {
    {"text", ANSWER_BYTES, AT(text),
     .help = "what was written, where that is UTF-8; not while it runs, nor in lists"},
    {"textBase64", ANSWER_BASE64, AT(base64), .help = "instead of text, where it is not UTF-8"},
    {"bytes", ANSWER_INTEGER, AT(bytes), .has_offset = AT(has_bytes),
     .help = "how much was written in all; once it has ended"},
    {"truncated", ANSWER_BOOL, AT(is_truncated), .has_offset = AT(has_content),
     .help = "whether there is more than what is told here"},
    {"url", ANSWER_TEXT, AT(url), .is_needed = true, .help = "where all that is kept can be read"},
    {0},
};
#undef AT

#define AT(member) offsetof(struct execution_answer, member)
static const struct answer_field resource_fields[] = {
    {"cpuUserUs", ANSWER_INTEGER, AT(resources.cpu_user_us) - AT(resources),
     .help = "processor time, in microseconds"},
    {"cpuSystemUs", ANSWER_INTEGER, AT(resources.cpu_system_us) - AT(resources)},
    {"maxMemoryBytes", ANSWER_INTEGER, AT(resources.max_memory_bytes) - AT(resources),
     .help = "the most that one of its processes had at once"},
    {0},
};

const struct answer_field execution_answer_fields[] = {
    {"id", ANSWER_JOINED, AT(id), .is_needed = true, .prefix = ""},
    {"sandboxId", ANSWER_ID, AT(sandbox_id), .is_needed = true, .prefix = SANDBOX_PREFIX},
    {"kind", ANSWER_WORD, AT(kind), .is_needed = true, .words = kinds, .n_words = ARRAY_SIZE(kinds),
     .help = "a job does not make its sandbox busy"},
    {"state", ANSWER_WORD, AT(state), .is_needed = true, .words = execution_state_names,
     .n_words = EXECUTION_STATES},
    {"exitCode", ANSWER_INTEGER, AT(exit_code), .has_offset = AT(is_over),
     .help = "once it has ended; where it gave none, what a shell would say: 128 + its signal, 127 "
             "not found, 126 not executable, 124 after a timeout, 137 stopped"},
    {"cause", ANSWER_WORD, AT(cause), .words = causes, .n_words = ARRAY_SIZE(causes),
     .help = "why it ended"},
    {"signal", ANSWER_TEXT, AT(signal), .help = "that ended it: 'KILL', 'SEGV'"},
    {"error", ANSWER_TEXT, AT(error), .help = "a sentence: why it could not run, or what was lost"},
    {"stdout", ANSWER_MAP, AT(output), .has_offset = AT(output.is_told), .fields = output_fields},
    {"stderr", ANSWER_MAP, AT(errors), .has_offset = AT(errors.is_told), .fields = output_fields},
    {"durationMs", ANSWER_INTEGER, AT(duration_ms), .has_offset = AT(is_over)},
    {"resources", ANSWER_MAP, AT(resources), .has_offset = AT(is_over), .fields = resource_fields},
    {"filesChanged", ANSWER_MAP_AT, AT(changes), .fields = changes_answer_fields,
     .help = "of the sandbox, against what it was started from; where that was asked for"},
    {"outputLost", ANSWER_TRUTH, AT(is_output_lost),
     .help = "it wrote more than is kept of one command"},
    {"outputExpired", ANSWER_TRUTH, AT(is_output_expired),
     .help = "what it wrote was kept for as long as it is, or gave way to newer output"},
    {"command", ANSWER_TEXTS, AT(command.argv), .is_needed = true},
    {"directory", ANSWER_TEXT, AT(command.directory), .help = "where not the sandbox's"},
    {"user", ANSWER_TEXT, AT(command.user), .help = "likewise"},
    {"timeoutMs", ANSWER_INTEGER, AT(command.timeout_ms), .has_offset = AT(has_timeout)},
    {"createdAt", ANSWER_TIME, AT(created_at)},
    {"startedAt", ANSWER_TIME, AT(started_at)},
    {"endedAt", ANSWER_TIME, AT(ended_at)},
    {"stopRequestedAt", ANSWER_TIME, AT(stop_at)},
    {"stopReason", ANSWER_TEXT, AT(stop_reason)},
    {0},
};
#undef AT

const char *execution_answer_prefix(enum execution_kind kind)
{
    return kind == EXECUTION_JOB ? JOB_PREFIX : EXECUTION_PREFIX;
}

static void output_init(struct output_answer *output, const struct execution_info *info,
                        const char *stream, const char *name, int64_t bytes, const char *base_url)
{
    if (!stream)
        return;
    output->is_told = true;
    output->has_bytes = execution_info_is_over(info);
    output->bytes = bytes;
    output->url = xasprintf("%s/api/v1/executions/%s%s/output?stream=%s", base_url,
                            execution_answer_prefix(info->kind), info->id, name);
}

/* One stream may have both. */
static bool has_own_errors(const struct execution_info *info)
{
    return info->stderr_stream && info->stdout_stream
               ? strcmp(info->stderr_stream, info->stdout_stream) != 0
               : info->stderr_stream != NULL;
}

void execution_answer_init(struct execution_answer *answer, const struct execution_info *info,
                           const char *base_url)
{
    const struct execution_exit *exit = &info->exit;

    *answer = (struct execution_answer){
        .id = {execution_answer_prefix(info->kind), info->id},
        .sandbox_id = info->sandbox_id,
        .kind = info->kind,
        .state = info->state,
        .command = info->command,
        .has_timeout = info->command.timeout_ms > 0,
        .is_over = execution_info_is_over(info),
        .is_output_expired = info->is_output_expired,
        .is_output_lost = exit->is_truncated,
        .created_at = info->created_at,
        .started_at = info->started_at,
        .ended_at = info->ended_at,
        .stop_at = info->stop_at,
        .duration_ms = exit->duration_us / 1000,
        .cause = exit->cause,
        .signal = exit->signal > 0 ? sigabbrev_np((int)exit->signal) : NULL,
        .error = info->error,
        .stop_reason = info->stop_reason,
        .resources = {exit->cpu_user_us, exit->cpu_system_us, exit->max_rss_bytes},
    };
    if (answer->is_over)
        answer->exit_code = execution_info_exit_code(info);
    output_init(&answer->output, info, info->stdout_stream, "stdout", exit->stdout_bytes, base_url);
    if (has_own_errors(info))
        output_init(&answer->errors, info, info->stderr_stream, "stderr", exit->stderr_bytes,
                    base_url);
}

void execution_answer_clear(struct execution_answer *answer)
{
    struct output_answer *outputs[] = {&answer->output, &answer->errors};

    for (size_t i = 0; i < ARRAY_SIZE(outputs); i++) {
        free(outputs[i]->url);
        buffer_clear(&outputs[i]->content);
    }
    difference_clear(&answer->difference);
}

// ---- what it wrote ----

size_t output_text_length(const char *bytes, size_t length)
{
    size_t at = 0;

    while (at < length) {
        size_t step = utf8_length(bytes + at, length - at);
        if (step == 0)
            return utf8_is_partial(bytes + at, length - at) ? at : NO_TEXT;
        at += step;
    }
    return at;
}

static void read_stream(struct stream *stream, size_t most, struct buffer *out)
{
    struct stream_progress progress;
    struct error ignored = {0};

    stream_progress(stream, &progress);
    size_t wanted = progress.size_bytes < most ? (size_t)progress.size_bytes : most;
    if (buffer_reserve(out, wanted, &ignored) < 0)
        return;
    ssize_t got = fd_read_full_at(stream_fd(stream), out->data, wanted, 0);
    buffer_grew(out, got < 0 ? 0 : (size_t)got);
}

static void show_content(struct output_answer *output)
{
    struct answer_bytes bytes = {output->content.data ? output->content.data : "",
                                 output->content.length};
    size_t length = output_text_length(bytes.data, bytes.length);
    bool is_cut = output->has_bytes && (int64_t)bytes.length < output->bytes;

    output->has_content = true;
    // A character that is cut at the end is left out where there is more; else it is part of what was written.
    if (length == bytes.length || (length != NO_TEXT && is_cut)) {
        output->text = (struct answer_bytes){bytes.data, length};
        output->is_truncated = is_cut;
        return;
    }
    output->base64 = bytes;
    output->is_truncated = is_cut;
}

static bool output_read(struct output_answer *output, struct core *core, const char *id,
                        size_t most, bool is_quick)
{
    if (!output->is_told)
        return true;
    autoptr(stream) stream = stream_open_kept(core->streams, id, is_quick);
    if (!stream && is_quick)
        return false;
    if (stream)
        read_stream(stream, most, &output->content);
    show_content(output);
    return true;
}

bool execution_answer_read(struct execution_answer *answer, struct core *core,
                           const struct execution_info *info, size_t most, bool is_quick)
{
    if (is_quick && answer->output.bytes + answer->errors.bytes > QUICK_BYTES)
        return false;
    return output_read(&answer->output, core, info->stdout_stream, most, is_quick) &&
           output_read(&answer->errors, core, info->stderr_stream, most, is_quick);
}

// ---- what it changed ----

void execution_answer_compare(struct execution_answer *answer, struct core *core,
                              const struct actor *actor, const struct execution_info *info)
{
    const struct difference_request want = {
        .from = DIFFERENCE_BASE, .to = DIFFERENCE_NOW, .max_entries = CHANGES_MAX};
    struct error ignored = {0};

    if (difference_get(core->snapshots, actor, info->sandbox_id, &want, &answer->difference,
                       &ignored) < 0)
        return;
    changes_answer_init(&answer->changed, &answer->difference);
    answer->changes = &answer->changed;
}
