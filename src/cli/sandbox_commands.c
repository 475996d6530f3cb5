/* SPDX-License-Identifier: Apache-2.0 */
/* burrow create, list, get, delete, pause, resume, fork, wait, env: sandboxes of a server. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/size.h"
#include "cli/exit.h"
#include "cli/invocation.h"
#include "cli/remote_run.h"
#include "cli/sandbox_options.h"
#include "cli/say.h"

#include <stdlib.h>
#include <string.h>

#define LIST_MOST 100

static const char *value_text(const struct burrow_value *map, const char *name)
{
    const char *text = burrow_text(burrow_get(map, name));

    return text ? text : "";
}

// ---- create ----

/* As the pages of the SDKs have it, beside burrow's own names. */
static int tell_created(const struct burrow_value *value, struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    say_put(&json, "sandboxId", burrow_get(value, "id"));
    say_put(&json, "status", burrow_get(value, "state"));
    for (const struct burrow_value *each = burrow_first(value); each; each = burrow_next(each))
        say_put(&json, burrow_key(each), each);
    json_map_end(&json);
    return say_written(&json, &text, err);
}

static int create(struct invocation *invocation, struct burrow_error *err)
{
    autobuffer text = {0};
    autoanswer answer = NULL;
    uint64_t since = clock_monotonic_ms();

    if (sandbox_options_write(invocation, NULL, &text, err) < 0 ||
        burrow_ask(invocation->client, "POST", "/sandboxes", text.data, &answer, err) < 0)
        return -1;
    const struct burrow_value *value = burrow_answer_value(answer);
    if (invocation->is_json)
        return tell_created(value, err);
    if (invocation->is_quiet) {
        (void)puts(value_text(value, "id"));
        return 0;
    }
    say_done("created sandbox %s in %llums", value_text(value, "id"),
             (unsigned long long)(clock_monotonic_ms() - since));
    if (*value_text(value, "url"))
        (void)printf("%s url: %s\n", say_has_colours() ? "ℹ" : " ", value_text(value, "url"));
    return 0;
}

// ---- list ----

/* The page of the vendor has words that this server's states are others for. */
static const char *state_of(const char *word)
{
    static const char *const rows[][2] = {{"suspended", "paused"}, {NULL, NULL}};

    for (size_t i = 0; word && rows[i][0]; i++) {
        if (strcmp(word, rows[i][0]) == 0)
            return rows[i][1];
    }
    return word;
}

static const char *sort_key(const struct burrow_value *item, const char *field)
{
    static const char *const rows[][2] = {{"name", "name"},         {"created", "createdAt"},
                                          {"updated", "updatedAt"}, {"status", "state"},
                                          {"mode", "mode"},         {NULL, NULL}};

    for (size_t i = 0; rows[i][0]; i++) {
        if (strcmp(field, rows[i][0]) == 0)
            return value_text(item, rows[i][1]);
    }
    return "";
}

struct order {
    const char *field;
    bool is_ascending;
};

static int compare(const void *a, const void *b, void *context)
{
    const struct order *order = context;
    const struct burrow_value *left = *(const struct burrow_value *const *)a;
    const struct burrow_value *right = *(const struct burrow_value *const *)b;
    int result;

    if (strcmp(order->field, "execution_count") == 0) {
        int64_t x = burrow_integer(burrow_get(left, "executions"), 0);
        int64_t y = burrow_integer(burrow_get(right, "executions"), 0);
        result = (x > y) - (x < y);
    } else {
        result = strcmp(sort_key(left, order->field), sort_key(right, order->field));
    }
    return order->is_ascending ? result : -result;
}

static void add_row(struct table *table, const struct burrow_value *item)
{
    char text[SAY_TEXT];
    const char *state = value_text(item, "state");

    table_add(table, value_text(item, "id"));
    table_add(table, value_text(item, "name"));
    table_add_colour(table, state, say_state_colour(state));
    table_add(table, value_text(item, "runtime"));
    table_add(table, say_ago(value_text(item, "createdAt"), text));
    table_add(table, value_text(item, "executions"));
}

static int print_items(const struct invocation *invocation, const struct burrow_value **items,
                       size_t count, struct burrow_error *err)
{
    static const char *const heads[] = {"ID",      "NAME",      "STATE", "RUNTIME",
                                        "CREATED", ">COMMANDS", NULL};
    struct table table;

    if (invocation->is_json) {
        autobuffer text = {0};
        struct json_writer json;
        json_writer_init(&json, &text);
        json_list_begin(&json);
        for (size_t i = 0; i < count; i++)
            say_put(&json, NULL, items[i]);
        json_list_end(&json);
        return say_written(&json, &text, err);
    }
    if (invocation->is_quiet) {
        for (size_t i = 0; i < count; i++)
            (void)puts(value_text(items[i], "id"));
        return 0;
    }
    table_init(&table, heads);
    for (size_t i = 0; i < count; i++)
        add_row(&table, items[i]);
    table_print(&table, stdout);
    table_clear(&table);
    return 0;
}

static int check_list(const struct invocation *invocation, struct burrow_error *err)
{
    static const char *const fields[] = {"name", "created",         "updated", "status",
                                         "mode", "execution_count", NULL};
    bool is_known = !invocation->sort;

    for (size_t i = 0; fields[i] && invocation->sort; i++)
        is_known |= strcmp(fields[i], invocation->sort) == 0;
    if (!is_known)
        return say_fail(
            err, BURROW_INVALID,
            "--sort is name, created, updated, status, mode or execution_count, not '%s'",
            invocation->sort);
    if (invocation->direction && strcmp(invocation->direction, "asc") != 0 &&
        strcmp(invocation->direction, "desc") != 0)
        return say_fail(err, BURROW_INVALID, "--direction is asc or desc, not '%s'",
                        invocation->direction);
    if (invocation->limit == 0 || invocation->limit > LIST_MOST)
        return say_fail(err, BURROW_INVALID, "--limit is 1 to %d", LIST_MOST);
    return 0;
}

/* Newest first is how the server has them: only other orders need more than was asked for. */
static bool is_usual_order(const struct invocation *invocation)
{
    return (!invocation->sort || strcmp(invocation->sort, "created") == 0) &&
           (!invocation->direction || strcmp(invocation->direction, "desc") == 0);
}

static char *list_path(const struct invocation *invocation, uint64_t count)
{
    char limit[24];
    struct buffer path = {0};
    struct error ignored;

    (void)snprintf(limit, sizeof limit, "%llu", (unsigned long long)count);
    autofree char *start = burrow_path("/sandboxes?limit=%s", limit, NULL);
    (void)buffer_add_text(&path, start, &ignored);
    const char *pairs[][2] = {{"state", state_of(invocation->status)},
                              {"name", invocation->name},
                              {"project", invocation->is_all ? NULL : invocation->project_id},
                              {"selector", invocation->selector}};
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        autofree char *value = pairs[i][1] ? burrow_path("%s", pairs[i][1], NULL) : NULL;
        if (value)
            (void)buffer_addf(&path, &ignored, "&%s=%s", pairs[i][0], value);
    }
    return path.data;
}

struct kept {
    struct burrow_answer **answers;
    const struct burrow_value **items;
    size_t n_answers, count;
};

static bool is_wanted(const struct invocation *invocation, const struct burrow_value *item)
{
    const char *mode = value_text(item, "mode");

    if (!invocation->mode)
        return true;
    return strcmp(mode, invocation->mode) == 0 ||
           (strcmp(mode, "one_shot") == 0 && strcmp(invocation->mode, "oneshot") == 0);
}

/* Pages until there are as many as are wanted. */
static int gather(const struct invocation *invocation, uint64_t wanted, struct kept *kept,
                  struct burrow_error *err)
{
    autofree char *path = list_path(invocation, wanted < LIST_MOST ? wanted : LIST_MOST);
    autofree char *next = xstrdup(path);

    while (next && kept->count < wanted) {
        struct burrow_answer *answer = NULL;
        if (burrow_ask(invocation->client, "GET", next, NULL, &answer, err) < 0)
            return -1;
        kept->answers = xrealloc(kept->answers, kept->n_answers + 1, sizeof *kept->answers);
        kept->answers[kept->n_answers++] = answer;
        const struct burrow_value *page = burrow_answer_value(answer);
        const struct burrow_value *items = burrow_get(page, "items");
        kept->items =
            xrealloc(kept->items, kept->count + burrow_count(items) + 1, sizeof *kept->items);
        for (const struct burrow_value *each = burrow_first(items); each;
             each = burrow_next(each)) {
            if (is_wanted(invocation, each))
                kept->items[kept->count++] = each;
        }
        const char *cursor = burrow_text(burrow_get(page, "nextCursor"));
        free(next);
        autofree char *encoded = cursor ? burrow_path("%s", cursor, NULL) : NULL;
        next = encoded ? xasprintf("%s&cursor=%s", path, encoded) : NULL;
    }
    return 0;
}

static void kept_clear(struct kept *kept)
{
    for (size_t i = 0; i < kept->n_answers; i++)
        burrow_answer_free(kept->answers[i]);
    free(kept->answers);
    free(kept->items);
}

#define SORTED_MOST 10000 // looked at where the order is not the server's

static int list(struct invocation *invocation, struct burrow_error *err)
{
    autoclear(kept) kept = {0};
    size_t limit = invocation->limit > 0 ? (size_t)invocation->limit : 50;
    size_t offset = invocation->offset > 0 ? (size_t)invocation->offset : 0;
    struct order order = {invocation->sort ? invocation->sort : "created",
                          invocation->direction && strcmp(invocation->direction, "asc") == 0};

    if (check_list(invocation, err) < 0)
        return -1;
    bool is_usual = is_usual_order(invocation);
    if (gather(invocation, is_usual ? offset + limit : SORTED_MOST, &kept, err) < 0)
        return -1;
    if (!is_usual && kept.count)
        qsort_r(kept.items, kept.count, sizeof *kept.items, compare, &order);
    size_t from = offset < kept.count ? offset : kept.count;
    size_t count = kept.count - from < limit ? kept.count - from : limit;
    return print_items(invocation, kept.items + from, count, err);
}

// ---- get ----

static void print_limits(const struct burrow_value *limits)
{
    char memory[SAY_TEXT], disk[SAY_TEXT], text[200];

    (void)snprintf(text, sizeof text, "%s memory, %.2f processors, %s disk, %lld processes",
                   say_size(burrow_integer(burrow_get(limits, "memoryBytes"), 0), memory),
                   (double)burrow_integer(burrow_get(limits, "cpuMillicores"), 0) / 1000,
                   say_size(burrow_integer(burrow_get(limits, "diskBytes"), 0), disk),
                   (long long)burrow_integer(burrow_get(limits, "maxProcesses"), 0));
    say_field("limits", text);
}

static void print_pairs(const char *name, const struct burrow_value *map)
{
    for (const struct burrow_value *each = burrow_first(map); each; each = burrow_next(each)) {
        autofree char *pair =
            xasprintf("%s=%s", burrow_key(each), burrow_text(each) ? burrow_text(each) : "");
        say_field(name, pair);
        name = "";
    }
}

void sandbox_print(const struct burrow_value *value)
{
    char text[SAY_TEXT];

    say_field("id", value_text(value, "id"));
    say_field("name", value_text(value, "name"));
    say_field("description", value_text(value, "description"));
    say_field("state", value_text(value, "state"));
    say_field("error", value_text(value, "error"));
    say_field("mode", value_text(value, "mode"));
    say_field("runtime", value_text(value, "runtime"));
    say_field("snapshot", value_text(value, "snapshotId"));
    say_field("url", value_text(value, "url"));
    say_field("created", say_ago(value_text(value, "createdAt"), text));
    print_limits(burrow_get(value, "limits"));
    int64_t idle = burrow_integer(burrow_get(value, "idleTimeoutMs"), 0);
    say_field("idle timeout", idle ? say_duration(idle, text) : "never");
    print_pairs("labels", burrow_get(value, "labels"));
    print_pairs("env", burrow_get(value, "env"));
    say_field_value("network", burrow_get(value, "network.enabled"));
    say_field_value("commands", burrow_get(value, "executions"));
    say_field_value("exit code", burrow_get(value, "exitCode"));
}

static int get(struct invocation *invocation, struct burrow_error *err)
{
    autoanswer answer = NULL;

    if (burrow_sandbox_get(invocation->client, invocation->operands[0], &answer, err) < 0)
        return -1;
    if (invocation->is_json)
        return tell_created(burrow_answer_value(answer), err);
    sandbox_print(burrow_answer_value(answer));
    return 0;
}

// ---- end, pause, resume ----

static int delete (struct invocation *invocation, struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_list_begin(&json);
    for (unsigned i = 0; i < invocation->n_operands; i++) {
        const char *id = invocation->operands[i];
        if (!say_confirm(invocation->is_confirmed || invocation->is_json,
                         "Delete sandbox '%s' and all its files?", id))
            return say_fail(err, BURROW_CANCELLED, "sandbox '%s' stays", id);
        if (burrow_sandbox_delete(invocation->client, id, err) < 0)
            return -1;
        json_string(&json, id);
        if (!invocation->is_json)
            say_done("deleted sandbox %s", id);
    }
    json_list_end(&json);
    if (!invocation->is_json)
        return 0;
    if (invocation->n_operands > 1)
        return say_written(&json, &text, err);
    autobuffer one = {0};
    json_writer_init(&json, &one);
    json_map_begin(&json);
    json_key(&json, "success");
    json_bool(&json, true);
    say_put_text(&json, "sandboxId", invocation->operands[0]);
    json_map_end(&json);
    return say_written(&json, &one, err);
}

static int change_state(struct invocation *invocation, const char *format, const char *word,
                        struct burrow_error *err)
{
    autofree char *path = burrow_path(format, invocation->operands[0], NULL);
    autoanswer answer = NULL;

    if (burrow_ask(invocation->client, "POST", path, NULL, &answer, err) < 0)
        return -1;
    if (invocation->is_json)
        return tell_created(burrow_answer_value(answer), err);
    say_done("%s sandbox %s", word, invocation->operands[0]);
    return 0;
}

static int pause_it(struct invocation *invocation, struct burrow_error *err)
{
    return change_state(invocation, "/sandboxes/%s/pause", "paused", err);
}

static int resume(struct invocation *invocation, struct burrow_error *err)
{
    return change_state(invocation, "/sandboxes/%s/resume", "resumed", err);
}

// ---- the table ----

static const struct option_row create_rows[] = {
    SANDBOX_ROWS,
    OPTION("idle-timeout", 0, OPTION_DURATION, idle_timeout_ms, "DURATION",
           "end it after so long without use: 1h; 0 is never (default: the server's, 10m)"),
    OPTION("on-idle", 0, OPTION_TEXT, on_idle, "WORD",
           "what happens then: end, pause or keep_files (default end)"),
    OPTION("name", 0, OPTION_TEXT, name, "NAME", "a name, which then stands for its id"),
    OPTION("description", 0, OPTION_TEXT, description, "TEXT", "what it is for"),
    OPTION("label", 'l', OPTION_LIST, labels, "KEY=VALUE", "to find it by (repeatable)"),
    OPTION("metadata", 0, OPTION_TEXT, metadata, "JSON", "an object that is kept with it"),
    OPTION("port", 0, OPTION_INTEGER, port, "PORT", "a port to expose, 1024 to 65535"),
    OPTION("workdir", 'w', OPTION_TEXT, workdir, "PATH",
           "where commands start (default /workspace)"),
    OPTION("user", 'u', OPTION_TEXT, user, "USER", "whom commands run as (default root)"),
    OPTION("quiet", 'q', OPTION_FLAG, is_quiet, NULL, "print its id alone"),
    {0},
};
static const char *const create_examples[] = {
    "$ burrow create", "$ burrow create --name work --memory 1Gi --cpu 1000m --network",
    "$ burrow create --snapshot python-ml", "$ burrow create --port 3000 --name my-server --json",
    NULL};

static const struct option_row list_rows[] = {
    OPTION("status", 0, OPTION_TEXT, status, "STATE",
           "those in this state: creating, idle, running, paused, terminated, failed …"),
    OPTION("name", 0, OPTION_TEXT, name, "NAME", "called exactly so"),
    OPTION("mode", 0, OPTION_TEXT, mode, "MODE", "oneshot or interactive"),
    OPTION("project-id", 0, OPTION_TEXT, project_id, "ID", "of this project"),
    OPTION("selector", 'l', OPTION_TEXT, selector, "SELECTOR", "by labels: team=blue,tier!=test"),
    OPTION("all", 'a', OPTION_FLAG, is_all, NULL, "of all projects"),
    OPTION("limit", 0, OPTION_INTEGER, limit, "N", "at most so many (default 50, at most 100)"),
    OPTION("offset", 0, OPTION_INTEGER, offset, "N", "leave out so many first"),
    OPTION("sort", 0, OPTION_TEXT, sort, "FIELD",
           "by name, created, updated, status, mode or execution_count (default created)"),
    OPTION("direction", 0, OPTION_TEXT, direction, "DIR", "asc or desc (default desc)"),
    OPTION("quiet", 'q', OPTION_FLAG, is_quiet, NULL, "print ids alone"),
    {0},
};
static const char *const list_examples[] = {"$ burrow list", "$ burrow list --status idle",
                                            "$ burrow list --sort=created --direction=asc",
                                            "$ burrow list --json | jq -r '.[].id'", NULL};
static const char *const get_examples[] = {"$ burrow get work", "$ burrow get sbx_abc123 --json",
                                           NULL};

static const struct option_row delete_rows[] = {
    OPTION("confirm", 'y', OPTION_FLAG, is_confirmed, NULL, "do not ask"),
    {0},
};
static const char *const delete_examples[] = {"$ burrow delete work",
                                              "$ burrow rm --confirm sbx_a sbx_b", NULL};
static const char *const pause_examples[] = {"$ burrow pause work", NULL};
static const char *const resume_examples[] = {"$ burrow resume work", NULL};

const struct cli_command sandbox_commands[] = {
    {"", "create new", "", "make a sandbox that stays", NULL, create_rows, create_examples,
     COMMAND_SERVER, create},
    {"", "list ls", "", "list sandboxes, newest first", NULL, list_rows, list_examples,
     COMMAND_SERVER, list},
    {"", "get show info", "SANDBOX", "tell about a sandbox", NULL, NULL, get_examples,
     COMMAND_SERVER, get},
    {"", "delete rm del remove destroy terminate", "SANDBOX...", "end a sandbox, its files with it",
     NULL, delete_rows, delete_examples, COMMAND_SERVER, delete},
    {"", "pause hibernate", "SANDBOX", "stop all that runs in a sandbox, and keep it", NULL, NULL,
     pause_examples, COMMAND_SERVER, pause_it},
    {"", "resume wake", "SANDBOX", "let a paused sandbox go on", NULL, NULL, resume_examples,
     COMMAND_SERVER, resume},
    {0},
};
