/* SPDX-License-Identifier: Apache-2.0 */
/* Which commands may be run; see commands.h. */
#include "front/aionis/commands.h"

#include "base/mem.h"
#include "data/json.h"
#include "front/aionis/wide.h"

#include <string.h>

/* "[echo,python3]": names of a few characters only, with commas between. */
static bool is_bare(const char *text, size_t length)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/+:-, \t";

    return length >= 2 && text[0] == '[' && text[length - 1] == ']' &&
           strspn(text + 1, allowed) == length - 2;
}

static void add_command(struct commands *commands, const char *name, size_t length)
{
    struct wide_text trimmed = wide_trim((struct wide_text){name, length});

    if (trimmed.length == 0 || memchr(trimmed.text, '\0', trimmed.length))
        return;
    char *copy = value_alloc(commands->memory, trimmed.length + 1);
    memcpy(copy, trimmed.text, trimmed.length);
    commands->names = xrealloc(commands->names, commands->count + 1, sizeof *commands->names);
    commands->names[commands->count++] = copy;
}

static int read_bare(const char *text, struct commands *out)
{
    for (const char *at = text + 1; *at && *at != ']';) {
        size_t length = strcspn(at, ",]");
        add_command(out, at, length);
        at += length + (at[length] == ',');
    }
    return 0;
}

static int read_commands(const struct data_value *list, struct commands *out)
{
    for (const struct data_value *item = list->first; item; item = item->next) {
        if (item->kind == VALUE_STRING)
            add_command(out, item->text, item->length);
    }
    return 0;
}

/* Without the quotes that a shell or an .env file may have left around it. */
static struct wide_text unquote(struct wide_text text)
{
    bool has_quotes = text.length >= 2 && (text.text[0] == '\'' || text.text[0] == '"') &&
                      text.text[text.length - 1] == text.text[0];

    return has_quotes ? wide_trim((struct wide_text){text.text + 1, text.length - 2}) : text;
}

int commands_read(const char *text, struct commands *out, struct error *err)
{
    struct wide_text bare = unquote(wide_trim((struct wide_text){text, strlen(text)}));
    autoptr(data_document) document = NULL;
    struct error why = {0};

    *out = (struct commands){.memory = data_document_new("")};
    if (json_read("", bare.text, bare.length, NULL, &document, &why) == 0 &&
        document->root->kind == VALUE_LIST)
        return read_commands(document->root, out);
    autofree char *copy = xasprintf("%.*s", (int)bare.length, bare.text);
    if (is_bare(copy, bare.length))
        return read_bare(copy, out);
    commands_clear(out);
    return error_set(err, ERROR_INVALID,
                     "the commands that may be run must be a JSON array of names, not '%.80s'",
                     text);
}

void commands_clear(struct commands *commands)
{
    free(commands->names);
    data_document_free(commands->memory);
    *commands = (struct commands){0};
}

bool commands_allow(const struct commands *commands, const char *name)
{
    for (size_t i = 0; i < commands->count; i++) {
        if (strcmp(commands->names[i], name) == 0)
            return true;
    }
    return false;
}
