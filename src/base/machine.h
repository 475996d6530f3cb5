/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How large this machine is, and how much of that sandboxes can have without the rest of it going short.
 * Threads: any.
 */
#pragma once
#include "base/limits.h"

/* Of all that the machine has; disk_bytes is 0: that depends on where it is. */
struct limits machine_size(void);

/*
 * Of `whole`, what all sandboxes together can have: a sixteenth of the memory (256 MiB to 2 GiB) and an eighth of the processes (at least 1,024) are the
 * host's, but never more than half. CPU and disk are left as they are. Memory comes out as a number that people can read.
 */
struct limits machine_leave_room(const struct limits *whole);
