/* SPDX-License-Identifier: Apache-2.0 */
/* burrow events, env, stats, wait, system: what a sandbox and the server can be asked besides. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/mem.h"
#include "cli/listing.h"
#include "cli/pairs.h"
#include "cli/exit.h"
#include "cli/invocation.h"
#include "cli/sandbox_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// ---- events ----

static const struct column event_columns[] = {{"TIME", "createdAt", COLUMN_TEXT},
                                              {"EVENT", "kind", COLUMN_TEXT},
                                              {"REASON", "reason", COLUMN_TEXT},
                                              {"ID", "id", COLUMN_TEXT},
                                              {0}};

/* The last ones, for which all are read: the server has them oldest first. */
static int print_events(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path =
        burrow_path("/sandboxes/%s/events?limit=100", invocation->operands[0], NULL);
    size_t limit = invocation->limit > 0 ? (size_t)invocation->limit : 50;
    autoclear(items) events = {0};

    if (items_gather(invocation, path, SIZE_MAX, NULL, &events, err) < 0)
        return -1;
    size_t count = events.count < limit ? events.count : limit;
    const struct burrow_value **last = events.items + (events.count - count);
    for (size_t i = 0; invocation->is_reverse && i < count / 2; i++) {
        const struct burrow_value *first = last[i];
        last[i] = last[count - 1 - i];
        last[count - 1 - i] = first;
    }
    return columns_print(invocation, last, count, event_columns, err);
}

// ---- env ----

/* Who sets one and takes it away has taken it away. */
static int write_env(const struct invocation *invocation, struct buffer *text,
                     struct burrow_error *err)
{
    const struct option_list *gone = &invocation->deletes;
    struct json_writer json;

    json_writer_init(&json, text);
    json_map_begin(&json);
    json_key(&json, "env");
    json_map_begin(&json);
    for (unsigned i = 1; i < invocation->n_operands; i++) {
        const char *pair = invocation->operands[i], *equals = strchr(pair, '=');
        if (!equals || equals == pair)
            return say_fail(err, BURROW_INVALID,
                            "'%s' is not KEY=VALUE; --delete KEY takes one away", pair);
        if (pairs_have_later(invocation->operands, invocation->n_operands, i) ||
            pairs_have(gone->items, gone->count, pair))
            continue;
        autofree char *name = xstrndup(pair, (size_t)(equals - pair));
        json_key(&json, name);
        json_string(&json, equals + 1);
    }
    for (size_t i = 0; i < gone->count; i++) {
        if (pairs_have_later(gone->items, gone->count, i))
            continue;
        json_key(&json, gone->items[i]);
        json_null(&json);
    }
    json_map_end(&json);
    json_map_end(&json);
    return say_finish(&json, err);
}

static int env(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s", invocation->operands[0], NULL);
    bool is_change = invocation->n_operands > 1 || invocation->deletes.count;
    autobuffer text = {0};
    autoanswer answer = NULL;

    if (is_change && write_env(invocation, &text, err) < 0)
        return -1;
    if (burrow_ask(invocation->client, is_change ? "PATCH" : "GET", path,
                   is_change ? text.data : NULL, &answer, err) < 0)
        return -1;
    const struct burrow_value *map = burrow_get(burrow_answer_value(answer), "env");
    if (invocation->is_json) {
        autobuffer out = {0};
        struct json_writer json;
        json_writer_init(&json, &out);
        json_map_begin(&json);
        say_put(&json, "env", map);
        json_map_end(&json);
        return say_written(&json, &out, err);
    }
    for (const struct burrow_value *each = burrow_first(map); each; each = burrow_next(each)) {
        const char *value = burrow_text(each);
        autofree char *pair = xasprintf("%s=%s", burrow_key(each), value ? value : "");
        say_line(pair);
    }
    return 0;
}

// ---- wait ----

/* Of a sandbox: no other state comes after it. */
static bool is_last_state(const char *state)
{
    return strcmp(state, "ended") == 0 || strcmp(state, "failed") == 0 ||
           strcmp(state, "deleted") == 0;
}

static int wait_for(struct invocation *invocation, struct burrow_error *err)
{
    const char *id = invocation->operands[0];
    bool is_command = strncmp(id, "exe_", 4) == 0 || strncmp(id, "job_", 4) == 0;
    uint64_t left = invocation->timeout_ms;

    burrow_set_timeout(invocation->client, -1);
    for (;;) { // the server waits for a minute at most
        uint64_t step = left < 30000 ? left : 30000;
        autofree char *wait = xasprintf("%" PRIu64, step);
        autofree char *path =
            is_command
                ? burrow_path("/executions/%s?waitMs=%s", id, wait, NULL)
                : burrow_path("/sandboxes/%s/wait?state=%s&waitMs=%s", id,
                              invocation->state ? invocation->state : ENDED_STATES, wait, NULL);
        autoanswer answer = NULL;
        if (burrow_ask(invocation->client, "GET", path, NULL, &answer, err) < 0)
            return -1;
        const struct burrow_value *value = burrow_answer_value(answer);
        bool is_over = is_command ? burrow_get(value, "exitCode") != NULL
                                  : burrow_truth(burrow_get(value, "reached"));
        if (!is_over && !is_command && is_last_state(value_text(value, "state")))
            return say_fail(err, BURROW_GONE, "sandbox '%s' has ended: it is '%s', and stays so",
                            id, value_text(value, "state"));
        if (left != OPTION_UNSET)
            left -= step;
        if (!is_over && left > 0)
            continue;
        if (!is_over)
            return say_fail(err, BURROW_TIMEOUT, "'%s' is '%s' still", id,
                            value_text(value, "state"));
        if (invocation->is_json && say_thing(value, err) < 0)
            return -1;
        if (is_command)
            return (int)burrow_integer(burrow_get(value, "exitCode"), 0) & 255;
        if (!invocation->is_json)
            say_line(value_text(value, "state"));
        return 0;
    }
}

// ---- stats ----

/* Rows by day have the day alone; others, in front of it, what they are by. */
#define STATS_REST                                                                                 \
    {"DAY", "day", COLUMN_DAY}, {">RUNS", "runs", COLUMN_TEXT},                                    \
        {">CPU", "cpuMs", COLUMN_DURATION}, {">DISK", "diskBytes", COLUMN_SIZE},                   \
    {                                                                                              \
        0                                                                                          \
    }
static const struct stats_kind {
    const char *by;
    struct column columns[6];
} stats_kinds[] = {
    {"sandbox", {{"SANDBOX", "sandboxId", COLUMN_TEXT}, STATS_REST}},
    {"key", {{"KEY", "keyId", COLUMN_TEXT}, STATS_REST}},
    {"label", {{"LABELS", "labels", COLUMN_PAIRS}, STATS_REST}},
};
static const struct column stats_by_day[] = {STATS_REST};

static const struct column *stats_columns(const char *by)
{
    for (size_t i = 0; by && i < ARRAY_SIZE(stats_kinds); i++) {
        if (strcmp(stats_kinds[i].by, by) == 0)
            return stats_kinds[i].columns;
    }
    return stats_by_day;
}

static int stats(struct invocation *invocation, struct burrow_error *err)
{
    autobuffer path = {0};
    struct error ignored;
    autoanswer answer = NULL;
    const char *pairs[][2] = {
        {"from", invocation->start}, {"to", invocation->end}, {"by", invocation->by}};

    (void)buffer_add_text(&path, "/usage", &ignored);
    for (size_t i = 0, n = 0; i < ARRAY_SIZE(pairs); i++) {
        autofree char *value = pairs[i][1] ? burrow_path("%s", pairs[i][1], NULL) : NULL;
        if (value)
            (void)buffer_addf(&path, &ignored, "%c%s=%s", n++ ? '&' : '?', pairs[i][0], value);
    }
    if (burrow_ask(invocation->client, "GET", path.data, NULL, &answer, err) < 0)
        return -1;
    const struct burrow_value *value = burrow_answer_value(answer);
    if (invocation->is_json)
        return say_value(value, err);
    return columns_items(invocation, burrow_get(value, "items"), stats_columns(invocation->by),
                         err);
}

// ---- the server ----

static int system_info(struct invocation *invocation, struct burrow_error *err)
{
    static const struct column columns[] = {{"name", "name", COLUMN_TEXT},
                                            {"version", "version", COLUMN_TEXT},
                                            {"status", "status", COLUMN_TEXT},
                                            {"reason", "reason", COLUMN_TEXT},
                                            {"runtime", "runtime", COLUMN_TEXT},
                                            {"ready", "runtimeReady", COLUMN_TRUTH},
                                            {"sandboxes", "sandboxes", COLUMN_TEXT},
                                            {"made ahead", "spareSandboxes", COLUMN_TEXT},
                                            {"running", "executions", COLUMN_TEXT},
                                            {"queued", "queued", COLUMN_TEXT},
                                            {0}};
    autoanswer answer = NULL;

    if (burrow_ask(invocation->client, "GET", "/system/info", NULL, &answer, err) < 0)
        return -1;
    if (!invocation->is_json)
        say_field("server", burrow_url(invocation->client));
    return columns_fields(invocation, burrow_answer_value(answer), columns, err);
}

static void print_parts(const struct burrow_value *parts)
{
    static const char *const heads[] = {"WHAT", ">COUNT", ">SIZE", NULL};
    struct table table;
    char size[SAY_TEXT];

    table_init(&table, heads);
    for (const struct burrow_value *each = burrow_first(parts); each; each = burrow_next(each)) {
        table_add(&table, burrow_key(each));
        table_add(&table, value_text(each, "count"));
        table_add(&table, say_size(burrow_integer(burrow_get(each, "bytes"), 0), size));
    }
    table_print(&table, stdout);
    table_clear(&table);
}

static int system_df(struct invocation *invocation, struct burrow_error *err)
{
    char used[SAY_TEXT], free_text[SAY_TEXT];
    autoanswer answer = NULL;

    if (burrow_ask(invocation->client, "GET", "/system/df", NULL, &answer, err) < 0)
        return -1;
    const struct burrow_value *value = burrow_answer_value(answer);
    if (invocation->is_json)
        return say_value(value, err);
    print_parts(burrow_get(value, "parts"));
    (void)printf("%s used, %s free\n",
                 say_size(burrow_integer(burrow_get(value, "usedBytes"), 0), used),
                 say_size(burrow_integer(burrow_get(value, "volume.freeBytes"), 0), free_text));
    return 0;
}

static int system_prune(struct invocation *invocation, struct burrow_error *err)
{
    char size[SAY_TEXT];
    autoanswer answer = NULL;

    if (!invocation->is_dry_run &&
        !say_confirm(invocation->is_confirmed, "Remove what nothing uses?"))
        return say_fail(err, BURROW_CANCELLED, "nothing was removed");
    if (burrow_ask(invocation->client, "POST", "/system/prune",
                   invocation->is_dry_run ? "{\"dryRun\":true}" : "{}", &answer, err) < 0)
        return -1;
    const struct burrow_value *value = burrow_answer_value(answer);
    if (invocation->is_json)
        return say_value(value, err);
    print_parts(burrow_get(value, "freed"));
    say_done("%s %s", say_size(burrow_integer(burrow_get(value, "freedBytes"), 0), size),
             invocation->is_dry_run ? "could be freed" : "freed");
    return 0;
}

// ---- the table ----

static const struct option_row event_rows[] = {
    OPTION_IN("limit", OPTION_INTEGER, limit, "N", "the last so many (default 50)", 1, LIST_MOST),
    OPTION("reverse", 0, OPTION_FLAG, is_reverse, NULL, "the newest first"),
    {0}};
static const struct option_row env_rows[] = {
    OPTION("delete", 'd', OPTION_LIST, deletes, "KEY", "take a variable away (repeatable)"), {0}};
static const struct option_row wait_rows[] = {
    OPTION("state", 0, OPTION_TEXT, state, "STATES",
           "for one of these, with commas between (default: its end)"),
    OPTION("timeout", 0, OPTION_DURATION, timeout_ms, "DURATION",
           "for at most so long, then end with 124"),
    {0}};
static const struct option_row stats_rows[] = {
    OPTION("start", 0, OPTION_TEXT, start, "TIME", "from this time on: 2026-04-01T00:00:00Z"),
    OPTION("end", 0, OPTION_TEXT, end, "TIME", "until this time (default: now)"),
    OPTION("by", 0, OPTION_TEXT, by, "WORD", "by day, sandbox, key or label (default day)"),
    {0}};
static const struct option_row prune_rows[] = {
    OPTION("dry-run", 'n', OPTION_FLAG, is_dry_run, NULL, "say only what would be freed"),
    OPTION("confirm", 'y', OPTION_FLAG, is_confirmed, NULL, "do not ask"),
    {0}};
static const char *const event_examples[] = {"$ burrow events work --reverse --limit 10", NULL};
static const char *const env_examples[] = {"$ burrow env work VAR1=value1 VAR2=value2",
                                           "$ burrow env work -d VAR1", NULL};
static const char *const wait_examples[] = {"$ burrow wait work --state idle --timeout 1m",
                                            "$ burrow wait exe_abc", NULL};
static const char *const stats_examples[] = {
    "$ burrow stats --start 2026-04-01T00:00:00Z --by sandbox", NULL};
static const char *const system_examples[] = {"$ burrow system df",
                                              "$ burrow system prune --dry-run", NULL};

const struct cli_command server_commands[] = {
    {"", "events", "SANDBOX", "list what happened to a sandbox, oldest first", NULL, event_rows,
     event_examples, COMMAND_SERVER, print_events},
    {"", "env", "SANDBOX [KEY=VALUE...]", "show, set and take away variables of a sandbox", NULL,
     env_rows, env_examples, COMMAND_SERVER, env},
    {"", "wait", "SANDBOX|EXECUTION", "wait for a state of a sandbox, or for a command's end", NULL,
     wait_rows, wait_examples, COMMAND_SERVER, wait_for},
    {"", "stats", "", "tell what was used", NULL, stats_rows, stats_examples, COMMAND_SERVER,
     stats},
    {"system", "info", "", "tell about the server", NULL, NULL, system_examples, COMMAND_SERVER,
     system_info},
    {"system", "df", "", "tell what takes room on its disk", NULL, NULL, system_examples,
     COMMAND_SERVER, system_df},
    {"system", "prune", "", "give back what nothing uses", NULL, prune_rows, system_examples,
     COMMAND_SERVER, system_prune},
    {0},
};
