/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work on a sandbox's files that is under way: a conversation with its box, or a walk through its layers. It ends when its time is up or
 * nobody waits for its result any more; when its box ends, the conversation does.
 * Threads: one per object.
 */
#pragma once
#include "core/sandbox/file_impl.h"

struct sandbox; // sandbox_object.h

struct file_work {
    int conversation;        // ours; -1: none
    struct sandbox *sandbox; // whose box has more CPU for it; NULL: none
    uint64_t until_ms;       // of the monotonic clock
    int64_t within_ms;
    struct cancel *cancel; // the actor's; NULL: none
};

/* The limit of a sandbox's CPU as its record says, should an earlier server have left it with more. Under box_lock, or before anybody
 * else knows the sandbox. */
void file_work_restore_cpu(struct sandbox *sandbox);

/* Without a conversation. */
void file_work_init(struct file_work *work, const struct sandboxes *sandboxes,
                    const struct actor *actor);
/* lookup_files, with its timeouts. */
int file_work_begin(struct file_work *work, struct sandboxes *sandboxes, const struct actor *actor,
                    const char *sandbox_id, struct error *err);
/* lookup_files_as, likewise. */
int file_work_begin_as(struct file_work *work, struct sandboxes *sandboxes,
                       const struct actor *actor, const char *sandbox_id, const char *user,
                       struct error *err);
void file_work_clear(struct file_work *work);
#define autofilework __attribute__((cleanup(file_work_clear))) struct file_work

/* file_failed, where it was not given up meanwhile. */
int file_work_failed(const struct file_work *work, struct sandboxes *sandboxes,
                     const char *sandbox_id, struct error *err);

/* Between two steps. ERROR_CANCELLED, or ERROR_SLOW_SANDBOX; both noun "file". */
int file_work_check(const struct file_work *work, struct error *err);
