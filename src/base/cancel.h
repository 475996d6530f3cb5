/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says to work under way that nobody wants it any more. Whoever works looks from time to time (cancel_is_set), and names the
 * sockets it waits on: these are shut down, so that no wait outlasts it.
 * Threads: any.
 */
#pragma once
#include "base/auto.h"

#include <stdbool.h>

struct cancel; // counted

struct cancel *cancel_new(void);
struct cancel *cancel_ref(struct cancel *cancel); // NULL stays NULL
void cancel_free(struct cancel *cancel);          // one reference
DEFINE_AUTOPTR(cancel)

/* For good. Blocks for nothing. */
void cancel_set(struct cancel *cancel);
bool cancel_is_set(const struct cancel *cancel); // NULL: nobody can

/* The socket is shut down when it is set, or at once where it has been. Forget it before it is closed. NULL: nothing is done. */
void cancel_add_socket(struct cancel *cancel, int fd);
void cancel_forget_socket(struct cancel *cancel, int fd);
