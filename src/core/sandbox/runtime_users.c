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

struct users {
    size_t count, length;
    char names[NAMED * 40];
};

static void add_user(struct users *users, const char *runtime, const struct sandbox_record *record)
{
    if (!record->runtime || strcmp(record->runtime, runtime) != 0)
        return;
    if (users->count++ < NAMED && users->length < sizeof users->names)
        users->length +=
            (size_t)snprintf(users->names + users->length, sizeof users->names - users->length,
                             "%s%s", users->length ? ", " : "", record->id);
}

/* Puts them into the error, where there are any. Returns -1. */
static int name_users(const struct users *users, const char *runtime, struct error *err)
{
    char more[40] = "";

    if (!users->count)
        return -1;
    if (users->count > NAMED)
        (void)snprintf(more, sizeof more, " and %zu more", users->count - NAMED);
    return error_refuse(err, ERROR_BUSY, "runtime",
                        "runtime '%s' is in use by %s %s%s; end %s first", runtime,
                        users->count == 1 ? "sandbox" : "sandboxes", users->names, more,
                        users->count == 1 ? "it" : "them");
}

static int name_living(struct sandboxes *sandboxes, const char *runtime, struct error *err)
{
    struct sandbox **all = NULL;
    struct users users = {0};

    if (!error_is(err, ERROR_BUSY))
        return -1;
    size_t count = registry_all(sandboxes->registry, &all);
    for (size_t i = 0; i < count; i++) {
        autosandbox record = {0};
        sandbox_copy(all[i], &record);
        add_user(&users, runtime, &record);
        sandbox_free(all[i]);
    }
    free(all);
    return name_users(&users, runtime, err);
}

int runtime_name_recorded(struct store *store, const char *runtime, struct error *err)
{
    autosandboxes alive = {0};
    struct users users = {0};
    struct error ignored = {0};

    if (store_sandbox_list_alive(store, &alive, &ignored) < 0)
        return -1;
    for (size_t i = 0; i < alive.count; i++)
        add_user(&users, runtime, &alive.rows[i]);
    return name_users(&users, runtime, err);
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
    return result < 0 ? name_living(sandboxes, runtime, err) : 0;
}
