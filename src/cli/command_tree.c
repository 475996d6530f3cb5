/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of commands: finds the one that is meant, reads its words, connects, runs it, tells how it failed; see command_tree.h. */
#include "cli/command_tree.h"

#include "base/auto.h"
#include "base/suggest.h"
#include "cli/endpoint.h"
#include "cli/exit.h"
#include "cli/invocation.h"
#include "cli/manual.h"
#include "cli/say.h"

#include <stdio.h>
#include <string.h>

#define ROWS_MAX 64

// ---- names ----

bool command_has_name(const char *names, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = names; *at;) {
        size_t word = strcspn(at, " ");
        if (word == length && memcmp(at, name, length) == 0)
            return true;
        at += word;
        at += strspn(at, " ");
    }
    return false;
}

const char *command_name(const char *names, char text[32])
{
    (void)snprintf(text, 32, "%.*s", (int)strcspn(names, " "), names);
    return text;
}

const struct command_group *command_find_group(const char *name)
{
    for (const struct command_group *group = command_groups; group->names; group++) {
        if (command_has_name(group->names, name))
            return group;
    }
    return NULL;
}

const struct cli_command *command_find(const char *group, const char *name)
{
    for (const struct cli_command *const *table = command_tables; *table; table++) {
        for (const struct cli_command *command = *table; command->names; command++) {
            if (strcmp(command->group, group) == 0 && command_has_name(command->names, name))
                return command;
        }
    }
    return NULL;
}

// ---- options ----

static const struct option_row shared_rows[] = {
    OPTION("url", 0, OPTION_TEXT, url, "URL",
           "the server's address (default: BURROW_URL, else 'burrow context')"),
    OPTION("context", 0, OPTION_TEXT, context, "NAME", "a server that 'burrow context' knows"),
    OPTION("api-key", 0, OPTION_TEXT, api_key, "KEY",
           "for it (default: BURROW_API_KEY; an option is seen by others on the machine)"),
    OPTION("data", 0, OPTION_TEXT, data_dir, "DIR",
           "data directory of the local server (default: BURROW_DATA)"),
    OPTION("org-id", 0, OPTION_TEXT, org_id, "ID",
           "taken for compatibility: the key says which organisation"),
};
static const struct option_row json_row =
    OPTION("json", 0, OPTION_FLAG, is_json, NULL, "print one JSON value instead");

static void join_rows(const struct cli_command *command, struct option_row rows[ROWS_MAX])
{
    size_t n = 0;

    for (const struct option_row *row = command->rows; row && row->name && n < ROWS_MAX - 8; row++)
        rows[n++] = *row;
    if (!(command->flags & COMMAND_NO_JSON))
        rows[n++] = json_row;
    for (size_t i = 0; command->flags & COMMAND_SERVER && i < ARRAY_SIZE(shared_rows); i++)
        rows[n++] = shared_rows[i];
    rows[n] = (struct option_row){0};
}

const struct option_set *command_options(const struct cli_command *command)
{
    static struct option_row rows[ROWS_MAX];
    static char name[80], usage[200];
    static struct option_set set;
    char first[32];

    join_rows(command, rows);
    (void)snprintf(name, sizeof name, "burrow %s%s%s", command->group, *command->group ? " " : "",
                   command_name(command->names, first));
    (void)snprintf(usage, sizeof usage, "%s%s[options]%s", command->operands,
                   *command->operands ? " " : "",
                   command->flags & COMMAND_WORDS_OPTIONAL ? " [-- COMMAND [ARGUMENT...]]"
                   : command->flags & COMMAND_WORDS        ? " [--] COMMAND [ARGUMENT...]"
                                                           : "");
    set = (struct option_set){
        name,          usage, command->summary, command->description, rows, command->examples,
        command->hints};
    return &set;
}

// ---- help ----

static void list_commands(const char *group, FILE *out)
{
    char name[32];

    for (const struct cli_command *const *table = command_tables; *table; table++) {
        for (const struct cli_command *command = *table; command->names; command++) {
            if (strcmp(command->group, group) == 0 && !(command->flags & COMMAND_HIDDEN))
                (void)fprintf(out, "  %-11s %s\n", command_name(command->names, name),
                              command->summary);
        }
    }
}

static void list_groups(FILE *out)
{
    char name[32];

    for (const struct command_group *group = command_groups; group->names; group++)
        (void)fprintf(out, "  %-11s %s\n", command_name(group->names, name), group->summary);
}

static void print_help(FILE *out)
{
    (void)fputs("burrow runs untrusted code in isolated Linux sandboxes.\n\n"
                "Usage: burrow COMMAND [options]\n\nCommands:\n",
                out);
    list_commands("", out);
    list_groups(out);
    (void)fputs(
        "\nOptions:\n"
        "  --version  say which version this is\n"
        "  --help     say this; 'burrow COMMAND --help' tells more, with examples\n\n"
        "'burrow help TOPIC' tells about limits, network and snapshots.\n"
        "'burrow cloud sandbox COMMAND', 'burrow sandbox COMMAND' and 'burrow sb COMMAND' are the "
        "same\n"
        "as 'burrow COMMAND'. Most take --json. Where a sandbox is wanted, its name will do.\n\n"
        "Examples:\n"
        "  $ burrow run --runtime host:latest -- echo hello\n"
        "  $ burrow create --name work\n"
        "  $ burrow exec work -- python3 -c 'print(6 * 7)'\n"
        "  $ burrow fs cp ./data.csv work:/workspace/\n"
        "  $ burrow doctor\n",
        out);
}

static void print_group_help(const struct command_group *group, FILE *out)
{
    char name[32];
    const char *rest = group->names + strcspn(group->names, " ");

    (void)command_name(group->names, name);
    (void)fprintf(out, "burrow %s: %s\n\nusage: burrow %s COMMAND [options]\n", name,
                  group->summary, name);
    if (*rest)
        (void)fprintf(out, "also called:%s\n", rest);
    (void)fputs("\ncommands:\n", out);
    list_commands(name, out);
    (void)fprintf(out, "\n'burrow %s COMMAND --help' tells more, with examples.\n", name);
}

static void print_command_help(const struct cli_command *command)
{
    const char *rest = command->names + strcspn(command->names, " ");

    options_help(command_options(command), stdout);
    if (*rest)
        (void)printf("\nalso called:%s\n", rest);
}

// ---- what is not there ----

static void consider_names(struct suggestion *near, const char *names, char (*room)[32],
                           unsigned *n, unsigned most)
{
    for (const char *at = names; *at && *n < most;) {
        size_t word = strcspn(at, " ");
        (void)snprintf(room[*n], 32, "%.*s", (int)word, at);
        suggestion_consider(near, room[(*n)++]);
        at += word;
        at += strspn(at, " ");
    }
}

/* Commands of docker, Agentuity's and E2B's, and what they are here. */
static const char *const foreign_words[][2] = {
    {"stop", "'burrow pause' keeps it, 'burrow delete' ends it"},
    {"kill", "'burrow delete' ends a sandbox, 'burrow job destroy' a job"},
    {"start", "'burrow resume' lets a paused sandbox go on, 'burrow create' makes one"},
    {"restart", "'burrow pause' and 'burrow resume', or 'burrow fork' for a fresh one"},
    {"inspect", "'burrow get', with --json"},
    {"shell", "'burrow attach'"},
    {"connect", "'burrow attach'"},
    {"sh", "'burrow attach'"},
    {"spawn", "'burrow create', then 'burrow attach'"},
    {"images", "'burrow runtime list', or 'burrow snapshot list'"},
    {"image", "'burrow runtime list', or 'burrow snapshot list'"},
    {"template", "'burrow snapshot build'"},
    {"build", "'burrow snapshot build', or 'burrow runtime build'"},
    {"pull", "'burrow runtime add' NAME --from docker://IMAGE"},
    {"commit", "'burrow snapshot create'"},
    {"rmi", "'burrow snapshot delete', or 'burrow runtime remove'"},
    {"login", "'burrow context create' NAME URL --api-key KEY"},
    {"auth", "'burrow context create' NAME URL --api-key KEY"},
    {"metrics", "'burrow top'"},
    {"volume", "--mount of 'burrow run' and 'burrow create'"},
};

static const char *foreign_meaning(const char *group, const char *name)
{
    for (size_t i = 0; !*group && i < ARRAY_SIZE(foreign_words); i++) {
        if (strcmp(foreign_words[i][0], name) == 0)
            return foreign_words[i][1];
    }
    return NULL;
}

static int refuse(const char *group, const char *name)
{
    char room[256][32];
    struct suggestion near = {.wanted = name};
    unsigned n = 0;

    for (const struct cli_command *const *table = command_tables; *table; table++) {
        for (const struct cli_command *command = *table; command->names; command++) {
            if (strcmp(command->group, group) == 0)
                consider_names(&near, command->names, room, &n, ARRAY_SIZE(room));
        }
    }
    for (const struct command_group *each = command_groups; !*group && each->names; each++)
        consider_names(&near, each->names, room, &n, ARRAY_SIZE(room));
    autofree char *clean = say_clean(name);
    const char *blank = *group ? " " : "", *here = foreign_meaning(group, name);
    if (here)
        (void)fprintf(stderr, "burrow: unknown command '%s': here it is %s\n", clean, here);
    else if (near.nearest)
        (void)fprintf(stderr, "burrow: unknown command '%s%s%s'; did you mean '%s%s%s'?\n", group,
                      blank, clean, group, blank, near.nearest);
    else
        (void)fprintf(stderr, "burrow: unknown command '%s%s%s'; 'burrow %s%s--help' lists them\n",
                      group, blank, clean, group, blank);
    return EXIT_USAGE;
}

/* A word that begins with '-' where a command should be. */
static int refuse_option(const char *word)
{
    struct suggestion near = {.wanted = word};
    autofree char *clean = say_clean(word);

    suggestion_consider(&near, "--version");
    suggestion_consider(&near, "--help");
    if (near.nearest)
        (void)fprintf(stderr, "burrow: unknown option '%s'; did you mean '%s'?\n", clean,
                      near.nearest);
    else
        (void)fprintf(stderr,
                      "burrow: '%s' stands before the command; options come behind it: burrow "
                      "COMMAND %s\n",
                      clean, clean);
    return EXIT_USAGE;
}

// ---- running ----

static int fail(const struct cli_command *command, const struct burrow_error *err, bool is_json)
{
    int code = say_error(err, is_json);
    bool is_ours = command->flags & COMMAND_RUNNING && code != EXIT_USAGE && code < EXIT_SIGNAL;

    return is_ours ? EXIT_BURROW : code;
}

static int run_invocation(struct invocation *invocation, int argc, char **argv)
{
    const struct cli_command *command = invocation->command;
    struct burrow_error err = {0};
    int read = invocation_read(invocation, argc, argv, &err);
    bool is_json = invocation->is_json || (read < 0 && !(command->flags & COMMAND_NO_JSON) &&
                                           options_mention(argc, argv, "json"));

    if (read == OPTIONS_HELP) {
        print_command_help(command);
        return EXIT_DONE;
    }
    if (read < 0) {
        (void)say_error(&err, is_json);
        return EXIT_USAGE;
    }
    if (command->flags & COMMAND_SERVER && endpoint_connect(invocation, ENDPOINT_START, &err) < 0)
        return fail(command, &err, invocation->is_json);
    int code = command->run(invocation, &err);
    if (code >= 0 && fflush(stdout) != 0)
        code = say_fail_sys(&err, "write to standard output");
    return code < 0 ? fail(command, &err, invocation->is_json) : code;
}

static int run_command(const struct cli_command *command, int argc, char **argv)
{
    struct invocation invocation;

    if (command->own)
        return command->own(argc, argv);
    invocation_init(&invocation, command);
    int code = run_invocation(&invocation, argc, argv);
    invocation_clear(&invocation);
    return code;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

/* argv[0] is the group's name. */
static int run_in_group(const struct command_group *group, int argc, char **argv)
{
    char name[32];

    if (group->own)
        return group->own(argc, argv);
    if (argc < 2 || is_help(argv[1])) {
        print_group_help(group, argc < 2 ? stderr : stdout);
        return argc < 2 ? EXIT_USAGE : EXIT_DONE;
    }
    const struct cli_command *command = command_find(command_name(group->names, name), argv[1]);
    return command ? run_command(command, argc - 1, argv + 1) : refuse(name, argv[1]);
}

/* "burrow help fs cp" is "burrow fs cp --help"; one word may be a topic. */
static int help_about(int argc, char **argv)
{
    const struct topic *topic = argc == 1 ? topic_find(argv[0]) : NULL;
    char *words[4] = {0};
    int n = 0;

    if (topic) {
        (void)fputs(topic->text, stdout);
        return EXIT_DONE;
    }
    if (strcmp(argv[0], "--scd") == 0) { // for the build
        manual_print(stdout);
        return EXIT_DONE;
    }
    for (; n < argc && n < 2; n++)
        words[n] = argv[n];
    words[n++] = (char *)"--help";
    const struct command_group *group = command_find_group(argv[0]);
    if (group)
        return run_in_group(group, n, words);
    const struct cli_command *command = command_find("", argv[0]);
    words[1] = (char *)"--help";
    return command ? run_command(command, 2, words) : refuse("", argv[0]);
}

/* How many words only say that it is about sandboxes: "cloud sandbox list" is "list". */
static int count_prefix(int argc, char **argv)
{
    int n = argc > 0 && strcmp(argv[0], "cloud") == 0;

    return n + (argc > n && (strcmp(argv[n], "sandbox") == 0 || strcmp(argv[n], "sb") == 0));
}

int tree_run(int argc, char **argv)
{
    int at = 1 + count_prefix(argc - 1, argv + 1);

    argc -= at;
    argv += at;
    if (argc < 1) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const struct command_group *group = command_find_group(argv[0]);
    if (group)
        return run_in_group(group, argc, argv);
    const struct cli_command *command = command_find("", argv[0]);
    if (command)
        return run_command(command, argc, argv);
    if (is_help(argv[0])) {
        at = 1 + count_prefix(argc - 1, argv + 1);
        if (argc > at && strcmp(argv[0], "help") == 0)
            return help_about(argc - at, argv + at);
        print_help(stdout);
        return EXIT_DONE;
    }
    if (strcmp(argv[0], "--version") == 0 || strcmp(argv[0], "version") == 0) {
        (void)printf("burrow %s\n", BURROW_VERSION);
        return EXIT_DONE;
    }
    return *argv[0] == '-' ? refuse_option(argv[0]) : refuse("", argv[0]);
}
