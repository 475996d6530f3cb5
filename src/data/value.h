/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a data file or a request body says, as a read-only tree. The YAML and the JSON reader make
 * the same one. The document owns every value and every text in it; all of it goes with
 * data_document_free. Typed getters fail with the file and the field's path: "base.yaml:
 * build.packages[3]: must be a string, not a list".
 * Threads: one per object; the document.
 */
#pragma once
#include "base/arena.h"
#include "base/auto.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_kind {
    VALUE_NULL,
    VALUE_BOOL,
    VALUE_NUMBER, // kept as written, so that nothing is lost
    VALUE_STRING,
    VALUE_LIST,
    VALUE_MAP,
};

struct data_value {
    enum value_kind kind;
    bool truth;            // bool
    uint32_t line, column; // where it starts, from 1; 0 when the reader does not say
    const char *key;       // its name when it is in a map, else NULL; NUL-terminated
    size_t key_length;     //
    const char *text;      // number or string; NUL-terminated behind length, a string may hold NULs
    size_t length;         //
    size_t count;          // list or map: how many children
    struct data_value *first; // children in order: for (v = list->first; v; v = v->next)
    struct data_value *last;
    struct data_value *next;
    struct data_value *parent;
    struct data_document *document;
};

struct data_document {
    struct data_value *root; // NULL until a reader has made one
    const char *name;        // for errors: a file name, or "" for none
    struct arena arena;      // all its memory; readers keep a limit on how much
};

/* For readers. Everything is freed with the document; value_alloc gives zeroed memory and cannot
 * fail. */
struct data_document *data_document_new(const char *name);
void data_document_free(struct data_document *document);
DEFINE_AUTOPTR(data_document)
void *value_alloc(struct data_document *document, size_t size);

/* A new last child of `parent` (NULL: the root). `key` must already live in the document; NULL in a
 * list. */
struct data_value *value_add(struct data_document *document, struct data_value *parent,
                             enum value_kind kind, const char *key, size_t key_length);

/* The member `key` of a map; NULL when it is not there, or `map` is NULL or not a map. */
struct data_value *value_get(const struct data_value *map, const char *key);
/* The same by the first bytes of `key`. */
struct data_value *value_get_part(const struct data_value *map, const char *key, size_t length);

/* "a string", "a list" … for sentences. */
const char *value_kind_name(enum value_kind kind);

/* ERROR_INVALID with the value's place in front of the sentence. Returns -1. */
int value_error(const struct data_value *value, struct error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fails when a map has a member that is not in `known` (NULL-terminated), naming the nearest one
 * that is. */
int value_check_keys(const struct data_value *map, const char *const *known, struct error *err);

/*
 * The member `key` of `map`, typed. Missing or null: `*out` is left alone, so it holds the default;
 * with `needed` that is an error. Texts belong to the document and hold no NUL. A number is taken
 * as a string where a string is wanted (version: 3), since its text was kept as written.
 */
int value_get_string(const struct data_value *map, const char *key, bool needed, const char **out,
                     struct error *err);
int value_get_integer(const struct data_value *map, const char *key, bool needed, int64_t minimum,
                      int64_t maximum, int64_t *out, struct error *err);
int value_get_map(const struct data_value *map, const char *key, bool needed,
                  struct data_value **out, struct error *err);
/* A list of strings, NULL-terminated, in the document's memory. One string alone is a list of one.
 */
int value_get_strings(const struct data_value *map, const char *key, bool needed, const char ***out,
                      struct error *err);
