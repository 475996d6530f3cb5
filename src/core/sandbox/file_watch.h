/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching a directory of a sandbox: what comes, changes, moves and goes in it, as PID 1 of its box tells it. Costs a descriptor here and no
 * thread. Opening one counts as activity of the sandbox; having it open does not, so it keeps no sandbox from becoming idle. It ends
 * with the box or the directory.
 * Threads: one per object; file_watch_open blocks, the others do not.
 */
#pragma once
#include "core/sandbox/file_access.h"
#include "engine/files.h"

struct file_watch;

/*
 * is_recursive: also what is below, in directories that come later too. Whatever happens once it has returned is told. Fails as
 * file_access.h says; noun "file": ERROR_LIMIT, more directories than are watched at once, or more watchers than a sandbox may have.
 */
int file_watch_open(struct sandboxes *sandboxes, const struct actor *actor,
                    const struct file_place *place, bool is_recursive, struct file_watch **out,
                    struct error *err);
void file_watch_free(struct file_watch *watch);
DEFINE_AUTOPTR(file_watch)

/* Readable when there is something to take. */
int file_watch_fd(const struct file_watch *watch);

/*
 * Tells what has happened, a bounded part of it at a time, without waiting. 1: something; 0: nothing; -1: it is over: ERROR_NOT_FOUND, noun "file",
 * the directory is gone or moved away; ERROR_ENDED, noun "sandbox". Who does not take it in time is told FILES_OVERFLOW. A file that PID 1 writes beside
 * its place and puts there whole is created and changed in its place, whether or not there was one.
 */
int file_watch_take(struct file_watch *watch, files_on_event on_event, void *data,
                    struct error *err);
