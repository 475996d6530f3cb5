/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local directory and one of a sandbox, brought in step: what both were when they last were the same is remembered, and what has changed since on
 * one side goes to the other. Where both changed, the local one stays, and the sandbox's is kept beside it as NAME.sandbox-conflict, the next one as
 * NAME.sandbox-conflict-2; what was changed wins over what was removed. A directory goes only when nothing is in it any more: with something of the
 * user's own in it, it is changed. Everything from the sandbox is a stranger's: local_tree.h and tar_take.h keep it below the directory.
 * Threads: one thread.
 */
#pragma once
#include "cli/invocation.h"
#include "cli/local_tree.h"

#define SYNC_MOST_ENTRIES 100000
#define SYNC_MOST_NAMES ((uint64_t)16 << 20) // bytes of all paths together
#define SYNC_MOST_DIRTY 4096
#define SYNC_CONFLICT ".sandbox-conflict"
#define SYNC_MOST_CONFLICTS 1000 // of one path

struct sync {
    struct burrow_client *client;
    const char *sandbox, *path; // the sandbox's directory
    int root;                   // the local one
    const struct option_list *ignore;
    uint64_t most_bytes;
    bool has_git; // what is in '.git' goes over too
    bool is_quiet;
    struct local_tree base;     // as both sides were when they were the same
    struct local_tree dirty[2]; // paths alone: to be looked at here, and there
    bool is_whole[2];           // all are
    struct local_tree changing; // paths alone: files that changed while they were read
    struct local_tree left;     // paths alone: something else is in the way, and it was said
    uint64_t n_sent, n_taken, n_conflicts;
};
enum { SYNC_HERE, SYNC_THERE };

void sync_clear(struct sync *sync);
/* Whether neither side is to know of it. */
bool sync_ignores(const struct sync *sync, const char *path);
/* To be looked at by the next sync_run. */
void sync_touch(struct sync *sync, unsigned side, const char *path);
bool sync_is_due(const struct sync *sync);
/* Whether files are to be looked at again a moment later, when they may be calm; the next sync_run does so after sync_look_again. */
bool sync_waits(const struct sync *sync);
void sync_look_again(struct sync *sync);
/* Whether both are in step: nothing is due, nothing is waited for, and nothing had to be left alone. */
bool sync_is_done(const struct sync *sync);
/* Brings both in step; what it could not look at for a failure stays to be looked at. */
int sync_run(struct sync *sync, struct burrow_error *err);
