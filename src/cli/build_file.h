/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that says what a snapshot is made of (agentuity-snapshot.yaml), read and checked: a word that it does not have is refused, so that
 * a misspelled one leaves nothing out in silence.
 * Threads: one thread.
 */
#pragma once
#include "base/options.h"
#include "burrow.h"
#include "data/json_writer.h"
#include "data/value.h"

struct build_file {
    struct data_document *document;             // holds all that follows
    const char *runtime;                        // always there; of the others NULL: it does not say
    const char *name, *description, *dir;       // dir: below the directory that is built
    const char **files;                         // patterns
    const char **dependencies, **packages;      // of Debian and of npm
    struct data_value *env, *metadata, *public; // two maps, true or false
};

/* `given` (NULL: one of the usual names) is looked for in `directory`. */
int build_file_read(const char *directory, const char *given, struct build_file *out,
                    struct burrow_error *err);
void build_file_clear(struct build_file *file);
bool build_file_is_public(const struct build_file *file);

/* The members of `map` (NULL: none), and over them the pairs of an option, as a member `key`; nothing where there are none. ${NAME} in a value of
 * the file is what the pair NAME=VALUE in `known` says. */
struct build_pairs {
    const char *key;
    const struct data_value *map;
    const struct option_list *known, *over; // over: NULL for none
};
int build_file_put_pairs(struct json_writer *json, const struct build_pairs *pairs,
                         struct burrow_error *err);
