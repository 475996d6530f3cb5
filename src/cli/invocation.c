/* SPDX-License-Identifier: Apache-2.0 */
/* A command line on its way; see invocation.h. */
#include "cli/invocation.h"

#include "base/auto.h"
#include "cli/say.h"

#include <stdio.h>
#include <string.h>

void invocation_init(struct invocation *invocation, const struct cli_command *command)
{
    *invocation = (struct invocation){
        .command = command,
        .memory_bytes = OPTION_UNSET,
        .tail = -1,
        .disk_bytes = OPTION_UNSET,
        .idle_timeout_ms = OPTION_UNSET,
        .timeout_ms = OPTION_UNSET,
        .most_bytes = OPTION_UNSET,
        .cpu_millicores = -1,
        .max_processes = -1,
        .limit = -1,
    };
}

void invocation_clear(struct invocation *invocation)
{
    struct option_list *lists[] = {&invocation->env,
                                   &invocation->files,
                                   &invocation->mounts,
                                   &invocation->ignore,
                                   &invocation->scopes,
                                   &invocation->dependencies,
                                   &invocation->packages,
                                   &invocation->labels,
                                   &invocation->metadata_pairs,
                                   &invocation->allow,
                                   &invocation->deny,
                                   &invocation->deletes,
                                   &invocation->local_forwards,
                                   &invocation->dynamic_forwards};

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        option_list_clear(lists[i]);
    burrow_close(invocation->client);
}

/* How many operands the row's text names at least, and at most. */
static void count_operands(const char *operands, unsigned *least, unsigned *most)
{
    *least = *most = 0;
    for (const char *at = operands; *at;) {
        size_t length = strcspn(at, " ");
        bool is_many = length >= 3 && memcmp(at + length - 3, "...", 3) == 0;
        bool is_optional = *at == '[' || (is_many && length == 3);
        *least += !is_optional;
        *most = is_many || (is_optional && memchr(at, '.', length)) ? OPERANDS_MAX : *most + 1;
        at += length;
        at += strspn(at, " ");
    }
}

static int too_many(const struct invocation *invocation, const char *word, struct burrow_error *err)
{
    const struct option_set *set = command_options(invocation->command);

    return say_fail(err, BURROW_INVALID, "%s does not take '%.100s': see %s --help", set->command,
                    word, set->command);
}

static int too_few(const struct invocation *invocation, struct burrow_error *err)
{
    const struct option_set *set = command_options(invocation->command);
    const char *missing = invocation->command->operands;

    for (unsigned i = 0; i < invocation->n_operands; i++) {
        missing += strcspn(missing, " ");
        missing += strspn(missing, " ");
    }
    return say_fail(err, BURROW_INVALID, "%.*s is missing: %s %s", (int)strcspn(missing, " ."),
                    missing, set->command, set->usage);
}

int invocation_read(struct invocation *invocation, int argc, char **argv, struct burrow_error *err)
{
    const struct cli_command *command = invocation->command;
    const struct option_set *set = command_options(command);
    bool takes_words = command->flags & COMMAND_WORDS, is_first = true;
    unsigned least, most;
    struct error error = {0};

    count_operands(command->operands, &least, &most);
    for (;;) {
        int at = 0;
        int parsed = is_first ? options_parse(set, argc, argv, invocation, &at, &error)
                              : options_parse_more(set, argc, argv, invocation, &at, &error);
        is_first = false;
        if (parsed == OPTIONS_HELP)
            return parsed;
        if (parsed < 0)
            return say_fail(err, BURROW_INVALID, "%s", error.text);
        bool is_behind = at > 1 && strcmp(argv[at - 1], "--") == 0;
        if (at >= argc)
            break;
        if (takes_words && (is_behind || invocation->n_operands == most)) {
            invocation->words = argv + at;
            break;
        }
        if (invocation->n_operands >= most || invocation->n_operands >= OPERANDS_MAX)
            return too_many(invocation, argv[at], err);
        invocation->operands[invocation->n_operands++] = argv[at];
        argc -= at;
        argv += at;
        if (is_behind) { // all that follow are operands, whatever they look like
            for (int i = 1; i < argc; i++) {
                if (invocation->n_operands >= most)
                    return too_many(invocation, argv[i], err);
                invocation->operands[invocation->n_operands++] = argv[i];
            }
            break;
        }
    }
    if (invocation->n_operands < least)
        return too_few(invocation, err);
    if (takes_words && !invocation->words && !(command->flags & COMMAND_WORDS_OPTIONAL))
        return say_fail(err, BURROW_INVALID, "%s needs a command: %s %s", set->command,
                        set->command, set->usage);
    return 0;
}

const char *invocation_operand(const struct invocation *invocation, unsigned index)
{
    return index < invocation->n_operands ? invocation->operands[index] : NULL;
}
