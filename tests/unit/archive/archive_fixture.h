/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of archives: tar and zip files put together by hand, byte by byte, so that they can be as wrong as a test wants, and the
 * real burrow-archive (BURROW_ARCHIVE) made to unpack them. Needs root.
 */
#pragma once
#include "archive/archive.h"
#include "base/buffer.h"
#include "engine/files_wire.h"
#include "test.h"

#include <stdint.h>

/* One entry of a tar. Type 0: a file. */
struct tar_entry {
    const char *name;
    const char *link;
    const void *content;
    size_t length;
    uint64_t size; // announced; 0: length
    unsigned mode; // 0: 0644
    char type;
    bool is_numeric; // the size is written in binary, for those past 8 GiB
};
void tar_add(struct buffer *tar, const struct tar_entry *entry);
void tar_add_file(struct buffer *tar, const char *name, const char *content);
/* A pax header for the next entry: "key=value" with any bytes in the value. */
void tar_add_pax(struct buffer *tar, const char *key, const void *value, size_t length);
/* GNU: the next entry's name ('L') or link ('K'). */
void tar_add_gnu(struct buffer *tar, char type, const char *text);
void tar_end(struct buffer *tar);

/* One entry of a zip. */
struct zip_entry {
    const char *name;
    size_t name_length; // 0: of name
    const void *content;
    size_t length;
    uint32_t size; // announced; 0: length
    unsigned mode; // with its type; 0: no mode, as Windows has it
    bool is_deflated;
    bool has_descriptor; // sizes come behind the content
    bool is_zip64;       // sizes are in the extra field
    bool is_encrypted;
};
struct zip {
    struct buffer bytes, directory;
    unsigned count;
};
void zip_add(struct zip *zip, const struct zip_entry *entry);
void zip_end(struct zip *zip); // the whole is in zip->bytes
void zip_clear(struct zip *zip);
#define autozip __attribute__((cleanup(zip_clear))) struct zip

/* Replaces the bytes by their compressed form; with_sum false: the sum at the end is wrong. */
void gzip(struct buffer *bytes);

/* A file in memory with these bytes. */
int file_of(const struct buffer *bytes);

/* A task for the real program; skips the test where it cannot be run. */
struct archive_task plain_task(void);

#define UNPACKED_SHOWN 64 // bytes of a content
/* What came out: one line a record, "mode path -> target: content" with the content's first bytes, and the error. */
struct unpacked {
    struct buffer text;
    uint64_t records, bytes;
    int64_t last_mtime_ns;
    int result;
    struct error err;
};
void unpack(const struct archive_task *task, const struct buffer *archive, struct unpacked *out);
void unpacked_clear(struct unpacked *unpacked);
#define autounpacked __attribute__((cleanup(unpacked_clear))) struct unpacked
