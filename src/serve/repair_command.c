/* SPDX-License-Identifier: Apache-2.0 */
/* burrow repair: a data directory whose database is missing or damaged, made fit for a server again. */
#include "serve/serve.h"

#include "base/data_dir.h"
#include "base/mem.h"
#include "base/options.h"
#include "core/repair.h"
#include "core/settings.h"
#include "data/json_writer.h"
#include "engine/box.h"
#include "serve/config.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

struct request {
    const char *data_dir;
    bool is_trial;
    bool drops_orphans;
    bool is_json;
};

#define ROW(name, type, member, argument, variable, help)                                          \
    {                                                                                              \
        name, 0, type, offsetof(struct request, member), argument, help, variable                  \
    }
static const struct option_row rows[] = {
    ROW("data", OPTION_TEXT, data_dir, "DIR", "BURROW_DATA",
        "the data directory of the server (default " DATA_DIR_DEFAULT " for root, else "
        "~/.local/share/burrow)"),
    ROW("dry-run", OPTION_FLAG, is_trial, NULL, NULL, "say what is wrong, and change nothing"),
    ROW("drop-orphans", OPTION_FLAG, drops_orphans, NULL, NULL,
        "let files without an owner go, instead of making snapshots of them"),
    ROW("json", OPTION_FLAG, is_json, NULL, NULL, "print JSON instead"),
    {0},
};
static const char *const examples[] = {
    "$ burrow repair --dry-run",
    "$ burrow repair --data /srv/burrow",
    NULL,
};
static const struct option_set options = {
    .command = "burrow repair",
    .usage = "[options]",
    .summary = "mend a server's data directory whose database is missing or damaged",
    .description =
        "Makes a new database of all that can be read of a damaged one, which stays beside it "
        "under\n"
        "another name, and brings it together with what is on the volume: layers that are not "
        "written\n"
        "down are written down again, snapshots whose files are lost are failed, and files that "
        "nobody\n"
        "can be found for become snapshots named recovered-…. The server must be stopped.",
    .rows = rows,
    .examples = examples,
};

static const char *const states[] = {
    [SALVAGE_WHOLE] = "whole", [SALVAGE_MISSING] = "missing", [SALVAGE_DAMAGED] = "damaged"};

/* What was counted beside the database, as JSON and as text has it. */
static const struct {
    const char *name, *sentence;
    size_t offset;
} counts[] = {
    {"layersKnown", NULL, offsetof(struct repair_report, layers_known)},
    {"layersFound", "layers were missing in the database and were added again",
     offsetof(struct repair_report, layers_found)},
    {"layersLost", "layers are lost", offsetof(struct repair_report, layers_lost)},
    {"snapshotsFailed", "snapshots have failed with that",
     offsetof(struct repair_report, snapshots_failed)},
    {"checkpointsLost", "checkpoints are lost with that",
     offsetof(struct repair_report, checkpoints_lost)},
    {"orphans", "files and layers are nobody's", offsetof(struct repair_report, orphans)},
    {"recovered", "snapshots were made of these: recovered-…",
     offsetof(struct repair_report, recovered)},
};

static unsigned count_of(const struct repair_report *report, size_t index)
{
    return *(const unsigned *)(const void *)((const char *)report + counts[index].offset);
}

static void write_tables(struct json_writer *json, const struct salvage *database)
{
    json_key(json, "tables");
    json_map_begin(json);
    for (unsigned i = 0; i < database->n_tables; i++) {
        json_key(json, database->tables[i].name);
        json_map_begin(json);
        json_key(json, "rows");
        json_integer(json, database->tables[i].kept);
        json_key(json, "complete");
        json_bool(json, !database->tables[i].is_cut);
        json_map_end(json);
    }
    json_map_end(json);
}

static int print_json(const struct repair_report *report, bool is_trial, struct error *err)
{
    const struct salvage *database = &report->database;
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    json_key(&json, "dryRun");
    json_bool(&json, is_trial);
    json_key(&json, "database");
    json_string(&json, states[database->state]);
    if (database->state == SALVAGE_DAMAGED) {
        json_key(&json, "fault");
        json_string(&json, database->fault);
        json_key(&json, "keptAs");
        json_string(&json, *database->kept_as ? database->kept_as : NULL);
        write_tables(&json, database);
    }
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        json_key(&json, counts[i].name);
        json_integer(&json, count_of(report, i));
    }
    json_map_end(&json);
    if (json_writer_finish(&json, err) < 0)
        return -1;
    (void)puts(text.data);
    return 0;
}

static void print_database(const struct salvage *database, bool is_trial)
{
    switch (database->state) {
    case SALVAGE_WHOLE:
        (void)puts("The database is whole.");
        return;
    case SALVAGE_MISSING:
        (void)puts(is_trial ? "The database is missing; a new one would be made."
                            : "The database was missing; there is a new, empty one. Sandboxes, "
                              "their records and all keys are lost.");
        return;
    case SALVAGE_DAMAGED:
        break;
    }
    (void)printf("The database is damaged: %s\n", database->fault);
    for (unsigned i = 0; i < database->n_tables; i++)
        (void)printf("  %-16s %8lld rows%s\n", database->tables[i].name,
                     (long long)database->tables[i].kept,
                     database->tables[i].is_cut ? ", others are lost" : "");
    if (*database->kept_as)
        (void)printf("There is a new one with these; the damaged one is kept as '%s'.\n",
                     database->kept_as);
}

static void print_text(const struct repair_report *report, bool is_trial)
{
    print_database(&report->database, is_trial);
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        if (counts[i].sentence && count_of(report, i))
            (void)printf("%u %s.\n", count_of(report, i), counts[i].sentence);
}

static int run(const struct request *request, struct error *err)
{
    char data_dir[PATH_MAX];
    struct repair_report report;

    if (engine_need_root(err) < 0)
        return -1;
    if (!realpath(request->data_dir, data_dir))
        return error_path(err, "open the data directory '%s'", request->data_dir);
    const struct repair_request wanted = {
        .data_dir = data_dir,
        .is_trial = request->is_trial,
        .drops_orphans = request->drops_orphans,
        .runtime = core_settings_default.default_runtime,
    };
    if (repair_run(&wanted, &report, err) < 0)
        return error_wrap(err, "repair '%s'", data_dir);
    if (request->is_json)
        return print_json(&report, request->is_trial, err);
    print_text(&report, request->is_trial);
    return 0;
}

int repair_command(int argc, char **argv)
{
    struct error err = {0};
    autoconfig config = {0};
    int at = 0;

    config_init(&config);
    struct request request = {.data_dir = config.data_dir};
    int parsed = options_parse(&options, argc, argv, &request, &at, &err);
    if (parsed == OPTIONS_HELP) {
        options_help(&options, stdout);
        return 0;
    }
    if (parsed == 0 && at < argc)
        parsed = error_set(&err, ERROR_INVALID,
                           "burrow repair does not take '%s': see burrow repair --help", argv[at]);
    if (parsed < 0 || run(&request, &err) < 0)
        return serve_fail_as(&err, request.is_json);
    return 0;
}
