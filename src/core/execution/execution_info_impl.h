/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the store's records of executions to what is told of them. Private to the core.
 * Threads: any.
 */
#pragma once
#include "core/execution/execution_info.h"
#include "store/executions.h"

/* Moves what the record has; it can only be cleared afterwards. */
void execution_info_take(struct execution_info *out, struct execution_record *record);
void execution_infos_take(struct execution_infos *out, struct execution_list *list);
