/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes for callers; see runtime.h. */
#include "core/runtime/runtime.h"

#include "base/mem.h"
#include "core/runtime/runtimes.h"
#include "runtime/build.h"
#include "runtime/catalog.h"
#include "runtime/build_dir.h"

#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// ---- which ones a caller may have ----

// In the catalog of every machine.
static const char *const built_in[] = {"base", "host"};

// Known to clients, and to come; until then a machine's own catalog may have them.
static const char *const promised[] = {"amp", "bun", "claude-code", "node", "opencode", "python"};

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

#define ADVICE "use base:latest or host:latest"

static int refuse(enum error_reason kind, const struct runtime_reference *reference,
                  const char *why, struct error *err)
{
    return error_refuse(err, kind, "runtime", "runtime '%s:%s' %s; " ADVICE, reference->name,
                        reference->tag, why);
}

static int load(struct runtimes *runtimes, struct catalog **out, struct error *err)
{
    return catalog_load(runtimes_data_dir(runtimes), NULL, out, err);
}

int runtime_check(struct runtimes *runtimes, const char *name, struct error *err)
{
    const char *standard = runtimes_default(runtimes);
    const struct runtime_definition *definition;
    struct runtime_reference reference;
    autoptr(catalog) catalog = NULL;
    struct error ignored = {0};

    if (!name)
        return 0;
    if (runtime_reference_parse(name, &reference, err) < 0)
        return -1;
    autofree char *full = runtime_full_name(name);
    if (standard && strcmp(full, standard) == 0)
        return 0;
    if (is_among(reference.name, built_in, ARRAY_SIZE(built_in)) &&
        strcmp(reference.tag, "latest") == 0)
        return 0; // what nearly everybody asks for, without reading files
    if (load(runtimes, &catalog, err) < 0)
        return -1;
    if (catalog_find(catalog, &reference, &definition, &ignored) == 0)
        return 0;
    if (is_among(reference.name, promised, ARRAY_SIZE(promised)))
        return refuse(ERROR_INVALID, &reference, "is not available yet", err);
    return refuse(ERROR_NOT_FOUND, &reference, "does not exist", err);
}

int runtime_digest(struct runtimes *runtimes, const char *name, char digest[RUNTIME_DIGEST],
                   struct error *err)
{
    struct runtime_reference reference;
    autoptr(manifest) manifest = NULL;
    autofd fd = -1;

    if (runtime_reference_parse(name, &reference, err) < 0)
        return -1;
    autoptr(build_dir) builds = build_dir_new(runtimes_data_dir(runtimes), reference.name);
    if (build_dir_open(builds, reference.tag, 0, &fd, &manifest, err) < 0)
        return -1;
    (void)snprintf(digest, RUNTIME_DIGEST, "%016" PRIx64, manifest->digest);
    return 0;
}

// ---- ids ----

void runtime_id(const char *name, char id[24])
{
    static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";
    autofree char *whole = runtime_full_name(name);
    unsigned char hash[SHA256_DIGEST_LENGTH];

    (void)SHA256((const unsigned char *)whole, strlen(whole), hash);
    for (int i = 0; i < 20; i++)
        id[i] = alphabet[hash[i] & 31];
    memset(id + 20, 0, 4);
}

// ---- lists ----

static int64_t time_of(const char *made)
{
    struct tm utc = {0};
    const char *end = strptime(made, "%Y-%m-%dT%H:%M:%SZ", &utc);

    return end && !*end ? (int64_t)timegm(&utc) * 1000 : 0;
}

static bool is_built(const struct runtime_status *status)
{
    return status->state == RUNTIME_READY || status->state == RUNTIME_OUTDATED;
}

static void describe(struct runtimes *runtimes, const struct runtime_definition *definition,
                     struct runtime_entry *out)
{
    struct runtime_status status;

    runtime_status(runtimes_data_dir(runtimes), definition, &status);
    *out = (struct runtime_entry){
        .name = xasprintf("%s:%s", definition->name, definition->tags[0]),
        .description = xstrdup(definition->description ? definition->description : ""),
        .created_at = time_of(status.made),
        .is_built = is_built(&status),
    };
    runtime_id(out->name, out->id);
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct runtime_entry *)left)->name,
                  ((const struct runtime_entry *)right)->name);
}

static int by_created(const void *left, const void *right)
{
    const struct runtime_entry *one = left, *other = right;

    if (one->created_at != other->created_at)
        return one->created_at < other->created_at ? -1 : 1;
    return by_name(left, right);
}

// The whole catalog, one entry for each build.
static int list_all(struct runtimes *runtimes, struct runtime_list *out, struct error *err)
{
    const struct runtime_definition *definition;
    autoptr(catalog) catalog = NULL;

    if (load(runtimes, &catalog, err) < 0)
        return -1;
    for (size_t i = 0; (definition = catalog_at(catalog, i)); i++) {
        out->entries = xrealloc(out->entries, out->count + 1, sizeof *out->entries);
        describe(runtimes, definition, &out->entries[out->count++]);
    }
    out->total = out->count;
    return 0;
}

static void reverse(struct runtime_list *list)
{
    for (size_t i = 0; i < list->count / 2; i++) {
        struct runtime_entry kept = list->entries[i];
        list->entries[i] = list->entries[list->count - 1 - i];
        list->entries[list->count - 1 - i] = kept;
    }
}

static void entry_clear(struct runtime_entry *entry)
{
    free((char *)entry->name);
    free((char *)entry->description);
}

/* The first that is behind the mark, by its name. */
static size_t find_behind(const struct runtime_list *list, const struct page_mark *mark)
{
    size_t i = 0;

    while (i < list->count && *mark->id && strcmp(list->entries[i].name, mark->id) <= 0)
        i++;
    return i;
}

/* In order of names. */
static struct page unmark(struct runtime_list *list, const struct page *page)
{
    struct page plain = {.limit = page->limit, .offset = page->offset};

    if (!page->is_marked)
        return plain;
    plain.offset = (int64_t)find_behind(list, &page->after);
    int64_t end = plain.offset + plain.limit;
    if (end > 0 && end < (int64_t)list->count)
        (void)snprintf(list->next.id, sizeof list->next.id, "%s", list->entries[end - 1].name);
    return plain;
}

static void cut(struct runtime_list *list, const struct page *page)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++)
        if ((int64_t)i >= page->offset && (int64_t)i - page->offset < page->limit)
            list->entries[kept++] = list->entries[i];
        else
            entry_clear(&list->entries[i]);
    list->count = kept;
}

int runtime_list(struct runtimes *runtimes, enum runtime_sort sort, bool is_descending,
                 const struct page *page, struct runtime_list *out, struct error *err)
{
    struct runtime_list list = {0};

    if (page->is_marked && (sort != RUNTIME_BY_NAME || is_descending))
        return error_set(err, ERROR_INVALID, "in this order there are no pages by cursor");
    if (list_all(runtimes, &list, err) < 0)
        return -1;
    if (list.count)
        qsort(list.entries, list.count, sizeof *list.entries,
              sort == RUNTIME_BY_NAME ? by_name : by_created);
    if (is_descending)
        reverse(&list);
    const struct page plain = unmark(&list, page);
    cut(&list, &plain);
    *out = list;
    return 0;
}

void runtime_list_clear(struct runtime_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        entry_clear(&list->entries[i]);
    free(list->entries);
    *list = (struct runtime_list){0};
}

int runtime_resolve(struct runtimes *runtimes, const char *id, char *name, struct error *err)
{
    autoruntimes all = {0};

    if (list_all(runtimes, &all, err) < 0)
        return -1;
    for (size_t i = 0; i < all.count; i++)
        if (strcmp(all.entries[i].id, id) == 0) {
            (void)snprintf(name, RUNTIME_REFERENCE_TEXT, "%s", all.entries[i].name);
            return 0;
        }
    return error_missing(err, "runtime", id);
}

int runtime_measure(struct runtimes *runtimes, uint64_t *count, uint64_t *bytes, struct error *err)
{
    const struct runtime_definition *definition;
    autoptr(catalog) catalog = NULL;

    if (load(runtimes, &catalog, err) < 0)
        return -1;
    *count = *bytes = 0;
    for (size_t i = 0; (definition = catalog_at(catalog, i)); i++) {
        struct runtime_status status;
        runtime_status(runtimes_data_dir(runtimes), definition, &status);
        if (!is_built(&status))
            continue;
        ++*count;
        *bytes += status.bytes;
    }
    return 0;
}
