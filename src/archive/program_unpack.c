/* SPDX-License-Identifier: Apache-2.0 */
/* burrow-archive unpack: libarchive's entries become records. Names are made plain or refused; what is no file, directory or link is refused. */
#include "archive/gunzip.h"
#include "archive/program.h"
#include "archive/records.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define LAYER_NOBODY 65534

struct source {
    struct gunzip *gunzip;
    struct error err; // why reading failed; kind ERROR_NONE: it did not
};

static la_ssize_t on_read(struct archive *archive, void *data, const void **bytes)
{
    struct source *source = data;
    ssize_t got = gunzip_next(source->gunzip, bytes, &source->err);
    if (got < 0)
        archive_set_error(archive, -1, "%s", source->err.text);
    return got < 0 ? ARCHIVE_FATAL : got;
}

static la_int64_t on_seek(struct archive *archive, void *data, la_int64_t offset, int whence)
{
    struct source *source = data;
    int64_t at = gunzip_seek(source->gunzip, offset, whence);
    return at < 0 ? ARCHIVE_FATAL : at;
}

/* What libarchive says went wrong, unless it was the reading below it. */
static int damaged(struct archive *archive, const struct source *source, struct error *err)
{
    const char *why = archive_error_string(archive);
    if (source->err.reason) {
        *err = source->err;
        return -1;
    }
    if (archive_errno(archive) == ENOMEM)
        return error_set(err, ERROR_LIMIT, "the archive needs too much memory");
    return error_set(err, ERROR_DAMAGED, "the archive is damaged: %.300s",
                     why ? why : "unreadable");
}

static int refuse(const char *name, const char *why, struct error *err)
{
    return error_set(err, ERROR_INVALID, "entry '%.300s' of the archive %s", name, why);
}

/* Writes `name` as a plain path: no empty or "." parts. "" for the directory itself. In a layer an absolute one starts there too. */
static int make_plain(const char *name, const char *entry, bool is_layer,
                      char out[FILES_MAX_RECORD_PATH], struct error *err)
{
    size_t used = 0;
    if (name[0] == '/' && !is_layer)
        return refuse(entry, "has an absolute path", err);
    for (const char *part = name; *part;) {
        size_t length = strcspn(part, "/");
        if (length == 2 && memcmp(part, "..", 2) == 0)
            return refuse(entry, "would lead out of the directory", err);
        if (length > 255 || used + length + 2 > FILES_MAX_RECORD_PATH)
            return refuse(entry, "has too long a name", err);
        if (length > 0 && !(length == 1 && part[0] == '.')) {
            if (used)
                out[used++] = '/';
            memcpy(out + used, part, length);
            used += length;
        }
        part += length + (part[length] == '/');
    }
    out[used] = '\0';
    return 0;
}

static int64_t time_of(struct archive_entry *entry)
{
    int64_t ns;
    int64_t seconds = archive_entry_mtime_is_set(entry) ? archive_entry_mtime(entry) : time(NULL);
    if (__builtin_mul_overflow(seconds, (int64_t)1000000000, &ns) ||
        __builtin_add_overflow(ns, (int64_t)(archive_entry_mtime_nsec(entry) % 1000000000), &ns))
        return 0;
    return ns;
}

struct names {
    char path[FILES_MAX_RECORD_PATH];
    char target[FILES_MAX_RECORD_PATH];
};

static int describe_link(struct archive_entry *entry, struct files_item *item, const char *name,
                         struct error *err)
{
    const char *target = archive_entry_symlink(entry);
    if (!target || !target[0] || strlen(target) >= FILES_MAX_PATH)
        return refuse(name, "is a link without a target that can be", err);
    item->mode = S_IFLNK | 0777;
    item->target = target;
    return 0;
}

static int describe_hard_link(const char *target, bool is_layer, struct files_item *item,
                              struct names *names, const char *name, struct error *err)
{
    if (make_plain(target, name, is_layer, names->target, err) < 0)
        return -1;
    if (!names->target[0])
        return refuse(name, "is a hard link to the directory itself", err);
    item->mode = S_IFREG | (item->mode & 07777);
    item->is_hard_link = true;
    item->target = names->target;
    return 0;
}

static int describe_file(const struct program *program, struct archive_entry *entry,
                         struct files_item *item, const char *name, struct error *err)
{
    int64_t size = archive_entry_size(entry);
    if (archive_entry_is_data_encrypted(entry))
        return refuse(name, "is encrypted", err);
    if (!archive_entry_size_is_set(entry) || size < 0)
        return refuse(name, "does not say how long it is", err);
    if ((uint64_t)size > program->max_bytes - program->total.bytes) {
        (void)error_set(err, ERROR_LIMIT, "the archive unpacks to more than %llu bytes",
                        (unsigned long long)program->max_bytes);
        err->sys = EFBIG; // other limits have none
        return -1;
    }
    item->size = (uint64_t)size;
    return 0;
}

/* Ids that no sandbox has are nobody's; that there were any is told at the end. */
static void describe_layer_owner(struct program *program, struct archive_entry *entry,
                                 struct files_item *item)
{
    int64_t uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);
    bool is_uid = uid >= 0 && uid <= FILES_MAX_ID, is_gid = gid >= 0 && gid <= FILES_MAX_ID;

    item->uid = is_uid ? (uint32_t)uid : LAYER_NOBODY;
    item->gid = is_gid ? (uint32_t)gid : LAYER_NOBODY;
    if (!is_uid || !is_gid)
        program->total.is_truncated = 1;
}

static int describe_owner(struct archive_entry *entry, struct files_item *item, const char *name,
                          struct error *err)
{
    int64_t uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);
    if (uid < 0 || uid > FILES_MAX_ID || gid < 0 || gid > FILES_MAX_ID)
        return refuse(name, "belongs to somebody that a sandbox does not have", err);
    item->uid = (uint32_t)uid;
    item->gid = (uint32_t)gid;
    return 0;
}

/* item->path is "" for an entry that stands for the directory itself. */
static int describe(struct program *program, struct archive_entry *entry, struct files_item *item,
                    struct names *names, struct error *err)
{
    const char *name = archive_entry_pathname(entry), *hard = archive_entry_hardlink(entry);
    if (!name || !name[0])
        return refuse("", "has no name that can be read", err);
    bool is_layer = program->format == ARCHIVE_LAYER;
    if (make_plain(name, name, is_layer, names->path, err) < 0)
        return -1;
    *item = (struct files_item){.path = names->path, .target = "", .links = 1};
    item->mtime_ns = time_of(entry);
    item->mode = (archive_entry_filetype(entry) & S_IFMT) | (archive_entry_perm(entry) & 07777);
    if (program->format == ARCHIVE_TAR_ZSTD && describe_owner(entry, item, name, err) < 0)
        return -1;
    if (is_layer)
        describe_layer_owner(program, entry, item);
    if (!names->path[0] && (hard || !S_ISDIR(item->mode)))
        return refuse(name, "has the name of the directory itself", err);
    if (hard)
        return describe_hard_link(hard, is_layer, item, names, name, err);
    switch (item->mode & S_IFMT) {
    case S_IFDIR:
        return 0;
    case S_IFREG:
        return describe_file(program, entry, item, name, err);
    case S_IFLNK:
        return describe_link(entry, item, name, err);
    default:
        return refuse(name, "is neither file, directory nor link", err);
    }
}

static bool has_content(const struct files_item *item)
{
    return S_ISREG(item->mode) && !item->is_hard_link;
}

/* The next piece of a content of which `left` bytes are to come, at most `room` of them: how many it were, or -1. Where none are left, it is seen
 * to that none come: libarchive checks the sum then. */
static la_ssize_t read_content(struct program *program, struct archive *archive,
                               struct source *source, uint64_t left, uint8_t *to, size_t room,
                               struct error *err)
{
    uint8_t beyond;
    size_t want = left < room ? (size_t)left : room;
    la_ssize_t got = archive_read_data(archive, left ? to : &beyond, left ? want : 1);

    if (got < 0)
        return damaged(archive, source, err);
    if ((uint64_t)got > left || (got == 0 && left))
        return error_set(err, ERROR_INVALID,
                         "the archive is damaged: an entry is not as long as it says");
    program->total.bytes += (uint64_t)got;
    return got;
}

/* A content in frames of its own. */
static int send_content(struct program *program, struct archive *archive, struct source *source,
                        uint64_t size, struct error *err)
{
    for (uint64_t left = size;;) {
        la_ssize_t got =
            read_content(program, archive, source, left, program->out, FILES_MAX_DATA, err);
        if (got <= 0)
            return (int)got;
        program_send(FILES_DATA, program->out, (size_t)got);
        left -= (uint64_t)got;
    }
}

/* The records that wait to be sent together. */
static void send_batch(struct program *program)
{
    if (program->batch.length)
        program_send(FILES_RECORDS, program->batch.room, program->batch.length);
    program->batch.length = 0;
}

static int batch_content(struct program *program, struct archive *archive, struct source *source,
                         const struct files_item *item, struct error *err)
{
    uint8_t *to = files_batch_begin(&program->batch, item);

    for (uint64_t left = item->size; has_content(item);) {
        la_ssize_t got = read_content(program, archive, source, left, to, (size_t)left, err);
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        to += got;
        left -= (uint64_t)got;
    }
    files_batch_keep(&program->batch, item);
    return 0;
}

static int send_record(struct program *program, struct archive *archive, struct source *source,
                       const struct files_item *item, struct error *err)
{
    bool is_small = files_batch_takes(item);

    if (!is_small || !files_batch_has_room(&program->batch, item))
        send_batch(program);
    if (is_small)
        return batch_content(program, archive, source, item, err);
    program_send(FILES_ITEM, program->out, files_item_write(item, program->out));
    return has_content(item) ? send_content(program, archive, source, item->size, err) : 0;
}

/* Other attributes are the machine's business where the image was made, or would change what is seen here. */
static void send_attributes(struct program *program, struct archive_entry *entry)
{
    size_t left = RECORDS_MAX_ATTRIBUTES, size = 0;
    const char *name = NULL;
    const void *value = NULL;

    (void)archive_entry_xattr_reset(entry);
    while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
        size_t length = name ? strlen(name) + 1 : 0;
        if (!length || !records_is_attribute(name) || size > FILES_MAX_DATA - length ||
            length + size > left)
            continue;
        send_batch(program); // they belong to what comes next
        memcpy(program->out, name, length);
        if (size)
            memcpy(program->out + length, value, size);
        program_send(RECORDS_ATTRIBUTE, program->out, length + size);
        left -= length + size;
    }
}

static bool is_left_out(struct archive_entry *entry)
{
    mode_t type = archive_entry_filetype(entry) & S_IFMT;
    return !archive_entry_hardlink(entry) &&
           (type == S_IFCHR || type == S_IFBLK || type == S_IFIFO || type == S_IFSOCK);
}

static int send_entry(struct program *program, struct archive *archive, struct source *source,
                      struct archive_entry *entry, struct names *names, struct error *err)
{
    struct files_item item = {.path = "", .target = ""};
    if (program->format == ARCHIVE_LAYER && is_left_out(entry)) {
        program->total.skipped++;
        return 0;
    }
    if (describe(program, entry, &item, names, err) < 0)
        return -1;
    if (!item.path[0])
        return 0;
    if (program->total.items == program->max_entries)
        return error_set(err, ERROR_LIMIT, "the archive has more than %llu entries",
                         (unsigned long long)program->max_entries);
    program->total.items++;
    if (program->format == ARCHIVE_LAYER && !item.is_hard_link)
        send_attributes(program, entry);
    return send_record(program, archive, source, &item, err);
}

static int send_entries(struct program *program, struct archive *archive, struct source *source,
                        struct error *err)
{
    struct names names = {.path = ""};
    for (uint64_t seen = 0;; seen++) {
        struct archive_entry *entry = NULL;
        int result = archive_read_next_header(archive, &entry);
        if (result == ARCHIVE_EOF)
            return 0;
        if (result != ARCHIVE_OK && result != ARCHIVE_WARN && seen == 0 && !source->err.reason)
            return error_set(err, ERROR_DAMAGED, "this is neither a tar nor a zip archive");
        if (result != ARCHIVE_OK && result != ARCHIVE_WARN)
            return damaged(archive, source, err);
        if (send_entry(program, archive, source, entry, &names, err) < 0)
            return -1;
    }
}

/* Behind the last entry of a tar, to where the compressed data has its sum. */
static int read_rest(struct program *program, struct source *source, struct error *err)
{
    const void *bytes;
    if (!gunzip_is_compressed(source->gunzip))
        return 0;
    for (uint64_t more = 0; more <= program->max_bytes;) {
        ssize_t got = gunzip_next(source->gunzip, &bytes, err);
        if (got <= 0)
            return (int)got;
        more += (uint64_t)got;
    }
    return error_set(err, ERROR_LIMIT, "the archive goes on long after its last entry");
}

static int open_reader(struct program *program, struct archive *archive, struct source *source,
                       struct error *err)
{
    bool is_zip = program->format == ARCHIVE_ZIP ||
                  (program->format == ARCHIVE_ANY && gunzip_is_zip(source->gunzip));
    // a zip is what its directory at the end says, as all other readers of zip see it
    int result = is_zip ? archive_read_support_format_zip_seekable(archive)
                        : archive_read_support_format_tar(archive);
    bool is_zstd = program->format == ARCHIVE_TAR_ZSTD || program->format == ARCHIVE_ZSTD ||
                   program->format == ARCHIVE_LAYER;
    if (is_zstd && result == ARCHIVE_OK)
        result = archive_read_support_filter_zstd(archive);
    if (result != ARCHIVE_OK || archive_read_set_read_callback(archive, on_read) != ARCHIVE_OK ||
        archive_read_set_seek_callback(archive, on_seek) != ARCHIVE_OK ||
        archive_read_set_callback_data(archive, source) != ARCHIVE_OK)
        return error_set(err, ERROR_SYSTEM, "libarchive reads neither tar nor zip");
    if (archive_read_open1(archive) != ARCHIVE_OK)
        return source->err.reason
                   ? damaged(archive, source, err)
                   : error_set(err, ERROR_DAMAGED, "this is neither a tar nor a zip archive");
    return 0;
}

int program_unpack(struct program *program, struct error *err)
{
    autoptr(gunzip) gunzip = NULL;
    struct source source = {0};
    program->batch.room = program->records;
    if (gunzip_open(PROGRAM_ARCHIVE, &gunzip, err) < 0)
        return -1;
    source.gunzip = gunzip;
    if (gunzip_is_empty_zip(gunzip) &&
        (program->format == ARCHIVE_ANY || program->format == ARCHIVE_ZIP))
        return 0; // libarchive does not take it for one
    struct archive *archive = archive_read_new();
    if (!archive)
        return error_set(err, ERROR_LIMIT, "not enough memory to read the archive");
    int result = open_reader(program, archive, &source, err);
    if (result == 0)
        result = send_entries(program, archive, &source, err);
    send_batch(program); // also where the next could not be read
    if (result == 0)
        result = read_rest(program, &source, err);
    (void)archive_read_free(archive);
    return result;
}
