/* SPDX-License-Identifier: Apache-2.0 */
/* What a key may do; see scope.h. */
#include "core/account/scope.h"

#include <stdio.h>
#include <string.h>

const char *const scope_names[] = {"read", "run", "manage", "admin", "organisation", NULL};

const char *scope_name(enum key_scope scope)
{
    for (unsigned i = 0; scope_names[i]; i++)
        if (scope & 1u << i)
            return scope_names[i];
    return "none";
}

// 0: no such word.
static unsigned scope_of(const char *word, size_t length)
{
    for (unsigned i = 0; scope_names[i]; i++)
        if (strlen(scope_names[i]) == length && memcmp(scope_names[i], word, length) == 0)
            return 1u << i;
    return 0;
}

int scopes_of(const char *const *words, unsigned *out, struct error *err)
{
    unsigned scopes = 0;

    for (; *words; words++) {
        unsigned scope = scope_of(*words, strlen(*words));
        if (!scope)
            return error_refuse(err, ERROR_INVALID, "scope",
                                "there is no scope '%.60s': there are read, run, manage, admin and "
                                "organisation",
                                *words);
        scopes |= scope;
    }
    *out = scopes;
    return 0;
}

const char *scopes_write(unsigned scopes, char text[SCOPES_TEXT])
{
    size_t length = 0;

    *text = '\0';
    for (unsigned i = 0; scope_names[i]; i++)
        if (scopes & 1u << i)
            length += (size_t)snprintf(text + length, SCOPES_TEXT - length, "%s%s",
                                       length ? " " : "", scope_names[i]);
    return text;
}

unsigned scopes_read(const char *text)
{
    unsigned scopes = 0;

    for (size_t length; *text; text += length + (text[length] == ' ')) {
        length = strcspn(text, " ");
        scopes |= scope_of(text, length);
    }
    return scopes;
}

void scopes_list(unsigned scopes, const char *out[SCOPES_MADE + 1])
{
    for (unsigned i = 0; scope_names[i]; i++)
        if (scopes & 1u << i)
            *out++ = scope_names[i];
    *out = NULL;
}
