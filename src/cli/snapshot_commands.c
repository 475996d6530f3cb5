/* SPDX-License-Identifier: Apache-2.0 */
/* burrow snapshot, burrow checkpoint, burrow diff, burrow fork: files as they were. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/mem.h"
#include "cli/listing.h"
#include "cli/invocation.h"
#include "cli/sandbox_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct column snapshot_columns[] = {{"ID", "id", COLUMN_TEXT},
                                                 {"NAME", "name", COLUMN_TEXT},
                                                 {"TAG", "tag", COLUMN_TEXT},
                                                 {">SIZE", "sizeBytes", COLUMN_SIZE},
                                                 {">FILES", "fileCount", COLUMN_TEXT},
                                                 {"PUBLIC", "public", COLUMN_TRUTH},
                                                 {"CREATED", "createdAt", COLUMN_AGO},
                                                 {0}};

static const struct column snapshot_fields[] = {{"id", "id", COLUMN_TEXT},
                                                {"name", "name", COLUMN_TEXT},
                                                {"tag", "tag", COLUMN_TEXT},
                                                {"description", "description", COLUMN_TEXT},
                                                {"runtime", "runtime", COLUMN_TEXT},
                                                {"sandbox", "sandboxId", COLUMN_TEXT},
                                                {"parent", "parentId", COLUMN_TEXT},
                                                {"size", "sizeBytes", COLUMN_SIZE},
                                                {"files", "fileCount", COLUMN_TEXT},
                                                {"public", "public", COLUMN_TRUTH},
                                                {"error", "error", COLUMN_TEXT},
                                                {"created", "createdAt", COLUMN_AGO},
                                                {0}};

static int tell_snapshot(struct invocation *invocation, const struct burrow_value *value,
                         const char *word, struct burrow_error *err)
{
    if (invocation->is_json)
        return say_thing(value, err);
    say_done("%s %s%s%s", word, value_text(value, "id"), *value_text(value, "tag") ? ", tag " : "",
             value_text(value, "tag"));
    say_left_out(value);
    return 0;
}

static int create_snapshot(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/snapshots", invocation->operands[0], NULL);
    autobuffer text = {0};
    struct json_writer json;
    autoanswer answer = NULL;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    say_put_text(&json, "name", invocation->name);
    say_put_text(&json, "description", invocation->description);
    say_put_text(&json, "tag", invocation->tag);
    if (invocation->is_public) {
        json_key(&json, "public");
        json_bool(&json, true);
    }
    json_map_end(&json);
    if (say_finish(&json, err) < 0 ||
        burrow_ask(invocation->client, "POST", path, text.data, &answer, err) < 0)
        return -1;
    return tell_snapshot(invocation, burrow_answer_value(answer), "created snapshot", err);
}

/* The id of a sandbox that may be named. */
static int sandbox_id(struct invocation *invocation, const char *name, char id[BURROW_ID],
                      struct burrow_error *err)
{
    autoanswer answer = NULL;

    if (strncmp(name, "sbx_", 4) == 0) {
        (void)snprintf(id, BURROW_ID, "%s", name);
        return 0;
    }
    if (burrow_sandbox_get(invocation->client, name, &answer, err) < 0)
        return -1;
    (void)snprintf(id, BURROW_ID, "%s", value_text(burrow_answer_value(answer), "id"));
    return 0;
}

static const struct sort_key snapshot_keys[] = {{"created", "createdAt", false},
                                                {"name", "name", false},
                                                {"size", "sizeBytes", true},
                                                {"files", "fileCount", true},
                                                {0}};

static int list_snapshots(struct invocation *invocation, struct burrow_error *err)
{
    char id[BURROW_ID] = "";

    if (invocation->sandbox && sandbox_id(invocation, invocation->sandbox, id, err) < 0)
        return -1;
    autofree char *path =
        *id ? burrow_path("/snapshots?sandboxId=%s", id, NULL) : xstrdup("/snapshots?");
    const struct listing listing = {
        .path = path, .keys = snapshot_keys, .server_sort = "created", .columns = snapshot_columns};
    return listing_print(invocation, &listing, err);
}

#define SANDBOXES_READ 10000 // at most, to find those that were made from it

static bool has_snapshot(const struct invocation *invocation, const struct burrow_value *sandbox)
{
    return strcmp(value_text(sandbox, "snapshotId"), invocation->snapshot) == 0;
}

static int tell_details(const struct burrow_value *value, const struct items *sandboxes,
                        struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    say_put_members(&json, value);
    json_key(&json, "sandboxes");
    json_list_begin(&json);
    for (size_t i = 0; i < sandboxes->count; i++)
        say_put(&json, NULL, burrow_get(sandboxes->items[i], "id"));
    json_list_end(&json);
    json_map_end(&json);
    return say_written(&json, &text, err);
}

/* With the sandboxes that were made from it and live. */
static int get_snapshot(struct invocation *invocation, struct burrow_error *err)
{
    autoanswer answer = NULL;
    autoclear(items) sandboxes = {0};

    if (burrow_snapshot_get(invocation->client, invocation->operands[0], &answer, err) < 0)
        return -1;
    const struct burrow_value *value = burrow_answer_value(answer);
    invocation->snapshot = value_text(value, "id");
    if (items_gather(invocation, "/sandboxes?limit=100", SANDBOXES_READ, has_snapshot, &sandboxes,
                     err) < 0)
        return -1;
    if (invocation->is_json)
        return tell_details(value, &sandboxes, err);
    (void)columns_fields(invocation, value, snapshot_fields, err);
    for (size_t i = 0; i < sandboxes.count; i++)
        say_field(i ? "" : "sandboxes", value_text(sandboxes.items[i], "id"));
    return 0;
}

static int tag_snapshot(struct invocation *invocation, struct burrow_error *err)
{
    const char *tag = invocation_operand(invocation, 1);
    autofree char *path = burrow_path("/snapshots/%s", invocation->operands[0], NULL);
    autobuffer text = {0};
    struct json_writer json;
    autoanswer answer = NULL;

    if (!tag == !invocation->is_cleared)
        return say_fail(err, BURROW_INVALID, "give a tag, or --clear to take it away");
    json_writer_init(&json, &text);
    json_map_begin(&json);
    json_key(&json, "tag");
    json_string(&json, tag);
    json_map_end(&json);
    if (say_finish(&json, err) < 0 ||
        burrow_ask(invocation->client, "PATCH", path, text.data, &answer, err) < 0)
        return -1;
    return tell_snapshot(invocation, burrow_answer_value(answer),
                         tag ? "tagged snapshot" : "took the tag from snapshot", err);
}

/* The id of a snapshot that may be named. */
static int snapshot_id(struct invocation *invocation, const char *name, char id[BURROW_ID],
                       struct burrow_error *err)
{
    autoanswer answer = NULL;

    if (strncmp(name, "snp_", 4) == 0) {
        (void)snprintf(id, BURROW_ID, "%s", name);
        return 0;
    }
    if (burrow_snapshot_get(invocation->client, name, &answer, err) < 0)
        return -1;
    (void)snprintf(id, BURROW_ID, "%s", value_text(burrow_answer_value(answer), "id"));
    return 0;
}

/* By its id: a tag may go elsewhere while the question waits. */
static int delete_snapshot(struct invocation *invocation, struct burrow_error *err)
{
    const char *name = invocation->operands[0];
    char id[BURROW_ID];

    if (snapshot_id(invocation, name, id, err) < 0)
        return -1;
    if (!say_confirm(invocation->is_confirmed, "Delete snapshot '%s'?", name))
        return say_fail(err, BURROW_CANCELLED, "snapshot '%s' stays", name);
    if (burrow_snapshot_delete(invocation->client, id, err) < 0)
        return -1;
    if (invocation->is_json)
        return columns_success(id, err);
    if (strcmp(name, id) == 0)
        say_done("deleted snapshot %s", id);
    else
        say_done("deleted snapshot %s (%s)", name, id);
    return 0;
}

static int export_snapshot(struct invocation *invocation, struct burrow_error *err)
{
    const char *file = invocation_operand(invocation, 1);
    autofree char *usual = xasprintf("%s.tar.zst", invocation->operands[0]);
    autofree char *path = burrow_path("/snapshots/%s/export", invocation->operands[0], NULL);
    autofree char *query =
        invocation->format ? burrow_path("?format=%s", invocation->format, NULL) : xstrdup("");
    autofree char *target = xasprintf("%s%s", path, query);
    uint64_t bytes = 0;
    char size[SAY_TEXT];

    for (char *at = usual; *at; at++)
        *at = *at == '/' || *at == ':' ? '-' : *at;
    if (!file)
        file = usual;
    if (file_check_output(invocation, file, err) < 0 ||
        file_take(invocation->client, target, file, invocation->is_json, &bytes, err) < 0)
        return -1;
    if (strcmp(file, "-") == 0)
        return 0;
    if (invocation->is_json)
        return columns_success(file, err);
    say_done("saved %s, %s", file, say_size((int64_t)bytes, size));
    return 0;
}

static int import_snapshot(struct invocation *invocation, struct burrow_error *err)
{
    autobuffer path = {0};
    struct error ignored;
    autoanswer answer = NULL;
    uint64_t bytes = 0;

    (void)buffer_addf(&path, &ignored, "/snapshots/import?force=%s&public=%s",
                      invocation->is_forced ? "true" : "false",
                      invocation->is_public ? "true" : "false");
    const char *pairs[][2] = {{"name", invocation->name}, {"tag", invocation->tag}};
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        autofree char *value = pairs[i][1] ? burrow_path("%s", pairs[i][1], NULL) : NULL;
        if (value)
            (void)buffer_addf(&path, &ignored, "&%s=%s", pairs[i][0], value);
    }
    if (file_send(invocation->client, "POST", path.data, invocation->operands[0],
                  invocation->is_json, &answer, &bytes, err) < 0)
        return -1;
    return tell_snapshot(invocation, burrow_answer_value(answer), "imported snapshot", err);
}

// ---- checkpoints ----

static const struct column checkpoint_columns[] = {{"ID", "id", COLUMN_TEXT},
                                                   {"NAME", "name", COLUMN_TEXT},
                                                   {"PARENT", "parent", COLUMN_TEXT},
                                                   {">SIZE", "sizeBytes", COLUMN_SIZE},
                                                   {"CREATED", "createdAt", COLUMN_AGO},
                                                   {0}};

static int create_checkpoint(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/checkpoints", invocation->operands[0], NULL);
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    say_put_text(&json, "name", invocation->operands[1]);
    json_map_end(&json);
    autofree char *sentence = xasprintf("made checkpoint %s", invocation->operands[1]);
    return say_finish(&json, err) < 0
               ? -1
               : columns_act(invocation, "POST", path, text.data, sentence, err);
}

static int list_checkpoints(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/checkpoints", invocation->operands[0], NULL);

    return columns_list(invocation, path, 0, checkpoint_columns, err);
}

static int restore_checkpoint(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/checkpoints/%s/restore",
                                      invocation->operands[0], invocation->operands[1], NULL);
    autofree char *sentence = xasprintf("restored checkpoint %s", invocation->operands[1]);

    return columns_act(invocation, "POST", path, NULL, sentence, err);
}

static int delete_checkpoint(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/checkpoints/%s", invocation->operands[0],
                                      invocation->operands[1], NULL);
    autofree char *sentence = xasprintf("deleted checkpoint %s", invocation->operands[1]);

    if (!say_confirm(invocation->is_confirmed, "Delete checkpoint '%s'?", invocation->operands[1]))
        return say_fail(err, BURROW_CANCELLED, "checkpoint '%s' stays", invocation->operands[1]);
    return columns_act(invocation, "DELETE", path, NULL, sentence, err);
}

// ---- diff and fork ----

void change_print(const struct burrow_value *item)
{
    const char *change = value_text(item, "change");
    enum say_colour colour = strcmp(change, "added") == 0     ? SAY_GREEN
                             : strcmp(change, "removed") == 0 ? SAY_RED
                                                              : SAY_YELLOW;
    autofree char *path = say_clean(value_text(item, "path"));
    const char *patch = value_text(item, "patch");

    (void)printf("%s%c %s%s\n", say_begin(colour),
                 *change == 'a'   ? '+'
                 : *change == 'r' ? '-'
                                  : '~',
                 path, say_begin(SAY_PLAIN));
    while (*patch) {
        size_t length = strcspn(patch, "\n");
        autofree char *line = xstrndup(patch, length);
        autofree char *clean = say_clean(line);
        (void)printf("  %s\n", clean);
        patch += length + (patch[length] == '\n');
    }
}

static int diff(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/diff", invocation->operands[0], NULL);
    autobuffer query = {0};
    struct error ignored;
    autoanswer answer = NULL;
    const char *pairs[][2] = {
        {"from", invocation->from ? invocation->from : invocation_operand(invocation, 1)},
        {"to", invocation->to ? invocation->to : invocation_operand(invocation, 2)}};

    (void)buffer_addf(&query, &ignored, "%s?patch=%s", path,
                      invocation->has_patch ? "true" : "false");
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        autofree char *value = pairs[i][1] ? burrow_path("%s", pairs[i][1], NULL) : NULL;
        if (value)
            (void)buffer_addf(&query, &ignored, "&%s=%s", pairs[i][0], value);
    }
    if (burrow_ask(invocation->client, "GET", query.data, NULL, &answer, err) < 0)
        return -1;
    const struct burrow_value *value = burrow_answer_value(answer);
    if (invocation->is_json)
        return say_value(value, err);
    const struct burrow_value *item = burrow_first(burrow_get(value, "items"));
    for (; item; item = burrow_next(item))
        change_print(item);
    (void)printf("%" PRId64 " added, %" PRId64 " changed, %" PRId64 " removed%s\n",
                 burrow_integer(burrow_get(value, "added"), 0),
                 burrow_integer(burrow_get(value, "changed"), 0),
                 burrow_integer(burrow_get(value, "removed"), 0),
                 burrow_truth(burrow_get(value, "truncated")) ? "; not all are shown" : "");
    say_left_out(value);
    return 0;
}

static int fork_sandbox(struct invocation *invocation, struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/fork", invocation->operands[0], NULL);
    autobuffer text = {0};
    struct json_writer json;
    autoanswer answer = NULL;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    say_put_text(&json, "name", invocation->name);
    json_map_end(&json);
    if (say_finish(&json, err) < 0 ||
        burrow_ask(invocation->client, "POST", path, text.data, &answer, err) < 0)
        return -1;
    if (invocation->is_json)
        return say_thing(burrow_answer_value(answer), err);
    if (invocation->is_quiet)
        say_line(value_text(burrow_answer_value(answer), "id"));
    else
        say_done("forked %s: %s", invocation->operands[0],
                 value_text(burrow_answer_value(answer), "id"));
    say_left_out(burrow_answer_value(answer));
    return 0;
}

// ---- the table ----

static const struct option_row create_rows[] = {
    OPTION("name", 0, OPTION_TEXT, name, "NAME", "what to call it"),
    OPTION("description", 0, OPTION_TEXT, description, "TEXT", "what it is for"),
    OPTION("tag", 0, OPTION_TEXT, tag, "TAG", "a tag (default latest)"),
    OPTION("public", 0, OPTION_FLAG, is_public, NULL, "all organisations may use it"),
    {0}};
static const struct option_row list_rows[] = {
    OPTION("sandbox", 0, OPTION_TEXT, sandbox, "SANDBOX", "taken of this one"),
    LIMIT_ROW,
    OFFSET_ROW,
    OPTION("sort", 0, OPTION_TEXT, sort, "FIELD",
           "by name, created, size or files (default created)"),
    OPTION("direction", 0, OPTION_TEXT, direction, "DIR", "asc or desc (default desc)"),
    {0}};
static const struct option_row tag_rows[] = {
    OPTION("clear", 0, OPTION_FLAG, is_cleared, NULL, "take the tag away"), {0}};
static const struct option_row confirm_rows[] = {
    OPTION("confirm", 'y', OPTION_FLAG, is_confirmed, NULL, "do not ask"), {0}};
static const struct option_row export_rows[] = {
    OPTION("format", 0, OPTION_TEXT, format, "FORMAT",
           "as this kind of file (default: burrow's own)"),
    {0}};
static const struct option_row import_rows[] = {
    OPTION("name", 0, OPTION_TEXT, name, "NAME", "instead of the one it had"),
    OPTION("tag", 0, OPTION_TEXT, tag, "TAG", "instead of the one it had"),
    OPTION("public", 0, OPTION_FLAG, is_public, NULL, "all organisations may use it"),
    OPTION("force", 'f', OPTION_FLAG, is_forced, NULL, "also onto another build of its runtime"),
    {0}};
static const struct option_row diff_rows[] = {
    OPTION("from", 0, OPTION_TEXT, from, "CHECKPOINT",
           "what it was (default: what it started from)"),
    OPTION("to", 0, OPTION_TEXT, to, "CHECKPOINT", "what it became (default: now)"),
    OPTION("patch", 'p', OPTION_FLAG, has_patch, NULL, "with the differences of text files"),
    {0}};
static const struct option_row fork_rows[] = {
    OPTION("name", 0, OPTION_TEXT, name, "NAME", "of the new one"),
    OPTION("quiet", 'q', OPTION_FLAG, is_quiet, NULL, "print its id alone"),
    {0}};
static const char *const create_examples[] = {"$ burrow snapshot create work --tag python-ml-v2",
                                              NULL};
static const char *const list_examples[] = {"$ burrow snapshot list --sort=size --direction=desc",
                                            NULL};
static const char *const get_examples[] = {"$ burrow snapshot get python-ml", NULL};
static const char *const tag_examples[] = {"$ burrow snapshot tag snp_xyz789 v2.0",
                                           "$ burrow snapshot tag snp_xyz789 --clear", NULL};
static const char *const delete_examples[] = {"$ burrow snapshot delete snp_xyz789 --confirm",
                                              NULL};
static const char *const export_examples[] = {
    "$ burrow snapshot export python-ml ./python-ml.tar.zst", NULL};
static const char *const import_examples[] = {
    "$ burrow snapshot import ./python-ml.tar.zst --tag v1", NULL};
static const char *const checkpoint_examples[] = {"$ burrow checkpoint create work before",
                                                  "$ burrow checkpoint restore work before", NULL};
static const char *const diff_examples[] = {"$ burrow diff work",
                                            "$ burrow diff work before --patch", NULL};
static const char *const fork_examples[] = {"$ burrow fork work --name try", NULL};

const struct cli_command snapshot_commands[] = {
    {"snapshot", "create new", "SANDBOX", "keep a sandbox's files to start others from", NULL,
     create_rows, create_examples, COMMAND_SERVER, create_snapshot},
    {"snapshot", "list ls", "", "list snapshots", NULL, list_rows, list_examples, COMMAND_SERVER,
     list_snapshots},
    {"snapshot", "get show info", "SNAPSHOT", "tell about a snapshot", NULL, NULL, get_examples,
     COMMAND_SERVER, get_snapshot},
    {"snapshot", "tag", "SNAPSHOT [TAG]", "give a snapshot a tag, or take it away", NULL, tag_rows,
     tag_examples, COMMAND_SERVER, tag_snapshot},
    {"snapshot", "delete rm del remove", "SNAPSHOT", "delete a snapshot", NULL, confirm_rows,
     delete_examples, COMMAND_SERVER, delete_snapshot},
    {"snapshot", "export", "SNAPSHOT [FILE]", "save a snapshot as one file", NULL, export_rows,
     export_examples, COMMAND_SERVER, export_snapshot},
    {"snapshot", "import", "FILE", "make a snapshot of such a file", NULL, import_rows,
     import_examples, COMMAND_SERVER, import_snapshot},
    {"checkpoint", "create new", "SANDBOX NAME", "remember a sandbox's files", NULL, NULL,
     checkpoint_examples, COMMAND_SERVER, create_checkpoint},
    {"checkpoint", "list ls", "SANDBOX", "list a sandbox's checkpoints", NULL, NULL,
     checkpoint_examples, COMMAND_SERVER, list_checkpoints},
    {"checkpoint", "restore", "SANDBOX CHECKPOINT", "go back to one", NULL, NULL,
     checkpoint_examples, COMMAND_SERVER, restore_checkpoint},
    {"checkpoint", "delete rm del remove", "SANDBOX CHECKPOINT", "forget one", NULL, confirm_rows,
     checkpoint_examples, COMMAND_SERVER, delete_checkpoint},
    {"", "diff", "SANDBOX [FROM] [TO]", "show which files have changed", NULL, diff_rows,
     diff_examples, COMMAND_SERVER, diff},
    {"", "fork", "SANDBOX", "make another sandbox with the same files", NULL, fork_rows,
     fork_examples, COMMAND_SERVER, fork_sandbox},
    {0},
};
