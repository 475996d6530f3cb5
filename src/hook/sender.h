/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells webhooks of events: a thread that takes what each is to be told next, in order, has burrow-courier send it, and the core record what became of it. A slow receiver
 * delays nobody but itself.
 * Threads: any.
 */
#pragma once
#include "base/auto.h"
#include "base/buffer.h"
#include "base/error.h"
#include "core/event/event_info.h"

struct core;
struct sender;

struct sender_settings {
    struct core *core; // must stay
    /* An event as JSON. */
    int (*render)(const struct event_info *event, struct buffer *out, struct error *err);
};

/* Starts the thread. */
int sender_new(const struct sender_settings *settings, struct sender **out, struct error *err);
/* What is under way is told again by the next server. */
void sender_free(struct sender *sender);
DEFINE_AUTOPTR(sender)
