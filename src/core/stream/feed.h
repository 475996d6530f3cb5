/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings the bytes of a stream to a command's standard input as they arrive, from the spool, however slowly it reads them. Costs no
 * thread: the work is done on a loop.
 * Threads: any; does not block.
 */
#pragma once
#include "core/stream/stream.h"
#include "loop/loop.h"

struct feed;

/*
 * Copies from the stream's first byte to `pipe_fd` (taken; made non-blocking), closes it behind the last byte of a complete
 * stream, and stops when nobody reads any more. The work is done on `loop`. Holds a reference to the stream.
 */
struct feed *feed_new(struct loop *loop, struct hub *hub, struct stream *stream, int pipe_fd);

/* Stops it, where it has not come to its end by itself, and frees it; once for every feed. That happens on the loop, which must go on
 * running. */
void feed_stop(struct feed *feed);
