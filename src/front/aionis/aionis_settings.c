/* SPDX-License-Identifier: Apache-2.0 */
/* What the front is told, read and checked; see aionis.h. */
#include "base/mem.h"
#include "front/aionis/aionis_request.h"
#include "front/aionis/wide.h"

#include <string.h>
#include <strings.h>

#define DAY_MS ((uint64_t)24 * 3600 * 1000)

const struct aionis_settings aionis_settings_default = {
    .enabled = "true",
    .admin_only = "false",
    .executor = AIONIS_EXECUTOR,
    .directory = AIONIS_DIRECTORY,
    .timeout_ms = 15000,
    .output_bytes = 65536,
    .queue_at_once = 2,
    .queue_length = 10000,
    .max_sync = 256,
    .heartbeat_ms = 5000,
    .stale_ms = 120000,
    .recovery_poll_ms = 15000,
    .keep_ms = 30 * DAY_MS,
    .budget_window_ms = DAY_MS,
    .budgets = "{}",
    .rate_limited = "true",
    .write_rate = 5000,
    .write_burst = 10,
    .read_rate = 20000,
    .read_burst = 40,
    .write_wait_ms = 200,
    .rate_ttl_ms = 600000,
    .tenant = "default",
    .scope = "default",
    .proxy_trusted = "false",
};

int aionis_flag(const char *name, const char *text, bool *out, struct error *err)
{
    if (strcasecmp(text, "true") != 0 && strcasecmp(text, "false") != 0)
        return error_set(err, ERROR_INVALID, "%s must be true or false, not '%.40s'", name, text);
    *out = strcasecmp(text, "true") == 0;
    return 0;
}

/* Only what this server can keep is promised. */
static int check_executor(const struct aionis_settings *settings, struct error *err)
{
    if (strcmp(settings->executor, AIONIS_EXECUTOR) == 0)
        return 0;
    if (strcmp(settings->executor, "mock") == 0)
        return error_set(
            err, ERROR_INVALID,
            "the executor 'mock' runs nothing and says that it did; burrow has a real one: leave "
            "SANDBOX_EXECUTOR_MODE away or set it to '" AIONIS_EXECUTOR "'");
    if (strcmp(settings->executor, "http_remote") == 0)
        return error_set(err, ERROR_INVALID,
                         "the executor 'http_remote' sends commands to another server; burrow runs "
                         "them itself: leave "
                         "SANDBOX_EXECUTOR_MODE away or set it to '" AIONIS_EXECUTOR "'");
    return error_set(err, ERROR_INVALID, "there is no executor '%.40s': use '" AIONIS_EXECUTOR "'",
                     settings->executor);
}

static int read_commands(const struct aionis_settings *settings, struct commands *out,
                         struct error *err)
{
    // An unknown preset must not be taken for one that narrows nothing.
    if (settings->preset && *settings->preset && strcmp(settings->preset, AIONIS_PRESET) != 0)
        return error_set(err, ERROR_INVALID,
                         "there is no preset '%.60s' (LITE_SANDBOX_PROFILE): the only one is '%s'",
                         settings->preset, AIONIS_PRESET);
    return commands_read(settings->commands ? settings->commands : "[\"echo\"]", out, err);
}

static int read_limits(struct aionis *aionis, struct error *err)
{
    const struct aionis_settings *settings = aionis->settings;
    const struct rate_limits limits = {
        .of = {[RATE_WRITE] = {settings->write_rate / 1000.0, settings->write_burst},
               [RATE_READ] = {settings->read_rate / 1000.0, settings->read_burst}},
        .ttl_ms = settings->rate_ttl_ms,
    };
    bool is_limited = false, is_proxy_trusted = false;

    if (aionis_flag("RATE_LIMIT_ENABLED", settings->rate_limited, &is_limited, err) < 0 ||
        aionis_flag("TRUST_PROXY", settings->proxy_trusted, &is_proxy_trusted, err) < 0)
        return -1;
    if (is_limited)
        aionis->limiter = rate_limiter_new(&limits);
    return is_proxy_trusted
               ? proxies_read(settings->proxies ? settings->proxies : "", &aionis->proxies, err)
               : 0;
}

/* Settings that do not go together. */
static int check_together(const struct aionis *aionis, struct error *err)
{
    const struct aionis_settings *settings = aionis->settings;

    if (aionis->is_enabled && aionis->commands.count == 0)
        return error_set(err, ERROR_INVALID,
                         "no command may be run: name some in SANDBOX_ALLOWED_COMMANDS_JSON, or "
                         "turn the sandbox off with "
                         "SANDBOX_ENABLED=false");
    if (settings->heartbeat_ms >= settings->stale_ms)
        return error_set(
            err, ERROR_INVALID,
            "SANDBOX_RUN_HEARTBEAT_INTERVAL_MS must be less than SANDBOX_RUN_STALE_AFTER_MS");
    if (budgets_tenants(aionis->budgets) > 0 && settings->keep_ms < settings->budget_window_ms)
        return error_set(err, ERROR_INVALID,
                         "runs must be kept (SANDBOX_RETENTION_DAYS) for as long as budgets count "
                         "them (SANDBOX_TENANT_BUDGET_WINDOW_HOURS)");
    return 0;
}

static bool is_name(const char *text, bool (*is_good)(const char *text))
{
    struct wide_text trimmed = wide_trim((struct wide_text){text, strlen(text)});
    autofree char *name = xasprintf("%.*s", (int)trimmed.length, trimmed.text);

    return is_good(name);
}

static int check_values(const struct aionis_settings *settings, struct error *err)
{
    if (!is_name(settings->tenant, request_is_tenant))
        return error_set(err, ERROR_INVALID, "MEMORY_TENANT_ID '%.80s' cannot be a tenant",
                         settings->tenant);
    if (!is_name(settings->scope, request_is_scope))
        return error_set(err, ERROR_INVALID, "MEMORY_SCOPE '%.80s' cannot be a scope",
                         settings->scope);
    if (settings->origins && strchr(settings->origins, '*'))
        return error_set(err, ERROR_INVALID,
                         "CORS_ALLOW_ORIGINS must name the pages that may call, such as "
                         "https://app.example.com; '*' would let "
                         "every page do that");
    if (settings->object_store && !strstr(settings->object_store, "://"))
        return error_set(
            err, ERROR_INVALID,
            "SANDBOX_ARTIFACT_OBJECT_STORE_BASE_URI '%.80s' has no scheme such as s3://",
            settings->object_store);
    if (settings->directory[0] != '/')
        return error_set(err, ERROR_INVALID,
                         "the working directory '%.80s' is not an absolute path",
                         settings->directory);
    return 0;
}

int aionis_read(struct aionis *aionis, struct error *err)
{
    const struct aionis_settings *settings = aionis->settings;

    if (aionis_flag("SANDBOX_ENABLED", settings->enabled, &aionis->is_enabled, err) < 0 ||
        aionis_flag("SANDBOX_ADMIN_ONLY", settings->admin_only, &aionis->is_admin_only, err) < 0 ||
        check_executor(settings, err) < 0 || read_commands(settings, &aionis->commands, err) < 0 ||
        budgets_read(settings->budgets, &aionis->budgets, err) < 0 || read_limits(aionis, err) < 0)
        return -1;
    return check_together(aionis, err) < 0 ? -1 : check_values(settings, err);
}

int aionis_settings_check(const struct aionis_settings *settings, struct error *err)
{
    struct front front = {0};

    int result = aionis_front_init(&front, settings, err);
    aionis_front_clear(&front);
    return result;
}
