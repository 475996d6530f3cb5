/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings the bytes of a stream to a command's standard input as they arrive, from the spool, however slowly it reads them. Works
 * on a loop; costs no thread.
 */
#pragma once
#include "core/stream/stream.h"
#include "loop/loop.h"

struct feed;

/*
 * Copies from the stream's first byte to `pipe_fd` (taken; made non-blocking), closes it behind the last byte of a complete
 * stream, and stops when nobody reads any more. Call from any thread; the work is done on `loop`. The stream is held.
 */
struct feed *feed_new(struct loop *loop, struct hub *hub, struct stream *stream, int pipe_fd);

/* Stops, where it has not come to its end by itself, and frees; once for every feed. Any thread, does not block: it happens on
 * the loop, which must run on. */
void feed_stop(struct feed *feed);
