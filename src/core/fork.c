/* SPDX-License-Identifier: Apache-2.0 */
/* Forks of living sandboxes; see fork.h. */
#include "core/fork.h"

#include "core/core.h"
#include "core/sandbox/lookup.h"

/* What a new one is asked for that is to be as the record says. Borrowed. */
static struct sandbox_request request_of(const struct sandbox_record *record)
{
    return (struct sandbox_request){
        .name = record->name,
        .description = record->description,
        .metadata = record->metadata,
        .scopes = record->scopes,
        .labels = record->labels,
        .mode = SANDBOX_INTERACTIVE,
        .runtime = record->runtime,
        .home = record->home,
        .usual = {.env = record->command.env,
                  .directory = record->command.directory,
                  .user = record->command.user,
                  .timeout_ms = record->command.timeout_ms},
        .limits = record->limits,
        .max_executions = record->max_executions,
        .idle_timeout_ms = record->idle_timeout_ms,
        .paused_timeout_ms = record->paused_timeout_ms,
        .on_idle = record->on_idle,
        .expires_at = record->expires_at,
        .on_expiry = record->on_expiry,
        .front_data = record->front_data,
        .keep_ms = record->keep_ms,
        .network_like = &record->network,
    };
}

/* Its name is taken, and its limits are what was asked for once and changed since. */
static void copy_source(struct sandbox *source, struct sandbox_record *out)
{
    sandbox_copy(source, out);
    free((char *)take(out->name));
    free((void *)take(out->network.secrets)); // of the first one alone
}

int sandbox_fork(struct core *core, const struct actor *actor, const char *id,
                 const struct sandbox_changes *changes, const struct once *once,
                 struct sandbox_info *out, struct error *err)
{
    struct actor maker = *actor;
    autoptr(sandbox) source = NULL;
    autosandbox record = {0};
    unsigned parts = 0;

    if (lookup_sandbox(core->sandboxes, actor, id, &source, err) < 0)
        return -1;
    copy_source(source, &record);
    if (sandbox_changes_apply(&core->settings, changes, &record, &parts, err) < 0)
        return -1;
    struct sandbox_request request = request_of(&record);
    autofree const char *const *dependencies = strings_list(record.dependencies);
    autofree const char *const *packages = strings_list(record.packages);
    request.dependencies = dependencies;
    request.packages = packages;
    request.is_name_unique = changes->is_name_unique;
    request.fork_of = source->id;
    request.once = once;
    if (!maker.project)
        maker.project = record.owner.project;
    return sandbox_create(core, &maker, &request, out, NULL, err);
}
