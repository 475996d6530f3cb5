/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code in sandboxes, as in a notebook: contexts, which keep what code has defined, and runs of code in them.
 *
 * A context is an interpreter in the box with a script of ours (drivers/). It is an execution of its own kind, so it has events and ends like others, outlives the server,
 * and its reason of ending is known. It listens on a socket of the box's network that is named after it. A run is a connection to that: the request goes in, lines of JSON
 * come out; who closes it interrupts the code. One run at a time in a context, others wait for their turn. An interpreter that has ended is started anew by the next run,
 * with nothing of what was defined. docs/internals/code.md has the lines.
 * Each run counts as a command does (quota.h). The interpreter that a run had to start counts as that run.
 * Threads: any but loops; code_run_clear and code_run_take: any.
 */
#pragma once
#include "base/auto.h"
#include "base/buffer.h"
#include "base/id.h"
#include "core/account/actor.h"
#include "core/code/code_language.h"

#include <stdint.h>

struct contexts;
struct executions;
struct sandbox;

#define CODE_CONTEXTS 16       // of a sandbox
#define CODE_CONTEXTS_OPEN 8   // of these, strangers' (actor.h)
#define CODE_LENGTH (4u << 20) // of one run
#define CODE_LINE (16u << 20)  // of what comes out

struct contexts *contexts_new(struct executions *executions);
void contexts_free(struct contexts *contexts);
DEFINE_AUTOPTR(contexts)

/* Owns its texts. */
struct context_info {
    char id[ID_TEXT];
    char sandbox_id[ID_TEXT];
    char execution_id[ID_TEXT]; // its interpreter
    enum code_language language;
    char *user;             // NULL: the sandbox's
    char *directory;        // where it began
    const char *const *env; // NAME=VALUE over the sandbox's, NULL-terminated; NULL: none
    bool is_usual;          // the one that its language has without being asked for
    bool is_open;           // a stranger made it: strangers see such contexts alone
    bool is_running;        // else its interpreter has ended
    int64_t created_at;
};
void context_info_clear(struct context_info *info);

struct context_infos {
    struct context_info *items;
    size_t count;
};
void context_infos_clear(struct context_infos *infos);

struct context_request {
    enum code_language language;
    const char *directory;  // NULL: the sandbox's
    const char *user;       // likewise
    const char *const *env; // NAME=VALUE over the sandbox's, NULL-terminated; or NULL
};

/* Starts one and waits until it listens. ERROR_FULL, noun "context"; ERROR_NOT_FOUND and others of execution_start; ERROR_UNAVAILABLE, noun
 * "context", with the reason, when the interpreter ends at once. */
int context_create(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
                   const struct context_request *request, struct context_info *out,
                   struct error *err);
/* Those whose interpreter lives. */
int context_list(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
                 struct context_infos *out, struct error *err);
/* ERROR_NOT_FOUND, noun "context". */
int context_get(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
                const char *id, struct context_info *out, struct error *err);
/* A new interpreter under the same id. */
int context_restart(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
                    const char *id, struct error *err);
int context_interrupt(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
                      const char *id, struct error *err);
int context_remove(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
                   const char *id, struct error *err);
/* Why its interpreter has ended, as a sentence. */
void context_reason(struct contexts *contexts, const struct actor *actor,
                    const struct context_info *info, struct error *out);

struct code_request {
    const char *code;
    size_t length;
    const char *context_id;         // NULL: that of the language, which is made where there is none
    enum code_language language;    // without a context
    const char *directory;          // of a context that is made; NULL: the sandbox's
    const char *user;               // likewise
    const char *const *context_env; // likewise, as context_request.env
    const char *const *env;         // NAME=VALUE for this run, NULL-terminated; or NULL
};

/* A run that was begun: whoever has it writes the request into the socket, which does not block, and reads lines until one says that it is the end. The sandbox is in use
 * until code_run_clear, which interrupts what still runs. */
struct code_run {
    struct context_info context;
    int fd;
    struct buffer request;
    struct sandbox *sandbox;
    struct contexts *contexts; // that count
    uint64_t taken;            // by code_run_take
};
int code_start(struct contexts *contexts, const struct actor *actor, const char *sandbox_id,
               const struct code_request *request, struct code_run *out, struct error *err);
void code_run_clear(struct code_run *run);

/*
 * Counts so many bytes more that are kept of what the interpreter sends, or (less than before) gives back: `bytes` is all of it. False: the sandbox, its organisation or the
 * server has no room for that, and nothing changes. Until code_run_clear.
 */
bool code_run_take(struct code_run *run, uint64_t bytes);
