/* SPDX-License-Identifier: Apache-2.0 */
/* What operations are called; see openapi_names.h. */
#include "web/openapi_names.h"

#include "base/auto.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WORDS 8
#define WORD_TEXT 48

/* The words of a path, without its parameters. */
struct words {
    char text[WORDS][WORD_TEXT];
    size_t count;
    bool is_item; // the path ends with a parameter
};

static void read_words(const char *pattern, const char *top, struct words *out)
{
    size_t skipped = strlen(top);
    const char *at = strncmp(pattern, top, skipped) == 0 ? pattern + skipped : pattern;

    *out = (struct words){0};
    for (at += strspn(at, "/"); *at && out->count < WORDS; at += strspn(at, "/")) {
        size_t length = strcspn(at, "/");
        out->is_item = *at == '{';
        if (!out->is_item)
            (void)snprintf(out->text[out->count++], WORD_TEXT, "%.*s", (int)length, at);
        at += length;
    }
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);

    return length > tail && strcmp(text + length - tail, end) == 0;
}

static bool is_plural(const char *word)
{
    return ends_with(word, "s") && !ends_with(word, "ss") && !ends_with(word, "us") &&
           strcmp(word, "logs") != 0;
}

/* "sandboxes" → "sandbox", "deliveries" → "delivery" */
static void make_singular(char *word)
{
    size_t length = strlen(word);

    if (!is_plural(word))
        return;
    if (ends_with(word, "ies"))
        (void)strcpy(word + length - 3, "y");
    else
        word[length - (ends_with(word, "xes") ? 2 : 1)] = '\0';
}

/* "openapi.json" → "OpenapiJson"; the first letter stays small at the beginning of a name. */
static void add_word(char out[OPENAPI_NAME], const char *word)
{
    size_t used = strlen(out);
    bool is_capital = used > 0;

    for (; *word && used + 1 < OPENAPI_NAME; word++) {
        if (!isalnum((unsigned char)*word)) {
            is_capital = true;
            continue;
        }
        out[used++] = is_capital ? (char)toupper((unsigned char)*word) : *word;
        is_capital = false;
    }
    out[used] = '\0';
}

static void add_parents(char out[OPENAPI_NAME], struct words *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        make_singular(words->text[i]);
        add_word(out, words->text[i]);
    }
}

/* What a method does with one thing, with a list of them, and with something else. */
static const struct {
    const char *method, *item, *list, *other;
} verbs[] = {
    {"GET", "get", "list", "get"},
    {"POST", "post", "create", NULL},
    {"PUT", "put", "put", "put"},
    {"PATCH", "change", "change", "change"},
    {"DELETE", "delete", "delete", "delete"},
};

const char *openapi_operation_name(const char *method, const char *pattern, const char *top,
                                   char out[OPENAPI_NAME])
{
    struct words words;
    size_t row = 0;

    read_words(pattern, top, &words);
    while (row + 1 < ARRAY_SIZE(verbs) && strcmp(verbs[row].method, method) != 0)
        row++;
    out[0] = '\0';
    if (words.count == 0)
        return out;
    char *last = words.text[words.count - 1];
    bool is_list = !words.is_item && is_plural(last);
    const char *verb = words.is_item ? verbs[row].item
                       : is_list     ? verbs[row].list
                                     : verbs[row].other;
    add_word(out, verb ? verb : last);
    add_parents(out, &words, words.count - 1);
    if (words.is_item || (is_list && strcmp(method, "POST") == 0))
        make_singular(last);
    if (verb)
        add_word(out, last);
    return out;
}

const char *openapi_tag(const char *pattern, const char *top, char out[OPENAPI_NAME])
{
    struct words words;

    read_words(pattern, top, &words);
    bool is_below =
        words.count > 1 && strcmp(words.text[0], "sandboxes") == 0 && is_plural(words.text[1]);
    const char *word = words.text[is_below ? 1 : 0];
    (void)snprintf(out, OPENAPI_NAME, "%s", strchr(word, '.') ? "document" : word);
    return out;
}
