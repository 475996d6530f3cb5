/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sandboxes end, for whatever reason. Private to the core.
 * Threads: any but loops; ending_start, ending_start_box and ending_is_behind: any.
 */
#pragma once
#include "core/sandbox/lifecycle.h"
#include "core/sandbox/sandbox_object.h"

/*
 * Ends it: kills everything in it, removes the box, records the end, tells everybody. Blocks. `step` is STEP_END or
 * STEP_DELETE. One that somebody else is ending is waited for.
 */
int ending_run(struct sandbox *sandbox, enum lifecycle_step step, const char *reason,
               struct error *err);

/* The same in the background, as STEP_END. Does not block. */
void ending_start(struct sandbox *sandbox, const char *reason); // a literal

/* The end of a one-shot sandbox is recorded with its command's: only the box is left to be removed. Does not block. */
void ending_start_box(struct sandbox *sandbox);

/* Whether more boxes wait to be removed than should. */
bool ending_is_behind(struct sandboxes *sandboxes);
/* Then removes one, here: so who asks for new ones never gets far ahead of those that go. Blocks; the caller has no lock. */
void ending_help(struct sandboxes *sandboxes);

/* What the record will be; a copy in *next, the caller's. Under record_lock. */
int ending_foresee(struct sandbox *sandbox, enum lifecycle_step step, const char *reason,
                   int64_t exit_code, int64_t now, struct sandbox_record *next, struct error *err);
/* Rows of that, in the caller's transaction, under record_lock: state, event, streams' expiry. */
int ending_put(struct sandbox *sandbox, enum lifecycle_step step, const struct sandbox_record *next,
               struct error *err);

/* Returns when the files of those that have ended are gone, or after some seconds. Blocks. */
void ending_await_removals(struct sandboxes *sandboxes);

/* Ends everything in it and removes its box; its files stay, and so does it. */
void ending_drop_box(struct sandbox *sandbox);
/* The same, and its files go too: those in scratch `scratch` are its own from here on. Its commands are over; the caller has the box_lock. */
void ending_exchange_files(struct sandbox *sandbox, const char *scratch);

/* It could not be made: its box goes, and what had got a row becomes failed. */
void ending_abandon(struct sandbox *sandbox, bool is_put, bool is_known, const char *why);
