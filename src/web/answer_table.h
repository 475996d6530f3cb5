/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers by tables: a struct is written as a JSON object by rows of name, type and offset, as fields.h reads one. The OpenAPI
 * document has its schemas from the same rows, and the tests check every answer against them.
 * Threads: plain values.
 */
#pragma once
#include "data/json_writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum answer_type {   // what the struct's member is, and what leaves it out:
    ANSWER_TEXT,     // const char *; NULL
    ANSWER_ID,       // const char *, with `prefix` in front; NULL and ""
    ANSWER_JOINED,   // struct answer_joined, with `prefix` between; no `last`
    ANSWER_WORD,     // an enum, by `words`; one that has no word
    ANSWER_BOOL,     // bool
    ANSWER_TRUTH,    // bool; false
    ANSWER_INTEGER,  // int64_t
    ANSWER_NATURAL,  // uint64_t
    ANSWER_UNSIGNED, // unsigned
    ANSWER_TIME,     // int64_t: ms since 1970, as RFC 3339; 0
    ANSWER_TEXTS,    // const char *const *, ended by NULL; NULL
    ANSWER_BYTES,    // struct answer_bytes, as a string; no data. What is not UTF-8 gets U+FFFD
    ANSWER_BASE64,   // struct answer_bytes, in base64; no data
    ANSWER_JSON,     // const char *: any JSON, as text; NULL, and what is none
    ANSWER_TEXT_MAP, // const char *: a JSON object, as text, of which the strings are written; likewise
    ANSWER_PAIRS,  // const char *const *: "NAME=VALUE", ended by NULL, as an object; NULL
    ANSWER_MAP,    // a struct inside the struct, by `fields`
    ANSWER_MAP_AT, // const void *: a struct elsewhere, by `fields`; NULL
    ANSWER_LIST,   // struct answer_list of structs, by `fields`
    ANSWER_BESIDE, // a struct inside the struct, whose members stand beside the others; name is ""
    ANSWER_BESIDE_AT, // const void *: the same, elsewhere; NULL
    ANSWER_CUSTOM,    // anything: `write` writes the value; described by `fields`, or not at all
};

struct answer_joined {
    const char *first, *last;
};
struct answer_bytes {
    const void *data;
    size_t length;
};
struct answer_list {
    const void *items;
    size_t count;
};

struct answer_field {
    const char *name; // NULL ends a table
    enum answer_type type;
    size_t offset;
    bool
        is_needed; // clients may rely on it: never left out (numbers and bools without has_offset never are)
    bool is_nullable; // null stands for what would be left out
    size_t
        has_offset; // offsetof a bool that says whether it is told; 0: always (put no such bool first)
    const char *prefix;
    const char *const *words; // by the enum's value, `n_words` of them; of a text: all it can be
    size_t n_words;
    const struct answer_field *fields;
    size_t item_size; // of a list's items
    void (*write)(struct json_writer *json, const void *member);
    bool
        is_list; // ANSWER_CUSTOM: a list of objects by `fields`; ANSWER_JSON: a list of `json_type`
    const char *
        json_type; // ANSWER_JSON: "object", "string" …; NULL: it may be anything. What is another is left out
    const char *help; // for the OpenAPI document; may be NULL
};

/* One value: an object. */
void answer_write(struct json_writer *json, const struct answer_field *fields, const void *from);
/* Its members, into an object that has been begun. */
void answer_write_members(struct json_writer *json, const struct answer_field *fields,
                          const void *from);

/* What stands around the answers of a protocol: {"success":true,"data":…}. */
struct answer_wrap {
    const struct answer_field *members; // described only: whoever wraps writes them
    const char *slot;                   // where the answer stands; NULL: its members beside these
};

/* What a route answers with one status; with one of several types where rows of that status follow each other. */
struct route_answer {
    int status;                        // 0 ends a table
    const struct answer_field *fields; // NULL: no members of its own
    const struct answer_wrap *wrap;    // NULL: nothing around it
    const char *content;               // a type other than JSON: then there are no fields
    bool is_list;                      // a list of such objects
    bool is_open;                      // there may be other members
};
