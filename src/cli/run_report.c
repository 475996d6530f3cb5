/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a `burrow run`, in words and as JSON; see run_report.h. */
#include "cli/run_report.h"

#include "base/fd.h"
#include "cli/exit.h"
#include "data/failure.h"
#include "data/json_writer.h"
#include "engine/exit_words.h"

#include <string.h>

void run_measure(const struct run_options *options, struct box *box, struct run_result *result)
{
    struct error ignored = {0};
    if (!options->is_json && result->exit.code == 0)
        return;
    if (box_usage(box, &result->usage, &ignored) < 0)
        return;
    result->has_usage = true;
    (void)box_disk_usage(box, &result->disk_bytes, &ignored);
}

static void explain(const struct run_options *options, const struct run_result *result, char *out,
                    size_t size)
{
    const struct exit_use use = {result->usage.procs_refused, result->disk_bytes};

    exit_explain(&result->exit, &options->limits, options->timeout_ms,
                 result->has_usage ? &use : NULL, out, size);
}

static const char *cause_name(enum process_cause cause)
{
    static const char *const names[] = {
        [CAUSE_EXIT] = "exit",       [CAUSE_TIMEOUT] = "timeout",
        [CAUSE_MEMORY] = "memory",   [CAUSE_NOT_FOUND] = "not_found",
        [CAUSE_NOT_RUN] = "not_run", [CAUSE_BOX_ENDED] = "sandbox_ended",
    };
    return names[cause];
}

static void write_output(struct json_writer *json, const char *key, const char *flag,
                         const struct pump *pump)
{
    json_key(json, key);
    json_bytes(json, pump->held.data ? pump->held.data : "", pump->held.length);
    if (pump->is_truncated) {
        json_key(json, flag);
        json_bool(json, true);
    }
}

static void write_number(struct json_writer *json, const char *key, uint64_t number)
{
    json_key(json, key);
    json_natural(json, number);
}

static void write_resources(struct json_writer *json, const struct run_options *options,
                            const struct run_result *result)
{
    json_key(json, "resources");
    json_map_begin(json);
    write_number(json, "cpuUserMs", result->exit.cpu_user_us / 1000);
    write_number(json, "cpuSystemMs", result->exit.cpu_system_us / 1000);
    write_number(json, "maxRssBytes", result->exit.max_rss_bytes);
    if (result->has_usage) {
        write_number(json, "memoryPeakBytes", result->usage.memory_peak_bytes);
        write_number(json, "cpuThrottledMs", result->usage.throttled_usec / 1000);
        write_number(json, "oomKills", result->usage.oom_kills);
        write_number(json, "processesRefused", result->usage.procs_refused);
        write_number(json, "diskBytes", result->disk_bytes);
        json_key(json, "diskLimitReached");
        json_bool(json, exit_is_disk_full(&options->limits, result->disk_bytes));
    }
    json_map_end(json);
}

static void write_result(struct json_writer *json, const struct run_options *options,
                         const struct run_result *result, const struct relay *relay)
{
    char text[256] = "";
    explain(options, result, text, sizeof text);
    json_key(json, "exitCode");
    json_integer(json, result->exit.code);
    if (result->exit.signal) {
        json_key(json, "signal");
        json_integer(json, result->exit.signal);
    }
    write_number(json, "durationMs", result->duration_us / 1000);
    write_output(json, "stdout", "stdoutTruncated", &relay->out[0]);
    write_output(json, "stderr", "stderrTruncated", &relay->out[1]);
    json_key(json, "cause");
    json_string(json, cause_name(result->exit.cause));
    if (*text) {
        json_key(json, "message");
        json_string(json, text);
    }
    write_resources(json, options, result);
}

static void write_failure(struct json_writer *json, const struct error *failure)
{
    json_key(json, "exitCode");
    json_integer(json, EXIT_BURROW);
    json_key(json, "cause");
    json_string(json, "burrow");
    json_key(json, "kind");
    json_string(json, error_reason_name(error_kind(failure)));
    json_key(json, "message");
    json_string(json, failure->text);
    failure_put(json, failure);
}

static int print_json(const struct run_options *options, const struct run_result *result,
                      const struct relay *relay, const struct error *failure)
{
    autobuffer text = {.maximum = 0};
    struct json_writer json;
    struct error err = {0};
    char id[ID_TEXT + 4];

    json_writer_init(&json, &text);
    json_map_begin(&json);
    (void)snprintf(id, sizeof id, "sbx_%s", result->id);
    json_key(&json, "sandboxId");
    json_string(&json, id);
    json_key(&json, "runtime");
    json_string(&json, options->runtime);
    if (failure)
        write_failure(&json, failure);
    else
        write_result(&json, options, result, relay);
    json_map_end(&json);
    if (json_writer_finish(&json, &err) < 0 || buffer_add_text(&text, "\n", &err) < 0) {
        exit_tell(&err);
        return EXIT_BURROW;
    }
    if (fd_write_all(STDOUT_FILENO, text.data, text.length) < 0) {
        error_sys(&err, "write standard output");
        exit_tell(&err);
        return EXIT_BURROW;
    }
    return failure ? EXIT_BURROW : result->exit.code;
}

int run_report(const struct run_options *options, const struct run_result *result,
               const struct relay *relay, const struct error *failure)
{
    char text[256] = "";

    if (options->is_json)
        return print_json(options, result, relay, failure);
    if (failure) {
        exit_tell(failure);
        return EXIT_BURROW;
    }
    explain(options, result, text, sizeof text);
    if (*text)
        (void)fprintf(stderr, "burrow: %s\n", text);
    for (int i = 0; i < 2; i++) {
        if (relay->out[i].is_truncated)
            (void)fprintf(stderr, "burrow: %s was cut at the output limit\n", relay->out[i].what);
    }
    return result->exit.code;
}
