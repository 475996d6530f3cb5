/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the code room share.
 * Threads: any but loops.
 */
#pragma once
#include "base/lock.h"
#include "core/code/code.h"
#include "core/code/code_memory.h"

#define CODE_STRIPES 64

struct contexts {
    struct executions *executions; // borrowed
    struct code_memory memory;
    struct lock starting[CODE_STRIPES]; // by sandbox: one of its interpreters is started at a time
};

/* A member of a request to an interpreter: its name, its length and so many bytes. */
int code_put(struct buffer *out, const char *name, const void *data, size_t length,
             struct error *err);
/* The member "env": NAME=VALUE, each ended by NUL; none where there are none. */
int code_put_env(struct buffer *out, const char *const *env, struct error *err);

/* The socket's name in the box's network, which also says what an execution is the interpreter of: "burrow-context-ID-LANGUAGE". */
#define CONTEXT_NAME (ID_TEXT + 48)
const char *context_name(const struct context_info *info, char text[CONTEXT_NAME]);

/*
 * The context as asked for, with an interpreter that was alive a moment ago: of that id, or (NULL) the first of the language that nobody made by hand, or a new one.
 * *is_started: it was started for this, and is counted as the run that it is for.
 */
int context_ensure(struct contexts *contexts, const struct actor *actor, struct sandbox *sandbox,
                   const struct code_request *request, struct context_info *out, bool *is_started,
                   struct error *err);

/* A socket to its interpreter; waits until that listens. */
int context_connect(struct contexts *contexts, const struct actor *actor, struct sandbox *sandbox,
                    const struct context_info *info, int *fd, struct error *err);
