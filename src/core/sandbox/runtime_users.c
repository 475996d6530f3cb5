/* SPDX-License-Identifier: Apache-2.0 */
/* Removes runtimes; see runtime_users.h. */
#include "core/sandbox/runtime_users.h"

#include "base/mem.h"
#include "core/runtime/runtime.h"
#include "core/sandbox/pool.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandbox_object.h"
#include "runtime/catalog.h"

#include <stdio.h>
#include <string.h>

#define NAMED 5 // of them; the others are counted

/* Says in an ERROR_BUSY which sandboxes have it, where any does. Returns -1. */
static int name_users(struct sandboxes *sandboxes, const char *runtime, struct error *err)
{
    struct sandbox **all = NULL;
    size_t n_users = 0, used = 0;
    char names[NAMED * 40] = "", more[40] = "";

    if (!error_is(err, ERROR_BUSY))
        return -1;
    size_t count = registry_all(sandboxes->registry, &all);
    for (size_t i = 0; i < count; i++) {
        autosandbox record = {0};
        sandbox_copy(all[i], &record);
        if (record.runtime && strcmp(record.runtime, runtime) == 0 && n_users++ < NAMED &&
            used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     record.id);
        sandbox_free(all[i]);
    }
    free(all);
    if (!n_users)
        return -1;
    if (n_users > NAMED)
        (void)snprintf(more, sizeof more, " and %zu more", n_users - NAMED);
    return error_refuse(
        err, ERROR_BUSY, "runtime", "runtime '%s' is in use by %s %s%s; end %s first", runtime,
        n_users == 1 ? "sandbox" : "sandboxes", names, more, n_users == 1 ? "it" : "them");
}

int runtime_delete_unused(struct sandboxes *sandboxes, const struct actor *actor,
                          const char *runtime, struct error *err)
{
    struct runtime_reference parsed;

    if (actor_need_admin(actor, err) < 0 || runtime_reference_parse(runtime, &parsed, err) < 0)
        return -1;
    pool_hold(sandboxes->pool, parsed.name);
    int result = runtime_delete(sandboxes->runtimes, actor, runtime, err);
    pool_resume(sandboxes->pool);
    return result < 0 ? name_users(sandboxes, runtime, err) : 0;
}
