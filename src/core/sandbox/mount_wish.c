/* SPDX-License-Identifier: Apache-2.0 */
/* Host directories as texts; see mount_wish.h. */
#include "core/sandbox/mount_wish.h"

#include "base/strings.h"

#include <stdlib.h>
#include <string.h>

/* Three strings for each. */
enum { PART_MODE, PART_SOURCE, PART_TARGET, PARTS };
#define READ_ONLY "ro"

char *mount_wishes_pack(const struct mount_wish *wishes, size_t count)
{
    autostrings parts = {0};

    if (count == 0)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        strings_add(&parts, wishes[i].is_read_only ? READ_ONLY : "rw");
        strings_add(&parts, wishes[i].source);
        strings_add(&parts, wishes[i].target);
    }
    return strings_pack((const char *const *)parts.items);
}

static bool has_parts(const char *const *parts)
{
    for (unsigned i = 0; i < PARTS; i++) {
        if (!parts[i])
            return false;
    }
    return true;
}

void mount_wishes_unpack(const char *packed, struct mount_wishes *out)
{
    *out = (struct mount_wishes){.strings = strings_list(packed)};
    for (const char *const *at = out->strings; at && has_parts(at) && out->count < MOUNT_WISHES_MAX;
         at += PARTS)
        out->items[out->count++] = (struct mount_wish){at[PART_SOURCE], at[PART_TARGET],
                                                       strcmp(at[PART_MODE], READ_ONLY) == 0};
}

void mount_wishes_clear(struct mount_wishes *wishes)
{
    free((void *)take(wishes->strings));
    wishes->count = 0;
}

int mount_allow_check(const char *list, struct error *err)
{
    for (list = list ? list : ""; *list; list += strcspn(list, ",")) {
        list += strspn(list, ", ");
        if (*list && *list != '/')
            return error_set(err, ERROR_INVALID,
                             "mount-allow: '%.*s' must be an absolute path (several with commas "
                             "between)",
                             (int)strcspn(list, ","), list);
    }
    return 0;
}
