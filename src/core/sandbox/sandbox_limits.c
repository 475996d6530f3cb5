/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a sandbox, changed while it lives; see sandbox_limits.h. */
#include "core/sandbox/sandbox_limits.h"

#include "base/auto.h"
#include "base/size.h"
#include "core/sandbox/sandbox_limits_impl.h"
#include "core/sandbox/sandbox_modify.h"

static struct volume *volume_of(struct sandbox *sandbox)
{
    return engine_volume(sandbox->sandboxes->engine);
}

/* The kernel would let it be over its limit: every later write fails then, also those that make room. */
static int check_disk(struct sandbox *sandbox, const char *scratch, int64_t bytes,
                      struct error *err)
{
    char used_text[SIZE_TEXT];
    char text[SIZE_TEXT];
    uint64_t used = 0;

    if (volume_scratch_usage(volume_of(sandbox), scratch, true, &used, err) < 0)
        return -1;
    if (used <= (uint64_t)bytes)
        return 0;
    return error_refuse(err, ERROR_STATE, "disk",
                        "disk: the files of the sandbox take %s, more than %s: remove some first",
                        size_format(used, used_text), size_format((uint64_t)bytes, text));
}

int sandbox_limits_apply(struct sandbox *sandbox, const struct limits *limits, struct error *err)
{
    const struct volume_limits disk = {.bytes = (uint64_t)limits->disk_bytes};

    if (sandbox->box && !sandbox->is_box_over)
        return box_set_limits(sandbox->box, limits, err);
    autofree char *scratch = sandbox_scratch(sandbox);
    return scratch ? volume_scratch_limit(volume_of(sandbox), scratch, &disk, err) : 0;
}

int sandbox_limits_check_use(struct sandbox *sandbox, const struct limits *before,
                             const struct limits *wanted, struct error *err)
{
    bool is_lower = wanted->disk_bytes != 0 &&
                    (before->disk_bytes == 0 || wanted->disk_bytes < before->disk_bytes);
    autofree char *scratch = sandbox_scratch(sandbox);

    if (!is_lower)
        return 0;
    if (scratch)
        return check_disk(sandbox, scratch, wanted->disk_bytes, err);
    return sandbox->box ? check_disk(sandbox, box_scratch(sandbox->box), wanted->disk_bytes, err)
                        : 0;
}

int sandbox_set_limits(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                       const struct limits *asked, struct sandbox_info *out, struct error *err)
{
    const struct sandbox_changes changes = {.limits = *asked};
    return sandbox_modify(sandboxes, actor, id, &changes, out, err);
}
