/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the store's records of streams to what is told of them. Private to the core.
 * Threads: any.
 */
#pragma once
#include "core/stream/stream_info.h"
#include "store/streams.h"

/* Moves what the record has; it can only be cleared afterwards. */
void stream_info_take(struct stream_info *out, struct stream_record *record);
void stream_infos_take(struct stream_infos *out, struct stream_list *list);
