/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be done for a sandbox in the order in which it was asked for, by threads that may wait: recording ends, collecting them
 * from PID 1, killing, measuring. The monitor hands over what would make it wait. One piece at a time for each sandbox; a few
 * threads (struct sandboxes: recorders) work for all of them. Private to the core.
 * Threads: any.
 */
#pragma once
#include "core/sandbox/sandbox_object.h"

/* Does fn(sandbox, data) after all that was posted before. Does not block and cannot fail; the sandbox stays until it is done. */
void mailbox_post(struct sandbox *sandbox, void (*fn)(struct sandbox *sandbox, void *data),
                  void *data);
