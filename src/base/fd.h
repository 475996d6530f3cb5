/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole reads and writes, and the few file idioms everything here is made of. Every fd made is close-on-exec.
 * Threads: any; who shares a descriptor shares its place in the file.
 */
#pragma once
#include "base/auto.h"
#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Writes all of it, or fails with errno set. */
int fd_write_all(int fd, const void *data, size_t length);

/* Writes it to this place in a file that has nothing there yet, but leaves out blocks of zeros, so that they are holes.
 * How many bytes were written, or -1 with errno. The length of the file may then be set by ftruncate. */
ssize_t fd_write_sparse(int fd, uint64_t at, const void *data, size_t length);

/* Reads until `length` bytes or end of file; the number read, or -1 with errno. */
ssize_t fd_read_full(int fd, void *data, size_t length);
/* The same from a place in a file, leaving its own where it is. */
ssize_t fd_read_full_at(int fd, void *data, size_t length, off_t at);

/* Writes `text` to an existing file (a kernel knob) in one write. dir_fd may be AT_FDCWD. */
int fd_write_knob(int dir_fd, const char *path, const char *text, struct error *err);

/* Reads a small file whole into `text` (NUL-terminated, trailing newline cut). */
int fd_read_knob(int dir_fd, const char *path, char *text, size_t size, struct error *err);
int fd_read_knob_number(int dir_fd, const char *path, uint64_t *out, struct error *err);

/* Adds the rest of the file to the buffer; ERROR_LIMIT past the buffer's maximum. */
int fd_read_buffer(int fd, struct buffer *buffer, struct error *err);

/* Makes every missing directory of an absolute or relative host path of our own. */
int fd_make_dirs(const char *path, mode_t mode, struct error *err);

/* Removes `name` below dir_fd and all in it, never following a link or crossing a mount. Missing is fine. */
int fd_remove_tree(int dir_fd, const char *name, struct error *err);

/* Replaces `name` under dir_fd by a file with this content: temporary file, fsync, rename. */
int fd_replace_file(int dir_fd, const char *name, const void *data, size_t length, mode_t mode,
                    struct error *err);
