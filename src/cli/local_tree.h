/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local directory as a list of what is in it, and single changes to it that cannot lead outside: `burrow try` compares two and brings one to the
 * other. Paths are relative, "a/b", and never walked over a link. Only files, directories and links are known.
 * Threads: one per object.
 */
#pragma once
#include "base/auto.h"
#include "base/sha256.h"
#include "burrow.h"

#include <stdbool.h>
#include <stdint.h>

enum tree_kind { TREE_NOTHING, TREE_FILE, TREE_DIRECTORY, TREE_LINK };

struct tree_entry {
    char *path;
    enum tree_kind kind;
    unsigned mode;            // permissions; 0 of a link
    uint64_t size;            // of a file
    char digest[SHA256_TEXT]; // of its content, or of where the link leads; "" of a directory
    uint64_t version;         // of a file that a sandbox has too: names what it has; 0: not known
};

/* Sorted by path, so that a directory comes before what is in it. */
struct local_tree {
    struct tree_entry *entries;
    size_t count, room;
    uint64_t bytes;
    uint64_t names;   // bytes of all paths
    uint64_t skipped; // neither file, directory nor link, or of a name that is left out
};

#define TREE_MOST_ENTRIES 1000000
#define TREE_MOST_NAMES ((uint64_t)128 << 20) // bytes of all paths together

/*
 * Whether it is '.git' or in it (in capitals too, which is the same on some file systems): programs of whoever works in the directory trust
 * what is there, which are hooks, filters and commands in the configuration.
 */
bool local_tree_is_in_git(const char *path);

/* What is below `root`, an open directory. `leaves_out` (may be NULL): asked with each path; nothing below one is looked at. */
int local_tree_scan(int root, bool (*leaves_out)(void *context, const char *path), void *context,
                    struct local_tree *out, struct burrow_error *err);
void local_tree_clear(struct local_tree *tree);
/* NULL: there is none. */
const struct tree_entry *local_tree_find(const struct local_tree *tree, const char *path);
bool tree_entry_is_same(const struct tree_entry *one, const struct tree_entry *other);

/* Puts a copy of the entry in, or in place of the one of that path; takes one out. */
void local_tree_set(struct local_tree *tree, const struct tree_entry *entry);
void local_tree_unset(struct local_tree *tree, const char *path);

/* What is at the path now; kind TREE_NOTHING where nothing is. The entry's path stays NULL. */
int local_tree_look(int root, const char *path, struct tree_entry *out, struct burrow_error *err);
/* Opens a file there for reading; -1 with errno. */
int local_tree_open(int root, const char *path);

/*
 * Makes what is at the path below `root` as it is below `from`: directories above it are made where missing, a file takes the place of
 * another in one step, set-id bits are not kept. Where root runs it, what is new belongs to whom its directory belongs to.
 */
int local_tree_put(int root, int from, const struct tree_entry *entry, struct burrow_error *err);
/* The same from a file that is open, or as a link that leads to `target`. */
int local_tree_write(int root, const struct tree_entry *entry, int source, const char *target,
                     struct burrow_error *err);
/* Where a link leads; -1 with errno. */
int local_tree_target(int root, const char *path, char *to, size_t size);
/* A directory only when it is empty: 1 when it stays for that. Nothing there: 0. */
int local_tree_remove(int root, const char *path, struct burrow_error *err);
