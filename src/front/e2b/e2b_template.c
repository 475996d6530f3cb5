/* SPDX-License-Identifier: Apache-2.0 */
/* Templates; see e2b_template.h. */
#include "front/e2b/e2b_template.h"

#include "core/core.h"
#include "core/runtime/runtime.h"
#include "core/snapshot/snapshot.h"

#include <string.h>

/* Those of the vendor that are there without set-up. */
static const char *const aliases[] = {"base", "code-interpreter-v1", NULL};

const char *e2b_snapshot_name(struct call *call, const struct snapshot_info *info)
{
    const char *tag = info->tag ? info->tag : "default";

    return info->name ? call_print(call, "%s:%s", info->name, tag)
                      : call_print(call, "%s:default", info->id);
}

/* Of "NAMESPACE/NAME:TAG" the namespace is ours whatever it says. */
int e2b_snapshot_find(struct call *call, const char *name, struct snapshot_info *out,
                      struct error *err)
{
    const char *slash = strrchr(name, '/');
    const char *reference = slash ? slash + 1 : name;
    size_t length = strcspn(reference, ":");
    const char *bare = call_print(call, "%.*s", (int)length, reference);
    bool is_usual = reference[length] == '\0' || strcmp(reference + length, ":default") == 0;

    // A name without a tag is its default; where it has none, as those of other clients, its newest.
    bool is_default =
        is_usual && snapshot_resolve(call->core->snapshots, &call->actor,
                                     call_print(call, "%s:default", bare), out, err) == 0;
    if (!is_default && snapshot_resolve(call->core->snapshots, &call->actor,
                                        is_usual ? bare : reference, out, err) < 0)
        return -1;
    if (out->deleted_at == 0)
        return 0;
    snapshot_info_clear(out);
    *out = (struct snapshot_info){0};
    return error_refuse(err, ERROR_NOT_FOUND, "snapshot", "there is no snapshot '%.80s'", name);
}

static int missing(const char *name, struct error *err)
{
    return error_refuse(err, ERROR_NOT_FOUND, "template",
                        "template '%.80s' not found: it is neither a runtime ('burrow runtime "
                        "list') nor a snapshot",
                        name);
}

int e2b_template_find(struct call *call, const char *name, struct e2b_template *out,
                      struct error *err)
{
    autoclear(snapshot_info) snapshot = {0};
    const char *const *alias = aliases;

    *out = (struct e2b_template){.id = name};
    while (*alias && strcmp(*alias, name) != 0)
        alias++;
    if (*alias) {
        out->is_alias = true;
        out->runtime = e2b_settings_of(call)->runtime;
        return 0;
    }
    if (e2b_snapshot_find(call, name, &snapshot, err) == 0) {
        out->snapshot = call_print(call, "%s", snapshot.id);
        out->metadata = snapshot.metadata ? call_print(call, "%s", snapshot.metadata) : NULL;
        return 0;
    }
    if (!error_is(err, ERROR_NOT_FOUND) && !error_is(err, ERROR_INVALID))
        return -1;
    *err = (struct error){0};
    struct runtime_wish wish = {.name = name};
    if (runtime_check(call->core->runtimes, &wish, NULL, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? missing(name, err) : -1;
    out->runtime = name;
    return 0;
}
