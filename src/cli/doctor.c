/* SPDX-License-Identifier: Apache-2.0 */
/* burrow doctor: runs the engine's probes and prints a table for people, or JSON; with --attack, doctor_attack.c. */
#include "cli/doctor.h"

#include "base/auto.h"
#include "base/buffer.h"
#include "base/options.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "data/json_writer.h"
#include "engine/box.h"
#include "engine/probe.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct option_row rows[] = {
    {"attack", 0, OPTION_FLAG, offsetof(struct doctor, is_attack), NULL,
     "attack two sandboxes made here, and say what held", NULL},
    {"json", 0, OPTION_FLAG, offsetof(struct doctor, is_json), NULL,
     "print JSON instead: a list, or with --attack an object", NULL},
    {"data", 0, OPTION_TEXT, offsetof(struct doctor, data_dir), "DIR",
     "data directory to look at (default: " DATA_DIR_DEFAULT ")", "BURROW_DATA"},
    {"runtime", 'r', OPTION_TEXT, offsetof(struct doctor, runtime), "NAME",
     "with --attack: what the sandboxes start from (default: host:latest)", "BURROW_RUNTIME"},
    {0},
};

static const char *const examples[] = {"$ sudo burrow doctor", "$ burrow doctor --json",
                                       "$ sudo burrow doctor --attack", NULL};

static const struct option_set options = {
    .command = "burrow doctor",
    .usage = "[options]",
    .summary = "say whether burrow can run on this machine, and what is missing",
    .description = "Tries out each thing burrow needs, leaving nothing behind, and says for each: "
                   "fine, or what it\n"
                   "costs you and how to fix it. The exit status is 0 when burrow can run here, 1 "
                   "when it cannot.\n\n"
                   "With --attack it makes two sandboxes as every sandbox is made here, attacks "
                   "from inside one of\n"
                   "them, and says of each attack whether it was held. The exit status is 0 when "
                   "all were held, 3 when\n"
                   "something is open, 1 when something could not be tried.",
    .rows = rows,
    .examples = examples,
};

struct look {
    const char *mark;
    const char *colour;
};

static const struct look looks[] = {
    [PROBE_FINE] = {"✓", "\033[32m"},
    [PROBE_DEGRADED] = {"!", "\033[33m"},
    [PROBE_MISSING] = {"✗", "\033[31m"},
    [PROBE_UNCHECKED] = {"?", "\033[36m"},
};

struct tally {
    unsigned count[ARRAY_SIZE(looks)];
};

bool doctor_has_colour(void)
{
    const char *refused = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && (!refused || !*refused);
}

static void print_probe(const struct probe *probe, const struct probe_result *result,
                        bool is_coloured)
{
    const struct look *look = &looks[result->state];
    printf("%s%s%s %-18s %s\n", is_coloured ? look->colour : "", look->mark,
           is_coloured ? "\033[0m" : "", probe->name, result->detail);
    if (result->state == PROBE_FINE || result->state == PROBE_UNCHECKED)
        return;
    printf("    for    %s\n    costs  %s\n    fix    %s\n", probe->purpose, result->cost,
           result->fix);
}

static void print_verdict(const struct tally *tally)
{
    unsigned missing = tally->count[PROBE_MISSING];
    unsigned degraded = tally->count[PROBE_DEGRADED];
    unsigned unchecked = tally->count[PROBE_UNCHECKED];

    printf("\n%s", missing ? "burrow cannot run here" : "burrow can run here");
    if (missing)
        printf(": %u missing", missing);
    if (degraded)
        printf("%s %u degraded", missing ? "," : ":", degraded);
    if (unchecked)
        printf("%s %u not checked, which takes root", missing || degraded ? "," : ":", unchecked);
    putchar('\n');
}

static void print_table(const struct probe_context *context, struct tally *tally)
{
    bool is_coloured = doctor_has_colour();
    for (const struct probe *probe = probe_table; probe->name; probe++) {
        struct probe_result result;
        probe_run(probe, context, &result);
        tally->count[result.state]++;
        print_probe(probe, &result, is_coloured);
        (void)fflush(stdout); // also, so that children inherit no text
    }
    print_verdict(tally);
}

static void write_probe(struct json_writer *json, const struct probe *probe,
                        const struct probe_result *result)
{
    json_map_begin(json);
    json_key(json, "name");
    json_string(json, probe->name);
    json_key(json, "purpose");
    json_string(json, probe->purpose);
    json_key(json, "state");
    json_string(json, probe_state_name(result->state));
    json_key(json, "detail");
    json_string(json, result->detail);
    json_key(json, "cost");
    json_string(json, result->cost);
    json_key(json, "fix");
    json_string(json, result->fix);
    json_map_end(json);
}

static int print_json(const struct probe_context *context, struct tally *tally, struct error *err)
{
    autobuffer text;
    struct json_writer json;

    buffer_init(&text, 0);
    json_writer_init(&json, &text);
    json_list_begin(&json);
    for (const struct probe *probe = probe_table; probe->name; probe++) {
        struct probe_result result;
        probe_run(probe, context, &result);
        tally->count[result.state]++;
        write_probe(&json, probe, &result);
    }
    json_list_end(&json);
    if (json_writer_finish(&json, err) < 0)
        return -1;
    puts(text.data);
    return 0;
}

static int fail(const struct doctor *doctor, const struct error *err, int code)
{
    exit_tell_as(err, doctor->is_json);
    return code;
}

int cli_doctor(int argc, char **argv)
{
    struct doctor doctor = {.data_dir = DATA_DIR_DEFAULT, .runtime = "host:latest"};
    struct tally tally = {0};
    char room[PATH_MAX];
    struct error err = {0};
    int operands = 0;

    int parsed = options_parse(&options, argc, argv, &doctor, &operands, &err);
    if (parsed == OPTIONS_HELP) {
        options_help(&options, stdout);
        return EXIT_DONE;
    }
    if (parsed < 0 || data_dir_resolve(&doctor.data_dir, room, &err) < 0)
        return fail(&doctor, &err, EXIT_USAGE);
    if (operands < argc) {
        error_set(&err, ERROR_INVALID, "burrow doctor does not take '%s': see burrow doctor --help",
                  argv[operands]);
        return fail(&doctor, &err, EXIT_USAGE);
    }
    if (doctor.is_attack)
        return doctor_attack(&doctor);
    const struct probe_context context = {.data_dir = doctor.data_dir};
    if (!doctor.is_json)
        print_table(&context, &tally);
    else if (print_json(&context, &tally, &err) < 0)
        return fail(&doctor, &err, EXIT_FAILED);
    if (engine_need_root(&err) < 0)
        exit_tell(&err);
    return tally.count[PROBE_MISSING] ? EXIT_FAILED : EXIT_DONE;
}
