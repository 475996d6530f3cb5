/* SPDX-License-Identifier: Apache-2.0 */
/* Host directories in bodies and answers; see mount_body.h. */
#include "front/api/mount_body.h"

#include "core/core.h"
#include "core/sandbox/sandbox.h"

#define AT(member) offsetof(struct mount_wish, member)
const struct field mount_body_fields[] = {
    {"source", FIELD_TEXT, AT(source), .is_needed = true, .minimum = 1, .maximum = 4095,
     .help = "a directory of the server's machine, absolute, below one its operator has allowed"},
    {"target", FIELD_TEXT, AT(target), .is_needed = true, .minimum = 1, .maximum = 4095,
     .help = "where it is in the sandbox, absolute; made where it is missing"},
    {"readOnly", FIELD_BOOL, AT(is_read_only), .help = "nothing can be written there"},
    {0},
};
const struct answer_field mount_answer_fields[] = {
    {"source", ANSWER_TEXT, AT(source), .is_needed = true},
    {"target", ANSWER_TEXT, AT(target), .is_needed = true},
    {"readOnly", ANSWER_BOOL, AT(is_read_only), .is_needed = true},
    {0},
};
#undef AT

const char *const *mount_targets(struct call *call, const char *sandbox_id)
{
    autoclear(sandbox_info) info = {0};
    struct error ignored = {0};

    if (sandbox_get(call->core->sandboxes, &call->actor, sandbox_id, false, &info, &ignored) < 0 ||
        !info.mounts)
        return NULL;
    autoclear(mount_wishes) wishes = {0};
    mount_wishes_unpack(info.mounts, &wishes);
    const char **targets = call_alloc(call, (wishes.count + 1) * sizeof *targets);
    for (size_t i = 0; i < wishes.count; i++)
        targets[i] = call_print(call, "%s", wishes.items[i].target);
    return targets;
}
