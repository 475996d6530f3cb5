/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recipes: snapshots that are built by steps, each a command or files that are copied, in a sandbox of the caller's. What there is behind
 * each step is kept (core/snapshot/snapshot_step.h), so that a build with the same first steps begins behind those. A build is announced by
 * snapshot_build_begin with SNAPSHOT_BY_STEPS as its content_hash; a restart of the server ends all builds under way as failed, with nothing
 * left of them but their log. docs/internals/recipes.md.
 * Threads: any but loops.
 */
#pragma once
#include "base/command.h"
#include "base/limits.h"
#include "core/account/actor.h"
#include "core/snapshot/snapshot_step.h"

struct core;
struct recipes;

#define RECIPE_STEPS_MOST 200
#define RECIPE_BUILDS_AT_ONCE                                                                      \
    4 // on the whole server, of one member or of a key that is nobody's: 2; others wait
#define RECIPE_BUILDS_WAITING 16 // likewise: 4
#define RECIPE_LOG_MOST ((size_t)1 << 20)

struct recipe_step {
    const char *label;      // "RUN make": what the log calls it
    struct command command; // without argv: files are copied. Its time is the build's
    const char *upload;     // a hash of recipe_upload: the files
    const char *source;     // which of them; "*" and "?" as a shell has them
    const char *
        destination; // absolute; a directory where it ends with "/", or is one, or several files are copied
    const char *owner; // as chown has it: "1000:1000"
    const char *mode;  // as chmod has it; NULL: as it was packed
    bool is_forced;    // runs, whatever is kept of it; with all that follow
    bool is_silent;    // only its label counts: what it changes is in the commands behind it
};

/* A command that stays running, and one that succeeds once the first is ready. */
struct recipe_service {
    const char *const *start, *const *ready; // argv; NULL: none
    struct command around;                   // of both; no argv
};

struct recipe {
    const char *snapshot, *runtime; // what it starts from: one of the two
    const char *home;
    const char *user;
    struct limits limits;
    const struct recipe_step *steps;
    size_t n_steps;
    struct recipe_service
        service; // has to become ready, or the build fails; it runs in no snapshot
    struct snapshot_outcome outcome; // its env, metadata and other_tags
    const char *front_data;          // kept with the sandbox that it is built in; NULL: nothing
};

/* Begins the build `id` of the actor, or lets it wait. Copies all. ERROR_STATE, noun "snapshot": it was begun before, or is over. ERROR_FULL, noun
 * "build". ERROR_INVALID: more than RECIPE_STEPS_MOST; a step without its upload. ERROR_DENIED: the key is not for this runtime. */
int recipe_start(struct core *core, const struct actor *actor, const char *id,
                 const struct recipe *recipe, struct error *err);

/* How far one is. */
struct recipe_status {
    enum { RECIPE_WAITING, RECIPE_RUNNING, RECIPE_READY, RECIPE_FAILED } state;
    char *error; // of a failed one
    int step;    // that failed, from 1; 0: before the first; RECIPE_STEP_LAST: behind the last
    char *name;  // of the snapshot
};
#define RECIPE_STEP_LAST (-1)
void recipe_status_clear(struct recipe_status *status);
/* ERROR_NOT_FOUND, noun "snapshot". */
int recipe_status(struct core *core, const struct actor *actor, const char *id,
                  struct recipe_status *out, struct error *err);

enum recipe_level { RECIPE_DEBUG, RECIPE_INFO, RECIPE_WARN, RECIPE_ERROR };
struct recipe_line {
    int64_t at; // ms since 1970
    enum recipe_level level;
    int step;
    const char *text;
};
/* Calls fn for at most `most` lines of its log, from the line with this number on. */
int recipe_log_read(struct core *core, const char *id, int64_t from, int64_t most,
                    void (*fn)(void *data, const struct recipe_line *line), void *data,
                    struct error *err);

/* Archives of files that steps copy, by a hash that their sender made; each owner (recipe_upload_owner) has its own. What is there is kept for a day. */
#define RECIPE_HASH 65 // of 64 hexadecimal digits
#define RECIPE_OWNER 33
void recipe_upload_owner(const struct actor *actor, char owner[RECIPE_OWNER]);
int recipe_upload_check(const char *hash, struct error *err); // ERROR_INVALID, noun "hash"
/* *which (or NULL) tells it from any other that may be there later; 0: none is. */
bool recipe_upload_is_there(struct core *core, const char *owner, const char *hash,
                            uint64_t *which);
/* `over`: the one that it may take the place of; 0: none. ERROR_CONFLICT, noun "upload": there is another, with other content. */
int recipe_upload_put(struct core *core, const char *owner, const char *hash, uint64_t over,
                      int archive_fd, struct error *err);

/*
 * Starts a service in a sandbox and waits until it is ready, at most so long; *started (ID_TEXT bytes, or NULL) is the execution of its start.
 * ERROR_STATE, noun "service": it ended, or was not ready in time.
 */
int recipe_serve(struct core *core, const struct actor *actor, const char *sandbox_id,
                 const struct recipe_service *service, int64_t within_ms, char *started,
                 struct error *err);

/* For whoever opens the core: what an earlier server was building has failed. */
int recipes_open(struct core *core, struct recipes **out, struct error *err);
void recipes_stop(struct recipes *recipes); // builds under way fail; blocks until they have
void recipes_free(struct recipes *recipes);
