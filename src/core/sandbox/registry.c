/* SPDX-License-Identifier: Apache-2.0 */
/* Which sandboxes are known in memory; see registry.h. */
#include "core/sandbox/registry.h"

#include "base/id_table.h"
#include "base/mem.h"
#include "core/sandbox/watchlist.h"

#define REMEMBERED 1024 // that have ended

struct registry {
    struct lock lock;         // guards everything
    _Atomic unsigned n_alive; // changed under the lock
    struct id_table sandboxes;
    struct sandbox *ended[REMEMBERED]; // in the order of their ends, to be forgotten in that order
    size_t n_ended;
};

struct registry *registry_new(void)
{
    struct registry *registry = xnew(struct registry);
    lock_init(&registry->lock, LOCK_REGISTRY);
    return registry;
}

/* The entry is the sandbox's first field. */
static struct sandbox *sandbox_of(struct id_entry *entry)
{
    return (struct sandbox *)entry;
}

void registry_free(struct registry *registry)
{
    struct sandbox **all = NULL;

    if (!registry)
        return;
    size_t count = registry_all(registry, &all);
    for (size_t i = 0; i < count; i++) {
        id_table_remove(&registry->sandboxes, &all[i]->known);
        sandbox_free(all[i]);
        sandbox_free(all[i]); // the registry's own
    }
    free(all);
    id_table_clear(&registry->sandboxes);
    lock_clear(&registry->lock);
    free(registry);
}

static bool add_below(struct registry *registry, struct sandbox *sandbox, unsigned maximum)
{
    autolock(&registry->lock);
    if (registry->n_alive >= maximum)
        return false;
    id_table_put(&registry->sandboxes, &sandbox_ref(sandbox)->known);
    registry->n_alive++;
    sandbox->is_registered = true;
    watchlist_notice(sandbox);
    return true;
}

int registry_add(struct registry *registry, struct sandbox *sandbox, unsigned maximum,
                 struct error *err)
{
    if (add_below(registry, sandbox, maximum))
        return 0;
    return error_refuse(
        err, ERROR_FULL, "sandbox",
        "%u sandboxes are alive, which is as many as this server allows; end one and try again",
        maximum);
}

/* The one that ended so long ago that it is forgotten now, or NULL. */
static struct sandbox *remember(struct registry *registry, struct sandbox *sandbox)
{
    size_t place = registry->n_ended++ % REMEMBERED;
    struct sandbox *forgotten = registry->ended[place];

    registry->ended[place] = sandbox;
    return forgotten;
}

static struct sandbox *end(struct registry *registry, struct sandbox *sandbox, bool is_forgotten)
{
    autolock(&registry->lock);
    registry->n_alive--;
    sandbox->is_registered = false;
    watchlist_notice(sandbox);
    struct sandbox *forgotten = is_forgotten ? sandbox : remember(registry, sandbox);
    if (forgotten)
        id_table_remove(&registry->sandboxes, &forgotten->known);
    return forgotten;
}

void registry_end(struct registry *registry, struct sandbox *sandbox, bool is_forgotten)
{
    sandbox_free(end(registry, sandbox, is_forgotten));
}

struct sandbox *registry_find(struct registry *registry, const char *id)
{
    uint64_t hash = id_hash(id);

    autolock(&registry->lock);
    struct sandbox *sandbox = sandbox_of(id_table_find(&registry->sandboxes, id, hash));
    return sandbox ? sandbox_ref(sandbox) : NULL;
}

unsigned registry_count(const struct registry *registry)
{
    return registry->n_alive;
}

size_t registry_all(struct registry *registry, struct sandbox ***out)
{
    size_t count = 0;

    autolock(&registry->lock);
    const struct id_table *table = &registry->sandboxes;
    struct sandbox **all = xcalloc(table->count + 1, sizeof *all);
    for (size_t i = 0; i < table->n_buckets; i++) {
        for (struct id_entry *entry = table->buckets[i]; entry; entry = entry->next)
            all[count++] = sandbox_ref(sandbox_of(entry));
    }
    *out = all;
    return count;
}
