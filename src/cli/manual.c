/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page of all commands, and topics; see manual.h. */
#include "cli/manual.h"

#include "cli/commands.h"

#include <string.h>

// ---- the page ----

/* As it is: scdoc's own signs are escaped, and lines do not begin with blanks, which mean something to it. */
static void put(FILE *out, const char *text)
{
    bool is_begin = true;

    for (; *text; text++) {
        if (is_begin && (*text == ' ' || *text == '\t'))
            continue;
        bool is_sign = strchr("*_\\#[]|<>+`~", *text) || (is_begin && strchr("-.:!", *text));
        if (is_sign)
            (void)fputc('\\', out);
        (void)fputc(*text, out);
        is_begin = *text == '\n';
    }
}

static void put_option(const struct option_row *row, FILE *out)
{
    if (row->letter)
        (void)fprintf(out, "*-%c*, ", row->letter);
    (void)fprintf(out, "*--%s*", row->name);
    if (row->argument) {
        (void)fputs(" _", out);
        put(out, row->argument);
        (void)fputc('_', out);
    }
    (void)fputs("\n\t", out);
    put(out, row->help);
    (void)fputs(".\n\n", out);
}

static void put_names(const char *names, FILE *out)
{
    const char *rest = names + strcspn(names, " ");

    if (*rest)
        (void)fprintf(out, "Also called: *%s*.\n\n", rest + 1);
}

static void put_command(const struct cli_command *command, FILE *out)
{
    const struct option_set *set = command_options(command);

    (void)fprintf(out, "## %s\n\n*%s* ", set->command, set->command);
    put(out, set->usage);
    (void)fputs("\n\nThis is to ", out);
    put(out, set->summary);
    (void)fputs(".\n\n", out);
    if (set->description) {
        put(out, set->description);
        (void)fputs("\n\n", out);
    }
    put_names(command->names, out);
    for (const struct option_row *row = command->rows; row && row->name; row++)
        put_option(row, out);
    if (!set->examples || !set->examples[0])
        return;
    (void)fputs("```\n", out);
    for (const char *const *example = set->examples; *example; example++)
        (void)fprintf(out, "%s\n", *example);
    (void)fputs("```\n\n", out);
}

/* `group` NULL: those that are in none. Commands with arguments of their own have pages of their own. */
static void put_commands(const char *group, FILE *out)
{
    for (const struct cli_command *const *table = command_tables; *table; table++) {
        for (const struct cli_command *command = *table; command->names; command++) {
            if (strcmp(command->group, group) == 0 && !command->own &&
                !(command->flags & COMMAND_HIDDEN))
                put_command(command, out);
        }
    }
}

/* What command_options adds to the rows of a command that talks to a server. */
static void put_shared_options(FILE *out)
{
    static const struct cli_command any = {"", "any", "", "", .flags = COMMAND_SERVER};

    for (const struct option_row *row = command_options(&any)->rows; row->name; row++)
        put_option(row, out);
    (void)fputs("*-h*, *--help*\n\tprint help, with examples.\n\n", out);
}

static void put_heading(const char *name, FILE *out)
{
    (void)fputs("# ", out);
    for (; *name; name++)
        (void)fputc(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name, out);
    (void)fputs("\n\n", out);
}

void manual_print(FILE *out)
{
    char name[32];

    (void)fputs("burrow-commands(1)\n\n# NAME\n\nburrow-commands - every command of burrow that "
                "talks to a server, with its options\n\n"
                "# DESCRIPTION\n\nThis page is made of the tables by which burrow reads its "
                "commands. *burrow*(1) tells which server they talk to, and what their exit "
                "codes mean. *run*, *runtime*, *serve*, *key*, *doctor*, *detach* and *repair* "
                "have pages of their own.\n\n# OPTIONS OF ALL\n\n",
                out);
    put_shared_options(out);
    (void)fputs("# COMMANDS\n\n", out);
    put_commands("", out);
    for (const struct command_group *group = command_groups; group->names; group++) {
        if (group->own)
            continue;
        put_heading(command_name(group->names, name), out);
        (void)fputs("These are about ", out);
        put(out, group->summary);
        (void)fputs(".\n\n", out);
        put_names(group->names, out);
        put_commands(name, out);
    }
    (void)fputs("# SEE ALSO\n\n*burrow*(1), *burrow-run*(1), *burrow-runtime*(1), "
                "*burrow-serve*(1), *burrow-key*(1)\n",
                out);
}

// ---- topics ----

const struct topic topics[] = {
    {"limits",
     "What a sandbox may use.\n\n"
     "  --memory SIZE        256Mi, 1Gi. At the limit the kernel ends its largest process: exit "
     "code "
     "137.\n"
     "  --cpu CPU            500m is half of one processor, 2 is two. What wants more waits.\n"
     "  --disk SIZE          how much it may write, hard: then 'Disk quota exceeded'.\n"
     "  --max-processes N    processes and threads together; more cannot be started.\n"
     "  --timeout TIME       of one command (run, exec): 30s, 5m. It is ended: exit code 124.\n"
     "  --idle-timeout TIME  of a sandbox (create): after so long without use it ends with its "
     "files;\n"
     "                       --on-idle pause or keep_files keeps them.\n\n"
     "'burrow run' and 'burrow create' take them. Without: 512Mi, 1 processor, 2Gi, 512, unless "
     "the\n"
     "server is set otherwise. A server has limits for each key besides, and for the machine; "
     "what\n"
     "is refused for them says so. Programs see their limits as the size of the machine (nproc, "
     "free).\n\n"
     "  $ burrow run --memory 256Mi --timeout 10s -- python3 job.py\n"
     "  $ burrow get work          the limits of a sandbox\n"
     "  $ burrow top               what each uses now\n"},
    {"network",
     "Where a sandbox may connect to.\n\n"
     "It has no network unless it asks: --network lets it reach the Internet, never this machine, "
     "its\n"
     "networks or other sandboxes. Rules say it more narrowly: a name, *.name, an address or a "
     "network;\n"
     "then :port or :first-last; then /tcp, /udp or /icmp. Where something is allowed by a rule,\n"
     "all else is denied. What is denied by a rule stays so, whatever is allowed.\n\n"
     "  $ burrow run --allow '*.debian.org:443' -- apt-get update\n"
     "  $ burrow create --name work --network\n"
     "  $ burrow network policy work --enabled on              give it one while it runs\n"
     "  $ burrow network policy work --allow example.com:443   change its rules\n"
     "  $ burrow network why work example.com:443              which rule says so, and what to do\n"
     "  $ burrow network observe work                          where it was refused\n\n"
     "'burrow network --help' lists the commands.\n"},
    {"snapshots",
     "Files that are kept.\n\n"
     "  snapshot    a sandbox's files under an id and a tag, to start others from\n"
     "  checkpoint  the same inside one sandbox, to go back to\n"
     "  fork        another sandbox with the same files, at once\n"
     "  diff        what has changed, since its start or between two of these\n\n"
     "Processes are not kept, only files. Whatever starts from a snapshot has files of its own:\n"
     "nothing it writes changes the snapshot.\n\n"
     "  $ burrow snapshot create work --tag ready\n"
     "  $ burrow run --snapshot ready -- ls\n"
     "  $ burrow checkpoint create work before\n"
     "  $ burrow diff work before --patch\n"
     "  $ burrow checkpoint restore work before\n"
     "  $ burrow snapshot generate > agentuity-snapshot.yaml   a build file to begin with\n\n"
     "'burrow snapshot --help' and 'burrow checkpoint --help' list the commands.\n"},
    {0},
};

const struct topic *topic_find(const char *name)
{
    for (const struct topic *topic = topics; topic->name; topic++) {
        if (strcmp(topic->name, name) == 0)
            return topic;
    }
    return NULL;
}
