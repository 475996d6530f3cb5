/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection's end of a body.
 * Threads: the loop.
 */
#pragma once
#include "loop/loop.h"
#include "net/body.h"

#define BODY_BUFFER (256u << 10) // then the client is not read from until half of it is taken

/* `on_resume(connection)` is called when there is room again after body_put said there is none. */
struct body *body_new(struct loop *loop, void (*on_resume)(void *connection), void *connection);

/* False: all was taken, but give no more for now. */
bool body_put(struct body *body, const char *data, size_t length);

/* No more comes: kind ERROR_NONE is the end of a whole body. Lets go of the connection; the first
 * call counts. */
void body_end(struct body *body, enum error_reason reason, const char *text);
