/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions, jobs and terminals: commands in a sandbox. They are the same but for this: a job does not make its sandbox busy, and
 * counts apart; a terminal is a job whose command has a terminal made in the box, what that shows being its stdout. Changes of an execution are told through the hub under its id.
 * Threads: any but loops; execution_get_quick, execution_write_input_quick: any.
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

#define EXECUTION_DEFAULT (-1)     // the sandbox's; of a terminal: none
#define EXECUTION_MAX_TERMINALS 32 // of a sandbox; programs in it may open as many again

/* Ends of pipes of the caller's, borrowed for the start: what the command reads and writes, with nothing kept of it. */
struct execution_pipes {
    int input, output, error; // read end, write ends; -1: none
};

struct terminal_size {
    uint16_t rows, cols;
};

struct sandbox;

struct execution_request {
    enum execution_kind kind;
    /* Its variables are beside the sandbox's; a directory or user of NULL is the sandbox's; timeout_ms may be EXECUTION_DEFAULT. */
    struct command command;
    const struct sandbox_file *files; // written before it starts
    size_t n_files;
    struct output_request standard_output, standard_error; // the same stream twice: interleaved
    const char *stdin_stream; // its content is the input as it arrives; NULL: none
    const void *input;        // instead: all of its input; NULL: none
    size_t input_length;
    bool has_input; // instead of stdin_stream: open until execution_close_input
    const struct execution_pipes *pipes; // instead of all inputs and outputs; not with a terminal
    bool keeps_children;                 // what it leaves running goes on when it has ended
    int program_fd; // executed instead of looking argv[0] up in the sandbox; borrowed; 0: none
    struct terminal_size terminal; // EXECUTION_TERMINAL; 0: 24 rows, 80 columns
    bool has_timestamps;
    int64_t
        output_cap_bytes; // per stream; 0: the server's. A terminal goes on past it: of what it showed, the newest is kept
    const char *metadata;    // JSON, not read here; or NULL
    const char *asked;       // JSON: what the front wants to say back; or NULL
    bool is_counted;         // among the runs of a day already, by who asks
    const char *tag;         // what its caller calls it, for execution_find; or NULL
    const struct once *once; // or NULL
    /*
     * Instead of a new process: the sandbox's resident (sandbox_object.h), which is told here, once its end would be heard, what it is to be: the
     * command with its whole environment. -1: it is killed, and nothing was started. ERROR_GONE: there is none (any more). NULL: a new process.
     */
    int (*hand_over)(void *data, struct sandbox *sandbox, const struct command *command,
                     struct error *err);
    void *hand_over_data;
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

/* Which command of a sandbox is meant: by its process's number, or by its tag (of several, the newest that has not ended). */
struct execution_selector {
    int64_t number; // 0: by the tag
    const char *tag;
};
/* Also of one that has ended, as long as it is among the newest. ERROR_NOT_FOUND, noun "execution" or "sandbox". */
int execution_find(struct executions *executions, const struct actor *actor, const char *sandbox_id,
                   const struct execution_selector *selector, struct execution_info *out,
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

/*
 * Input of a terminal, or of a command or job that was started with has_input; both after a restart of the server too. *taken says how much of it was taken, in
 * order: less than all while the process does not read (about 64 KiB wait for it), and then the hub announces the execution once there
 * is room again: send the rest then. ERROR_ENDED, noun "execution"; ERROR_STATE when it has not begun; ERROR_COMPLETE, noun "execution", when it
 * takes no input: started without, closed, or its process reads no more.
 */
int execution_write_input(struct executions *executions, const struct actor *actor, const char *id,
                          const void *data, size_t length, size_t *taken, struct error *err);
/* The same from memory alone, without blocking: 1, or 0 (nothing taken) where a worker has to call the other one first, or -1. */
int execution_write_input_quick(struct executions *executions, const struct actor *actor,
                                const char *id, const void *data, size_t length, size_t *taken,
                                struct error *err);
/* Its input ends behind what was taken; again is no error. In a terminal it is as if Ctrl-D were typed, and the input stays open. */
int execution_close_input(struct executions *executions, const struct actor *actor, const char *id,
                          struct error *err);

/* The terminal's size; its programs get SIGWINCH. ERROR_STATE, noun "execution", when it has none; ERROR_INVALID for a size of 0. */
int execution_resize(struct executions *executions, const struct actor *actor, const char *id,
                     struct terminal_size size, struct error *err);

/*
 * To the process's group, or (is_whole_tree) to all it started. What a keyboard would send to the foreground (Ctrl-C …) is a byte of input instead.
 * Nothing is recorded: it ends as its process does. In a paused sandbox it acts when that is resumed, SIGKILL perhaps at once.
 * ERROR_ENDED or ERROR_STATE as for input; ERROR_INVALID: no such signal.
 */
int execution_signal(struct executions *executions, const struct actor *actor, const char *id,
                     int signal, bool is_whole_tree, struct error *err);

/* How the actor's went that were made at or after `since`; all scopes of its tenant. */
int execution_count(struct executions *executions, const struct actor *actor, int64_t since,
                    struct execution_outcomes *out, struct error *err);
