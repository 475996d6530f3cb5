/* SPDX-License-Identifier: Apache-2.0 */
/* Which sandboxes are known in memory; see registry.h. */
#include "core/sandbox/registry.h"

#include "base/id_table.h"
#include "base/mem.h"
#include "core/sandbox/watchlist.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REMEMBERED 1024 // that have ended

/* Sandboxes of one organisation. */
struct tally {
    char *organisation;
    int64_t n_alive; // never 0
};

struct registry {
    struct lock lock;         // guards everything
    _Atomic unsigned n_alive; // changed under the lock
    struct id_table sandboxes;
    struct sandbox *ended[REMEMBERED]; // in the order of their ends, to be forgotten in that order
    size_t n_ended;
    struct tally *tallies;
    size_t n_tallies;
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
    for (size_t i = 0; i < registry->n_tallies; i++)
        free(registry->tallies[i].organisation);
    free(registry->tallies);
    lock_clear(&registry->lock);
    free(registry);
}

/* How many sandboxes of this organisation are alive; none is fine. The caller holds the lock. */
static struct tally *find_tally(struct registry *registry, const char *organisation)
{
    for (size_t i = 0; i < registry->n_tallies; i++) {
        if (strcmp(registry->tallies[i].organisation, organisation) == 0)
            return &registry->tallies[i];
    }
    return NULL;
}

static void count_up(struct registry *registry, const char *organisation)
{
    struct tally *tally = find_tally(registry, organisation);

    if (!tally) {
        registry->tallies =
            xrealloc(registry->tallies, registry->n_tallies + 1, sizeof *registry->tallies);
        tally = &registry->tallies[registry->n_tallies++];
        *tally = (struct tally){.organisation = xstrdup(organisation)};
    }
    tally->n_alive++;
    registry->n_alive++;
}

static void count_down(struct registry *registry, const char *organisation)
{
    struct tally *tally = find_tally(registry, organisation);

    registry->n_alive--;
    if (!tally || --tally->n_alive > 0)
        return;
    free(tally->organisation);
    *tally = registry->tallies[--registry->n_tallies];
}

enum added { ADDED, ALL_FULL, ORGANISATION_FULL };

static enum added add_below(struct registry *registry, struct sandbox *sandbox, unsigned maximum,
                            int64_t organisation_maximum)
{
    const char *organisation = sandbox->record.owner.organisation; // which never changes

    autolock(&registry->lock);
    const struct tally *tally = find_tally(registry, organisation);
    if (registry->n_alive >= maximum)
        return ALL_FULL;
    if (organisation_maximum && tally && tally->n_alive >= organisation_maximum)
        return ORGANISATION_FULL;
    id_table_put(&registry->sandboxes, &sandbox_ref(sandbox)->known);
    count_up(registry, organisation);
    sandbox->is_registered = true;
    watchlist_notice(sandbox);
    return ADDED;
}

static void set_share(struct sandbox *sandbox)
{
    const struct sandbox_record *record = &sandbox->record;
    struct quota_share *share = &sandbox->share;

    *share = (struct quota_share){.limits = record->limits};
    (void)snprintf(share->key_id, ID_TEXT, "%s", record->key_id ? record->key_id : "");
    (void)snprintf(share->organisation, ID_TEXT, "%s", record->owner.organisation);
}

int registry_add(struct registry *registry, struct sandbox *sandbox, const struct actor *actor,
                 unsigned maximum, int64_t organisation_maximum, struct error *err)
{
    struct accounts *accounts = sandbox->sandboxes->accounts;

    set_share(sandbox);
    if (accounts && quota_take(accounts, actor, &sandbox->share, err) < 0)
        return -1;
    enum added added = add_below(registry, sandbox, maximum, organisation_maximum);
    if (accounts && added != ADDED)
        quota_give(accounts, &sandbox->share);
    switch (added) {
    case ADDED:
        break;
    case ALL_FULL:
        return error_refuse(
            err, ERROR_FULL, "sandbox",
            "%u sandboxes are alive, which is as many as this server allows; end one and try again",
            maximum);
    case ORGANISATION_FULL:
        return error_refuse(err, ERROR_FULL, "sandbox",
                            "%" PRId64 " sandboxes are alive, which is as many as this server "
                            "allows one organisation: end one or raise --organisation-sandboxes",
                            organisation_maximum);
    }
    return 0;
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
    count_down(registry, sandbox->record.owner.organisation);
    sandbox->is_registered = false;
    watchlist_notice(sandbox);
    struct sandbox *forgotten = is_forgotten ? sandbox : remember(registry, sandbox);
    if (forgotten)
        id_table_remove(&registry->sandboxes, &forgotten->known);
    return forgotten;
}

void registry_end(struct registry *registry, struct sandbox *sandbox, bool is_forgotten)
{
    if (sandbox->sandboxes->accounts)
        quota_give(sandbox->sandboxes->accounts, &sandbox->share);
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
