/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words in an error's reason by which the store says what has become of a failed transaction; see store.h.
 * Threads: plain values.
 */
#pragma once

#define STORE_RETRY "retry" // nothing of it is kept, and the same again may well succeed
#define STORE_LOST "lost"   // it may be kept, or not: look before doing it again
