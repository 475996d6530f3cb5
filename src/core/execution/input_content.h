/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole input of a command, where it comes with the request. What a pipe holds goes into one, and is the command's whatever becomes of
 * the server; more goes through a stream. Private to the core.
 * Threads: any but loops.
 */
#pragma once
#include "core/stream/streams.h"

/* A pipe with all of it in it and its other end closed: 0 with its reading end, which is the caller's; 1: there is too much of it. */
int input_content_pipe(const void *data, size_t length, int *read_end, struct error *err);

/* A stream with all of it, complete, as streams_prepare makes them. */
int input_content_stream(struct streams *streams, const struct actor *actor,
                         const struct stream_place *place, const void *data, size_t length,
                         struct stream **out, struct error *err);
