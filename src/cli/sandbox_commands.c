/* SPDX-License-Identifier: Apache-2.0 */
/* burrow create, list, get, delete, pause, resume, fork, wait, env: sandboxes of a server. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/size.h"
#include "cli/listing.h"
#include "cli/built_wait.h"
#include "cli/exit.h"
#include "cli/invocation.h"
#include "cli/remote_run.h"
#include "cli/sandbox_options.h"
#include "cli/say.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- create ----

static int tell_sandbox(const struct burrow_value *value, const struct burrow_value *url,
                        struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    say_put(&json, "url", url);
    say_put_members(&json, value);
    json_map_end(&json);
    return say_written(&json, &text, err);
}

/* To who works by hand: when it goes. */
static void tell_end(const struct burrow_value *sandbox)
{
    int64_t idle = burrow_integer(burrow_get(sandbox, "idleTimeoutMs"), 0);
    const char *then = value_text(sandbox, "onIdle");
    char text[SAY_TEXT];

    if (idle > 0 && isatty(STDOUT_FILENO))
        say_note("%s after %s without use (--idle-timeout)",
                 strcmp(then, "pause") == 0 ? "it pauses" : "it ends, with its files,",
                 say_duration(idle, text));
}

static int create(struct invocation *invocation, struct burrow_error *err)
{
    autobuffer text = {0};
    autoanswer answer = NULL;
    uint64_t since = clock_monotonic_ms();

    struct built_wait wait = {.is_quiet = invocation->is_quiet || invocation->is_json};
    if (sandbox_options_write(invocation, NULL, &text, err) < 0)
        return -1;
    while (burrow_ask(invocation->client, "POST", "/sandboxes", text.data, &answer, err) < 0) {
        if (!built_wait_again(&wait, err))
            return -1;
    }
    (void)built_wait_again(&wait, err); // its line goes
    const struct burrow_value *value = burrow_answer_value(answer);
    const struct burrow_value *url = burrow_get(burrow_first(burrow_get(value, "ports")), "url");
    if (invocation->is_json)
        return tell_sandbox(value, url, err);
    if (invocation->is_quiet) {
        say_line(value_text(value, "id"));
        return 0;
    }
    say_done("created sandbox %s in %llums", value_text(value, "id"),
             (unsigned long long)(clock_monotonic_ms() - since));
    tell_end(value);
    if (url) {
        autofree char *clean = say_clean(burrow_text(url));
        (void)printf("%s url: %s\n", say_has_colours() ? "ℹ" : " ", clean);
    }
    return 0;
}

// ---- list ----

/* The page of the vendor has words that this server's states are others for. */
static const char *state_of(const char *word)
{
    static const char *const rows[][2] = {
        {"suspended", "paused"}, {"terminated", "ended,deleted"}, {NULL, NULL}};

    for (size_t i = 0; word && rows[i][0]; i++) {
        if (strcmp(word, rows[i][0]) == 0)
            return rows[i][1];
    }
    return word;
}

static const struct column list_columns[] = {{"ID", "id", COLUMN_TEXT},
                                             {"NAME", "name", COLUMN_TEXT},
                                             {"STATE", "state", COLUMN_STATE},
                                             {"RUNTIME", "runtime", COLUMN_TEXT},
                                             {"CREATED", "createdAt", COLUMN_AGO},
                                             {">COMMANDS", "executions", COLUMN_TEXT},
                                             {0}};
static const struct sort_key list_keys[] = {{"created", "createdAt", false},
                                            {"name", "name", false},
                                            {"updated", "updatedAt", false},
                                            {"status", "state", false},
                                            {"mode", "mode", false},
                                            {"execution_count", "executions", true},
                                            {0}};

static int check_mode(const struct invocation *invocation, struct burrow_error *err)
{
    const char *mode = invocation->mode;

    if (mode && strcmp(mode, "interactive") != 0 && strcmp(mode, "oneshot") != 0 &&
        strcmp(mode, "one_shot") != 0)
        return say_fail(err, BURROW_INVALID, "--mode is oneshot or interactive, not '%s'", mode);
    return 0;
}

static char *list_path(const struct invocation *invocation)
{
    struct buffer path = {0};
    struct error ignored;

    (void)buffer_add_text(&path, "/sandboxes?", &ignored);
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

static bool is_wanted(const struct invocation *invocation, const struct burrow_value *item)
{
    const char *mode = value_text(item, "mode");

    if (!invocation->mode)
        return true;
    return strcmp(mode, invocation->mode) == 0 ||
           (strcmp(mode, "one_shot") == 0 && strcmp(invocation->mode, "oneshot") == 0);
}

static int list(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path = list_path(invocation);
    const struct listing listing = {.path = path,
                                    .is_wanted = is_wanted,
                                    .keys = list_keys,
                                    .server_sort = "created",
                                    .columns = list_columns};

    return check_mode(invocation, err) < 0 ? -1 : listing_print(invocation, &listing, err);
}

static int ls(struct invocation *invocation, struct burrow_error *err)
{
    return invocation->n_operands ? file_commands_list(invocation, err) : list(invocation, err);
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

/* `now`: what it uses, where it has not ended. What is counted there is newer, and begins anew with its processes. */
static void print_use(const struct burrow_value *usage, const struct burrow_value *now)
{
    char memory[SAY_TEXT], disk[SAY_TEXT], cpu[SAY_TEXT], sent[SAY_TEXT], text[200];
    int64_t cpu_ms = burrow_integer(burrow_get(usage, "cpuMs"), 0),
            bytes = burrow_integer(burrow_get(usage, "egressBytes"), 0),
            cpu_now = burrow_integer(burrow_get(now, "cpuMs"), 0),
            bytes_now = burrow_integer(burrow_get(now, "egressBytes"), 0);

    (void)say_duration(cpu_now > cpu_ms ? cpu_now : cpu_ms, cpu);
    (void)say_size(bytes_now > bytes ? bytes_now : bytes, sent);
    if (now)
        (void)snprintf(text, sizeof text, "%s memory, %s disk; %s of processors, %s sent so far",
                       say_size(burrow_integer(burrow_get(now, "memoryBytes"), 0), memory),
                       say_size(burrow_integer(burrow_get(now, "diskBytes"), 0), disk), cpu, sent);
    else
        (void)snprintf(text, sizeof text, "%s of processors, %s sent", cpu, sent);
    say_field(now ? "uses" : "used", text);
}

static void print_sandbox(const struct burrow_value *value, const struct burrow_value *url,
                          const struct burrow_value *now)
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
    say_field_value("url", url);
    say_field("created", say_ago(value_text(value, "createdAt"), text));
    if (burrow_get(value, "endedAt"))
        say_field("ended", say_ago(value_text(value, "endedAt"), text));
    say_field_value("reason", burrow_get(value, "reason"));
    print_limits(burrow_get(value, "limits"));
    print_use(burrow_get(value, "usage"), now);
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
    autofree char *path = burrow_path("/sandboxes/%s/ports", invocation->operands[0], NULL);
    autoanswer answer = NULL;
    autoanswer ports = NULL;
    struct burrow_error ignored = {0}; // of one that has ended there are none

    if (burrow_sandbox_get(invocation->client, invocation->operands[0], &answer, err) < 0)
        return -1;
    (void)burrow_ask(invocation->client, "GET", path, NULL, &ports, &ignored);
    const struct burrow_value *first =
        burrow_first(burrow_get(burrow_answer_value(ports), "items"));
    const struct burrow_value *url = burrow_get(first, "url");
    if (invocation->is_json)
        return tell_sandbox(burrow_answer_value(answer), url, err);
    autofree char *metrics = burrow_path("/sandboxes/%s/metrics", invocation->operands[0], NULL);
    autoanswer now = NULL;
    (void)burrow_ask(invocation->client, "GET", metrics, NULL, &now, &ignored);
    print_sandbox(burrow_answer_value(answer), url, burrow_answer_value(now));
    return 0;
}

// ---- end, pause, resume ----

/* Whether the next one is worth a try: one that is not there, or may not be ended, says nothing about others. */
static bool is_about_one(const struct burrow_error *err)
{
    return err->kind == BURROW_NOT_FOUND || err->kind == BURROW_GONE ||
           err->kind == BURROW_DENIED || err->kind == BURROW_CONFLICT ||
           err->kind == BURROW_INVALID;
}

struct deletions {
    const char *ids[OPERANDS_MAX];
    unsigned count;
    int code; // 0, or the first failure's
    struct burrow_error first;
};

static void write_deleted(struct json_writer *json, const struct deletions *deleted)
{
    json_list_begin(json);
    for (unsigned i = 0; i < deleted->count; i++)
        json_string(json, deleted->ids[i]);
    json_list_end(json);
}

static int delete_one(struct invocation *invocation, const char *id, struct burrow_error *err)
{
    if (!say_confirm(invocation->is_confirmed, "Delete sandbox '%s' and all its files?", id))
        return say_fail(err, BURROW_CANCELLED, "sandbox '%s' stays", id);
    if (burrow_sandbox_delete(invocation->client, id, err) < 0)
        return -1;
    if (!invocation->is_json)
        say_done("deleted sandbox %s", id);
    return 0;
}

static int tell_deleted(const struct invocation *invocation, const struct deletions *deleted,
                        struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    if (invocation->n_operands > 1 && !deleted->code) {
        write_deleted(&json, deleted);
        return say_written(&json, &text, err);
    }
    json_map_begin(&json);
    if (deleted->code) {
        say_put_error(&json, &deleted->first);
        json_key(&json, "deleted");
        write_deleted(&json, deleted);
    } else {
        json_key(&json, "success");
        json_bool(&json, true);
        say_put_text(&json, "sandboxId", invocation->operands[0]);
    }
    json_map_end(&json);
    return say_written(&json, &text, err) < 0 ? -1 : deleted->code;
}

/* One that is not there is no reason to leave the others; the exit code is the first failure's. */
static int delete (struct invocation *invocation, struct burrow_error *err)
{
    struct deletions deleted = {0};

    for (unsigned i = 0; i < invocation->n_operands; i++) {
        if (delete_one(invocation, invocation->operands[i], err) == 0) {
            deleted.ids[deleted.count++] = invocation->operands[i];
            continue;
        }
        if (invocation->n_operands == 1 || !is_about_one(err))
            return -1;
        int code = say_error(err, false);
        if (!deleted.code) {
            deleted.code = code;
            deleted.first = *err;
        }
    }
    return invocation->is_json ? tell_deleted(invocation, &deleted, err) : deleted.code;
}

static int change_state(struct invocation *invocation, const char *format, const char *word,
                        struct burrow_error *err)
{
    autofree char *path = burrow_path(format, invocation->operands[0], NULL);
    autoanswer answer = NULL;

    if (burrow_ask(invocation->client, "POST", path, NULL, &answer, err) < 0)
        return -1;
    if (invocation->is_json)
        return tell_sandbox(burrow_answer_value(answer), NULL, err);
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
    OPTION_IN("port", OPTION_INTEGER, port, "PORT", "a port to expose, 1024 to 65535", 1024, 65535),
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

#define LIST_ROWS(selector_letter)                                                                 \
    OPTION("status", 0, OPTION_TEXT, status, "STATE",                                              \
           "those in this state: creating, idle, running, paused, ended, failed …"),               \
        OPTION("name", 0, OPTION_TEXT, name, "NAME", "called exactly so"),                         \
        OPTION("mode", 0, OPTION_TEXT, mode, "MODE", "oneshot or interactive"),                    \
        OPTION("project-id", 0, OPTION_TEXT, project_id, "ID", "of this project"),                 \
        OPTION("selector", selector_letter, OPTION_TEXT, selector, "SELECTOR",                     \
               "by labels: team=blue,tier!=test"),                                                 \
        OPTION("all", 'a', OPTION_FLAG, is_all, NULL, "of all projects"), LIMIT_ROW, OFFSET_ROW,   \
        OPTION("sort", 0, OPTION_TEXT, sort, "FIELD",                                              \
               "by name, created, updated, status, mode or execution_count (default created)"),    \
        OPTION("direction", 0, OPTION_TEXT, direction, "DIR", "asc or desc (default desc)"),       \
        OPTION("quiet", 'q', OPTION_FLAG, is_quiet, NULL, "print ids alone")

static const struct option_row list_rows[] = {LIST_ROWS('l'), {0}};
static const struct option_row ls_rows[] = {
    OPTION("long", 'l', OPTION_FLAG, is_long, NULL, "of files: with permissions, sizes and times"),
    OPTION("recursive", 'r', OPTION_FLAG, is_recursive, NULL,
           "of files: also what is in directories below"),
    LIST_ROWS(0),
    {0}};
static const char *const list_examples[] = {"$ burrow list", "$ burrow list --status idle",
                                            "$ burrow list --sort=created --direction=asc",
                                            "$ burrow list --json | jq -r '.[].id'", NULL};
static const char *const ls_examples[] = {"$ burrow ls", "$ burrow ls work /workspace -l", NULL};
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
    {"", "list", "", "list sandboxes, newest first", NULL, list_rows, list_examples, COMMAND_SERVER,
     list},
    {"", "ls", "[SANDBOX] [PATH]", "list sandboxes, or the files of one ('fs ls')", NULL, ls_rows,
     ls_examples, COMMAND_SERVER, ls},
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
