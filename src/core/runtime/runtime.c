/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes for callers; see runtime.h. */
#include "core/runtime/runtime.h"

#include "base/mem.h"
#include "base/size.h"
#include "core/runtime/runtimes.h"
#include "runtime/build.h"
#include "runtime/catalog.h"
#include "runtime/build_dir.h"
#include "runtime/requirements.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// ---- which ones a caller may have ----

// "npm@10" has npm; and so has whatever stands on one that does.
static bool has_npm(const struct runtime_definition *definition)
{
    for (; definition; definition = definition->from) {
        for (const char **name = definition->npm; name && *name; name++)
            if (strncmp(*name, "npm@", 4) == 0 || strcmp(*name, "npm") == 0 ||
                strncmp(*name, "bun@", 4) == 0 || strcmp(*name, "bun") == 0)
                return true;
        for (const char **name = definition->packages; name && *name; name++)
            if (strcmp(*name, "npm") == 0)
                return true;
    }
    return false;
}

// Of an image nobody has said what is in it: installing finds out.
static int check_npm(const struct catalog *catalog, const struct runtime_definition *wanted,
                     struct error *err)
{
    const struct runtime_definition *definition;
    char names[400] = "";
    size_t used = 0;

    if (has_npm(wanted) || wanted->kind == RUNTIME_OCI)
        return 0;
    for (size_t i = 0; (definition = catalog_at(catalog, i)); i++)
        if (has_npm(definition) && !definition->is_internal && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s:%s", used ? ", " : "",
                                     definition->name, definition->tags[0]);
    return error_refuse(err, ERROR_INVALID, "packages",
                        "packages: the runtime '%s:%s' has neither npm nor bun; these have: %s",
                        wanted->name, wanted->tags[0], names);
}

static bool is_default(const struct runtimes *runtimes, const char *full)
{
    const char *usual = runtimes_default(runtimes);
    return usual && strcmp(usual, full) == 0;
}

int runtime_check(struct runtimes *runtimes, struct runtime_wish *wish, char *name,
                  struct error *err)
{
    const struct runtime_definition *definition;
    struct runtime_reference reference;
    autoptr(catalog) catalog = NULL;

    if (!wish->name)
        return 0;
    if (runtime_reference_parse(wish->name, &reference, err) < 0)
        return -1;
    autofree char *full = runtime_full_name(wish->name);
    if (name)
        (void)snprintf(name, RUNTIME_REFERENCE_TEXT, "%s", full);
    if (!wish->has_packages && runtime_is_plain(full)) {
        wish->limits = (struct limits){0};
        return 0;
    }
    if (runtimes_catalog(runtimes, &catalog, err) < 0)
        return -1;
    if (catalog_find(catalog, &reference, &definition, err) < 0) {
        if (wish->has_packages || !is_default(runtimes, full))
            return -1;
        wish->limits = (struct limits){0}; // it is built, whatever became of its file
        return 0;
    }
    if (definition->is_internal)
        return error_refuse(err, ERROR_NOT_FOUND, "runtime",
                            "runtime '%s' is only there to make others with", full);
    if (name)
        (void)snprintf(name, RUNTIME_REFERENCE_TEXT, "%s:%s", definition->name,
                       definition->tags[0]);
    const struct limits asked = wish->limits;
    if (requirements_check(definition, &asked, wish->has_network, &wish->limits, err) < 0)
        return -1;
    return wish->has_packages ? check_npm(catalog, definition, err) : 0;
}

bool runtime_has_interpreter(struct runtimes *runtimes, const char *name)
{
    const struct runtime_definition *definition;
    struct runtime_reference reference;
    autoptr(catalog) catalog = NULL;
    struct error ignored = {0};

    return runtime_reference_parse(name, &reference, &ignored) == 0 &&
           runtimes_catalog(runtimes, &catalog, &ignored) == 0 &&
           catalog_find(catalog, &reference, &definition, &ignored) == 0 && definition->interpreter;
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

void runtime_id(const char *name, char id[24])
{
    runtime_name_id(name, id);
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

/* The definition's own text stays where it is; another is kept in the list. */
static const char *keep_description(struct runtime_list *list,
                                    const struct runtime_definition *definition,
                                    const struct runtime_status *status)
{
    if (*definition->description)
        return definition->description;
    strings_add(&list->strings, runtime_description(definition, status));
    return list->strings.items[list->strings.count - 1];
}

static void describe(struct runtimes *runtimes, const struct runtime_definition *definition,
                     struct runtime_list *list, struct runtime_entry *out)
{
    const struct runtime_requirements *needs = &definition->requirements;
    struct runtime_status status;

    runtime_status(runtimes_data_dir(runtimes), definition, &status);
    *out = (struct runtime_entry){
        .description = keep_description(list, definition, &status),
        .icon = definition->icon,
        .color = definition->color,
        .url = definition->url,
        .readme = definition->readme,
        .tags = (const char *const *)definition->categories,
        .keys = (const char *const *)definition->keys,
        .memory_bytes = (int64_t)needs->memory_bytes,
        .cpu_millicores = needs->cpu_millicores,
        .disk_bytes = (int64_t)needs->disk_bytes,
        .needs_network = needs->needs_network,
        .kind = runtime_kind_name(definition->kind),
        .state = runtime_state_name(status.state),
        .created_at = time_of(status.made),
        .size_bytes = (int64_t)status.bytes,
        .is_built = is_built(&status),
        .is_used = status.is_used,
    };
    if (needs->memory_bytes)
        (void)size_format(needs->memory_bytes, out->memory);
    if (needs->disk_bytes)
        (void)size_format(needs->disk_bytes, out->disk);
    if (needs->cpu_millicores)
        (void)snprintf(out->cpu, sizeof out->cpu, "%um", needs->cpu_millicores);
    (void)snprintf(out->name, sizeof out->name, "%s:%s", definition->name, definition->tags[0]);
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

    if (runtimes_catalog(runtimes, &out->catalog, err) < 0)
        return -1;
    for (size_t i = 0; (definition = catalog_at(out->catalog, i)); i++) {
        if (definition->is_internal)
            continue;
        out->entries = xrealloc(out->entries, out->count + 1, sizeof *out->entries);
        describe(runtimes, definition, out, &out->entries[out->count++]);
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
    list->count = kept;
}

int runtime_list(struct runtimes *runtimes, enum runtime_sort sort, bool is_descending,
                 const struct page *page, struct runtime_list *out, struct error *err)
{
    struct runtime_list list = {0};

    if (page->is_marked && (sort != RUNTIME_BY_NAME || is_descending))
        return error_set(err, ERROR_INVALID, "in this order there are no pages by cursor");
    if (list_all(runtimes, &list, err) < 0) {
        runtime_list_clear(&list);
        return -1;
    }
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
    free(list->entries);
    catalog_free(list->catalog);
    strings_clear(&list->strings);
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

int runtime_get(struct runtimes *runtimes, const char *reference, struct runtime_list *out,
                struct error *err)
{
    const struct runtime_definition *definition;
    struct runtime_reference parsed;
    char name[RUNTIME_REFERENCE_TEXT];
    struct error ignored;

    if (runtime_resolve(runtimes, reference, name, &ignored) == 0)
        reference = name;
    if (runtime_reference_parse(reference, &parsed, err) < 0 ||
        runtimes_catalog(runtimes, &out->catalog, err) < 0 ||
        catalog_find(out->catalog, &parsed, &definition, err) < 0)
        return -1;
    out->entries = xcalloc(1, sizeof *out->entries);
    out->count = out->total = 1;
    describe(runtimes, definition, out, out->entries);
    return 0;
}

int runtime_measure(struct runtimes *runtimes, uint64_t *count, uint64_t *bytes, struct error *err)
{
    const struct runtime_definition *definition;
    autoptr(catalog) catalog = NULL;

    if (runtimes_catalog(runtimes, &catalog, err) < 0)
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
