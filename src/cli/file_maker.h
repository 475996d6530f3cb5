/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes many small new files: what making one costs is the kernel's, so a second thread makes them too, from the first full batch on and where
 * there is a second processor. Names are one part or more and were checked; a file is made in the directory that was entered last, which is
 * its parent. What stands there already is replaced once all of the new one is written, and never written through. Which of two files
 * of one name stays is not said. A file that fails leaves nothing of itself.
 * Threads: one per object.
 */
#pragma once
#include "base/auto.h"
#include "burrow.h"

#include <stdbool.h>
#include <stddef.h>

#define FILE_MAKER_MOST ((size_t)32 << 10) // bytes of a file that is small

struct file_maker;

struct file_maker *file_maker_new(void);
/* Files that were kept and not settled may be there or not; none is made any more. */
void file_maker_free(struct file_maker *maker);
DEFINE_AUTOPTR(file_maker)

/* `directory` is borrowed until the next one is entered. */
void file_maker_enter(struct file_maker *maker, int directory);
/*
 * Where the `length` bytes of a file belong (at most FILE_MAKER_MOST); it is made once file_maker_keep was called, and forgotten where something else
 * is called first. Fails with what an earlier file failed with.
 */
int file_maker_room(struct file_maker *maker, const char *path, unsigned mode, size_t length,
                    char **room, struct burrow_error *err);
void file_maker_keep(struct file_maker *maker);
/* All that were kept are there, or one of them failed. */
int file_maker_settle(struct file_maker *maker, struct burrow_error *err);

/* What something is called until it is whole and takes the place of another: a name that nobody else has. */
#define FILE_BESIDE 32
void file_name_beside(char out[FILE_BESIDE]);

/* A new file for writing: as `name`, where that is free (`beside` is ""), or as `beside`: rename it when it is whole. `mode` is cut by the process's
 * mask. -1 with errno. */
int file_open_new(int directory, const char *name, unsigned mode, char beside[FILE_BESIDE]);
/* Takes away what has this name, if it is still the file of `fd`. Keeps errno. */
void file_drop(int directory, const char *name, int fd);
