/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves one conversation about files (engine/files_wire.h) inside the box, with a user's rights.
 * Blocks, so it runs on a thread of its own; slow disks never hold up PID 1's loop.
 * Threads: one per object; a conversation has a thread of its own.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct files_user {
    uint32_t uid, gid;
    const uint32_t *groups; // supplementary
    size_t n_groups;
    const char *base;   // absolute: what relative paths start from
    bool drops_set_ids; // of modes that are asked for: init/set_ids.h
};

/*
 * Serves until the other end is gone, then closes the socket, which it takes. Everything in `who`
 * is borrowed until it returns. The calling thread is changed for good: its file access is that of
 * `who`, for a uid other than 0 without capabilities, so it can only end afterwards. Other threads
 * keep their rights; umask and working directory, which they share, stay as they are.
 */
void files_serve(int sock, const struct files_user *who);

/* Answers every request with this sentence ("no user 'x' ...") until the other end is gone. Takes
 * the socket. */
void files_refuse(int sock, const char *sentence);
