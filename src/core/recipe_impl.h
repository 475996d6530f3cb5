/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of recipes: a build under way, its log, its uploads.
 * Threads: one per object; a build is its worker's, but for what the lock of `recipes` guards.
 */
#pragma once
#include "base/arena.h"
#include "base/id.h"
#include "base/lock.h"
#include "core/recipe.h"
#include "loop/workers.h"

#include <semaphore.h>
#include <stdatomic.h>

#define RECIPE_BUILD_MS ((int64_t)3600 * 1000) // of a whole build

struct recipe_log {
    int fd; // -1: none
    size_t written;
    bool is_full;
};
/* The log of a build that begins. ERROR_STATE, noun "snapshot": it has one. */
int recipe_log_create(const char *data_dir, const char *id, struct recipe_log *out,
                      struct error *err);
/* To go on after the server that wrote it has ended. */
int recipe_log_open(const char *data_dir, const char *id, struct recipe_log *out,
                    struct error *err);
/* Best effort; line breaks become spaces. */
void recipe_log_add(struct recipe_log *log, enum recipe_level level, int step, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
void recipe_log_close(struct recipe_log *log);
/* In which sandbox it is built, told to nobody; and back, "" where none was. */
void recipe_log_sandbox(struct recipe_log *log, const char *sandbox_id);
void recipe_log_find_sandbox(const char *data_dir, const char *id, char sandbox_id[ID_TEXT]);
/* The step of its last error; 0: none. */
int recipe_log_failed_step(const char *data_dir, const char *id);
/* Calls fn with the id of each that there is and that was written to before `before` (ms since 1970). */
int recipe_logs_each(const char *data_dir, int64_t before, void (*fn)(void *data, const char *id),
                     void *data, struct error *err);
void recipe_log_remove(const char *data_dir, const char *id);

struct recipe_build;
/* The archive of a step of this build, and a SHA-256 of its bytes as they are now. ERROR_NOT_FOUND: it is not there. */
int recipe_upload_open(const struct recipe_build *build, const struct recipe_step *step,
                       char digest[RECIPE_HASH], struct error *err);
/* Removes those that are older than a day, too many or too large. */
void recipe_uploads_prune(struct core *core);

struct recipes {
    struct core *core;
    struct workers *workers;
    atomic_bool is_stopping;
    struct lock lock;
    struct recipe_build *builds; // guarded by it; begun and not over
};

struct recipe_build {
    struct recipe_build *next; // guarded by the lock of recipes; likewise is_running
    bool is_running;
    struct recipes *recipes;
    struct core *core;
    struct arena arena; // owns what follows points to
    struct actor actor;
    struct recipe recipe;
    char id[ID_TEXT];
    struct recipe_log log;
    char (*keys)[RECIPE_HASH];    // of each step, and of the service behind them
    char (*uploads)[RECIPE_HASH]; // of each step that copies files: a digest of its archive
    size_t n_stages;              // steps, and the service where there is one
    char base[ID_TEXT];           // the snapshot that it goes on from; "": its runtime
    char sandbox_id[ID_TEXT];     // in which it is built; "": none yet
    int step;                     // that runs
    uint64_t until_ms;            // on the monotonic clock; likewise
    uint64_t key_look_ms;         // when to look again whether its key is still good
    sem_t changed;
};

void recipe_copy_into(struct recipe_build *build, const struct recipe *recipe,
                      const struct actor *actor);
/* Makes the keys of its steps. ERROR_NOT_FOUND: an upload has gone. */
int recipe_make_keys(struct recipe_build *build, struct error *err);
/* All of it, on a worker. */
int recipe_run(struct recipe_build *build, struct error *err);
/* "sh", and the script that copies what was unpacked in RECIPE_UNPACKED; the arena's. */
#define RECIPE_UNPACKED "/.burrow-build"
const char *const *recipe_copy_command(struct arena *arena, const struct recipe_step *step);

/* Whether it may go on. ERROR_CANCELLED: the server ends. ERROR_TIMEOUT: the build's time is up. ERROR_UNAUTHORIZED, ERROR_SCOPE: its key has ended,
 * or may not build any more. */
int recipe_check(struct recipe_build *build, struct error *err);
