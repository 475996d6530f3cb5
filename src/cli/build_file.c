/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the file that says what a snapshot is made of; see build_file.h. */
#include "cli/build_file.h"

#include "base/auto.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "cli/pairs.h"
#include "cli/say.h"
#include "data/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- reading ----

static int invalid(const struct error *why, struct burrow_error *err)
{
    return say_fail(err, BURROW_INVALID, "%s", why->text);
}

static int read_document(const char *directory, const char *given, struct data_document **out,
                         struct burrow_error *err)
{
    static const char *const names[] = {"agentuity-snapshot.yaml", "agentuity-snapshot.yml",
                                        "agentuity-snapshot.json", "burrow-snapshot.yaml"};
    struct error error = {0};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        autofree char *path = given && *given == '/'
                                  ? xstrdup(given)
                                  : xasprintf("%s/%s", directory, given ? given : names[i]);
        if (!given && access(path, F_OK) < 0)
            continue;
        if (yaml_read_file(path, out, &error) < 0) // JSON is YAML
            return invalid(&error, err);
        return 0;
    }
    return say_fail(err, BURROW_NOT_FOUND,
                    "there is no agentuity-snapshot.yaml in '%s': 'burrow snapshot generate' "
                    "writes one, --file names another",
                    directory);
}

static int read_public(const struct data_value *root, struct data_value **out, struct error *err)
{
    struct data_value *value = value_get(root, "public");

    if (value && value->kind != VALUE_BOOL)
        return value_error(value, err, "must be true or false, not %s",
                           value_kind_name(value->kind));
    *out = value;
    return 0;
}

static int read_members(struct build_file *file, struct error *err)
{
    static const char *const known[] = {"version", "runtime",  "name",         "description",
                                        "dir",     "files",    "dependencies", "packages",
                                        "env",     "metadata", "public",
                                        "$schema", // where an editor finds out about the others
                                        NULL};
    const struct data_value *root = file->document->root;
    const struct {
        const char *key;
        const char **out;
    } strings[] = {{"runtime", &file->runtime},
                   {"name", &file->name},
                   {"description", &file->description},
                   {"dir", &file->dir}};
    const struct {
        const char *key;
        const char ***out;
    } lists[] = {{"files", &file->files},
                 {"dependencies", &file->dependencies},
                 {"packages", &file->packages}};

    if (value_check_keys(root, known, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
        if (value_get_string(root, strings[i].key, false, strings[i].out, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        if (value_get_strings(root, lists[i].key, false, lists[i].out, err) < 0)
            return -1;
    }
    if (value_get_map(root, "env", false, &file->env, err) < 0 ||
        value_get_map(root, "metadata", false, &file->metadata, err) < 0)
        return -1;
    return read_public(root, &file->public, err);
}

int build_file_read(const char *directory, const char *given, struct build_file *out,
                    struct burrow_error *err)
{
    struct error error = {0};

    if (read_document(directory, given, &out->document, err) < 0)
        return -1;
    if (read_members(out, &error) < 0)
        return invalid(&error, err);
    if (!out->runtime)
        return say_fail(err, BURROW_INVALID,
                        "the build file names no runtime: runtime: base:latest");
    return 0;
}

void build_file_clear(struct build_file *file)
{
    data_document_free(file->document);
    *file = (struct build_file){0};
}

bool build_file_is_public(const struct build_file *file)
{
    return file->public && file->public->truth;
}

// ---- pairs ----

/* What the last of the pairs with this name says; NULL: there is none. */
static const char *find_pair(const struct option_list *pairs, const char *name, size_t length)
{
    const char *value = NULL;

    for (size_t i = 0; i < pairs->count; i++) {
        const char *pair = pairs->items[i];
        if (strncmp(pair, name, length) == 0 && pair[length] == '=')
            value = pair + length + 1;
    }
    return value;
}

static char *substitute(const struct option_list *known, const char *text, struct burrow_error *err)
{
    autobuffer out = {0};
    struct error ignored;

    while (*text) {
        const char *end = text[0] == '$' && text[1] == '{' ? strchr(text, '}') : NULL;
        if (!end) {
            (void)buffer_add(&out, text++, 1, &ignored);
            continue;
        }
        size_t length = (size_t)(end - text) - 2;
        const char *value = find_pair(known, text + 2, length);
        if (!value) {
            (void)say_fail(err, BURROW_INVALID, "the build file has ${%.*s}: give --env %.*s=VALUE",
                           (int)length, text + 2, (int)length, text + 2);
            return NULL;
        }
        (void)buffer_add_text(&out, value, &ignored);
        text = end + 1;
    }
    return xstrdup(out.data ? out.data : "");
}

/* NULL: it is none that can be one. */
static const char *text_of(const struct data_value *value, struct burrow_error *err)
{
    struct error error = {0};

    if (value->kind == VALUE_NULL)
        return "";
    if (value->kind == VALUE_BOOL)
        return value->truth ? "true" : "false";
    if (value->kind == VALUE_STRING || value->kind == VALUE_NUMBER)
        return value->text;
    (void)value_error(value, &error, "must be a string, not %s", value_kind_name(value->kind));
    (void)invalid(&error, err);
    return NULL;
}

static int put_option(struct json_writer *json, const struct build_pairs *pairs,
                      struct burrow_error *err)
{
    const struct option_list *over = pairs->over;

    for (size_t i = 0; over && i < over->count; i++) {
        const char *equals = strchr(over->items[i], '=');
        if (!equals)
            return say_fail(err, BURROW_INVALID, "--%s '%s' is not KEY=VALUE", pairs->key,
                            over->items[i]);
        if (pairs_have_later(over->items, over->count, i))
            continue;
        autofree char *name = xstrndup(over->items[i], (size_t)(equals - over->items[i]));
        say_put_text(json, name, equals + 1);
    }
    return 0;
}

int build_file_put_pairs(struct json_writer *json, const struct build_pairs *pairs,
                         struct burrow_error *err)
{
    const struct option_list *over = pairs->over;

    if (!pairs->map && !(over && over->count))
        return 0;
    json_key(json, pairs->key);
    json_map_begin(json);
    for (const struct data_value *each = pairs->map ? pairs->map->first : NULL; each;
         each = each->next) {
        if (over && pairs_have(over->items, over->count, each->key))
            continue; // the option says it
        const char *text = text_of(each, err);
        autofree char *value = text ? substitute(pairs->known, text, err) : NULL;
        if (!value)
            return -1;
        say_put_text(json, each->key, value);
    }
    if (put_option(json, pairs, err) < 0)
        return -1;
    json_map_end(json);
    return 0;
}
