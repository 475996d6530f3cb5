/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of sandboxes; see snapshot.h. */
#include "core/snapshot/snapshot.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/layer/layers.h"
#include "core/snapshot/list_cache.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/sandbox_event.h"
#include "core/account/ceiling.h"
#include "core/account/quota.h"
#include "core/account/once.h"
#include "core/snapshot/snapshot_impl.h"
#include "store/accounts.h"
#include "store/checkpoints.h"
#include "core/sandbox/sandbox_box.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 128
#define TAG_MAX_BYTES 128

static bool is_word(const char *text, const char *more, size_t maximum)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr(more, text[i]))
            return false;
    }
    return length > 0 && length <= maximum;
}

int snapshot_check_words(const char *name, const char *tag, struct error *err)
{
    if (name && !is_word(name, "_-", NAME_MAX_BYTES))
        return error_set(err, ERROR_INVALID,
                         "name '%.140s': at most %d letters, digits, '_' and '-'", name,
                         NAME_MAX_BYTES);
    if (tag && (!is_word(tag, "._-", TAG_MAX_BYTES) || *tag == '.' || *tag == '-'))
        return error_set(err, ERROR_INVALID,
                         "tag '%.140s': at most %d letters, digits, '.', '_' and '-', not starting "
                         "with '.' or '-'",
                         tag, TAG_MAX_BYTES);
    return 0;
}

/* One the actor sees, in any state; public ones of others when ready. */
static int find(struct snapshots *snapshots, const struct actor *actor, const char *id,
                struct snapshot_record *out, struct error *err)
{
    autosnapshot record = {0};

    if (store_snapshot_get(snapshots->store, id, &record, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? error_missing(err, "snapshot", id) : -1;
    if (!actor || !actor_sees(actor, &record.owner)) {
        if (!record.is_public || record.state != SNAPSHOT_READY)
            return error_missing(err, "snapshot", id);
    }
    *out = record;
    record = (struct snapshot_record){0};
    return 0;
}

int snapshot_check_count(struct snapshots *snapshots, const struct actor *actor, struct error *err)
{
    const struct ceilings *ceilings = &snapshots->settings->ceilings;
    const struct owner owner = actor_owner(actor);

    if (ceiling_check(snapshots->store, KEPT_SNAPSHOTS, ceilings->total.snapshots,
                      ceilings->organisation.snapshots, &owner, err) < 0)
        return -1;
    return quota_check_saved(snapshots->accounts, actor, actor->key_id, err);
}

int snapshot_find_ready(struct snapshots *snapshots, const struct actor *actor, const char *id,
                        struct snapshot_record *out, struct error *err)
{
    autosnapshot record = {0};

    if (find(snapshots, actor, id, &record, err) < 0)
        return -1;
    if (record.state != SNAPSHOT_READY)
        return error_missing(err, "snapshot", id);
    *out = record;
    record = (struct snapshot_record){0};
    return 0;
}

int snapshot_put(struct snapshots *snapshots, const struct snapshot_record *record,
                 const char *layer, uint64_t bytes, struct error *err)
{
    if (layers_put(snapshots->layers, layer, bytes, record->id, err) < 0 ||
        layers_use(snapshots->layers, record->layers, record->id, err) < 0 ||
        store_snapshot_put(snapshots->store, record, err) < 0)
        return -1;
    return record->tag ? store_snapshot_take_tag(snapshots->store, record, err) : 0;
}

static struct event made_event(const struct snapshot_record *record)
{
    struct event event = {.type = EVENT_SNAPSHOT, .reason = "created", .now = record->updated_at};

    event_fact(&event, "snapshot", record->id);
    event_fact(&event, "name", record->name);
    return event;
}

int snapshot_tell_made(struct snapshots *snapshots, const struct snapshot_record *record,
                       struct error *err)
{
    struct event event = made_event(record);

    return event_write(snapshots->store, NULL, &record->owner, &event, err);
}

static int put_all(struct snapshots *snapshots, struct sandbox *sandbox, const struct actor *actor,
                   const struct snapshot_record *record, const char *layer, uint64_t bytes,
                   const struct once *once, struct error *err)
{
    struct event event = made_event(record);
    autotransaction together = {0};
    bool is_put;

    do
        is_put = store_begin(snapshots->store, STORE_DURABLE, &together, err) == 0 &&
                 snapshot_put(snapshots, record, layer, bytes, err) == 0 &&
                 (record->is_step || event_put(sandbox, &event, err) == 0) &&
                 once_finish(snapshots->accounts, actor, once, record->id, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

/* What a build keeps of its steps goes by itself, and is counted by nobody. */
static int put_within_quota(struct snapshots *snapshots, struct sandbox *sandbox,
                            const struct actor *actor, const struct snapshot_record *record,
                            const char *layer, uint64_t bytes, const struct once *once,
                            struct error *err)
{
    struct quota_saving saving = {0};

    if (record->is_step)
        return put_all(snapshots, sandbox, actor, record, layer, bytes, once, err);
    if (quota_save(snapshots->accounts, actor, actor->key_id, bytes, &saving, err) < 0)
        return -1;
    int result = put_all(snapshots, sandbox, actor, record, layer, bytes, once, err);
    quota_saved(snapshots->accounts, &saving);
    return result;
}

/* What its sandbox was made from, deleted or not; left alone when it was a runtime. */
static void find_parent(struct snapshots *snapshots, const char *snapshot,
                        struct snapshot_record *out)
{
    struct error ignored = {0};

    if (snapshot)
        (void)store_snapshot_get(snapshots->store, snapshot, out, &ignored);
}

static int take_snapshot(struct snapshots *snapshots, struct sandbox *sandbox,
                         const struct actor *actor, const struct snapshot_request *request,
                         const char *id, struct error *err)
{
    const struct sandbox_record *row = &sandbox->record;
    autosnapshot parent = {0};
    struct error ignored = {0};
    char layer[LAYER_NAME];
    char made_up[32];
    uint64_t bytes = 0;

    if (sandbox_save_files(sandbox, layers_name(layer), &bytes, err) < 0)
        return error_wrap(err, "keep the files of the sandbox");
    autofree char *chain = layers_on_top(layer, row->layers);
    find_parent(snapshots, row->snapshot, &parent);
    autofree char *env = request->env ? strings_pack(request->env) : NULL;
    int64_t now = (int64_t)clock_wall_ms();
    (void)snprintf(made_up, sizeof made_up, "snapshot-%.8s", id);
    struct snapshot_record record = {
        .id = id,
        .owner = actor_owner(actor),
        .key_id = *actor->key_id ? actor->key_id : NULL,
        .parent_id = row->snapshot,
        .sandbox_id = sandbox->id,
        .runtime = row->runtime,
        .dependencies = row->dependencies,
        .packages = row->packages,
        .is_step = request->step,
        .content_hash = request->step,
        .name = request->name ? request->name : made_up,
        .tag = request->tag    ? request->tag
               : request->step ? NULL
                               : "latest",
        .description = request->description,
        .is_public = request->is_public,
        .layers = chain,
        .env = env          ? env
               : parent.env ? parent.env
                            : "",
        .state = SNAPSHOT_READY,
        .size_bytes = (int64_t)bytes + parent.size_bytes,
        .file_count = SNAPSHOT_NOT_COUNTED,
        .created_at = now,
        .updated_at = now,
    };
    snapshot_count_quickly(snapshots, &record);
    if (put_within_quota(snapshots, sandbox, actor, &record, layer, bytes, request->once, err) == 0)
        return 0;
    (void)layer_remove(snapshots->volume, layer, &ignored); // else swept
    return -1;
}

int snapshot_create(struct snapshots *snapshots, const struct actor *actor, const char *sandbox_id,
                    const struct snapshot_request *request, struct snapshot_info *out,
                    struct error *err)
{
    autoptr(sandbox) sandbox = NULL;
    autosnapshot record = {0};
    char id[ID_TEXT];
    bool is_new = false;

    if (actor_refuse_token(actor, "make snapshots", err) < 0 ||
        snapshot_check_words(request->name, request->tag, err) < 0 ||
        lookup_sandbox(snapshots->sandboxes, actor, sandbox_id, &sandbox, err) < 0 ||
        once_claim(snapshots->accounts, actor, request->once, &is_new, id, err) < 0)
        return -1;
    if (is_new) {
        sandbox_touch(sandbox);
        if ((!request->step && snapshot_check_count(snapshots, actor, err) < 0) ||
            take_snapshot(snapshots, sandbox, actor, request, id_make(id), err) < 0) {
            once_release(snapshots->accounts, actor, request->once);
            return -1;
        }
    }
    if (find(snapshots, actor, id, &record, err) < 0)
        return -1;
    snapshot_finish_later(snapshots, &record);
    snapshot_info_take(out, &record);
    return 0;
}

int snapshot_get(struct snapshots *snapshots, const struct actor *actor, const char *id,
                 struct snapshot_info *out, struct error *err)
{
    autosnapshot record = {0};

    if (find(snapshots, actor, id, &record, err) < 0)
        return -1;
    if (record.state == SNAPSHOT_DELETED)
        return error_missing(err, "snapshot", id);
    if (record.state == SNAPSHOT_READY && record.file_count == SNAPSHOT_NOT_COUNTED &&
        snapshot_count(snapshots, &record, err) < 0)
        return -1;
    snapshot_info_take(out, &record);
    return 0;
}

int snapshot_look(struct snapshots *snapshots, const struct actor *actor, const char *id,
                  struct snapshot_info *out, struct error *err)
{
    autosnapshot record = {0};

    if (find(snapshots, actor, id, &record, err) < 0)
        return -1;
    snapshot_info_take(out, &record);
    return 0;
}

/* Whose snapshots a reference is looked for among. */
struct scope {
    struct owner owner; // organisation NULL: everybody's
    bool is_public_only;
    bool is_own; // the actor's alone, whatever else it may see
};

/* name, tag or both. 1: found. */
static int search(struct snapshots *snapshots, const struct scope *scope, const char *name,
                  const char *tag, struct snapshot_record *out, struct error *err)
{
    const struct snapshot_search wanted = {.owner = scope->owner,
                                           .is_public_only = scope->is_public_only,
                                           .is_own = scope->is_own,
                                           .name = name,
                                           .tag = tag};

    if (store_snapshot_find(snapshots->store, &wanted, out, err) == 0)
        return 1;
    return error_is(err, ERROR_NOT_FOUND) ? 0 : -1;
}

static int search_words(struct snapshots *snapshots, const struct scope *scope,
                        const char *reference, struct snapshot_record *out, struct error *err)
{
    const char *colon = strchr(reference, ':');
    autofree char *name =
        xstrndup(reference, colon ? (size_t)(colon - reference) : strlen(reference));

    if (colon)
        return search(snapshots, scope, name, colon + 1, out, err);
    int found = search(snapshots, scope, NULL, reference, out, err);
    return found == 0 ? search(snapshots, scope, reference, NULL, out, err) : found;
}

/* The organisation that is called so: by its id, or the oldest of this name. *id is the caller's; NULL: none. */
static int find_organisation(struct snapshots *snapshots, const char *name, char **id,
                             struct error *err)
{
    autoorganisations list = {0};
    const struct page page = {.limit = PAGE_MAX};

    if (store_organisation_list(snapshots->store, &page, &list, err) < 0)
        return -1;
    for (unsigned round = 0; round < 2 && !*id; round++) {
        for (size_t i = 0; i < list.count && !*id; i++) {
            const char *is = round == 0 ? list.rows[i].id : list.rows[i].name;
            if (is && strcmp(is, name) == 0)
                *id = xstrdup(list.rows[i].id);
        }
    }
    return 0;
}

/* "@organisation/words": of that one alone. 1: found. */
static int search_there(struct snapshots *snapshots, const struct actor *actor,
                        const char *reference, const char *slash, struct snapshot_record *out,
                        struct error *err)
{
    autofree char *name = xstrndup(reference + 1, (size_t)(slash - reference) - 1);
    autofree char *id = NULL;
    struct scope scope = {.is_public_only = true};

    if (find_organisation(snapshots, name, &id, err) < 0)
        return -1;
    if (!id)
        return 0;
    scope.owner.organisation = id;
    if (actor && strcmp(id, actor->organisation) == 0)
        scope = (struct scope){.owner = actor_own(actor), .is_own = true};
    return search_words(snapshots, &scope, slash + 1, out, err);
}

/*
 * Words without an organisation mean the actor's own alone: else whoever makes or publishes a snapshot under a name that is not taken yet, or no
 * more, would be started from by those who mean theirs. Who sees those of others too names them by their ids.
 */
static int resolve(struct snapshots *snapshots, const struct actor *actor, const char *reference,
                   struct snapshot_record *out, struct error *err)
{
    const struct scope scope = {.owner = actor ? actor_own(actor) : (struct owner){0},
                                .is_public_only = !actor,
                                .is_own = actor};
    const char *slash = *reference == '@' ? strchr(reference, '/') : NULL;

    if (!slash && id_is_valid(reference) &&
        snapshot_find_ready(snapshots, actor, reference, out, err) == 0)
        return 0;
    int found = slash ? search_there(snapshots, actor, reference, slash, out, err)
                      : search_words(snapshots, &scope, reference, out, err);
    return found == 0 ? error_missing(err, "snapshot", reference) : found < 0 ? -1 : 0;
}

int snapshot_resolve(struct snapshots *snapshots, const struct actor *actor, const char *reference,
                     struct snapshot_info *out, struct error *err)
{
    autosnapshot record = {0};

    if (resolve(snapshots, actor, reference, &record, err) < 0)
        return -1;
    snapshot_info_take(out, &record);
    return 0;
}

int snapshot_resolve_public(struct snapshots *snapshots, const char *reference,
                            struct snapshot_info *out, struct error *err)
{
    return snapshot_resolve(snapshots, NULL, reference, out, err);
}

int snapshot_list(struct snapshots *snapshots, const struct actor *actor,
                  const struct snapshot_filter *filter, struct snapshot_infos *out,
                  struct error *err)
{
    struct snapshot_filter own = *filter;
    autosnapshots found = {0};
    struct error ignored = {0};

    own.owner = actor ? actor_filter(actor) : (struct owner){0};
    own.is_public_only |= !actor;
    if (actor && (filter->sort == SNAPSHOT_BY_FILES || filter->sort == SNAPSHOT_BY_SIZE))
        snapshot_count_all(snapshots, &own.owner);
    if (store_snapshot_list(snapshots->store, &own, &found, err) < 0)
        return -1;
    for (size_t i = 0; actor && i < found.count; i++) { // strangers do not make us work
        struct snapshot_record *row = &found.rows[i];
        if (row->state == SNAPSHOT_READY && row->file_count == SNAPSHOT_NOT_COUNTED)
            (void)snapshot_count(snapshots, row,
                                 &ignored); // deleted meanwhile, or whoever gets it is told
    }
    snapshot_infos_take(out, &found);
    return 0;
}

/* One of the actor's own that is not deleted. */
static int find_own(struct snapshots *snapshots, const struct actor *actor, const char *id,
                    struct snapshot_record *out, struct error *err)
{
    autosnapshot record = {0};

    if (find(snapshots, actor, id, &record, err) < 0)
        return -1;
    if (!actor_sees(actor, &record.owner) || record.state == SNAPSHOT_DELETED)
        return error_missing(err, "snapshot", id);
    *out = record;
    record = (struct snapshot_record){0};
    return 0;
}

int snapshot_set_tag(struct snapshots *snapshots, const struct actor *actor, const char *id,
                     const char *tag, struct snapshot_info *out, struct error *err)
{
    autosnapshot record = {0};
    autotransaction together = {0};
    bool is_put;

    if (snapshot_check_words(NULL, tag, err) < 0 ||
        find_own(snapshots, actor, id, &record, err) < 0)
        return -1;
    free((char *)record.tag);
    record.tag = tag ? xstrdup(tag) : NULL;
    record.updated_at = (int64_t)clock_wall_ms();
    do
        is_put = store_begin(snapshots->store, STORE_DURABLE, &together, err) == 0 &&
                 store_snapshot_update(snapshots->store, &record, SNAPSHOT_PART_ABOUT,
                                       snapshot_in(SNAPSHOT_READY), err) == 0 &&
                 (!tag || store_snapshot_take_tag(snapshots->store, &record, err) == 0) &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? snapshot_get(snapshots, actor, id, out, err) : -1;
}

int snapshot_delete(struct snapshots *snapshots, const struct actor *actor, const char *id,
                    struct error *err)
{
    autosnapshot record = {0};
    autotransaction together = {0};
    bool is_gone;

    if (find_own(snapshots, actor, id, &record, err) < 0)
        return -1;
    record.state = SNAPSHOT_DELETED;
    record.deleted_at = record.updated_at = (int64_t)clock_wall_ms();
    struct event event = {.type = EVENT_SNAPSHOT, .reason = "deleted", .now = record.deleted_at};
    event_fact(&event, "snapshot", id);
    event_fact(&event, "name", record.name);
    do
        is_gone =
            store_begin(snapshots->store, STORE_DURABLE, &together, err) == 0 &&
            store_snapshot_update(snapshots->store, &record, SNAPSHOT_PART_STATE, 0, err) == 0 &&
            store_layer_release(snapshots->store, id, err) == 0 &&
            event_write(snapshots->store, NULL, &record.owner, &event, err) == 0 &&
            store_commit(&together, err) == 0;
    while (!is_gone && store_again(&together, err));
    if (!is_gone)
        return -1;
    list_cache_drop(snapshots->lists, id);
    snapshot_build_forget(snapshots, id);
    layers_remove_unused_later(snapshots->layers);
    return 0;
}

int snapshot_lineage(struct snapshots *snapshots, const struct actor *actor, const char *id,
                     size_t limit, struct snapshot_infos *out, struct error *err)
{
    autosnapshots chain = {0};
    autofree char *next = xstrdup(id);

    while (next && chain.count < limit) {
        struct snapshot_record record = {0};
        if (find(snapshots, actor, next, &record, err) < 0) {
            if (chain.count == 0 || !error_is(err, ERROR_NOT_FOUND))
                return -1;
            break; // of somebody else, and no longer public
        }
        chain.rows = xrealloc(chain.rows, chain.count + 1, sizeof *chain.rows);
        chain.rows[chain.count++] = record;
        free(next);
        next = record.parent_id ? xstrdup(record.parent_id) : NULL;
    }
    chain.total = (int64_t)chain.count;
    snapshot_infos_take(out, &chain);
    return 0;
}
