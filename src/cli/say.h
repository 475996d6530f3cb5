/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What burrow's commands say: tables, JSON, sizes and times for people, colours where there is a terminal, failures with the next step in
 * them. Texts that come from a server or a sandbox are scrubbed of control characters before they reach a terminal.
 * Threads: one thread.
 */
#pragma once
#include "base/buffer.h"
#include "burrow.h"
#include "data/json_writer.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* ---- failures ---- */

/* Fills in err; -1. */
int say_fail(struct burrow_error *err, enum burrow_failure kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int say_fail_sys(struct burrow_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Tells it on stderr with its remedy, and as JSON on stdout where `is_json`; the exit code. */
int say_error(const struct burrow_error *err, bool is_json);
/* The member "error" of a map that is begun. */
void say_put_error(struct json_writer *json, const struct burrow_error *err);
/* The exit code of a failure: burrow(1) lists them. */
int say_exit_code(const struct burrow_error *err);

/* ---- JSON ---- */

/* JSON on standard output, without what a terminal acts on: that is in strings alone, and is spelled there. */
void say_json_part(const char *text);
/* One value on a line. */
int say_json(const char *text, struct burrow_error *err);
int say_value(const struct burrow_value *value, struct burrow_error *err);
/* Ends the writer and prints what it wrote. */
int say_written(struct json_writer *json, struct buffer *text, struct burrow_error *err);
/* A value of an answer inside what is being written. */
void say_put(struct json_writer *json, const char *key, const struct burrow_value *value);
void say_put_text(struct json_writer *json, const char *key, const char *text); // NULL: nothing
/*
 * The members of a sandbox, a snapshot or whatever else, for a map that is begun. Before them come the names that the SDKs' pages have for
 * some of them: sandboxId and status of a sandbox, snapshotId of a snapshot.
 */
void say_put_members(struct json_writer *json, const struct burrow_value *thing);
/* Such a map alone. */
int say_thing(const struct burrow_value *thing, struct burrow_error *err);
/* Finishes it for a request. */
int say_finish(struct json_writer *json, struct burrow_error *err);

/* ---- for people ---- */

#define SAY_TEXT 48
/* "1.5 MiB" */
const char *say_size(int64_t bytes, char text[SAY_TEXT]);
/* "350ms", "12s", "3m 4s", "2h 5m" */
const char *say_duration(int64_t ms, char text[SAY_TEXT]);
/* RFC 3339 to "3m ago"; as it is where it is no time. */
const char *say_ago(const char *time, char text[SAY_TEXT]);
/* Milliseconds since 1970; -1 where it is no time. */
int64_t say_time_ms(const char *time);

enum say_colour { SAY_PLAIN, SAY_BOLD, SAY_DIM, SAY_RED, SAY_GREEN, SAY_YELLOW, SAY_BLUE };
/* Whether stdout is a terminal that may have colours (NO_COLOR, TERM=dumb). */
bool say_has_colours(void);
bool say_has_error_colours(void);
/* The escape that begins it, and ends all; "" without colours. */
const char *say_begin(enum say_colour colour);
/* The colour of a state: running, paused, failed … */
enum say_colour say_state_colour(const char *state);

/* A text of somebody else's without control characters, as a copy that the caller frees. */
char *say_clean(const char *text);
/* Such a text as a line on stdout. */
void say_line(const char *text);

/* "✓ sentence" on stdout (a plain one where there is no terminal). */
void say_done(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define SAY_CUT                                                                                    \
    "it wrote more than the server keeps (--output-limit of 'burrow serve'): what is above is "    \
    "cut; "                                                                                        \
    "large files go by 'burrow cp'"
/* On stderr: "burrow: sentence". */
void say_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* On stderr: the host directories that were left out of what was taken of a sandbox, where its answer names some. */
void say_left_out(const struct burrow_value *answer);

/* "y/N" on the terminal: whether it was a yes. Without a terminal, or where `is_confirmed`: true. */
bool say_confirm(bool is_confirmed, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- tables ---- */

#define TABLE_COLUMNS 12
struct table {
    unsigned n_columns;
    const char *heads[TABLE_COLUMNS];
    bool is_right[TABLE_COLUMNS];
    char **cells; // owned
    size_t count, room;
    enum say_colour *colours;
};
/* Heads, NULL at the end; one that begins with '>' is of a column of numbers. */
void table_init(struct table *table, const char *const *heads);
void table_add(struct table *table, const char *text); // the next cell; NULL is empty
void table_add_colour(struct table *table, const char *text, enum say_colour colour);
void table_print(const struct table *table, FILE *out);
void table_clear(struct table *table);

/* "name         value", for one thing. */
void say_field(const char *name, const char *text);
void say_field_value(const char *name, const struct burrow_value *value);
