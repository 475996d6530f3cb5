/* SPDX-License-Identifier: Apache-2.0 */
/* burrow complete, and the scripts of burrow completion; see completion.h. */
#include "cli/completion.h"

#include "base/auto.h"
#include "base/child.h"
#include "base/mem.h"
#include "cli/listing.h"
#include "cli/commands.h"
#include "cli/endpoint.h"
#include "cli/exit.h"
#include "cli/invocation.h"
#include "cli/manual.h"
#include "cli/say.h"
#include "cli/sandbox_options.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MS 2000 // somebody waits at a prompt

// ---- the scripts ----

static const char bash_script[] =
    "# bash completion of burrow; made by 'burrow completion bash'\n"
    "_burrow()\n"
    "{\n"
    "    local line=${COMP_LINE:0:COMP_POINT} words word kept\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && words+=('')\n"
    "    word=${words[-1]}\n"
    "    kept=${word%\"${word##*[:=]}\"} # bash takes what is behind these for a word of its own\n"
    "    COMPREPLY=()\n"
    "    while IFS=$'\\t' read -r word _; do\n"
    "        COMPREPLY+=(\"${word#\"$kept\"}\")\n"
    "    done < <(\"${words[0]}\" complete \"${words[@]:1}\" 2>/dev/null)\n"
    "}\n"
    "complete -o bashdefault -o default -F _burrow burrow\n";

static const char zsh_script[] =
    "#compdef burrow\n"
    "# zsh completion of burrow; made by 'burrow completion zsh'\n"
    "_burrow()\n"
    "{\n"
    "    local line\n"
    "    local -a found\n"
    "    ${words[1]} complete \"${(@)words[2,CURRENT]}\" 2>/dev/null | while IFS= read -r line; "
    "do\n"
    "        found+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
    "    done\n"
    "    if (( $#found )); then\n"
    "        _describe -V burrow found\n"
    "    else\n"
    "        _files\n"
    "    fi\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _burrow ]; then _burrow \"$@\"; else compdef _burrow burrow; fi\n";

static const char fish_script[] =
    "# fish completion of burrow; made by 'burrow completion fish'\n"
    "function __burrow_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l word (commandline -ct)\n"
    "    set -l found (command $words[1] complete $words[2..-1] \"$word\" 2>/dev/null)\n"
    "    if test (count $found) -gt 0\n"
    "        printf '%s\\n' $found\n"
    "    else\n"
    "        __fish_complete_path $word\n"
    "    end\n"
    "end\n"
    "complete -c burrow -f -a '(__burrow_complete)'\n";

static const struct {
    const char *name, *script;
} shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

static int print_script(struct invocation *invocation, struct burrow_error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
        if (strcmp(shells[i].name, invocation->operands[0]) == 0)
            return fputs(shells[i].script, stdout) < 0
                       ? say_fail_sys(err, "write to standard output")
                       : EXIT_DONE;
    }
    return say_fail(err, BURROW_INVALID,
                    "there are completions for bash, zsh and fish, not for '%.60s'",
                    invocation->operands[0]);
}

// ---- offers ----

struct line {
    char **words; // the command's own, without "cloud sandbox"
    int count;
    const char *written; // the part of the last one that an offer begins with
    const char *before;  // "--runtime=", or ""
    const char *sandbox; // the first operand, once there is one
};

/* Texts of a server are offered only if a shell takes them for plain words. */
static bool is_plain(const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@+-";

    return *text && *text != '-' && text[strspn(text, plain)] == '\0';
}

static void offer(const struct line *line, const char *word, const char *what)
{
    if (strncmp(word, line->written, strlen(line->written)) == 0)
        (void)printf("%s%s\t%s\n", line->before, word, what);
}

static void offer_commands(const struct line *line, const char *group)
{
    char name[32];

    for (const struct cli_command *const *table = command_tables; *table; table++) {
        for (const struct cli_command *command = *table; command->names; command++) {
            if (strcmp(command->group, group) == 0 && !(command->flags & COMMAND_HIDDEN))
                offer(line, command_name(command->names, name), command->summary);
        }
    }
}

static void offer_first(const struct line *line)
{
    char name[32];

    offer_commands(line, "");
    for (const struct command_group *group = command_groups; group->names; group++)
        offer(line, command_name(group->names, name), group->summary);
    offer(line, "help", "tell about a command, or a topic");
    if (*line->written == '-') {
        offer(line, "--help", "list the commands");
        offer(line, "--version", "say which version this is");
    }
}

// ---- what only the help of a command knows ----

/* Commands with tables of their own, some of them in the server's program, are asked for their help. */
static FILE *open_help(const char *first, const char *second, pid_t *pid)
{
    char *argv[] = {(char *)"burrow", (char *)first, (char *)(second ? second : "--help"),
                    (char *)(second ? "--help" : NULL), NULL};
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return NULL;
    struct child child = {"/proc/self/exe", argv, environ, {CHILD_NOTHING, ends[1], CHILD_NOTHING}};
    int failed = child_start(&child, pid);
    (void)close(ends[1]);
    FILE *in = failed ? NULL : fdopen(ends[0], "re");
    if (!in)
        (void)close(ends[0]);
    return in;
}

/* "  -m, --memory SIZE  how much" and "  create   make a key": the word and what it is. Cuts the text. */
static const char *help_word(char *text, const char **what)
{
    text[strcspn(text, "\n")] = '\0';
    if (strncmp(text, "  ", 2) != 0)
        return NULL;
    char *word = text + strspn(text, " ");
    if (word[0] == '-' && word[1] != '-' && word[1] && word[2] == ',')
        word += 4;
    char *gap = strstr(word, "  ");
    *what = gap ? gap + strspn(gap, " ") : "";
    if (gap)
        *gap = '\0';
    word[strcspn(word, " ")] = '\0';
    return word;
}

static void offer_from_help(const struct line *line, const char *first, const char *second,
                            bool is_command)
{
    pid_t pid = -1;
    FILE *in = open_help(first, second, &pid);
    char text[512];
    const char *what;
    bool is_there = false;

    while (in && fgets(text, sizeof text, in)) {
        if (text[0] != ' ') {
            is_there = strcmp(text, is_command ? "commands:\n" : "options:\n") == 0;
            continue;
        }
        const char *word = is_there ? help_word(text, &what) : NULL;
        if (word && (*word == '-') != is_command)
            offer(line, word, what);
    }
    if (in)
        (void)fclose(in);
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
}

// ---- what the server has ----

/* Where it is, as the words so far say. */
static void read_where(const struct line *line, struct invocation *invocation)
{
    const struct {
        const char *name;
        const char **field;
    } options[] = {{"--url", &invocation->url},
                   {"--context", &invocation->context},
                   {"--data", &invocation->data_dir},
                   {"--api-key", &invocation->api_key}};

    for (int i = 0; i < line->count - 1; i++) {
        for (size_t j = 0; j < ARRAY_SIZE(options); j++) {
            size_t length = strlen(options[j].name);
            if (strncmp(line->words[i], options[j].name, length) != 0)
                continue;
            if (line->words[i][length] == '=')
                *options[j].field = line->words[i] + length + 1;
            else if (line->words[i][length] == '\0' && i + 1 < line->count - 1)
                *options[j].field = line->words[i + 1];
        }
    }
}

struct source {
    const char *argument;
    const char *path;            // %s: the sandbox that the line is about
    const char *names[4], *what; // `what`: the field that tells about it
};
#define CHECKPOINTS "/sandboxes/%s/checkpoints", {"name", "id"}, "createdAt"
static const struct source sources[] = {
    {"SANDBOX", "/sandboxes?limit=100&state=" LIVING_STATES, {"name", "id"}, "state"},
    // a name leads to none that has ended
    {"SANDBOX", "/sandboxes?limit=100&state=" ENDED_STATES, {"id"}, "state"},
    {"SNAPSHOT", "/snapshots?limit=100", {"name", "tag", "id"}, "createdAt"},
    {"RUNTIME", "/runtimes?limit=100", {"name"}, "description"},
    {"EXECUTION", "/executions?limit=100", {"id"}, "state"},
    {"JOB", "/sandboxes/%s/executions?limit=100&kind=job", {"id"}, "state"},
    {"CHECKPOINT", CHECKPOINTS},
    {"FROM", CHECKPOINTS},
    {"TO", CHECKPOINTS},
};

static void offer_items(const struct line *line, const struct source *source,
                        const struct burrow_value *items)
{
    for (const struct burrow_value *item = burrow_first(items); item; item = burrow_next(item)) {
        autofree char *what = say_clean(burrow_text(burrow_get(item, source->what)));
        for (size_t i = 0; source->names[i]; i++) {
            const char *word = burrow_text(burrow_get(item, source->names[i]));
            if (word && is_plain(word))
                offer(line, word, what);
        }
    }
}

static void offer_from_server(const struct line *line, const struct source *source)
{
    struct invocation invocation;
    struct burrow_error err = {0};
    autoanswer answer = NULL;
    bool is_inside = strstr(source->path, "%s") != NULL;

    if (is_inside && !line->sandbox)
        return;
    autofree char *path =
        is_inside ? burrow_path(source->path, line->sandbox, NULL) : xstrdup(source->path);
    invocation_init(&invocation, NULL);
    read_where(line, &invocation);
    if (endpoint_connect(&invocation, ENDPOINT_LOOK, &err) == 0) {
        burrow_set_timeout(invocation.client, ANSWER_MS);
        if (burrow_ask(invocation.client, "GET", path, NULL, &answer, &err) == 0)
            offer_items(line, source, burrow_get(burrow_answer_value(answer), "items"));
    }
    invocation_clear(&invocation);
}

// ---- one command ----

static void offer_options(const struct line *line, const struct option_set *set)
{
    for (const struct option_row *row = set->rows; row && row->name; row++) {
        autofree char *word = xasprintf("--%s", row->name);
        offer(line, word, row->help);
    }
    offer(line, "--help", "print this help");
}

/* The row an option's word names, when it takes an argument. */
static const struct option_row *row_of(const struct option_set *set, const char *word)
{
    size_t length = strcspn(word, "=");

    for (const struct option_row *row = set->rows; row && row->name; row++) {
        bool is_long = strncmp(word, "--", 2) == 0 && strlen(row->name) + 2 == length &&
                       strncmp(word + 2, row->name, length - 2) == 0;
        bool is_letter = row->letter && word[0] == '-' && word[1] == row->letter && !word[2];
        if ((is_long || is_letter) && row->argument)
            return row;
    }
    return NULL;
}

/* "SANDBOX...", and each word of "SANDBOX|EXECUTION". */
static bool is_named(const struct source *source, const char *argument, size_t length)
{
    size_t size = strlen(source->argument);

    for (const char *end = argument + length;; argument++) {
        size_t word = strcspn(argument, "|[].: ");
        if (argument + word > end)
            word = (size_t)(end - argument);
        if (word == size && memcmp(argument, source->argument, size) == 0)
            return true;
        argument += word;
        if (argument >= end || *argument != '|')
            return false;
    }
}

static void offer_for(const struct line *line, const char *argument, size_t length)
{
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        if (is_named(&sources[i], argument, length))
            offer_from_server(line, &sources[i]);
    }
    for (size_t i = 0; length == 5 && strncmp(argument, "SHELL", 5) == 0 && i < ARRAY_SIZE(shells);
         i++)
        offer(line, shells[i].name, "a shell");
}

static void offer_value(struct line *line, const struct option_row *row)
{
    bool is_runtime = strcmp(row->name, "runtime") == 0,
         is_snapshot = strcmp(row->name, "snapshot") == 0;
    const char *argument = is_runtime ? "RUNTIME" : is_snapshot ? "SNAPSHOT" : row->argument;

    offer_for(line, argument, strlen(argument));
}

static void offer_operand(const struct line *line, const char *operands, unsigned index)
{
    for (const char *at = operands; *at;) {
        size_t length = strcspn(at, " ");
        bool is_again = length > 3 && strncmp(at + length - 3, "...", 3) == 0;
        size_t start = *at == '[';
        if (index == 0 || is_again) {
            offer_for(line, at + start, length - start);
            return;
        }
        index--;
        at += length;
        at += strspn(at, " ");
    }
}

/* The words from `first` on are behind the command's name. */
static void complete_command(struct line *line, const struct cli_command *command, int first)
{
    const struct option_set *set = command_options(command);
    unsigned operands = 0;

    for (int i = first; i < line->count - 1; i++) {
        const char *word = line->words[i];
        if (strcmp(word, "--") == 0)
            return; // a command of the sandbox
        if (word[0] != '-' || !word[1]) {
            if (operands++ == 0)
                line->sandbox = word;
            continue;
        }
        const struct option_row *row = strchr(word, '=') ? NULL : row_of(set, word);
        if (row && ++i == line->count - 1) {
            offer_value(line, row);
            return;
        }
    }
    const char *equals = strchr(line->written, '=');
    const struct option_row *row =
        equals && line->written[0] == '-' ? row_of(set, line->written) : NULL;
    if (row) {
        autofree char *before = xstrndup(line->written, (size_t)(equals - line->written) + 1);
        struct line value = {line->words, line->count, equals + 1, before, line->sandbox};
        offer_value(&value, row);
    } else if (line->written[0] == '-') {
        offer_options(line, set);
    } else {
        offer_operand(line, command->operands, operands);
    }
}

/* One that only its help knows. */
static void complete_own(const struct line *line)
{
    bool is_named = line->count > 2 && line->words[1][0] != '-';
    const char *second = is_named ? line->words[1] : NULL;

    for (int i = 1; i < line->count - 1; i++) {
        if (strcmp(line->words[i], "--") == 0)
            return;
    }
    if (line->written[0] == '-')
        offer_from_help(line, line->words[0], second, false);
    else if (line->count == 2)
        offer_from_help(line, line->words[0], NULL, true);
    else if (strcmp(line->words[line->count - 2], "--runtime") == 0)
        offer_for(line, "RUNTIME", 7);
    else if (strcmp(line->words[line->count - 2], "--snapshot") == 0)
        offer_for(line, "SNAPSHOT", 8);
    else if (command_has_name("runtime rt", line->words[0]) && line->count == 3)
        offer_for(line, "RUNTIME", 7);
}

static void complete(struct line *line)
{
    if (line->count == 1) {
        offer_first(line);
        return;
    }
    const struct command_group *group = command_find_group(line->words[0]);
    const struct cli_command *command = group ? NULL : command_find("", line->words[0]);
    char name[32];

    if ((group && group->own) || (command && command->own)) {
        complete_own(line);
    } else if (group && line->count == 2) {
        offer_commands(line, command_name(group->names, name));
    } else if (group) {
        command = command_find(command_name(group->names, name), line->words[1]);
        if (command)
            complete_command(line, command, 2);
    } else if (command) {
        complete_command(line, command, 1);
    } else if (strcmp(line->words[0], "help") == 0 && line->count == 2) {
        offer_first(line);
        for (const struct topic *topic = topics; topic->name; topic++) {
            if (!command_find_group(topic->name))
                offer(line, topic->name, "a topic");
        }
    }
}

int cli_complete(int argc, char **argv)
{
    struct line line = {argv + 1, argc - 1, "", "", NULL};

    if (line.count < 1)
        return EXIT_DONE;
    line.written = argv[argc - 1];
    if (line.count > 1 && strcmp(line.words[0], "cloud") == 0) {
        line.words++;
        line.count--;
    }
    if (line.count > 1 && command_has_name("sandbox sb", line.words[0])) {
        line.words++;
        line.count--;
    }
    complete(&line);
    (void)fflush(stdout);
    return EXIT_DONE;
}

// ---- the table ----

static const char *const completion_examples[] = {
    "$ source <(burrow completion bash)",
    "$ burrow completion fish > ~/.config/fish/completions/burrow.fish", NULL};

const struct cli_command completion_commands[] = {
    {"", "completion", "SHELL", "print what makes a shell complete burrow's words",
     "SHELL is bash, zsh or fish. 'make install' has put all three where shells look for them.\n"
     "Names and ids come from the server that the line is about; none is started for that.",
     NULL, completion_examples, COMMAND_NO_JSON, print_script},
    {"", "complete", "", "list what may come next; for the scripts of 'completion'",
     .flags = COMMAND_HIDDEN, .own = cli_complete},
    {0},
};
