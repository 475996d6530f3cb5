/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that is tried: what is known of it while it runs, and what is said at the end. Between try_command.c and the two kinds of copies.
 * Threads: one thread.
 */
#pragma once
#include "cli/invocation.h"
#include "cli/local_tree.h"

enum trial_change { TRIAL_ADDED, TRIAL_CHANGED, TRIAL_REMOVED };

struct trial_item {
    char *path;
    enum trial_change change;
    enum tree_kind kind; // as it is now; of what was removed as it was
    bool is_conflict;    // the same was changed where it is to go
    bool is_applied;
};

struct trial {
    struct invocation *invocation;
    char sandbox[BURROW_ID]; // where it is tried; goes at the end
    const char *directory;   // where in it the command starts; NULL: its own
    int exit_code;
    struct trial_item *items;
    size_t n_changes, room;
    uint64_t taken;    // bytes, in temporary files, of a fork's
    uint64_t left_out; // what no apply takes: links that lead outside, devices, '.git'
    bool is_applied;
    struct local_tree before, after;
    int root, staged;    // of a local one: the directory, and what came back
    char *staging;       // path of that; NULL: none
    char checkpoint[64]; // of the sandbox that it is a fork of; "": none
    struct burrow_answer *difference;
};
void trial_clear(struct trial *trial);

struct trial_kind {
    int (*begin)(struct trial *trial, struct burrow_error *err);
    int (*compare)(struct trial *trial, struct burrow_error *err);
    void (*show)(const struct trial *trial);
    int (*apply)(struct trial *trial, struct burrow_error *err);
    void (*end)(struct trial *trial); // whatever happened before
};

/* The most that comes back of a copy, as --limit says. */
uint64_t trial_most_bytes(const struct trial *trial);
void trial_add(struct trial *trial, const char *path, enum trial_change change,
               enum tree_kind kind);
/* "+ path", without control characters. */
void trial_print(const struct trial_item *item, const char *more);
/* A POST that makes what end() removes: a Ctrl-C waits for its answer, as nobody would know otherwise what was made. */
int trial_make(struct trial *trial, const char *path, const char *json, struct burrow_answer **out,
               struct burrow_error *err);
/* Runs it; its output is shown, beside the JSON on stderr. */
int trial_run(struct trial *trial, struct burrow_error *err);
/* For people, behind the changes: what else they should know before they decide. */
void trial_say_shown(const struct trial *trial);
/* The end for people: the exit code, or a failure's where something was left alone. */
int trial_say_end(const struct trial *trial);
void trial_write(const struct trial *trial, struct json_writer *json);
