/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions and jobs: commands in a sandbox. Both are the same but for two things: a job does not make its sandbox busy,
 * and counts apart. Changes of an execution are told through the hub under its id.
 * Threads: any but loops; execution_get_quick: any.
 */
#pragma once
#include "core/account/actor.h"
#include "core/account/once.h"
#include "core/sandbox/file.h"
#include "core/execution/execution_info.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct executions;

enum output_target {
    OUTPUT_TO_NEW,    // a stream of its own
    OUTPUT_TO_NONE,   // dropped
    OUTPUT_TO_STREAM, // an open stream of the user's, ended with the command
};

struct output_request {
    enum output_target target;
    const char *stream_id;
};

#define EXECUTION_DEFAULT (-1) // the sandbox's

struct execution_request {
    enum execution_kind kind;
    /* Its variables are beside the sandbox's; a directory or user of NULL is the sandbox's; timeout_ms may be EXECUTION_DEFAULT. */
    struct command command;
    const struct sandbox_file *files; // written before it starts
    size_t n_files;
    struct output_request standard_output, standard_error; // the same stream twice: interleaved
    const char *stdin_stream; // its content is the input as it arrives; NULL: none
    bool has_timestamps;
    int64_t output_cap_bytes; // per stream; 0: the server's
    const char *metadata;     // JSON, not read here; or NULL
    const char *asked;        // JSON: what the front wants to say back; or NULL
    const struct once *once;  // or NULL
    const char *
        refused; // why it may not run: it is recorded as failed with this error, and never started; NULL: it may
};

/*
 * Starts a command; returns once it is started and recorded. ERROR_INVALID: the request; ERROR_NOT_FOUND, noun "sandbox";
 * ERROR_ENDED, noun "sandbox"; ERROR_BUSY, noun "sandbox", when as many run as the sandbox
 * allows, ERROR_STATE when it cannot in its state; ERROR_INVALID noun "stream" for a stream that is not there or not open.
 */
int execution_start(struct executions *executions, const struct actor *actor,
                    const char *sandbox_id, const struct execution_request *request,
                    struct execution_info *out, struct error *err);

/* The same; a paused sandbox is woken either way, and this tells. */
int execution_start_awake(struct executions *executions, const struct actor *actor,
                          const char *sandbox_id, const struct execution_request *request,
                          struct execution_info *out, bool *was_paused, struct error *err);

/*
 * The same, but it waits for its turn among all that are queued (core_settings): returns when it is recorded, as queued. A restart
 * of the server loses none. Its outputs are streams of its own; files, an input and once are not possible: ERROR_INVALID.
 * ERROR_FULL, noun "queue".
 */
int execution_enqueue(struct executions *executions, const struct actor *actor,
                      const char *sandbox_id, const struct execution_request *request,
                      struct execution_info *out, struct error *err);

/* ERROR_NOT_FOUND, noun "execution" or "job". `kind` NULL: any. */
int execution_get(struct executions *executions, const struct actor *actor, const char *id,
                  const enum execution_kind *kind, struct execution_info *out, struct error *err);
/* The same from memory alone, without blocking: 1, or 0 where the store would have to be asked, or -1. */
int execution_get_quick(struct executions *executions, const struct actor *actor, const char *id,
                        const enum execution_kind *kind, struct execution_info *out,
                        struct error *err);

/* Of one sandbox, or (filter->sandbox_id NULL) of all the actor sees. ERROR_NOT_FOUND, noun "sandbox". */
int execution_list(struct executions *executions, const struct actor *actor,
                   const struct execution_filter *filter, struct execution_infos *out,
                   struct error *err);

/*
 * Ends it: SIGTERM to its process group and, after a few seconds, SIGKILL to all it started; is_forced: that at once. It
 * ends as cancelled whatever it does then. *out is as it is now. One that has ended is returned unchanged.
 */
int execution_stop(struct executions *executions, const struct actor *actor, const char *id,
                   const enum execution_kind *kind, bool is_forced, const char *reason,
                   struct execution_info *out, struct error *err);

/*
 * Ends it at once and for certain, whatever state it is in: a queued one is never started, all that a running one started is killed.
 * That it was asked for is kept (stop_at, stop_reason; NULL keeps an earlier reason), also of one that has ended, which stays as
 * it is otherwise. *out is as it is now: one that was running may still be.
 */
int execution_cancel(struct executions *executions, const struct actor *actor, const char *id,
                     const char *reason, struct execution_info *out, struct error *err);

/* How the actor's went that were made at or after `since`; all scopes of its tenant. */
int execution_count(struct executions *executions, const struct actor *actor, int64_t since,
                    struct execution_outcomes *out, struct error *err);
