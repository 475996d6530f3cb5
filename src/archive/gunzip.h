/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The archive's bytes as libarchive shall see them: gzip is undone here, because zlib checks sums and libarchive's own
 * reader of gzip does not. Anything else is passed on as it is. Part of burrow-archive.
 * Threads: one per object.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gunzip;

/* From fd's beginning, which is borrowed and must be seekable. */
int gunzip_open(int fd, struct gunzip **out, struct error *err);
bool gunzip_is_compressed(const struct gunzip *gunzip);
bool gunzip_is_zip(const struct gunzip *gunzip); // by its first bytes
bool gunzip_is_empty_zip(const struct gunzip *gunzip);

/* The next bytes, valid until the next call: their number, 0 at the end, -1 with *err. */
ssize_t gunzip_next(struct gunzip *gunzip, const void **bytes, struct error *err);
/* Only where it is not compressed; as lseek(2). */
int64_t gunzip_seek(struct gunzip *gunzip, int64_t offset, int whence);

void gunzip_free(struct gunzip *gunzip);
DEFINE_AUTOPTR(gunzip)
