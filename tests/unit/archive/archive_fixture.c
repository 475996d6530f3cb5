/* SPDX-License-Identifier: Apache-2.0 */
/* Archives made by hand; see archive_fixture.h. */
#include "archive_fixture.h"
#include "archive/unpacker.h"
#include "base/fd.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#define BLOCK 512

static void add(struct buffer *to, const void *bytes, size_t length)
{
    struct error err = {0};
    CHECK_OK(buffer_add(to, bytes, length, &err), err);
}

static void add_zeros(struct buffer *to, size_t length)
{
    static const char zeros[4096];
    while (length > 0) {
        size_t part = length < sizeof zeros ? length : sizeof zeros;
        add(to, zeros, part);
        length -= part;
    }
}

static void put(char *field, size_t size, const char *text)
{
    size_t length = strlen(text);
    memcpy(field, text, length < size ? length : size);
}

static void put_size(char *field, const struct tar_entry *entry)
{
    uint64_t size = entry->size ? entry->size : entry->length;
    if (!entry->is_numeric) {
        (void)snprintf(field, 12, "%011llo", (unsigned long long)size);
        return;
    }
    field[0] = (char)0x80;
    for (int i = 0; i < 8; i++)
        field[4 + i] = (char)(size >> (56 - 8 * i));
}

void tar_add(struct buffer *tar, const struct tar_entry *entry)
{
    char header[BLOCK] = {0};
    unsigned sum = 0;
    put(header, 100, entry->name);
    (void)snprintf(header + 100, 8, "%07o", entry->mode ? entry->mode : 0644);
    (void)snprintf(header + 108, 8, "%07o", 1234);
    (void)snprintf(header + 116, 8, "%07o", 1234);
    put_size(header + 124, entry);
    (void)snprintf(header + 136, 12, "%011o", 1000000000);
    header[156] = entry->type ? entry->type : '0';
    if (entry->link)
        put(header + 157, 100, entry->link);
    memcpy(header + 257, "ustar\00000", 8);
    memset(header + 148, ' ', 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)header[i];
    (void)snprintf(header + 148, 8, "%06o", sum);
    add(tar, header, BLOCK);
    if (entry->length) {
        add(tar, entry->content, entry->length);
        add_zeros(tar, (BLOCK - entry->length % BLOCK) % BLOCK);
    }
}

void tar_add_file(struct buffer *tar, const char *name, const char *content)
{
    struct tar_entry entry = {.name = name, .content = content, .length = strlen(content)};
    tar_add(tar, &entry);
}

void tar_add_pax(struct buffer *tar, const char *key, const void *value, size_t length)
{
    autobuffer line = {0};
    char start[64];
    size_t total = strlen(key) + length + 3; // space, equals sign, newline
    size_t digits = 1;
    while ((size_t)snprintf(NULL, 0, "%zu", total + digits) != digits)
        digits++;
    (void)snprintf(start, sizeof start, "%zu %s=", total + digits, key);
    add(&line, start, strlen(start));
    add(&line, value, length);
    add(&line, "\n", 1);
    struct tar_entry entry = {
        .name = "PaxHeader", .type = 'x', .content = line.data, .length = line.length};
    tar_add(tar, &entry);
}

void tar_add_gnu(struct buffer *tar, char type, const char *text)
{
    struct tar_entry entry = {
        .name = "././@LongLink", .type = type, .content = text, .length = strlen(text) + 1};
    tar_add(tar, &entry);
}

void tar_end(struct buffer *tar)
{
    add_zeros(tar, 2 * BLOCK);
}

static void add16(struct buffer *to, unsigned value)
{
    uint8_t bytes[] = {(uint8_t)value, (uint8_t)(value >> 8)};
    add(to, bytes, sizeof bytes);
}

static void add32(struct buffer *to, uint32_t value)
{
    add16(to, value & 0xffff);
    add16(to, value >> 16);
}

static void add64(struct buffer *to, uint64_t value)
{
    add32(to, (uint32_t)value);
    add32(to, (uint32_t)(value >> 32));
}

/* Raw deflate, or gzip with its header and sum. */
static void compress_into(struct buffer *to, const void *bytes, size_t length, int window)
{
    z_stream stream = {0};
    size_t room = length + length / 100 + 1024;
    unsigned char *out = malloc(room);
    CHECK(out && deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    stream.next_in = (unsigned char *)bytes;
    stream.avail_in = (unsigned)length;
    stream.next_out = out;
    stream.avail_out = (unsigned)room;
    CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    add(to, out, stream.total_out);
    (void)deflateEnd(&stream);
    free(out);
}

void gzip(struct buffer *bytes)
{
    struct buffer packed = {0};
    compress_into(&packed, bytes->data, bytes->length, 16 + MAX_WBITS);
    buffer_clear(bytes);
    *bytes = packed;
}

struct zip_sizes {
    uint32_t sum;
    uint64_t packed, plain;
};

/* What both headers of an entry have in common: version to sizes of name and extra. */
static void add_zip_fields(struct buffer *to, const struct zip_entry *entry, size_t name_length,
                           const struct zip_sizes *sizes)
{
    unsigned flags = (entry->has_descriptor ? 8u : 0) | (entry->is_encrypted ? 1u : 0);
    add16(to, entry->is_zip64 ? 45 : 20);
    add16(to, flags);
    add16(to, entry->is_deflated ? 8 : 0);
    add16(to, 0);
    add16(to, 0x21); // 1980-01-01
    add32(to, sizes->sum);
    add32(to, entry->is_zip64 ? UINT32_MAX : (uint32_t)sizes->packed);
    add32(to, entry->is_zip64 ? UINT32_MAX : (uint32_t)sizes->plain);
    add16(to, (unsigned)name_length);
    add16(to, entry->is_zip64 ? 20 : 0);
}

static void add_zip_extra(struct buffer *to, const struct zip_entry *entry,
                          const struct zip_sizes *sizes)
{
    if (!entry->is_zip64)
        return;
    add16(to, 1);
    add16(to, 16);
    add64(to, sizes->plain);
    add64(to, sizes->packed);
}

void zip_add(struct zip *zip, const struct zip_entry *entry)
{
    autobuffer content = {0};
    size_t name_length = entry->name_length ? entry->name_length : strlen(entry->name);
    uint32_t offset = (uint32_t)zip->bytes.length;
    if (entry->is_deflated)
        compress_into(&content, entry->content, entry->length, -MAX_WBITS);
    else if (entry->length)
        add(&content, entry->content, entry->length);
    struct zip_sizes sizes = {
        .sum = (uint32_t)crc32(0, entry->length ? entry->content : (const void *)"",
                               (unsigned)entry->length),
        .packed = content.length,
        .plain = entry->size ? entry->size : entry->length,
    };
    struct zip_sizes none = {0};

    add32(&zip->bytes, 0x04034b50);
    add_zip_fields(&zip->bytes, entry, name_length, entry->has_descriptor ? &none : &sizes);
    add(&zip->bytes, entry->name, name_length);
    add_zip_extra(&zip->bytes, entry, &sizes);
    add(&zip->bytes, content.data ? content.data : "", content.length);
    if (entry->has_descriptor) {
        add32(&zip->bytes, 0x08074b50);
        add32(&zip->bytes, sizes.sum);
        add32(&zip->bytes, (uint32_t)sizes.packed);
        add32(&zip->bytes, (uint32_t)sizes.plain);
    }
    add32(&zip->directory, 0x02014b50);
    add16(&zip->directory, entry->mode ? 3u << 8 | 30 : 20); // made on Unix
    add_zip_fields(&zip->directory, entry, name_length, &sizes);
    add16(&zip->directory, 0);
    add16(&zip->directory, 0);
    add16(&zip->directory, 0);
    add32(&zip->directory, (uint32_t)entry->mode << 16);
    add32(&zip->directory, offset);
    add(&zip->directory, entry->name, name_length);
    add_zip_extra(&zip->directory, entry, &sizes);
    zip->count++;
}

void zip_end(struct zip *zip)
{
    uint32_t offset = (uint32_t)zip->bytes.length;
    if (zip->directory.length)
        add(&zip->bytes, zip->directory.data, zip->directory.length);
    add32(&zip->bytes, 0x06054b50);
    add32(&zip->bytes, 0);
    add16(&zip->bytes, zip->count);
    add16(&zip->bytes, zip->count);
    add32(&zip->bytes, (uint32_t)zip->directory.length);
    add32(&zip->bytes, offset);
    add16(&zip->bytes, 0);
}

void zip_clear(struct zip *zip)
{
    buffer_clear(&zip->bytes);
    buffer_clear(&zip->directory);
}

int file_of(const struct buffer *bytes)
{
    int fd = memfd_create("archive", MFD_CLOEXEC);
    CHECK(fd >= 0 && (!bytes->length || fd_write_all(fd, bytes->data, bytes->length) == 0));
    return fd;
}

struct archive_task plain_task(void)
{
    const char *program = getenv("BURROW_ARCHIVE");
    if (geteuid() != 0)
        SKIP("needs root");
    if (!program)
        SKIP("BURROW_ARCHIVE names no burrow-archive");
    return (struct archive_task){
        .program = program,
        .max_bytes = 16 << 20,
        .max_entries = 1000,
        .timeout_ms = 60000,
    };
}

static int take_record(struct unpacker *unpacker, const struct files_item *item,
                       struct unpacked *out)
{
    char content[FILES_MAX_DATA], shown[UNPACKED_SHOWN + 1] = "";
    struct error ignored;
    size_t used = 0;
    char *path = strdup(item->path), *target = strdup(item->target);
    out->records++;
    out->last_mtime_ns = item->mtime_ns;
    uint64_t left = item->is_hard_link ? 0 : item->size;
    ssize_t got = 0;
    while (left > 0 && (got = unpacker_fill(unpacker, content, sizeof content, &out->err)) > 0) {
        for (ssize_t i = 0; i < got && used < UNPACKED_SHOWN; i++)
            shown[used++] = content[i];
        left -= (uint64_t)got;
        out->bytes += (uint64_t)got;
    }
    (void)buffer_addf(&out->text, &ignored, "%06o %s%s%s%s%s%s\n", item->mode, path,
                      item->is_hard_link ? " => "
                      : *target          ? " -> "
                                         : "",
                      target, used ? ": " : "", shown, left ? " (cut)" : "");
    free(path);
    free(target);
    return got < 0 ? -1 : 0;
}

void unpack(const struct archive_task *task, const struct buffer *archive, struct unpacked *out)
{
    autoptr(unpacker) unpacker = NULL;
    autofd fd = file_of(archive);
    struct files_item item;
    *out = (struct unpacked){.result = -1};
    buffer_init(&out->text, 1 << 20); // what is longer is cut
    if (unpacker_open(task, fd, &unpacker, &out->err) < 0)
        return;
    for (;;) {
        int got = unpacker_next(unpacker, &item, &out->err);
        if (got > 0 && take_record(unpacker, &item, out) == 0)
            continue;
        out->result = got == 0 ? 0 : -1;
        return;
    }
}

void unpacked_clear(struct unpacked *unpacked)
{
    buffer_clear(&unpacked->text);
}
