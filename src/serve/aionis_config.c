/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the Aionis front; see aionis_config.h. */
#include "serve/aionis_config.h"

#include "base/mem.h"
#include "serve/config.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_MS 1000LL
#define HOUR_MS (3600 * SECOND_MS)
#define DAY_MS (24 * HOUR_MS)
#define RATE_MAX 1000000000

#define ROW(name, type, member, argument, variable, minimum, maximum, help)                        \
    {                                                                                              \
        "aionis-" name, 0, type, offsetof(struct config, aionis.member), argument, help,           \
            "BURROW_AIONIS_" variable, minimum, maximum                                            \
    }
#define TEXT(name, member, variable, help)                                                         \
    ROW(name, OPTION_TEXT, member, "TEXT", variable, 0, 0, help)

static const struct option_row rows[] = {
    TEXT("enabled", enabled, "ENABLED", "whether there is a sandbox at all"),
    TEXT("admin-only", admin_only, "ADMIN_ONLY", "only for those who send the admin's token"),
    TEXT("admin-token", admin_token, "ADMIN_TOKEN", "that token"),
    TEXT("executor", executor, "EXECUTOR", "who runs commands: local_process"),
    TEXT("preset", preset, "PRESET", "a named choice of settings: local_process_echo"),
    TEXT("commands", commands, "COMMANDS", "what may be run: a JSON array of names"),
    TEXT("directory", directory, "DIRECTORY", "where commands start, in their session"),
    ROW("timeout", OPTION_DURATION, timeout_ms, "TIME", "TIMEOUT", 1, 600 * SECOND_MS,
        "of a run that asks for none"),
    ROW("output-limit", OPTION_SIZE, output_bytes, "SIZE", "OUTPUT_LIMIT", 1, 1 << 20,
        "kept of each output"),
    TEXT("object-store", object_store, "OBJECT_STORE", "the beginning of artifacts' URIs"),
    ROW("concurrency", OPTION_INTEGER, queue_at_once, "N", "CONCURRENCY", 1, 16,
        "async runs at once"),
    ROW("queue", OPTION_INTEGER, queue_length, "N", "QUEUE", 1, 1000000,
        "async runs that may wait"),
    ROW("max-runs", OPTION_INTEGER, max_sync, "N", "MAX_RUNS", 1, 100000,
        "runs under way past which no sync one starts"),
    ROW("heartbeat", OPTION_DURATION, heartbeat_ms, "TIME", "HEARTBEAT", 0, 60 * SECOND_MS,
        "0 is none"),
    ROW("stale-after", OPTION_DURATION, stale_ms, "TIME", "STALE_AFTER", 1, DAY_MS,
        "said of runs that were lost"),
    ROW("recovery-poll", OPTION_DURATION, recovery_poll_ms, "TIME", "RECOVERY_POLL", 0,
        300 * SECOND_MS, "0 is none"),
    ROW("keep", OPTION_DURATION, keep_ms, "TIME", "KEEP", HOUR_MS, 36500 * DAY_MS,
        "how long runs, and sessions that nobody uses, are kept"),
    ROW("budget-window", OPTION_DURATION, budget_window_ms, "TIME", "BUDGET_WINDOW", HOUR_MS,
        168 * HOUR_MS, "the time that budgets are for"),
    TEXT("budgets", budgets, "BUDGETS", "caps by tenant: a JSON object"),
    TEXT("rate-limited", rate_limited, "RATE_LIMITED",
         "whether clients other than loopback are held back"),
    ROW("write-rate", OPTION_CPU, write_rate, "RATE", "WRITE_RATE", 1, RATE_MAX, "writes a second"),
    ROW("write-burst", OPTION_INTEGER, write_burst, "N", "WRITE_BURST", 1, RATE_MAX,
        "writes at once"),
    ROW("read-rate", OPTION_CPU, read_rate, "RATE", "READ_RATE", 1, RATE_MAX, "reads a second"),
    ROW("read-burst", OPTION_INTEGER, read_burst, "N", "READ_BURST", 1, RATE_MAX, "reads at once"),
    ROW("write-wait", OPTION_DURATION, write_wait_ms, "TIME", "WRITE_WAIT", 0, 5 * SECOND_MS,
        "how long a write over the limit is held back before it is refused"),
    ROW("rate-ttl", OPTION_DURATION, rate_ttl_ms, "TIME", "RATE_TTL", SECOND_MS, DAY_MS,
        "after which a client is forgotten"),
    TEXT("tenant", tenant, "TENANT", "of calls that name none"),
    TEXT("scope", scope, "SCOPE", "of calls that name none"),
    TEXT("origins", origins, "ORIGINS", "whose pages may call"),
    TEXT("trust-proxy", proxy_trusted, "TRUST_PROXY", "whether X-Forwarded-For counts"),
    TEXT("proxies", proxies, "PROXIES", "networks of the proxies that it counts from"),
    {0},
};

const struct option_set aionis_options = {.command = "burrow serve", .rows = rows};

// ---- the vendor's names ----

enum spelling {
    AS_IS,
    AS_MS,    // milliseconds, as a number
    AS_HOURS, //
    AS_DAYS,
    AS_DIRECTORY, // relative ones are below where commands start
    CHECKED_FLAG, // of no effect here, but not nonsense either
    CHECKED_NUMBER,
};

static const struct vendor_row {
    const char *name;
    enum spelling spelling;
    const char *own; // the end of burrow's name; NULL: it has no effect
    int64_t minimum, maximum;
} vendor_rows[] = {
    {"SANDBOX_ENABLED", AS_IS, "ENABLED"},
    {"SANDBOX_ADMIN_ONLY", AS_IS, "ADMIN_ONLY"},
    {"ADMIN_TOKEN", AS_IS, "ADMIN_TOKEN"},
    {"SANDBOX_EXECUTOR_MODE", AS_IS, "EXECUTOR"},
    {"SANDBOX_EXECUTOR_MAX_CONCURRENCY", AS_IS, "CONCURRENCY"},
    {"SANDBOX_EXECUTOR_TIMEOUT_MS", AS_MS, "TIMEOUT"},
    {"SANDBOX_STDIO_MAX_BYTES", AS_IS, "OUTPUT_LIMIT"},
    {"SANDBOX_ALLOWED_COMMANDS_JSON", AS_IS, "COMMANDS"},
    {"SANDBOX_EXECUTOR_WORKDIR", AS_DIRECTORY, "DIRECTORY"},
    {"LITE_SANDBOX_PROFILE", AS_IS, "PRESET"},
    {"SANDBOX_ARTIFACT_OBJECT_STORE_BASE_URI", AS_IS, "OBJECT_STORE"},
    {"SANDBOX_RUN_HEARTBEAT_INTERVAL_MS", AS_MS, "HEARTBEAT"},
    {"SANDBOX_RUN_STALE_AFTER_MS", AS_MS, "STALE_AFTER"},
    {"SANDBOX_RUN_RECOVERY_POLL_INTERVAL_MS", AS_MS, "RECOVERY_POLL"},
    {"SANDBOX_RUN_RECOVERY_BATCH_SIZE", CHECKED_NUMBER, NULL, 1, 10000},
    {"SANDBOX_RETENTION_DAYS", AS_DAYS, "KEEP"},
    {"SANDBOX_RETENTION_BATCH_SIZE", CHECKED_NUMBER, NULL, 1, INT64_MAX},
    {"SANDBOX_TENANT_BUDGET_WINDOW_HOURS", AS_HOURS, "BUDGET_WINDOW"},
    {"SANDBOX_TENANT_BUDGET_POLICY_JSON", AS_IS, "BUDGETS"},
    {"SANDBOX_WRITE_RATE_LIMIT_RPS", AS_IS, "WRITE_RATE"},
    {"SANDBOX_WRITE_RATE_LIMIT_BURST", AS_IS, "WRITE_BURST"},
    {"SANDBOX_READ_RATE_LIMIT_RPS", AS_IS, "READ_RATE"},
    {"SANDBOX_READ_RATE_LIMIT_BURST", AS_IS, "READ_BURST"},
    {"WRITE_RATE_LIMIT_MAX_WAIT_MS", AS_MS, "WRITE_WAIT"},
    {"RATE_LIMIT_ENABLED", AS_IS, "RATE_LIMITED"},
    {"RATE_LIMIT_BYPASS_LOOPBACK", CHECKED_FLAG},
    {"RATE_LIMIT_TTL_MS", AS_MS, "RATE_TTL"},
    {"SANDBOX_LOCAL_PROCESS_ALLOW_IN_PROD", CHECKED_FLAG},
    {"MEMORY_TENANT_ID", AS_IS, "TENANT"},
    {"MEMORY_SCOPE", AS_IS, "SCOPE"},
    {"CORS_ALLOW_ORIGINS", AS_IS, "ORIGINS"},
    {"TRUST_PROXY", AS_IS, "TRUST_PROXY"},
    {"TRUSTED_PROXY_CIDRS", AS_IS, "PROXIES"},
};

static int read_number(const char *text, int64_t *out, struct error *err)
{
    errno = 0;
    *out = strtoll(text, NULL, 10);
    if (!*text || strlen(text) > 18 || text[strspn(text, "0123456789")])
        return error_set(err, ERROR_INVALID, "'%.40s' is no whole number", text);
    return 0;
}

static int check_row(const struct vendor_row *row, const char *value, struct error *err)
{
    int64_t number = 0;
    bool ignored;

    if (row->spelling == CHECKED_FLAG)
        return aionis_flag(row->name, value, &ignored, err);
    if (read_number(value, &number, err) < 0)
        return -1;
    if (number < row->minimum || number > row->maximum)
        return error_set(err, ERROR_INVALID, "'%.40s' is out of range", value);
    return 0;
}

/* The value as burrow's own name takes it; the text is the caller's. */
static int respell(const struct vendor_row *row, const char *value, char **out, struct error *err)
{
    int64_t number = 0;

    if (row->spelling == AS_IS || row->spelling == AS_DIRECTORY) {
        bool is_relative = row->spelling == AS_DIRECTORY && value[0] != '/';
        *out = is_relative ? xasprintf(AIONIS_DIRECTORY "/%s", value) : xstrdup(value);
        return 0;
    }
    if (read_number(value, &number, err) < 0)
        return -1;
    if (row->spelling == AS_MS)
        *out = xasprintf("%sms", value);
    else
        *out = xasprintf("%lldh", (long long)(row->spelling == AS_DAYS ? number * 24 : number));
    return 0;
}

static int take_row(const struct vendor_row *row, const char *value, struct config *config,
                    struct error *err)
{
    char name[64];
    char *text = NULL;

    if (!row->own)
        return check_row(row, value, err);
    if (respell(row, value, &text, err) < 0)
        return -1;
    config_keep(config, text);
    (void)snprintf(name, sizeof name, "BURROW_AIONIS_%s", row->own);
    return options_set(&aionis_options, name, text, config, err);
}

int aionis_config_read_vendor(struct config *config, struct error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(vendor_rows); i++) {
        const char *value = getenv(vendor_rows[i].name);
        if (value && *value && take_row(&vendor_rows[i], value, config, err) < 0)
            return error_wrap(err, "environment variable %s", vendor_rows[i].name);
    }
    return 0;
}
