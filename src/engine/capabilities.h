/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What root inside a box may do: the capabilities that package managers need over the box's own
 * files and users, and none that reach the kernel's larger parts. Held in the box's user namespace
 * only. Async-signal-safe, no allocation: fit for a child between clone and exec.
 * Threads: any; capabilities_drop is about the calling thread.
 */
#pragma once
#include <stdint.h>

/* The set, bit n being capability n. */
uint64_t capabilities_mask(void);

/*
 * Cuts the calling thread down to the set and `also` (a mask): bounding, permitted and effective; inheritable and
 * ambient become empty. Needs CAP_SETPCAP and every capability of the set (the first process of a
 * user namespace has them). 0, or -1 with errno.
 */
int capabilities_drop(uint64_t also);
