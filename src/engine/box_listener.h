/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the engine: sockets on which PID 1 of a BOX_STAY box waits for another engine, each a file in the run directory that is named by
 * its slot. An engine that was told to recycle keeps the socket of a slot from box to box: making the file anew for each box costs
 * more than it seems where /run is on a disk.
 * Threads: any; a slot is its holder's.
 */
#pragma once
#include "engine/launch.h"

/* A listening socket with the slot's name, kept or new; the caller's. */
int listener_take(struct engine *engine, unsigned slot, int *out, struct error *err);

/* Keeps it for the next box of the slot: takes *fd and leaves -1; or leaves it as it is. */
void listener_keep(struct engine *engine, unsigned slot, int *fd);

/* The slot's box is gone: so is its file, unless the socket is kept. */
void listener_drop(struct engine *engine, unsigned slot);

/* Closes all that are kept. Files stay, for whoever sweeps. */
void listener_close_all(struct engine *engine);
