/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host directories of a sandbox as this front is asked for them and tells them.
 * Threads: plain values.
 */
#pragma once
#include "core/sandbox/mount_wish.h"
#include "core/sandbox/sandbox_info.h"
#include "web/answer_table.h"
#include "web/call.h"
#include "web/fields.h"

extern const struct field mount_body_fields[]; // of a struct mount_wish
extern const struct answer_field mount_answer_fields[];

/* Where a sandbox has such directories: what no snapshot, checkpoint or difference of it takes in. Ended by NULL; NULL: it has none. */
const char *const *mount_targets(struct call *call, const char *sandbox_id);
#define MOUNT_LEFT_OUT_HELP                                                                        \
    "where the sandbox has directories of the host, whose files are not taken in; not there: it "  \
    "has none"
