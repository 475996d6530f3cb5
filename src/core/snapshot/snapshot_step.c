/* SPDX-License-Identifier: Apache-2.0 */
/* Builds from steps: what is kept of them, how they end; see snapshot_step.h. */
#include "core/snapshot/snapshot_step.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/snapshot/snapshot_impl.h"
#include "store/checkpoints.h"

#include <string.h>

// ---- what is kept of steps ----

/* Whose steps a build may go on from: exactly its own. What somebody else has built is not what these steps would make, whatever its key says. */
static struct owner owner_of_steps(const struct actor *actor)
{
    struct owner owner = actor_owner(actor);

    owner.project = NULL; // hides nothing
    return owner;
}

int snapshot_step_find(struct snapshots *snapshots, const struct actor *actor, const char *key,
                       struct snapshot_info *out, struct error *err)
{
    const struct snapshot_search search = {
        .owner = owner_of_steps(actor), .is_own = true, .content_hash = key, .is_step = true};
    struct error ignored = {0};
    autosnapshot found = {0};

    if (store_snapshot_find(snapshots->store, &search, &found, err) < 0)
        return -1;
    found.updated_at = (int64_t)clock_wall_ms(); // when it was used last
    (void)store_snapshot_update(snapshots->store, &found, SNAPSHOT_PART_COUNT,
                                snapshot_in(SNAPSHOT_READY), &ignored);
    snapshot_info_take(out, &found);
    return 0;
}

static int remove_step(struct snapshots *snapshots, struct snapshot_record *record,
                       struct error *err)
{
    autotransaction together = {0};
    bool is_gone;

    record->state = SNAPSHOT_DELETED;
    record->deleted_at = record->updated_at = (int64_t)clock_wall_ms();
    do
        is_gone =
            store_begin(snapshots->store, STORE_DURABLE, &together, err) == 0 &&
            store_snapshot_update(snapshots->store, record, SNAPSHOT_PART_STATE, 0, err) == 0 &&
            store_layer_release(snapshots->store, record->id, err) == 0 &&
            store_commit(&together, err) == 0;
    while (!is_gone && store_again(&together, err));
    return is_gone ? 0 : -1;
}

static int by_use(const void *left, const void *right)
{
    const struct snapshot_record *a = left, *b = right;
    return a->updated_at < b->updated_at ? -1 : a->updated_at > b->updated_at;
}

/* Of a page of them; whether there may be more. */
static bool prune_page(struct snapshots *snapshots, const struct actor *actor)
{
    const struct snapshot_filter filter = {.owner = owner_of_steps(actor),
                                           .is_own = true,
                                           .with_steps = SNAPSHOT_STEPS_ALONE,
                                           .page = {.limit = PAGE_MAX}};
    struct error ignored = {0};
    autosnapshots found = {0};

    if (store_snapshot_list(snapshots->store, &filter, &found, &ignored) < 0 ||
        found.count <= SNAPSHOT_STEPS_KEPT)
        return false;
    qsort(found.rows, found.count, sizeof *found.rows, by_use);
    for (size_t i = 0; i < found.count - SNAPSHOT_STEPS_KEPT; i++) {
        if (remove_step(snapshots, &found.rows[i], &ignored) < 0)
            return false; // the next build tries again
    }
    return found.count == PAGE_MAX;
}

void snapshot_steps_prune(struct snapshots *snapshots, const struct actor *actor)
{
    while (prune_page(snapshots, actor))
        ;
    layers_remove_unused_later(snapshots->layers);
}

// ---- how a build ends ----

/* As the snapshot has its files at this moment, in the caller's transaction: merging may have changed them. */
static int take_files(struct snapshots *snapshots, const char *from, struct snapshot_record *record,
                      struct error *err)
{
    autosnapshot now = {0};

    if (store_snapshot_get(snapshots->store, from, &now, err) < 0)
        return -1;
    if (now.state != SNAPSHOT_READY)
        return error_missing(err, "snapshot", from);
    autostrings env = {0};
    strings_unpack(now.env, &env);
    autostrings own = {0};
    strings_unpack(record->env, &own);
    strings_merge(&env, (const char *const *)own.items);
    free((char *)record->env);
    record->env = strings_pack((const char *const *)env.items);
    const char **const strings[][2] = {{&record->runtime, &now.runtime},
                                       {&record->dependencies, &now.dependencies},
                                       {&record->packages, &now.packages},
                                       {&record->layers, &now.layers}};
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
        free((char *)*strings[i][0]);
        *strings[i][0] = take(*strings[i][1]);
    }
    record->size_bytes = now.size_bytes;
    record->file_count = now.file_count;
    return layers_use(snapshots->layers, record->layers, record->id, err);
}

/* A record like it, under a tag of its own, in the caller's transaction. */
static int put_tag(struct snapshots *snapshots, const struct snapshot_record *record,
                   const char *tag, struct error *err)
{
    struct snapshot_record other = *record;
    char id[ID_TEXT];

    other.id = id_make(id);
    other.tag = tag;
    other.upload_secret = NULL;
    other.created_at = record->updated_at;
    if (layers_use(snapshots->layers, other.layers, other.id, err) < 0 ||
        store_snapshot_put(snapshots->store, &other, err) < 0)
        return -1;
    return store_snapshot_take_tag(snapshots->store, &other, err);
}

static int put_outcome(struct snapshots *snapshots, const struct snapshot_record *begun,
                       const struct snapshot_outcome *outcome, struct error *err)
{
    const unsigned parts = SNAPSHOT_PART_CONTENT | SNAPSHOT_PART_STATE | SNAPSHOT_PART_COUNT;
    autosnapshot record = {0};

    if (store_snapshot_get(snapshots->store, begun->id, &record, err) < 0)
        return -1;
    free((char *)record.env);
    record.env = strings_pack(outcome->env);
    free((char *)record.metadata);
    record.metadata = outcome->metadata ? xstrdup(outcome->metadata) : NULL;
    if (!outcome->snapshot) {
        free((char *)record.runtime);
        record.runtime = xstrdup(outcome->runtime);
    } else if (take_files(snapshots, outcome->snapshot, &record, err) < 0) {
        return -1;
    }
    record.state = SNAPSHOT_READY;
    record.updated_at = (int64_t)clock_wall_ms();
    if (store_snapshot_update(snapshots->store, &record, parts, snapshot_in(SNAPSHOT_BUILDING),
                              err) < 0 ||
        store_snapshot_take_tag(snapshots->store, &record, err) < 0)
        return -1;
    for (const char *const *tag = outcome->other_tags; tag && *tag; tag++) {
        if (strcmp(*tag, record.tag) != 0 && put_tag(snapshots, &record, *tag, err) < 0)
            return -1;
    }
    return snapshot_tell_made(snapshots, &record, err);
}

/* Builds from steps that have lost their last tag can be named by nobody. */
static void remove_untagged(struct snapshots *snapshots, const struct actor *actor,
                            const char *name)
{
    const struct snapshot_filter filter = {
        .owner = actor_own(actor), .is_own = true, .name = name, .page = {.limit = PAGE_MAX}};
    struct error ignored = {0};
    autosnapshots found = {0};

    if (store_snapshot_list(snapshots->store, &filter, &found, &ignored) < 0)
        return;
    for (size_t i = 0; i < found.count; i++) {
        const struct snapshot_record *row = &found.rows[i];
        if (!row->tag && row->content_hash && strcmp(row->content_hash, SNAPSHOT_BY_STEPS) == 0)
            (void)snapshot_delete(snapshots, actor, row->id, &ignored);
    }
}

int snapshot_build_complete(struct snapshots *snapshots, const struct actor *actor, const char *id,
                            const struct snapshot_outcome *outcome, struct error *err)
{
    autosnapshot record = {0};
    autotransaction together = {0};
    bool is_put;

    if (store_snapshot_get(snapshots->store, id, &record, err) < 0)
        return -1;
    do
        is_put = store_begin(snapshots->store, STORE_DURABLE, &together, err) == 0 &&
                 put_outcome(snapshots, &record, outcome, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    if (!is_put)
        return -1;
    remove_untagged(snapshots, actor, record.name);
    return 0;
}

int snapshot_build_fail(struct snapshots *snapshots, const char *id, const char *why,
                        bool *has_changed, struct error *err)
{
    autosnapshot record = {0};

    if (has_changed)
        *has_changed = false;
    if (store_snapshot_get(snapshots->store, id, &record, err) < 0)
        return -1;
    if (record.state != SNAPSHOT_BUILDING)
        return 0;
    record.state = SNAPSHOT_FAILED;
    record.error = xstrdup(why);
    record.updated_at = (int64_t)clock_wall_ms();
    if (store_snapshot_update(snapshots->store, &record, SNAPSHOT_PART_STATE,
                              snapshot_in(SNAPSHOT_BUILDING), err) < 0)
        return error_is(err, ERROR_CONFLICT) ? 0 : -1;
    if (has_changed)
        *has_changed = true;
    return 0;
}

// ---- afterwards ----

static int find_own(struct snapshots *snapshots, const struct actor *actor, const char *id,
                    struct snapshot_record *out, struct error *err)
{
    if (snapshot_find_ready(snapshots, actor, id, out, err) < 0)
        return -1;
    return actor_sees(actor, &out->owner) ? 0 : error_missing(err, "snapshot", id);
}

static int put_second(struct snapshots *snapshots, const char *id, const char *tag,
                      struct error *err)
{
    autosnapshot now = {0};

    if (store_snapshot_get(snapshots->store, id, &now, err) < 0)
        return -1;
    if (now.state != SNAPSHOT_READY)
        return error_missing(err, "snapshot", id);
    now.updated_at = (int64_t)clock_wall_ms();
    return put_tag(snapshots, &now, tag, err);
}

int snapshot_add_tag(struct snapshots *snapshots, const struct actor *actor, const char *id,
                     const char *tag, struct error *err)
{
    autosnapshot record = {0};
    autotransaction together = {0};
    bool is_put;

    if (snapshot_check_words(NULL, tag, err) < 0 ||
        find_own(snapshots, actor, id, &record, err) < 0)
        return -1;
    if (record.tag && strcmp(record.tag, tag) == 0)
        return 0;
    if (snapshot_check_count(snapshots, actor, err) < 0)
        return -1;
    do
        is_put = store_begin(snapshots->store, STORE_DURABLE, &together, err) == 0 &&
                 put_second(snapshots, id, tag, err) == 0 && store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    if (!is_put)
        return -1;
    remove_untagged(snapshots, actor, record.name);
    return 0;
}

int snapshot_set_public(struct snapshots *snapshots, const struct actor *actor, const char *id,
                        bool is_public, struct error *err)
{
    autosnapshot record = {0};

    if (find_own(snapshots, actor, id, &record, err) < 0)
        return -1;
    record.is_public = is_public;
    record.updated_at = (int64_t)clock_wall_ms();
    return store_snapshot_update(snapshots->store, &record, SNAPSHOT_PART_ABOUT,
                                 snapshot_in(SNAPSHOT_READY), err);
}
