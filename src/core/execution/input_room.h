/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits, without a thread, until a process has read some of the input that is on its way to it, and announces that. Private to the room.
 * Threads: any; does not block.
 */
#pragma once
#include "core/event/hub.h"
#include "loop/loop.h"

struct input_room;

/* For the socket `fd`, of which it makes a copy. What it waits for it announces under `id`, which it copies. The work is done on `loop`. */
struct input_room *input_room_new(struct loop *loop, struct hub *hub, const char *id, int fd);

/* Announces once, when more can be sent; again when it is called again. */
void input_room_await(struct input_room *room);

/* Stops it and frees it, on the loop, which must go on running; or NULL. */
void input_room_stop(struct input_room *room);
