/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandboxes can be started from, for callers.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/actor.h"
#include "model/page.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct runtimes; // runtimes.h

/* The hash of the files of a runtime that is built, as text: it tells two builds of the same name apart. */
#define RUNTIME_DIGEST 17
int runtime_digest(struct runtimes *runtimes, const char *name, char digest[RUNTIME_DIGEST],
                   struct error *err);

struct runtime_entry {
    char id[24];      // the same on every machine: made from the name
    const char *name; // "base:latest"
    const char *description;
    int64_t created_at; // when it was built; 0: not built
    bool is_built;
};
struct runtime_list {
    struct runtime_entry *entries;
    size_t count;
    size_t total;
    struct page_mark next; // of a page that is marked, in order of names
};
void runtime_list_clear(struct runtime_list *list);
#define autoruntimes __attribute__((cleanup(runtime_list_clear))) struct runtime_list

enum runtime_sort { RUNTIME_BY_CREATED, RUNTIME_BY_NAME };
int runtime_list(struct runtimes *runtimes, enum runtime_sort sort, bool is_descending,
                 const struct page *page, struct runtime_list *out, struct error *err);

/*
 * Whether a sandbox may be started from the runtime of this name (NULL: the default one, from which one always may). ERROR_INVALID for
 * one that is planned, ERROR_NOT_FOUND for others, both noun "runtime".
 */
int runtime_check(struct runtimes *runtimes, const char *name, struct error *err);

/* The name of a runtime given by its id; ERROR_NOT_FOUND, noun "runtime". `name` is of RUNTIME_REFERENCE_TEXT bytes. */
#define RUNTIME_REFERENCE_TEXT 136
int runtime_resolve(struct runtimes *runtimes, const char *id, char *name, struct error *err);
/* The id of the runtime of this name ("base" is "base:latest"). */
void runtime_id(const char *name, char id[24]);

/* How many runtimes of the catalog are built, and what they take on the disk. */
int runtime_measure(struct runtimes *runtimes, uint64_t *count, uint64_t *bytes, struct error *err);
