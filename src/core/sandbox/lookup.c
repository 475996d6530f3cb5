/* SPDX-License-Identifier: Apache-2.0 */
/* Finds sandboxes for those who ask; see lookup.h. */
#include "core/sandbox/lookup.h"

#include "core/sandbox/file_impl.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandbox_box.h"
#include "core/sandbox/sandbox_info_impl.h"
#include "engine/files.h"

int lookup_record(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                  struct sandbox_record *out, struct error *err)
{
    autosandbox record = {0};

    if (store_sandbox_get(sandboxes->store, id, &record, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? error_missing(err, "sandbox", id) : -1;
    if (!actor_sees_in(actor, &record.owner, id))
        return error_missing(err, "sandbox", id);
    *out = record;
    record = (struct sandbox_record){0};
    return 0;
}

void lookup_settle(struct sandboxes *sandboxes, const char *id)
{
    autoptr(sandbox) sandbox = sandboxes->registry ? registry_find(sandboxes->registry, id)
                                                   : NULL; // without boxes there is none

    if (sandbox)
        sandbox_settle(sandbox);
}

void lookup_settle_named(struct sandboxes *sandboxes, const struct owner *owner, const char *name)
{
    struct sandbox_filter filter = {
        .owner = *owner, .name = name, .states = SANDBOX_ALIVE, .page.limit = PAGE_MAX};
    autosandboxes found = {0};
    struct error ignored = {0}; // whoever asks next is told

    filter.owner.project = NULL; // which owns nothing
    if (store_sandbox_list(sandboxes->store, &filter, &found, &ignored) < 0)
        return;
    for (size_t i = 0; i < found.count; i++)
        lookup_settle(sandboxes, found.rows[i].id);
}

void lookup_used(struct sandboxes *sandboxes, const char *id, struct sandbox_info *info)
{
    autosandbox record = {0};
    autoclear(sandbox_info) now = {0};
    struct error ignored = {0}; // what is known is told

    lookup_settle(sandboxes, id);
    if (store_sandbox_get(sandboxes->store, id, &record, &ignored) < 0)
        return;
    sandbox_info_take(&now, &record);
    info->used = now.used;
}

/* It is not alive: why? */
static int not_alive(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                     struct error *err)
{
    autosandbox record = {0};

    if (lookup_record(sandboxes, actor, id, &record, err) < 0)
        return -1;
    if (record.state == SANDBOX_DELETED)
        return error_missing(err, "sandbox", id);
    return lifecycle_check(&record, STEP_STOP, err) < 0
               ? -1
               : error_set(err, ERROR_SYSTEM, "sandbox '%s' is not under this server's care", id);
}

/* What it is in memory counts: the store may hear of an end a moment later. */
static int check_alive(struct sandbox *sandbox, struct error *err)
{
    autolock(&sandbox->lock);
    if (sandbox->record.state == SANDBOX_DELETED)
        return error_missing(err, "sandbox", sandbox->id);
    return sandbox_in(sandbox->record.state) & SANDBOX_OVER
               ? lifecycle_check(&sandbox->record, STEP_STOP, err)
               : 0;
}

int lookup_sandbox(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                   struct sandbox **out, struct error *err)
{
    autoptr(sandbox) sandbox = registry_find(sandboxes->registry, id);

    if (!sandbox)
        return not_alive(sandboxes, actor, id, err);
    if (!actor_sees_in(actor, &sandbox->record.owner, id))
        return error_missing(err, "sandbox", id);
    if (sandbox_await_calm(sandbox, err) < 0)
        return -1;
    if (check_alive(sandbox, err) < 0)
        return -1;
    *out = take(sandbox);
    return 0;
}

/* From `directory`, as `user`. */
static int open_conversation(struct sandbox *sandbox, const char *user, const char *directory,
                             int *conversation, struct error *err)
{
    autobox held = sandbox_use_box(sandbox, err);

    if (!held)
        return -1;
    if (box_files(sandbox->box, user, directory, conversation, err) == 0)
        return 0;
    return error_is(err, ERROR_GONE) ? error_restate(err, ERROR_ENDED, "sandbox") : -1;
}

int sandbox_files(struct sandbox *sandbox, int *conversation, struct error *err)
{
    const struct command *command = &sandbox->record.command;

    return open_conversation(sandbox, command->user, command->directory, conversation, err);
}

/* A one-shot sandbox gets its directory with its command, and the command may not have come to that yet. */
static int make_directory(struct sandbox *sandbox, struct error *err)
{
    const char *path = sandbox->record.command.directory;
    autofd conversation = -1;

    if (sandbox->record.mode != SANDBOX_ONE_SHOT || !path)
        return 0;
    if (open_conversation(sandbox, sandbox->record.command.user, "/", &conversation, err) < 0 ||
        files_set_timeout(conversation, FILE_TIMEOUT_MS, err) < 0)
        return -1;
    return files_mkdir(conversation, path, 0755, FILES_PARENTS, err);
}

/* One that is alive and has a box; counts as used. */
static int lookup_boxed(struct sandboxes *sandboxes, const struct actor *actor,
                        const char *sandbox_id, struct sandbox **out, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;

    if (lookup_sandbox(sandboxes, actor, sandbox_id, &sandbox, err) < 0)
        return -1;
    sandbox_touch(sandbox);
    if (sandbox_ensure_box(sandbox, err) < 0 || make_directory(sandbox, err) < 0)
        return -1;
    *out = take(sandbox);
    return 0;
}

int lookup_files(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
                 struct sandbox **out, int *conversation, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;

    if (lookup_boxed(sandboxes, actor, sandbox_id, &sandbox, err) < 0 ||
        sandbox_files(sandbox, conversation, err) < 0)
        return -1;
    *out = take(sandbox);
    return 0;
}

int lookup_files_as(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
                    const char *user, struct sandbox **out, int *conversation, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;

    if (lookup_boxed(sandboxes, actor, sandbox_id, &sandbox, err) < 0)
        return -1;
    const char *directory = sandbox->record.command.directory;
    if (open_conversation(sandbox, user, directory, conversation, err) < 0)
        return -1;
    *out = take(sandbox);
    return 0;
}
