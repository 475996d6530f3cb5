/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runtimes there are and how each is made: small YAML files carried in the program, and those
 * of the machine in /etc/burrow/runtimes and <data>/catalog, read in that order; a later one
 * replaces an earlier one of the same name and tag. Adding a runtime is adding a file. Not needed
 * to start from a runtime that is built: see runtime/image.h.
 * Threads: any; a catalog does not change once it is loaded.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define RUNTIME_NAME 64 // of names and tags, with the NUL

/* "base:latest"; the tag may be left away. */
struct runtime_reference {
    char name[RUNTIME_NAME];
    char tag[RUNTIME_NAME];
};
int runtime_reference_parse(const char *text, struct runtime_reference *out, struct error *err);

/* The one spelling under which a runtime is recorded and compared: "base:latest" for "base" too. The text is the caller's to free; it is not checked. */
char *runtime_full_name(const char *text);

enum runtime_kind {
    RUNTIME_DEBIAN, // packages of a Debian suite, by mmdebstrap
    RUNTIME_HOST,   // a view of this machine's /usr
};
const char *runtime_kind_name(enum runtime_kind kind);

struct runtime_definition {
    const char *name;
    const char **tags; // at least one; the first names the build, the others point at it
    const char *description;
    const char *file; // where it is written down
    uint64_t hash; // of what decides the result; differs when the definition was changed in earnest
    const char **env; // KEY=VALUE, NULL-terminated
    enum runtime_kind kind;
    const char *suite; // the rest is for RUNTIME_DEBIAN
    const char **components;
    const char **packages;
    const char *mirror; // or NULL: the machine's own
};

struct catalog;

/* `etc_dir` NULL is /etc/burrow/runtimes. A file that cannot be read is left out and told by
 * catalog_fault_at. */
int catalog_load(const char *data_dir, const char *etc_dir, struct catalog **out,
                 struct error *err);
void catalog_free(struct catalog *catalog);
DEFINE_AUTOPTR(catalog)

/* Definitions by name, NULL after the last one. They live as long as the catalog. */
const struct runtime_definition *catalog_at(const struct catalog *catalog, size_t index);

/* What was wrong with files that were left out, a sentence each, NULL after the last one. */
const char *catalog_fault_at(const struct catalog *catalog, size_t index);

/* ERROR_NOT_FOUND names the nearest and the known ones. */
int catalog_find(const struct catalog *catalog, const struct runtime_reference *reference,
                 const struct runtime_definition **out, struct error *err);
