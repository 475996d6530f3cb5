/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the store's records of events to what is told of them. Private to the core.
 * Threads: any.
 */
#pragma once
#include "core/event/event_info.h"
#include "store/events.h"

void event_infos_take(struct event_infos *out, struct event_list *list);
