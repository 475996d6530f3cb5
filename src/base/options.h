/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command-line options from a table: parsing, help, and a dump for completion and manual-page
 * tests.
 * `--name value`, `--name=value`, `-n value`, `-nvalue`, letters of flags together; names are
 * exact, never abbreviated. Options end at "--" or at the first word that is none.
 * Threads: plain values.
 */
#pragma once
#include "base/duration.h"
#include "base/error.h"

#include <stdint.h>
#include <stddef.h>
#include <stdio.h>

enum option_type {   // what the row's field in the command's struct is:
    OPTION_FLAG,     // bool
    OPTION_COUNT,    // unsigned, one more each time
    OPTION_TEXT,     // const char *, borrowed from argv or the environment
    OPTION_LIST,     // struct option_list
    OPTION_SIZE,     // uint64_t, bytes
    OPTION_DURATION, // uint64_t, milliseconds
    OPTION_CPU,      // int64_t, thousandths
    OPTION_INTEGER,  // int64_t
};

struct option_list {
    const char **items; // borrowed strings in an array of ours
    size_t count;
};
void option_list_clear(struct option_list *list);

struct option_row {
    const char *name; // without dashes; NULL ends the table
    char letter;      // or 0
    enum option_type type;
    size_t offset;           // offsetof the field
    const char *argument;    // its name in the help ("SIZE"); NULL for flags and counts
    const char *help;        // lower case, no full stop; says the default
    const char *environment; // gives the value where the option is absent; or NULL
    int64_t minimum;         // for numbers of all types, in the field's unit
    int64_t maximum;         // 0: no range
};

/* What is said of an option that is not there, because people know it from elsewhere. */
struct option_hint {
    const char *word; // "rm", or a letter: "i"; NULL ends the table
    const char *text; // "every run is removed at its end: leave it out"
};

struct option_set {
    const char *command;             // "burrow run"
    const char *usage;               // "[options] -- command [argument ...]"
    const char *summary;             // one line
    const char *description;         // paragraphs, or NULL
    const struct option_row *rows;   // NULL: none but --help
    const char *const *examples;     // "$ burrow run -- true" lines, NULL at the end; or NULL
    const struct option_hint *hints; // or NULL
};

/*
 * Fills the fields of `into` whose options are given; preset defaults stay otherwise. argv[0] is
 * skipped. 0, and *out_operands is the index of the first word behind the options; OPTIONS_HELP
 * where --help or -h came first and nothing else counts; -1 with ERROR_INVALID.
 */
#define OPTIONS_HELP 1
int options_parse(const struct option_set *set, int argc, char **argv, void *into,
                  int *out_operands, struct error *err);

/* The same for options behind an operand, which is argv[0]: variables are not looked at again, so options before it stay as they are. */
int options_parse_more(const struct option_set *set, int argc, char **argv, void *into,
                       int *out_operands, struct error *err);

/*
 * Sets one field as its environment variable would: for files of settings, whose names are the same. ERROR_NOT_FOUND when no row
 * has this variable. Texts are borrowed.
 */
int options_set(const struct option_set *set, const char *environment, const char *value,
                void *into, struct error *err);

/* Whether --NAME stands among the words, up to "--": for how a failure is told when the words before it could not be read. */
bool options_mention(int argc, char **argv, const char *name);

/* A number as people write it: 4096 of a size is "4Ki". */
const char *option_number(enum option_type type, int64_t number, char text[DURATION_TEXT]);

/* Usage, description, options and examples for people. */
void options_help(const struct option_set *set, FILE *out);

/* One line an option, fields with tabs between: command, --name, -letter or empty, argument or
 * empty, help. */
void options_dump(const struct option_set *set, FILE *out);
