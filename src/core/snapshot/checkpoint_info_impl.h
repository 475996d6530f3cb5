/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the store's records of checkpoints to what is told of them. Private to the core.
 * Threads: any.
 */
#pragma once
#include "core/snapshot/checkpoint_info.h"
#include "store/checkpoints.h"

/* Moves what the record has; it can only be cleared afterwards. */
void checkpoint_info_take(struct checkpoint_info *out, struct checkpoint_record *record);
void checkpoint_infos_take(struct checkpoint_infos *out, struct checkpoint_list *list);
