/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of the host that a sandbox is to have, as they are asked for, told and kept.
 * Threads: plain values.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define MOUNT_WISHES_MAX 8

struct mount_wish {
    const char *source; // a path of the host
    const char *target; // where it is in the sandbox
    bool is_read_only;
};

/* As a record keeps them; NULL for none. The caller frees. */
char *mount_wishes_pack(const struct mount_wish *wishes, size_t count);

struct mount_wishes {
    struct mount_wish items[MOUNT_WISHES_MAX];
    size_t count;
    const char *const *strings; // owns the texts
};
/* Packed NULL is none. */
void mount_wishes_unpack(const char *packed, struct mount_wishes *out);
void mount_wishes_clear(struct mount_wishes *wishes);

/* The operator's list of directories that they may be below: ERROR_INVALID unless each is absolute. NULL is none. */
int mount_allow_check(const char *list, struct error *err);
