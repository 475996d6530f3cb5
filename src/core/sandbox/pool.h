/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes for sandboxes: made ahead where the shape was asked for lately or is the default's, launched where it was not. What waits together
 * holds no more memory than settings->spare_memory_bytes. Private to the core.
 * Threads: any but loops; pool_tick, pool_waiting and pool_bytes: any.
 */
#pragma once
#include "core/sandbox/sandboxes.h"
#include "store/sandboxes.h"

#include <stdbool.h>

struct pool;

int pool_new(struct sandboxes *sandboxes, struct pool **out, struct error *err);
/* Makes no more. */
void pool_stop(struct pool *pool);
/* Ends all that wait. */
void pool_free(struct pool *pool);

struct pool_request {
    const char *runtime; // name:tag
    bool is_one_shot;
    bool has_network;
    struct limits limits;
    const char *dependencies, *packages; // packed strings: over the runtime; NULL: none
    const char *mounts;                  // packed strings: directories of the host; NULL: none
    const char *layers;  // packed strings: what lies over the runtime; NULL: nothing
    const char *scratch; // its files are there already; NULL: a new one
    const char *home;    // is going to be made in it; NULL: none
    const char *user;    // for whom; NULL: root
};

/* What is over the runtime, as image_get_with wants it; NULL: nothing. The caller frees. */
char *additions_of(const char *dependencies, const char *packages);

/* What a sandbox's record asks for. Strings are borrowed. */
struct pool_request pool_request_of(const struct sandbox_record *record);

struct pooled {
    struct box *box;
    char scratch[80];       // "": goes with the box
    const char *const *env; // of the runtime, NULL-terminated; the caller frees with pooled_clear
};

/* The box is the caller's. Blocks for a launch where none waits, and for a build where the runtime is not built. */
int pool_take(struct pool *pool, const struct pool_request *request, struct pooled *out,
              struct error *err);
/* A new box for a sandbox that has had one: over its own files, with its limits and layers. */
int pool_launch_record(struct pool *pool, const struct sandbox_record *record, struct pooled *out,
                       struct error *err);
void pooled_clear(struct pooled *pooled); // all but the box

/* Has boxes made until enough wait, and those ended that nobody has asked for in a while; does not block. */
void pool_tick(struct pool *pool);

/* Nothing is made ahead until pool_resume, and nothing that was made of the runtime with this name (of any tag) waits: it can be removed. Blocks for
 * what is being made, and for another who does the same. */
void pool_hold(struct pool *pool, const char *name);
void pool_resume(struct pool *pool);
unsigned pool_waiting(struct pool *pool);
uint64_t pool_bytes(struct pool *pool); // of memory that those hold

/* Prefix of scratches that sandboxes keep. */
#define POOL_SCRATCH "box"
