/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much streams may take together, and what gives way: streams whose time is up, and where outputs of commands take more than their
 * share, the oldest of them. Private to the room.
 * Threads: any but loops; history_count and history_is_full do not block: any.
 */
#pragma once
#include "core/stream/stream_object.h"

/* `limit_bytes` for outputs of commands, and as much for streams of users; 0: a tenth of the disk. Adds up what is there. */
int history_open(struct streams *streams, int64_t limit_bytes, struct error *err);

/* A stream has become larger, or (negative) is gone. With its lock held, or by the one who alone knows it. */
void history_count(const struct stream *stream, int64_t bytes);

/* Whether streams of users may grow no more. */
bool history_is_full(const struct streams *streams);
/* Whether outputs of commands have to give way now. */
bool history_is_over(const struct streams *streams);

/* Removes about `limit`; *removed counts on. Goes on after a failure, and tells the first. */
int history_purge(struct streams *streams, int64_t now, unsigned limit, unsigned *removed,
                  struct error *err);
