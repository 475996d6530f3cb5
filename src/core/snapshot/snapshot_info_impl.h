/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the store's records of snapshots to what is told of them. Private to the core.
 * Threads: any.
 */
#pragma once
#include "core/snapshot/snapshot_info.h"
#include "store/snapshots.h"

/* Moves what the record has; it can only be cleared afterwards. */
void snapshot_info_take(struct snapshot_info *out, struct snapshot_record *record);
void snapshot_infos_take(struct snapshot_infos *out, struct snapshot_list *list);
