/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running burrow-archive, seen from the server: started, spoken with, ended. Calls block, at most task->timeout_ms for a
 * frame. Errors about the archive have the noun "archive".
 * Threads: one per object.
 */
#pragma once
#include "archive/archive.h"
#include "base/error.h"
#include "engine/files_wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct archiver {
    pid_t pid; // 0: none
    int sock;
    struct cancel *cancel; // the task's
    uint8_t *buffer;       // of the frame received last
    bool is_ready;         // it has said that it gave up its rights
};

/*
 * Starts the program in a mode ("unpack", "pack") with a copy of `archive_fd` that is open only as the mode needs it, from its
 * beginning. ERROR_UNAVAILABLE when it cannot be started. Nothing is said to it before it has given up its rights: whoever sends or
 * receives first waits for that, and gets ERROR_UNAVAILABLE when it cannot.
 */
int archiver_start(struct archiver *archiver, const char *mode, const struct archive_task *task,
                   int archive_fd, struct error *err);

/* The next frame, in archiver->buffer; an ERROR of the program becomes ours. */
int archiver_receive(struct archiver *archiver, struct files_frame *out, struct error *err);
/* Where it is no longer listened to, its reason is the error. */
int archiver_send(struct archiver *archiver, uint16_t type, const void *data, size_t length,
                  struct error *err);

/* What it says makes no sense. */
int archiver_lied(struct error *err);

/* Kills and buries it; NULL and what was never started are fine. */
void archiver_clear(struct archiver *archiver);
