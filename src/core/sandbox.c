/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of sandboxes that are there; create.c makes them. See sandbox.h. */
#include "core/sandbox.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/ending.h"
#include "core/live.h"
#include "core/lookup.h"
#include "core/note.h"
#include "core/texts.h"
#include "engine/files.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define FILE_TIMEOUT_MS 60000
#define ENV_MAX (256u << 10)

int lookup_missing(const char *noun, const char *id, struct error *err)
{
    error_set(err, ERROR_NOT_FOUND, "there is no %s '%.40s'", noun, id);
    return error_about(err, noun, NULL);
}

int lookup_record(struct core *core, const struct actor *actor, const char *id,
                  struct sandbox_record *out, struct error *err)
{
    autosandbox record = {0};

    if (store_sandbox_get(core->store, id, &record, err) < 0)
        return err->kind == ERROR_NOT_FOUND ? lookup_missing("sandbox", id, err) : -1;
    if (!actor_sees(actor, &record.owner))
        return lookup_missing("sandbox", id, err);
    *out = record;
    record = (struct sandbox_record){0};
    return 0;
}

void lookup_settle(struct core *core, const char *id)
{
    autoptr(live) live =
        core->registry ? registry_find(core->registry, id) : NULL; // without boxes there is none

    if (live)
        live_settle(live);
}

/* It is not alive: why? */
static int not_alive(struct core *core, const struct actor *actor, const char *id,
                     struct error *err)
{
    autosandbox record = {0};

    if (lookup_record(core, actor, id, &record, err) < 0)
        return -1;
    if (record.state == SANDBOX_DELETED)
        return lookup_missing("sandbox", id, err);
    return lifecycle_check(&record, STEP_STOP, err) < 0
               ? -1
               : error_set(err, ERROR_SYSTEM, "sandbox '%s' is not under this server's care", id);
}

/* What it is in memory counts: the store may hear of an end a moment later. */
static int check_alive(struct live *live, struct error *err)
{
    (void)pthread_mutex_lock(&live->lock);
    bool is_over = (sandbox_in(live->record.state) & SANDBOX_OVER) != 0;
    bool is_deleted = live->record.state == SANDBOX_DELETED;
    int result = is_over && !is_deleted ? lifecycle_check(&live->record, STEP_STOP, err) : 0;
    (void)pthread_mutex_unlock(&live->lock);
    return is_deleted ? lookup_missing("sandbox", live->id, err) : result;
}

int lookup_live(struct core *core, const struct actor *actor, const char *id, struct live **out,
                struct error *err)
{
    autoptr(live) live = registry_find(core->registry, id);

    if (!live)
        return not_alive(core, actor, id, err);
    if (!actor_sees(actor, &live->record.owner))
        return lookup_missing("sandbox", id, err);
    if (live_await_calm(live, err) < 0)
        return -1;
    if (check_alive(live, err) < 0)
        return -1;
    *out = take(live);
    return 0;
}

int sandbox_get(struct core *core, const struct actor *actor, const char *id, bool with_deleted,
                struct sandbox_record *out, struct error *err)
{
    autosandbox record = {0};

    lookup_settle(core, id);
    if (lookup_record(core, actor, id, &record, err) < 0)
        return -1;
    if (record.state == SANDBOX_DELETED && !with_deleted)
        return lookup_missing("sandbox", id, err);
    autoptr(live) live = registry_find(core->registry, id);
    if (live) {
        (void)pthread_mutex_lock(&live->lock);
        if (live->record.state == SANDBOX_STOPPING && !(sandbox_in(record.state) & SANDBOX_OVER))
            record.state = SANDBOX_STOPPING; // never written down
        (void)pthread_mutex_unlock(&live->lock);
    }
    *out = record;
    record = (struct sandbox_record){0};
    return 0;
}

int sandbox_status_quick(struct core *core, const struct actor *actor, const char *id,
                         struct sandbox_status *out)
{
    autoptr(live) live = registry_find(core->registry, id);

    if (!live || !actor_sees(actor, &live->record.owner))
        return 0;
    (void)pthread_mutex_lock(&live->lock);
    *out = (struct sandbox_status){live->record.state, live->record.mode, live->record.exit_code,
                                   live->record.expires_at};
    (void)pthread_mutex_unlock(&live->lock);
    return 1;
}

int sandbox_status(struct core *core, const struct actor *actor, const char *id,
                   struct sandbox_status *out, struct error *err)
{
    autosandbox record = {0};

    if (sandbox_status_quick(core, actor, id, out) == 1)
        return 0;
    if (lookup_record(core, actor, id, &record, err) < 0)
        return -1;
    *out = (struct sandbox_status){record.state, record.mode, record.exit_code, record.expires_at};
    return 0;
}

int sandbox_list(struct core *core, const struct actor *actor, const struct sandbox_filter *filter,
                 struct sandbox_list *out, struct error *err)
{
    struct sandbox_filter own = *filter;
    own.owner = actor_filter(actor);
    own.owner.project = filter->owner.project;
    return store_sandbox_list(core->store, &own, out, err);
}

/* One that has ended: only the record is left. */
static int delete_record(struct core *core, const struct actor *actor, const char *id,
                         struct error *err)
{
    struct note note = {
        .type = EVENT_DESTROY, .reason = "deleted", .now = (int64_t)clock_wall_ms()};
    autosandbox record = {0};
    autotransaction together = {0};
    bool is_put;

    if (lookup_record(core, actor, id, &record, err) < 0)
        return -1;
    if (record.state == SANDBOX_DELETED)
        return lookup_missing("sandbox", id, err);
    if (lifecycle_take(&record, STEP_DELETE, "deleted", note.now, err) < 0)
        return -1;
    record.updated_at = note.now;
    record.box_slot = SANDBOX_NO_SLOT;
    do
        is_put = store_begin(core->store, STORE_FAST, &together, err) == 0 &&
                 store_sandbox_update(core->store, &record, SANDBOX_PART_STATE | SANDBOX_PART_BOX,
                                      SANDBOX_OVER, err) == 0 &&
                 note_put_record(core, &record, &note, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

int sandbox_delete(struct core *core, const struct actor *actor, const char *id, struct error *err)
{
    autoptr(live) live = registry_find(core->registry, id);

    if (!live)
        return delete_record(core, actor, id, err);
    if (!actor_sees(actor, &live->record.owner))
        return lookup_missing("sandbox", id, err);
    if (live_await_calm(live, err) < 0 || ending_run(live, STEP_DELETE, "deleted", err) < 0)
        return err->kind == ERROR_GONE ? lookup_missing("sandbox", id, err) : -1;
    return 0;
}

void sandbox_abandon(struct core *core, const char *id)
{
    autoptr(live) live = registry_find(core->registry, id);
    if (live && !live_is_over(live))
        ending_start(live, "undelivered");
}

static int change_env(const char *packed, const struct env_change *changes, size_t n_changes,
                      char **out, struct error *err)
{
    autotexts env = {0};

    texts_unpack(packed, &env);
    for (size_t i = 0; i < n_changes; i++) {
        if (!*changes[i].name || strchr(changes[i].name, '='))
            return error_set(err, ERROR_INVALID, "'%.80s' cannot be the name of a variable",
                             changes[i].name);
        texts_set(&env, changes[i].name, changes[i].value);
    }
    autofree char *changed = texts_pack((const char *const *)env.items);
    if (strlen(changed) > ENV_MAX)
        return error_set(err, ERROR_INVALID, "the environment is at most %u KiB", ENV_MAX >> 10);
    *out = take(changed);
    return 0;
}

int sandbox_set_env(struct core *core, const struct actor *actor, const char *id,
                    const struct env_change *changes, size_t n_changes, struct sandbox_record *out,
                    struct error *err)
{
    autoptr(live) live = NULL;
    autosandbox next = {0};
    char *env = NULL;

    if (lookup_live(core, actor, id, &live, err) < 0)
        return -1;
    live_touch(live);
    (void)pthread_mutex_lock(&live->turn);
    live_copy(live, &next);
    int result = change_env(next.env, changes, n_changes, &env, err);
    if (result == 0) {
        free((char *)next.env);
        next.env = env;
        next.updated_at = (int64_t)clock_wall_ms();
        result = store_sandbox_update(core->store, &next, SANDBOX_PART_ENV, SANDBOX_ALIVE, err);
    }
    if (result == 0) {
        sandbox_record_copy(out, &next);
        (void)pthread_mutex_lock(&live->lock);
        const char *before = live->record.env;
        live->record.env = next.env;
        next.env = before;
        (void)pthread_mutex_unlock(&live->lock);
    }
    (void)pthread_mutex_unlock(&live->turn);
    return result;
}

int live_files(struct live *live, int *conversation, struct error *err)
{
    if (live_lock_box(live, err) < 0)
        return -1;
    int result = box_files(live->box, live->record.box_user, live->record.working_directory,
                           conversation, err);
    live_unlock_box(live);
    if (result < 0 && err->kind == ERROR_GONE)
        error_about(err, "sandbox", "ended");
    return result;
}

/* A one-shot sandbox gets its directory with its command, and the command may not have come to that yet. */
static int make_working_directory(struct live *live, struct error *err)
{
    const char *path = live->record.working_directory;
    autofd conversation = -1;

    if (live->record.mode != SANDBOX_ONE_SHOT || !path)
        return 0;
    if (live_lock_box(live, err) < 0)
        return -1;
    int result = box_files(live->box, live->record.box_user, "/", &conversation, err);
    live_unlock_box(live);
    if (result < 0 || files_set_timeout(conversation, FILE_TIMEOUT_MS, err) < 0)
        return -1;
    return files_mkdir(conversation, path, 0755, FILES_PARENTS, err);
}

int core_files(struct core *core, const struct actor *actor, const char *sandbox_id,
               int *conversation, struct error *err)
{
    autoptr(live) live = NULL;

    if (lookup_live(core, actor, sandbox_id, &live, err) < 0)
        return -1;
    live_touch(live);
    if (live_ensure_box(live, err) < 0 || make_working_directory(live, err) < 0)
        return -1;
    return live_files(live, conversation, err);
}
