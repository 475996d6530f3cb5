/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandboxes can be started from, for callers.
 * Threads: any but loops.
 */
#pragma once
#include "base/limits.h"
#include "base/strings.h"
#include "core/account/actor.h"
#include "model/page.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct catalog;
struct runtimes; // runtimes.h

#define RUNTIME_REFERENCE_TEXT 136

/* The hash of the files of a runtime that is built, as text: it tells two builds of the same name apart. */
#define RUNTIME_DIGEST 17
int runtime_digest(struct runtimes *runtimes, const char *name, char digest[RUNTIME_DIGEST],
                   struct error *err);

struct runtime_entry {
    char id[24];                       // the same on every machine: made from the name
    char name[RUNTIME_REFERENCE_TEXT]; // "base:latest"
    const char *description;
    const char *icon, *color, *url, *readme; // or NULL
    const char *const *tags;                 // "language"; NULL-terminated, likewise keys
    const char *const *keys;                 // variables its tool wants a secret in
    char memory[24], cpu[24], disk[24];      // that it needs at least; "": nothing in particular
    int64_t memory_bytes, cpu_millicores, disk_bytes; // the same as numbers; 0: nothing
    bool needs_network;
    const char *kind;
    const char *state;  // runtime_state_name: "ready", "building" …
    int64_t created_at; // when it was built; 0: not built
    int64_t size_bytes; // of its own layer
    bool is_built;
    bool is_used; // by a sandbox, or another runtime stands on it
};
struct runtime_list {
    struct runtime_entry *entries;
    size_t count;
    size_t total;
    struct page_mark next;   // of a page that is marked, in order of names
    struct catalog *catalog; // owns the texts
    struct strings strings;  // and this those that are not in it
};
void runtime_list_clear(struct runtime_list *list);
#define autoruntimes __attribute__((cleanup(runtime_list_clear))) struct runtime_list

enum runtime_sort { RUNTIME_BY_CREATED, RUNTIME_BY_NAME };
int runtime_list(struct runtimes *runtimes, enum runtime_sort sort, bool is_descending,
                 const struct page *page, struct runtime_list *out, struct error *err);

/* What is asked of a sandbox, held against what its runtime needs; 0: nothing was. After the check: what the runtime needs. */
struct runtime_wish {
    const char *name; // NULL: the default one
    struct limits limits;
    bool has_network;
    bool has_packages; // of npm: the runtime needs npm or bun
};
/*
 * Whether a sandbox may be started from this runtime; `name` (of RUNTIME_REFERENCE_TEXT bytes, or NULL) gets the one under which it is recorded:
 * an alias, or a second tag, becomes the first. ERROR_NOT_FOUND names the nearest; ERROR_INVALID when less is asked for than it needs.
 * All of noun "runtime", but the last: that of the limit.
 */
int runtime_check(struct runtimes *runtimes, struct runtime_wish *wish, char *name,
                  struct error *err);

/* Whether its definition says that an interpreter of Python is to wait in boxes that are made ahead. */
bool runtime_has_interpreter(struct runtimes *runtimes, const char *name);

/* One of the catalog, by name or id ("srt_" left away); the list holds it alone. */
int runtime_get(struct runtimes *runtimes, const char *reference, struct runtime_list *out,
                struct error *err);

/*
 * For administrators. Adds a runtime by its definition (YAML, as docs/man/burrow-runtime.1 has it) or by an image ("docker://…"); begins to make one, *state says how
 * far that is (of RUNTIME_STATE bytes; "": it is there); removes one with what was added of it: ERROR_BUSY says who uses it.
 */
#define RUNTIME_STATE 120
int runtime_put(struct runtimes *runtimes, const struct actor *actor, const char *name,
                const char *definition, const char *image, struct error *err);
/* The runtime that is this image ("debian:12", "docker://…"): one that is there, or, for administrators, a new one, not made yet. ERROR_DENIED, noun "image". `name` is of
 * RUNTIME_REFERENCE_TEXT bytes. */
int runtime_of_image(struct runtimes *runtimes, const struct actor *actor, const char *image,
                     char *name, struct error *err);
int runtime_make(struct runtimes *runtimes, const struct actor *actor, const char *reference,
                 char *state, struct error *err);
int runtime_delete(struct runtimes *runtimes, const struct actor *actor, const char *reference,
                   struct error *err);

/* The name of a runtime given by its id; ERROR_NOT_FOUND, noun "runtime". `name` is of RUNTIME_REFERENCE_TEXT bytes. */
int runtime_resolve(struct runtimes *runtimes, const char *id, char *name, struct error *err);
/* The id of the runtime of this name ("base" is "base:latest"). */
void runtime_id(const char *name, char id[24]);

/* How many runtimes of the catalog are built, and what they take on the disk. */
int runtime_measure(struct runtimes *runtimes, uint64_t *count, uint64_t *bytes, struct error *err);
