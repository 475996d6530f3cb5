/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON bodies by tables: name, type, where it goes, whether it is needed. All faults of a body are collected, with their
 * paths, into one sentence: "command.exec[2]: must be a string, not a number; timeout.idle: ...". Texts are UTF-8 without NUL.
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"
#include "data/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum field_type {   // what the struct's member is:
    FIELD_TEXT,     // const char *; no NUL in it; NULL: absent
    FIELD_TEXTS,    // const char ** ended by NULL; NULL: absent
    FIELD_BOOL,     // bool
    FIELD_INTEGER,  // int64_t within minimum … maximum (equal: any)
    FIELD_DURATION, // struct duration_field: as written, and in ms
    FIELD_SIZE,     // struct size_field: as written, and in bytes
    FIELD_CPU,      // struct size_field: as written, and in thousandths
    FIELD_MAP, // a struct inside the struct, by `fields`; a bool member `has_<name>` is not needed: see has_offset
    FIELD_LIST,     // struct field_list of structs by `fields`
    FIELD_TEXT_MAP, // struct field_list of struct text_pair (value NULL for null where is_nullable)
    FIELD_BYTES,    // struct bytes_field: standard base64 with padding, decoded
    FIELD_VALUE,    // const struct data_value *: any JSON
    FIELD_OBJECT,   // const struct data_value *: a JSON object
    /* int64_t within minimum … maximum (equal: 0 … any): a number in the unit that the name ends with, or a text with its unit. */
    FIELD_MS,     // "timeoutMs": 30000 or "30s"
    FIELD_AMOUNT, // "memoryBytes": 536870912 or "512Mi"
    FIELD_MILLIS, // "cpuMillicores": 500 or "500m"; as text "2" is two processors
};

struct duration_field {
    const char *text; // NULL: absent
    uint64_t ms;
};
struct size_field {
    const char *text; // NULL: absent
    uint64_t value;
};
struct bytes_field {
    const void *data;
    size_t length;
};
struct text_pair {
    const char *name;
    const char *value;
};
struct field_list {
    void *items;
    size_t count;
};

struct field {
    const char *name; // NULL ends a table
    enum field_type type;
    size_t offset;
    bool is_needed;
    bool is_nullable;           // null counts as absent (FIELD_TEXT_MAP: values may be null)
    const struct field *fields; // of FIELD_MAP and of FIELD_LIST's items
    size_t item_size;           // of FIELD_LIST's items
    int64_t minimum,
        maximum; // integers: range; strings: at least minimum and at most maximum bytes; lists: at least minimum and at most
                 // maximum items (0: default); bytes: at most maximum of them (0: as the body has)
    size_t
        has_offset; // offsetof a bool that says whether it was there; 0: none (put no such bool first)
    const char *const *words; // FIELD_TEXT: one of these, NULL-terminated; NULL: any
    const char *help;         // for the OpenAPI document; may be NULL
    bool is_filled;           // FIELD_TEXTS: no item is empty
    bool is_exact; // FIELD_TEXTS: halves of surrogate pairs are kept as json.h reads them
    /* FIELD_TEXT: what is wrong with it, as "must be …", or NULL. */
    const char *(*check)(const char *text);
};

#define FIELD_TEXT_MAXIMUM (1 << 20) // bytes
#define FIELD_LIST_MAXIMUM 10000     // items, also of maps and lists of strings

/* What is wrong, and where: "command.exec[2]", "must be a string, not a number". */
struct field_fault {
    const char *path; // "": the body itself
    const char *text;
};
struct field_faults {
    struct field_fault *items;
    size_t count; // at most FIELD_FAULTS are kept
};
#define FIELD_FAULTS 128

/* As fields_read, with the faults one by one; memory is the document's. */
int fields_read_all(const struct data_value *body, const struct field *fields, void *into,
                    struct field_faults *faults, struct error *err);

/*
 * Whether every member of the body, and of the objects in it, is in the table: ERROR_UNKNOWN_FIELD for the first that is not, with its
 * path and the name that it may be a misspelling of. Does not look at values.
 */
int fields_check_names(const struct data_value *body, const struct field *fields,
                       struct error *err);

/*
 * Fills `into` (zeroed or preset by the caller) from a JSON object. Unknown members are ignored. Memory is the
 * document's, taken with value_alloc. ERROR_INVALID names every fault, at most 16 and as many as the error's text has room
 * for, and says how many more there are; err->field is the path of the first. `into` is of no use then.
 */
int fields_read(const struct data_value *body, const struct field *fields, void *into,
                struct error *err);
