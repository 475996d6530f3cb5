/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watched directory as records: server-sent events or lines of JSON. A client that does not read is not told more, and once it reads
 * again that something was lost: nothing is kept for it but one part. Costs memory and no thread.
 * Threads: any.
 */
#pragma once
#include "core/sandbox/file_watch.h"
#include "web/call.h"
#include "web/event_format.h"

/* Answers the call, and takes the watch. `sandbox_id` is the core's. */
void watch_stream_start(struct call *call, const char *sandbox_id, enum event_format format,
                        struct file_watch *watch);

/* What a record of each kind holds; for the document. */
extern const struct answer_field watch_stream_fields[];
