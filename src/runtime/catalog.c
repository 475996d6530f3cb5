/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the catalog of runtimes; see catalog.h. */
#include "runtime/catalog.h"

#include "base/embedded.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/suggest.h"
#include "data/yaml.h"
#include "runtime/definition.h"
#include "runtime/digest.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define DEEPEST 8 // how many may stand on each other
#define ETC_DIR "/etc/burrow/runtimes"
#define SETTLED_S 2 // more than the coarsest clock of a file system

extern const struct embedded_file runtime_embedded[];

struct catalog {
    atomic_uint references;
    struct runtime_definition **definitions; // by name, then first tag
    size_t n_definitions;
    struct data_document **documents; // own the strings
    size_t n_documents;
    char **faults;
    size_t n_faults;
    bool is_unsure; // one of them may be gone at the next try
};

// ---- references ----

int runtime_reference_parse(const char *text, struct runtime_reference *out, struct error *err)
{
    size_t length = strcspn(text, ":");
    const char *tag = text[length] ? text + length + 1 : "latest";

    if (!definition_is_name(text, length, LOWER "._-") ||
        !definition_is_name(tag, strlen(tag), LOWER UPPER "._-"))
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

void runtime_name_id(const char *name, char id[RUNTIME_ID])
{
    static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";
    autofree char *whole = runtime_full_name(name);
    char digits[SHA256_TEXT];
    struct sha256 sha;

    sha256_init(&sha);
    sha256_add(&sha, whole, strlen(whole));
    sha256_end(&sha, digits);
    memset(id, 0, RUNTIME_ID);
    for (int i = 0; i < 20; i++) {
        char byte[3] = {digits[2 * i], digits[2 * i + 1], '\0'};
        id[i] = alphabet[strtoul(byte, NULL, 16) & 31];
    }
}

// ---- all of them ----

static bool has_tag(const struct runtime_definition *definition, const char *tag)
{
    for (const char **t = definition->tags; *t; t++)
        if (strcmp(*t, tag) == 0)
            return true;
    return false;
}

static bool has_alias(const struct runtime_definition *definition,
                      const struct runtime_reference *reference)
{
    char text[2 * RUNTIME_NAME];

    (void)snprintf(text, sizeof text, "%s:%s", reference->name, reference->tag);
    for (const char **alias = definition->aliases; *alias; alias++) {
        autofree char *full = runtime_full_name(*alias);
        if (strcmp(full, text) == 0)
            return true;
    }
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
    if (definition_read(document, definition, err) < 0)
        return -1;
    add_definition(catalog, take(definition));
    return 0;
}

static void add_fault(struct catalog *catalog, const struct error *err)
{
    catalog->faults = xrealloc(catalog->faults, catalog->n_faults + 1, sizeof *catalog->faults);
    catalog->faults[catalog->n_faults++] = xstrdup(err->text);
    catalog->is_unsure |= error_is_fault(err);
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

// ---- what stands on what ----

// The one with this name and tag, else the one with this alias; NULL: none.
static struct runtime_definition *look_up(const struct catalog *catalog,
                                          const struct runtime_reference *reference)
{
    for (size_t i = 0; i < catalog->n_definitions; i++)
        if (strcmp(catalog->definitions[i]->name, reference->name) == 0 &&
            has_tag(catalog->definitions[i], reference->tag))
            return catalog->definitions[i];
    for (size_t i = 0; i < catalog->n_definitions; i++)
        if (has_alias(catalog->definitions[i], reference))
            return catalog->definitions[i];
    return NULL;
}

static int find_below(const struct catalog *catalog, const struct runtime_definition *definition,
                      const char *name, const struct runtime_definition **out, struct error *err)
{
    struct runtime_reference reference;

    if (!name)
        return 0;
    if (runtime_reference_parse(name, &reference, err) < 0)
        return error_wrap(err, "%s", definition->file);
    *out = look_up(catalog, &reference);
    if (!*out)
        return error_set(err, ERROR_INVALID, "%s: it stands on '%.100s', which is not there",
                         definition->file, name);
    return 0;
}

// A change of what it stands on changes it too. -1 when it stands on itself.
static int hash_chain(const struct runtime_definition *definition, unsigned depth,
                      struct digest *digest)
{
    if (depth > DEEPEST)
        return -1;
    digest_mix(digest, definition->hash);
    if (definition->from && hash_chain(definition->from, depth + 1, digest) < 0)
        return -1;
    return definition->with ? hash_chain(definition->with, depth + 1, digest) : 0;
}

static int link_definition(const struct catalog *catalog, struct runtime_definition *definition,
                           struct error *err)
{
    if (find_below(catalog, definition, definition->from_name, &definition->from, err) < 0)
        return -1;
    return find_below(catalog, definition, definition->with_name, &definition->with, err);
}

static void drop_definition(struct catalog *catalog, size_t at)
{
    free(catalog->definitions[at]);
    catalog->n_definitions--;
    memmove(catalog->definitions + at, catalog->definitions + at + 1,
            (catalog->n_definitions - at) * sizeof *catalog->definitions);
}

// Those that stand on nothing go, and then those that stand on these.
static void link_all(struct catalog *catalog)
{
    for (size_t i = 0; i < catalog->n_definitions; i++) {
        struct error err = {0};
        if (link_definition(catalog, catalog->definitions[i], &err) == 0)
            continue;
        add_fault(catalog, &err);
        drop_definition(catalog, i);
        i = (size_t)-1; // from the start
    }
    for (size_t i = 0; i < catalog->n_definitions; i++) {
        struct digest digest = {0};
        struct error err = {0};
        if (hash_chain(catalog->definitions[i], 0, &digest) == 0)
            continue;
        error_set(&err, ERROR_INVALID, "%s: it stands on itself, or on more than %d others",
                  catalog->definitions[i]->file, DEEPEST);
        add_fault(catalog, &err);
        drop_definition(catalog, i);
        link_all(catalog);
        return;
    }
}

// Once all are linked. The own hash stays where nothing is below.
static void hash_all(struct catalog *catalog)
{
    autofree uint64_t *hashes = xcalloc(catalog->n_definitions + 1, sizeof *hashes);

    for (size_t i = 0; i < catalog->n_definitions; i++) {
        struct digest digest = {0};
        (void)hash_chain(catalog->definitions[i], 0, &digest);
        hashes[i] =
            catalog->definitions[i]->from ? digest_end(&digest) : catalog->definitions[i]->hash;
    }
    for (size_t i = 0; i < catalog->n_definitions; i++)
        catalog->definitions[i]->hash = hashes[i];
}

/* Of those in the program, only files in which `word` occurs; NULL: all. */
static int read_all(const char *data_dir, const char *etc_dir, const char *word,
                    struct catalog **out, struct error *err)
{
    autoptr(catalog) catalog = xnew(struct catalog);
    autofree char *own = xasprintf("%s/catalog", data_dir);

    catalog->references = 1;
    for (const struct embedded_file *file = runtime_embedded; file->name; file++) {
        autofree char *name = xasprintf("runtimes/%s", file->name);
        struct data_document *document = NULL;
        if (word && !memmem(file->data, file->length, word, strlen(word)))
            continue;
        if (yaml_read(name, file->data, file->length, &document, err) < 0 ||
            add_document(catalog, document, err) < 0)
            return -1;
    }
    add_directory(catalog, etc_dir ? etc_dir : ETC_DIR);
    add_directory(catalog, own);
    *out = take(catalog);
    return 0;
}

int catalog_load(const char *data_dir, const char *etc_dir, struct catalog **out, struct error *err)
{
    if (read_all(data_dir, etc_dir, NULL, out, err) < 0)
        return -1;
    link_all(*out);
    hash_all(*out);
    return 0;
}

int catalog_load_named(const char *data_dir, const char *name, struct catalog **out,
                       struct error *err)
{
    return read_all(data_dir, NULL, name, out, err);
}

struct catalog *catalog_ref(struct catalog *catalog)
{
    atomic_fetch_add_explicit(&catalog->references, 1, memory_order_relaxed);
    return catalog;
}

void catalog_free(struct catalog *catalog)
{
    if (!catalog || atomic_fetch_sub_explicit(&catalog->references, 1, memory_order_acq_rel) > 1)
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

// ---- whether they are still the same ----

/* In any order. A file that cannot be looked at counts by its name. */
static bool look_at_file(int dir_fd, const char *name, time_t now, uint64_t *state)
{
    struct digest digest = {0};
    struct stat info = {0};

    (void)fstatat(dir_fd, name, &info, 0);
    const uint64_t facts[] = {info.st_dev,
                              info.st_ino,
                              (uint64_t)info.st_size,
                              info.st_mode,
                              (uint64_t)info.st_mtim.tv_sec,
                              (uint64_t)info.st_mtim.tv_nsec,
                              (uint64_t)info.st_ctim.tv_sec,
                              (uint64_t)info.st_ctim.tv_nsec};
    digest_add_text(&digest, name);
    digest_add(&digest, facts, sizeof facts);
    *state += digest_end(&digest);
    return info.st_ctim.tv_sec + SETTLED_S < now;
}

static bool look_at_directory(const char *path, time_t now, uint64_t *state)
{
    autodir dir = opendir(path);
    bool is_settled = dir || errno == ENOENT;

    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (is_yaml(entry))
            is_settled &= look_at_file(dirfd(dir), entry->d_name, now, state);
    return is_settled;
}

bool catalog_look(const char *data_dir, const char *etc_dir, uint64_t *state)
{
    autofree char *own = xasprintf("%s/catalog", data_dir);
    uint64_t states[2] = {0};
    struct digest digest = {0};
    time_t now = time(NULL);
    bool is_settled = look_at_directory(etc_dir ? etc_dir : ETC_DIR, now, &states[0]);

    is_settled &= look_at_directory(own, now, &states[1]);
    digest_add(&digest, states, sizeof states);
    *state = digest_end(&digest);
    return is_settled;
}

const struct runtime_definition *catalog_at(const struct catalog *catalog, size_t index)
{
    return index < catalog->n_definitions ? catalog->definitions[index] : NULL;
}

bool catalog_is_unsure(const struct catalog *catalog)
{
    return catalog->is_unsure;
}

const char *catalog_fault_at(const struct catalog *catalog, size_t index)
{
    return index < catalog->n_faults ? catalog->faults[index] : NULL;
}

// ---- finding ----

// "base:latest, base:bookworm, host:latest" as far as there is room, without those that only others are made with.
static void list_known(const struct catalog *catalog, char *text, size_t size)
{
    size_t used = 0;

    *text = '\0';
    for (size_t i = 0; i < catalog->n_definitions; i++)
        for (const char **tag = catalog->definitions[i]->tags;
             !catalog->definitions[i]->is_internal && *tag && used < size; tag++)
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

    *out = look_up(catalog, reference);
    if (*out)
        return 0;
    list_known(catalog, known, sizeof known);
    find_nearest(catalog, reference, near, sizeof near);
    return error_refuse(err, ERROR_NOT_FOUND, "runtime", "unknown runtime '%s:%s'; %s%s%sknown: %s",
                        reference->name, reference->tag, *near ? "did you mean '" : "", near,
                        *near ? "'? " : "", known);
}

// ---- files of the data directory ----

int catalog_put_file(const char *data_dir, const struct runtime_reference *reference,
                     const char *text, struct error *err)
{
    autofree char *dir = xasprintf("%s/catalog", data_dir);
    autofree char *name = xasprintf("%s-%s.yaml", reference->name, reference->tag);
    autoptr(data_document) document = NULL;
    struct runtime_definition definition = {0};

    if (yaml_read("definition", text, strlen(text), &document, err) < 0 ||
        definition_read(document, &definition, err) < 0)
        return -1;
    if (strcmp(definition.name, reference->name) != 0 ||
        strcmp(definition.tags[0], reference->tag) != 0)
        return error_set(err, ERROR_INVALID, "definition: it is of '%s:%s', not of '%s:%s'",
                         definition.name, definition.tags[0], reference->name, reference->tag);
    if (fd_make_dirs(dir, 0755, err) < 0)
        return -1;
    autofd dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return error_sys(err, "open '%s'", dir);
    return fd_replace_file(dir_fd, name, text, strlen(text), 0644, err);
}

int catalog_remove_file(const char *data_dir, const struct runtime_definition *definition,
                        bool *was_there, struct error *err)
{
    autofree char *dir = xasprintf("%s/catalog/", data_dir);

    *was_there = strncmp(definition->file, dir, strlen(dir)) == 0;
    if (*was_there && unlink(definition->file) < 0 && errno != ENOENT)
        return error_sys(err, "remove '%s'", definition->file);
    return 0;
}
