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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUNTIME_NAME 64         // of names and tags, with the NUL
#define RUNTIME_DESCRIPTION 201 // of what an image says of itself

/* "base:latest"; the tag may be left away. */
struct runtime_reference {
    char name[RUNTIME_NAME];
    char tag[RUNTIME_NAME];
};
int runtime_reference_parse(const char *text, struct runtime_reference *out, struct error *err);

/* The one spelling under which a runtime is recorded and compared: "base:latest" for "base" too. The text is the caller's to free; it is not checked. */
char *runtime_full_name(const char *text);
/* The id of the runtime of this name ("base" is "base:latest"), without its prefix: the same on every machine. */
#define RUNTIME_ID 24
void runtime_name_id(const char *name, char id[RUNTIME_ID]);

enum runtime_kind {
    RUNTIME_DEBIAN, // packages of a Debian suite, by mmdebstrap
    RUNTIME_HOST,   // a view of this machine's /usr
    RUNTIME_LAYER,  // another runtime, and packages over it
    RUNTIME_OCI,    // an image, by skopeo
};
const char *runtime_kind_name(enum runtime_kind kind);

/* What a sandbox needs to be of use with it; 0: nothing in particular. */
struct runtime_requirements {
    uint64_t memory_bytes;
    uint32_t cpu_millicores;
    uint64_t disk_bytes;
    bool needs_network;
};

struct runtime_definition {
    const char *name;
    const char **tags;    // at least one; the first names the build, the others point at it
    const char **aliases; // "nodejs:latest": other names for it, NULL-terminated
    const char *description;
    const char *icon, *color, *url; // for people's eyes; or NULL
    const char **categories;        // "language", NULL-terminated
    const char **keys;              // variables its tool wants a secret in, NULL-terminated
    const char *readme;             // or NULL
    const char **command;           // what runs where nothing was asked for; empty: none
    struct runtime_requirements requirements;
    const char *interpreter; // that waits in boxes made ahead: "python"; or NULL
    bool is_internal;        // others are made with it; no list over HTTP has it
    const char *file;        // where it is written down
    uint64_t hash; // of what decides the result; differs when the definition was changed in earnest
    const char **env; // KEY=VALUE, NULL-terminated; over those of the one below
    enum runtime_kind kind;
    const char *suite; // this and the next four: RUNTIME_DEBIAN
    const char **components;
    const char **packages;  // RUNTIME_LAYER too: of the suite below
    const char *mirror;     // or NULL: the machine's own
    bool is_expiry_ignored; // the suite's lists may be older than they say; signatures still count
    const char *from_name;  // RUNTIME_LAYER: the one below, and the one whose npm is used; or NULL
    const char *with_name;
    const struct runtime_definition *from, *with; // the same, found
    const char **npm;                             // packages, "{arch}" being x64 or arm64
    const char **users;                           // made in it, with a home each
    const char *image;                            // RUNTIME_OCI: where it comes from
};

struct catalog;

/* `etc_dir` NULL is /etc/burrow/runtimes. A file that cannot be read is left out and told by
 * catalog_fault_at. */
int catalog_load(const char *data_dir, const char *etc_dir, struct catalog **out,
                 struct error *err);
/*
 * Only what can be found by this name, for who needs it quickly: a runtime that is built. Definitions are not joined with those that they stand on, and their
 * hash is their own.
 */
int catalog_load_named(const char *data_dir, const char *name, struct catalog **out,
                       struct error *err);
struct catalog *catalog_ref(struct catalog *catalog);
void catalog_free(struct catalog *catalog); // gives up one reference
DEFINE_AUTOPTR(catalog)

/*
 * The state of the machine's files of the catalog, without reading them: as long as it stays the same, catalog_load would give the same. False while one of them was
 * changed so lately that a second change might not show.
 */
bool catalog_look(const char *data_dir, const char *etc_dir, uint64_t *state);

/*
 * Puts a file into <data>/catalog, if it can be read and names this runtime first; in place of one that was put there before. ERROR_INVALID with
 * the place in the text that is wrong.
 */
int catalog_put_file(const char *data_dir, const struct runtime_reference *reference,
                     const char *text, struct error *err);
/* Removes the file of a definition that is in <data>/catalog; *was_there. Those of others stay. */
int catalog_remove_file(const char *data_dir, const struct runtime_definition *definition,
                        bool *was_there, struct error *err);

/* Definitions by name, NULL after the last one. They live as long as the catalog. */
const struct runtime_definition *catalog_at(const struct catalog *catalog, size_t index);

/* What was wrong with files that were left out, a sentence each, NULL after the last one. */
const char *catalog_fault_at(const struct catalog *catalog, size_t index);
/* Whether one was left out by a fault of the machine, such as too many open files: loaded again, it may be there. */
bool catalog_is_unsure(const struct catalog *catalog);

/* By name and tag, or by an alias. ERROR_NOT_FOUND names the nearest and the known ones. */
int catalog_find(const struct catalog *catalog, const struct runtime_reference *reference,
                 const struct runtime_definition **out, struct error *err);
