/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records what sandboxes were refused: all of it is counted, and each destination is told as an event once a minute, of one sandbox twenty a minute at most.
 * Private to the core.
 * Threads: one thread; refusals come on that of outlet.h.
 */
#pragma once

struct refusals;
struct sandboxes;

struct refusals *refusals_new(struct sandboxes *sandboxes);
void refusals_free(struct refusals *refusals); // once the outlets are stopped
