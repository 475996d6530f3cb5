/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections by whose they are, and which goes where there are too many: those that have shown no key by their address, in one door;
 * the others by their key, in another. A new one always gets in and an old one goes, so that a crowd from one address, or with one
 * key, stands in its own way and not in that of a key holder beside it.
 * Threads: the loop.
 */
#pragma once
#include "base/auto.h"
#include "net/connection.h"

struct door;

/* At most so many of one address; of this machine's own ones, so many. */
struct door *door_new(size_t of_address, size_t of_own);
void door_free(struct door *door);
DEFINE_AUTOPTR(door)

/* One has come. Returns which one of its address to close now, perhaps itself; NULL: none. */
struct connection *door_enter(struct door *door, struct connection *connection);
/* It is about to show another key, or is closed. */
void door_leave(struct door *door, struct connection *connection);

/* The oldest for which nobody works, unless it is young; NULL: none was found. */
struct connection *door_oldest(const struct door *door);
/* The oldest of whoever has most, if that is at least so many and it is not young; NULL: none. */
struct connection *door_largest(const struct door *door, size_t least);
size_t door_count(const struct door *door);
