/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding what an actor asks about, or saying that it is not there. Private to the core.
 * Threads: any but loops.
 */
#pragma once
#include "core/sandbox/file.h"
#include "core/sandbox/sandbox_info.h"
#include "core/sandbox/sandbox_object.h"
#include "core/account/actor.h"

/* The record, if the actor sees it; deleted ones too. */
int lookup_record(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                  struct sandbox_record *out, struct error *err);

/* Lets the store come up with what was told of the sandbox, for calls that read of it there. Not under record_lock. */
void lookup_settle(struct sandboxes *sandboxes, const char *id);

/* The same for all that are recorded as alive and called so, for calls that go by a name. */
void lookup_settle_named(struct sandboxes *sandboxes, const struct owner *owner, const char *name);

/* Completes what memory says of it by what it has used, which only the store counts. Not under record_lock. */
void lookup_used(struct sandboxes *sandboxes, const char *id, struct sandbox_info *info);

/* One that is up (waits while it is being created); a reference. ERROR_ENDED, noun "sandbox", when it has ended. */
int lookup_sandbox(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                   struct sandbox **out, struct error *err);

/* A conversation about files in its box, as its user, from its working directory. */
int sandbox_files(struct sandbox *sandbox, int *conversation, struct error *err);

/*
 * sandbox_files for the sandbox of that id, which it counts as used. *out is a reference. Waits while it is being created, and gives it a box where it has
 * none.
 */
int lookup_files(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
                 struct sandbox **out, int *conversation, struct error *err);

/* The same as another user of the sandbox; NULL: its root. */
int lookup_files_as(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
                    const char *user, struct sandbox **out, int *conversation, struct error *err);
