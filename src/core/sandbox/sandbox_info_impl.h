/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the store's records of sandboxes to what is told of them. Private to the core.
 * Threads: any.
 */
#pragma once
#include "core/sandbox/sandbox_info.h"
#include "store/sandboxes.h"

/* Moves what the record has; it can only be cleared afterwards. */
void sandbox_info_take(struct sandbox_info *out, struct sandbox_record *record);
void sandbox_infos_take(struct sandbox_infos *out, struct sandbox_list *list);
