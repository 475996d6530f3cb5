/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of a checkpoint.
 * Threads: plain values.
 */
#pragma once
#include "base/auto.h"

#include <stddef.h>
#include <stdint.h>

/* Owns what it points to. NULL is what was not given; times are milliseconds since 1970, 0 for never. */
struct checkpoint_info {
    const char *id;
    const char *sandbox_id;
    const char *name;
    const char *parent; // name of the one before it, or ""
    int64_t size_bytes;
    int64_t created_at;
};
void checkpoint_info_clear(struct checkpoint_info *info);

struct checkpoint_infos {
    struct checkpoint_info *items;
    size_t count;
};
void checkpoint_infos_clear(struct checkpoint_infos *infos);
