/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For layer*.c, and for runtime/oci_*.c, whose layers are read likewise: copying entries of trees, and stacks of trees read as overlay reads them.
 * Threads: one per object.
 */
#pragma once
#include "engine/layer.h"

#include <sys/stat.h>

#define LAYER_MAX_DEPTH 256 // of directories; what lies deeper is not read
#define LAYER_MAX_OPEN                                                                             \
    8192 // real directories on the way to a file; where many layers have a deep path, they are many
#define LAYER_OPAQUE "trusted.overlay.opaque"
#define LAYER_REDIRECT "trusted.overlay.redirect"

/* What a box wrote lies in this directory of a layer and of a scratch. */
#define LAYER_UPPER "upper"

/* Overlay's mark for "there is nothing here, whatever lies below". */
bool layer_is_whiteout(const struct stat *info);

int layer_check_cancelled(const atomic_bool *is_cancelled, struct error *err);

/* Files with several names: where each was met first. */
struct layer_links {
    struct layer_link *slots; // open addressing
    size_t count, capacity;
    size_t bytes;
    bool is_full; // no more are kept: such a file is one of its own under each name
};
/* The path kept for the file, or NULL after keeping this one, if there was room. The strings are the table's. */
const char *layer_links_meet(struct layer_links *links, const struct stat *info, const char *path);
void layer_links_clear(struct layer_links *links);

/* Names of a directory (without "." and ".."), added to a list; sorted and each once by layer_names_sort. */
struct layer_names {
    char **names;
    size_t count, capacity;
    size_t maximum; // 0: as many as there may be
};
int layer_names_read(struct layer_names *names, int dir_fd, struct error *err);
void layer_names_sort(struct layer_names *names);
void layer_names_clear(struct layer_names *names);

/* Copying */

struct layer_copy {
    int top_fd;       // where the copy grows
    char path[16384]; // of what is being copied, below the top; for hard links
    size_t length;
    struct layer_links links;
    uint64_t bytes; // that copied files take
    bool cannot_share;
    bool is_lowest; // merging: nothing lies below, so that nothing has to be hidden
    const atomic_bool *is_cancelled;
};
/* One more name at the end of the path: its old length, for layer_copy_leave; -1 with *err when it gets too long. */
ssize_t layer_copy_enter(struct layer_copy *copy, const char *name, struct error *err);
void layer_copy_leave(struct layer_copy *copy, ssize_t length);
/* An entry that is not a directory; what vanishes meanwhile is left out. The path has its name already. */
int layer_copy_entry(struct layer_copy *copy, int from_fd, const char *name,
                     const struct stat *info, int to_fd, struct error *err);
/* Owner, mode, attributes (of overlay's, those that mean something in a layer, if has_marks) and times. */
int layer_copy_attributes(int from_fd, int to_fd, const struct stat *info, bool has_marks,
                          struct error *err);
/* A tree with all marks of overlay, into a directory that exists. */
int layer_copy_tree(struct layer_copy *copy, int from_fd, int to_fd, struct error *err);
void layer_copy_clear(struct layer_copy *copy);
/* Layers by their open trees, top first, merged into an empty directory. */
int layer_merge_into(struct layer_copy *copy, const int *fds, size_t count, int to_fd,
                     struct error *err);

/* Stacks */

struct layer_place { // one real directory
    unsigned layer;
    int fd;
    dev_t device;
    ino_t inode;
};

/* A directory as a box sees it: the real ones it is merged of, top first. */
struct layer_dir {
    struct layer_place *places;
    size_t count;
    char *below; // path under which what lies below the stack would show through; NULL: it does not
};
void layer_dir_clear(struct layer_dir *dir);

/* The root of a stack of open directories, top first; takes none of them. */
int layer_dir_root(const int *fds, size_t count, struct layer_dir *out, struct error *err);

enum layer_entry_kind { ENTRY_NONE, ENTRY_FILE, ENTRY_DIR };

struct layer_entry {
    enum layer_entry_kind kind;
    bool is_hidden; // ENTRY_NONE: by a whiteout
    struct stat info;
    int parent_fd;        // the place it lies in, the parent's; its name there:
    char name[256];       // (another one below a renamed directory)
    struct layer_dir dir; // ENTRY_DIR
};
/* What `parent` has under the name. `roots` is the stack's, for renamed directories. */
int layer_lookup(const struct layer_dir *roots, const struct layer_dir *parent, const char *name,
                 struct layer_entry *out, struct error *err);
void layer_entry_clear(struct layer_entry *entry);

/* The directory layers lie in; made when `is_made`. -1 with ERROR_NOT_FOUND when there are none. */
int layer_open_all(struct volume *volume, bool is_made, struct error *err);
/* What tells the layers of one directory from those of another, in slots: a prefix to their names. */
#define LAYER_PREFIX_SIZE 48
int layer_prefix(int layers_fd, char prefix[LAYER_PREFIX_SIZE], struct error *err);

/* What the box of a scratch wrote, as layer_open gives it of a layer. */
int layer_open_scratch(struct volume *volume, const char *scratch, int *dir_fd, struct error *err);
