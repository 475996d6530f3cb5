/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the catalog of runtimes; see catalog.h. */
#include "runtime/catalog.h"

#include "base/embedded.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "data/yaml.h"
#include "runtime/digest.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

// Raised when the making itself changes, so that what older programs made counts as outdated.
#define MAKING_VERSION 1

#define LOWER "abcdefghijklmnopqrstuvwxyz0123456789"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

extern const struct embedded_file runtime_embedded[];

struct catalog {
    struct runtime_definition **definitions; // by name, then first tag
    size_t n_definitions;
    struct data_document **documents; // own the strings
    size_t n_documents;
    char **faults;
    size_t n_faults;
};

// ---- references ----

static bool is_name(const char *text, size_t length, const char *letters)
{
    if (length == 0 || length >= RUNTIME_NAME || strchr("._-", *text))
        return false;
    return strspn(text, letters) >= length;
}

int runtime_reference_parse(const char *text, struct runtime_reference *out, struct error *err)
{
    size_t length = strcspn(text, ":");
    const char *tag = text[length] ? text + length + 1 : "latest";

    if (!is_name(text, length, LOWER "._-") || !is_name(tag, strlen(tag), LOWER UPPER "._-"))
        return error_refuse(
            err, ERROR_INVALID, "runtime",
            "'%.100s' does not name a runtime; write name or name:tag in lower-case letters, "
            "digits, '.', '_' and '-', such as base:latest",
            text);
    *out = (struct runtime_reference){0};
    memcpy(out->name, text, length);
    memcpy(out->tag, tag, strlen(tag));
    return 0;
}

char *runtime_full_name(const char *text)
{
    return xasprintf("%s%s", text, strchr(text, ':') ? "" : ":latest");
}

static const char *const kind_names[] = {
    [RUNTIME_DEBIAN] = "debian",
    [RUNTIME_HOST] = "host",
};

const char *runtime_kind_name(enum runtime_kind kind)
{
    return kind_names[kind];
}

// ---- one file ----

static int read_kind(const struct data_value *build, enum runtime_kind *out, struct error *err)
{
    const char *name = NULL;

    if (value_get_string(build, "kind", true, &name, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(kind_names); i++)
        if (strcmp(name, kind_names[i]) == 0) {
            *out = (enum runtime_kind)i;
            return 0;
        }
    return value_error(value_get(build, "kind"), err, "must be debian or host, not '%.60s'", name);
}

static int check_words(const struct data_value *map, const char *key, const char **words,
                       const char *letters, struct error *err)
{
    for (; words && *words; words++)
        if (!is_name(*words, strlen(*words), letters))
            return value_error(value_get(map, key), err, "'%.60s' is not a name", *words);
    return 0;
}

static int read_debian(const struct data_value *build, struct runtime_definition *definition,
                       struct error *err)
{
    static const char *const known[] = {"kind", "suite", "packages", "components", "mirror", NULL};
    static const char *main_only[] = {"main", NULL};
    static const char *none[] = {NULL};
    const char *letters = LOWER UPPER "._-+:=~";

    definition->components = main_only;
    definition->packages = none;
    if (value_check_keys(build, known, err) < 0 ||
        value_get_string(build, "suite", true, &definition->suite, err) < 0 ||
        value_get_strings(build, "packages", false, &definition->packages, err) < 0 ||
        value_get_strings(build, "components", false, &definition->components, err) < 0 ||
        value_get_string(build, "mirror", false, &definition->mirror, err) < 0)
        return -1;
    if (!is_name(definition->suite, strlen(definition->suite), LOWER "-"))
        return value_error(value_get(build, "suite"), err, "must be a suite such as bookworm");
    if (check_words(build, "packages", definition->packages, letters, err) < 0)
        return -1;
    return check_words(build, "components", definition->components, LOWER "-", err);
}

static int read_build(const struct data_value *root, struct runtime_definition *definition,
                      struct error *err)
{
    static const char *const host_fields[] = {"kind", NULL};
    struct data_value *build = NULL;

    if (value_get_map(root, "build", true, &build, err) < 0 ||
        read_kind(build, &definition->kind, err) < 0)
        return -1;
    if (definition->kind == RUNTIME_DEBIAN)
        return read_debian(build, definition, err);
    return value_check_keys(build, host_fields, err);
}

static int read_env(const struct data_value *root, struct runtime_definition *definition,
                    struct error *err)
{
    struct data_value *env = NULL;
    size_t i = 0;

    if (value_get_map(root, "env", false, &env, err) < 0)
        return -1;
    definition->env = value_alloc(root->document, ((env ? env->count : 0) + 1) * sizeof(char *));
    for (struct data_value *v = env ? env->first : NULL; v; v = v->next) {
        const char *text = NULL;
        if (value_get_string(env, v->key, true, &text, err) < 0)
            return -1;
        if (!*v->key || strpbrk(v->key, "=\n") || strchr(text, '\n'))
            return value_error(v, err,
                               "a name needs to be without '=', and both without line breaks");
        size_t size = v->key_length + strlen(text) + 2;
        char *pair = value_alloc(root->document, size);
        (void)snprintf(pair, size, "%s=%s", v->key, text);
        definition->env[i++] = pair;
    }
    return 0;
}

static int read_names(const struct data_value *root, struct runtime_definition *definition,
                      struct error *err)
{
    static const char *latest[] = {"latest", NULL};

    definition->tags = latest;
    definition->description = "";
    if (value_get_string(root, "name", true, &definition->name, err) < 0 ||
        value_get_strings(root, "tags", false, &definition->tags, err) < 0 ||
        value_get_string(root, "description", false, &definition->description, err) < 0)
        return -1;
    if (!is_name(definition->name, strlen(definition->name), LOWER "._-"))
        return value_error(value_get(root, "name"), err,
                           "must be made of lower-case letters, digits, '.', '_' and '-'");
    if (!definition->tags[0])
        return value_error(value_get(root, "tags"), err, "must name at least one tag");
    return check_words(root, "tags", definition->tags, LOWER UPPER "._-", err);
}

static void hash_value(struct digest *digest, const struct data_value *value)
{
    unsigned char head[2] = {(unsigned char)value->kind, value->truth};

    digest_add(digest, head, sizeof head);
    digest_add_text(digest, value->key ? value->key : "");
    if (value->text)
        digest_add_text(digest, value->text);
    for (const struct data_value *child = value->first; child; child = child->next)
        hash_value(digest, child);
}

static uint64_t hash_definition(const struct data_value *root)
{
    struct digest digest = {0};
    unsigned char version = MAKING_VERSION;

    digest_add(&digest, &version, 1);
    hash_value(&digest, value_get(root, "build"));
    if (value_get(root, "env"))
        hash_value(&digest, value_get(root, "env"));
    return digest_end(&digest);
}

static int read_definition(struct data_document *document, struct runtime_definition *definition,
                           struct error *err)
{
    static const char *const known[] = {"name", "tags", "description", "build", "env", NULL};
    const struct data_value *root = document->root;

    if (value_check_keys(root, known, err) < 0 || read_names(root, definition, err) < 0 ||
        read_build(root, definition, err) < 0 || read_env(root, definition, err) < 0)
        return -1;
    definition->file = document->name;
    definition->hash = hash_definition(root);
    return 0;
}

// ---- all of them ----

static bool has_tag(const struct runtime_definition *definition, const char *tag)
{
    for (const char **t = definition->tags; *t; t++)
        if (strcmp(*t, tag) == 0)
            return true;
    return false;
}

static int compare(const struct runtime_definition *a, const struct runtime_definition *b)
{
    int names = strcmp(a->name, b->name);
    return names ? names : strcmp(a->tags[0], b->tags[0]);
}

// In place of an earlier one that has its first tag, else in order.
static void add_definition(struct catalog *catalog, struct runtime_definition *definition)
{
    size_t at = 0;

    for (size_t i = 0; i < catalog->n_definitions; i++) {
        struct runtime_definition *old = catalog->definitions[i];
        if (strcmp(old->name, definition->name) == 0 && has_tag(old, definition->tags[0])) {
            free(old);
            catalog->definitions[i] = definition;
            return;
        }
        at += compare(old, definition) < 0;
    }
    catalog->definitions =
        xrealloc(catalog->definitions, catalog->n_definitions + 1, sizeof *catalog->definitions);
    memmove(catalog->definitions + at + 1, catalog->definitions + at,
            (catalog->n_definitions - at) * sizeof *catalog->definitions);
    catalog->definitions[at] = definition;
    catalog->n_definitions++;
}

static int add_document(struct catalog *catalog, struct data_document *document, struct error *err)
{
    autofree struct runtime_definition *definition = xnew(struct runtime_definition);

    catalog->documents =
        xrealloc(catalog->documents, catalog->n_documents + 1, sizeof *catalog->documents);
    catalog->documents[catalog->n_documents++] = document;
    if (read_definition(document, definition, err) < 0)
        return -1;
    add_definition(catalog, take(definition));
    return 0;
}

static void add_fault(struct catalog *catalog, const struct error *err)
{
    catalog->faults = xrealloc(catalog->faults, catalog->n_faults + 1, sizeof *catalog->faults);
    catalog->faults[catalog->n_faults++] = xstrdup(err->text);
}

static int is_yaml(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 5 && entry->d_name[0] != '.' &&
           strcmp(entry->d_name + length - 5, ".yaml") == 0;
}

static void add_directory(struct catalog *catalog, const char *dir)
{
    struct dirent **entries = NULL;
    int count = scandir(dir, &entries, is_yaml, alphasort);

    if (count < 0 && errno != ENOENT) {
        struct error err = {0};
        error_sys(&err, "list '%s'", dir);
        add_fault(catalog, &err);
    }
    for (int i = 0; i < count; i++) {
        autofree char *path = xasprintf("%s/%s", dir, entries[i]->d_name);
        struct data_document *document = NULL;
        struct error err = {0};

        if (yaml_read_file(path, &document, &err) < 0 || add_document(catalog, document, &err) < 0)
            add_fault(catalog, &err);
        free(entries[i]);
    }
    free(entries);
}

int catalog_load(const char *data_dir, const char *etc_dir, struct catalog **out, struct error *err)
{
    autoptr(catalog) catalog = xnew(struct catalog);
    autofree char *own = xasprintf("%s/catalog", data_dir);

    for (const struct embedded_file *file = runtime_embedded; file->name; file++) {
        autofree char *name = xasprintf("runtimes/%s", file->name);
        struct data_document *document = NULL;
        if (yaml_read(name, file->data, file->length, &document, err) < 0 ||
            add_document(catalog, document, err) < 0)
            return -1;
    }
    add_directory(catalog, etc_dir ? etc_dir : "/etc/burrow/runtimes");
    add_directory(catalog, own);
    *out = take(catalog);
    return 0;
}

void catalog_free(struct catalog *catalog)
{
    if (!catalog)
        return;
    for (size_t i = 0; i < catalog->n_definitions; i++)
        free(catalog->definitions[i]);
    for (size_t i = 0; i < catalog->n_documents; i++)
        data_document_free(catalog->documents[i]);
    for (size_t i = 0; i < catalog->n_faults; i++)
        free(catalog->faults[i]);
    free(catalog->definitions);
    free(catalog->documents);
    free(catalog->faults);
    free(catalog);
}

const struct runtime_definition *catalog_at(const struct catalog *catalog, size_t index)
{
    return index < catalog->n_definitions ? catalog->definitions[index] : NULL;
}

const char *catalog_fault_at(const struct catalog *catalog, size_t index)
{
    return index < catalog->n_faults ? catalog->faults[index] : NULL;
}

// ---- finding ----

// "base:latest, base:bookworm, host:latest" as far as there is room.
static void list_known(const struct catalog *catalog, char *text, size_t size)
{
    size_t used = 0;

    *text = '\0';
    for (size_t i = 0; i < catalog->n_definitions; i++)
        for (const char **tag = catalog->definitions[i]->tags; *tag && used < size; tag++)
            used += (size_t)snprintf(text + used, size - used, "%s%s:%s", used ? ", " : "",
                                     catalog->definitions[i]->name, *tag);
}

// The known reference nearest to the wanted one, or "" when no name is near.
static void find_nearest(const struct catalog *catalog, const struct runtime_reference *wanted,
                         char *text, size_t size)
{
    struct suggestion near = {.wanted = wanted->name};
    const struct runtime_definition *best = NULL;

    *text = '\0';
    for (size_t i = 0; i < catalog->n_definitions; i++)
        suggestion_consider(&near, catalog->definitions[i]->name);
    for (size_t i = 0; i < catalog->n_definitions && near.nearest; i++) {
        const struct runtime_definition *definition = catalog->definitions[i];
        if (strcmp(definition->name, near.nearest) == 0 &&
            (!best || has_tag(definition, wanted->tag)))
            best = definition;
    }
    if (best)
        (void)snprintf(text, size, "%s:%s", best->name,
                       has_tag(best, wanted->tag) ? wanted->tag : best->tags[0]);
}

int catalog_find(const struct catalog *catalog, const struct runtime_reference *reference,
                 const struct runtime_definition **out, struct error *err)
{
    char known[400], near[2 * RUNTIME_NAME];

    for (size_t i = 0; i < catalog->n_definitions; i++) {
        const struct runtime_definition *definition = catalog->definitions[i];
        if (strcmp(definition->name, reference->name) == 0 && has_tag(definition, reference->tag)) {
            *out = definition;
            return 0;
        }
    }
    list_known(catalog, known, sizeof known);
    find_nearest(catalog, reference, near, sizeof near);
    return error_refuse(err, ERROR_NOT_FOUND, "runtime", "unknown runtime '%s:%s'; %s%s%sknown: %s",
                        reference->name, reference->tag, *near ? "did you mean '" : "", near,
                        *near ? "'? " : "", known);
}
