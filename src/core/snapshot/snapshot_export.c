/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots to archives; see snapshot_archive.h. The layers are walked twice: first for digests and names, which stand at the beginning of the
 * archive, then for contents. They never change, so both walks see the same.
 */
#include "archive/writer.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/sandbox/file.h"
#include "core/sandbox/file_impl.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/temporary.h"
#include "core/runtime/runtime.h"
#include "core/sandbox/pool.h"
#include "core/snapshot/snapshot_impl.h"
#include "core/layer/stack.h"
#include "core/snapshot/digest.h"
#include "core/snapshot/snapshot_archive.h"
#include "core/snapshot/archive_text.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define PIECE 65536

uint64_t snapshot_archive_room(struct snapshots *snapshots)
{
    struct statvfs info;
    return statvfs(snapshots->settings->data_dir, &info) < 0
               ? 0
               : (uint64_t)info.f_bavail * info.f_frsize / 2;
}

struct exporting {
    struct snapshots *snapshots;
    const struct snapshot_record *record;
    struct stack stack;
    struct buffer changes; // lines about what is not there any more
    struct buffer checksums;
    uint64_t maximum, files, bytes;
    struct writer *writer;
    struct cancel *cancel; // the actor's
};

static void exporting_clear(struct exporting *exporting)
{
    stack_clear(&exporting->stack);
    buffer_clear(&exporting->changes);
    buffer_clear(&exporting->checksums);
    writer_free(exporting->writer);
}

static int walk(struct exporting *exporting, layer_on_change on_change, struct error *err)
{
    const struct layer_diff_options options = {0};
    struct layer_diff_total total = {0};

    if (layer_diff(exporting->snapshots->volume, &exporting->stack.base, &exporting->stack.full,
                   &options, on_change, exporting, &total, err) < 0)
        return -1;
    return total.n_deep ? error_set(err, ERROR_LIMIT, "directories are nested too deep to be moved")
                        : 0;
}

static char *path_in_archive(const char *path)
{
    return xasprintf(SNAPSHOT_FILES "/%s", path);
}

// ---- names and sums ----

static int add_change(void *data, const struct layer_change *change, struct error *err)
{
    struct exporting *exporting = data;
    char checksum[DIGEST_TEXT];

    if ((change->kind == LAYER_REMOVED || change->is_type_changed) &&
        about_add(&exporting->changes, "removed", change->item.path, err) < 0)
        return -1;
    if (change->kind == LAYER_REMOVED || !S_ISREG(change->item.mode))
        return 0;
    exporting->files++;
    if (change->item.is_hard_link)
        return 0;
    if (change->item.size > exporting->maximum - exporting->bytes)
        return error_set(err, ERROR_LIMIT, "its files have more than %" PRIu64 " bytes",
                         exporting->maximum);
    exporting->bytes += change->item.size;
    autofree char *path = path_in_archive(change->item.path);
    return digest_file(change->fd, checksum, err) < 0
               ? -1
               : checksums_add(&exporting->checksums, checksum, path, err);
}

static int describe_numbers(struct exporting *exporting, struct buffer *about, struct error *err)
{
    char created[24], files[24], bytes[24];

    (void)snprintf(created, sizeof created, "%" PRId64, exporting->record->created_at);
    (void)snprintf(files, sizeof files, "%" PRIu64, exporting->files);
    (void)snprintf(bytes, sizeof bytes, "%" PRIu64, exporting->bytes);
    if (about_add(about, "created", created, err) < 0 || about_add(about, "files", files, err) < 0)
        return -1;
    return about_add(about, "bytes", bytes, err);
}

static int describe_env(const struct snapshot_record *record, struct buffer *about,
                        struct error *err)
{
    autostrings env = {0};

    strings_unpack(record->env, &env);
    for (size_t i = 0; i < env.count; i++) {
        if (about_add(about, "env", env.items[i], err) < 0)
            return -1;
    }
    return 0;
}

static int describe(struct exporting *exporting, struct buffer *about, struct error *err)
{
    const struct snapshot_record *record = exporting->record;
    char digest[RUNTIME_DIGEST];

    if (runtime_digest(exporting->snapshots->runtimes, record->runtime, digest, err) < 0)
        return -1;
    const struct {
        const char *name, *value;
    } lines[] = {
        {"name", record->name},
        {"tag", record->tag},
        {"description", record->description},
        {"message", record->message},
        {"metadata", record->metadata},
        {"runtime", record->runtime},
        {"runtime-hash", digest},
    };
    if (about_begin(about, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        if (about_add(about, lines[i].name, lines[i].value, err) < 0)
            return -1;
    }
    if (describe_numbers(exporting, about, err) < 0 || describe_env(record, about, err) < 0)
        return -1;
    return exporting->changes.length ? buffer_add_text(about, exporting->changes.data, err) : 0;
}

// ---- contents ----

static int write_text(struct exporting *exporting, const char *name, const struct buffer *text,
                      struct error *err)
{
    const struct files_item item = {
        .path = name,
        .target = "",
        .mode = S_IFREG | 0644,
        .size = text->length,
        .mtime_ns = exporting->record->created_at * 1000000,
        .links = 1,
    };
    if (writer_item(exporting->writer, &item, err) < 0)
        return -1;
    return text->length ? writer_data(exporting->writer, text->data, text->length, err) : 0;
}

static int write_content(struct exporting *exporting, const struct layer_change *change,
                         struct error *err)
{
    char piece[PIECE];

    for (uint64_t left = change->item.size; left;) {
        ssize_t got =
            fd_read_full(change->fd, piece, left < sizeof piece ? (size_t)left : sizeof piece);
        if (got <= 0)
            return error_sys_code(err, got < 0 ? errno : EIO, "read '%.300s' of the snapshot",
                                  change->item.path);
        if (writer_data(exporting->writer, piece, (size_t)got, err) < 0)
            return -1;
        left -= (uint64_t)got;
    }
    return 0;
}

static int write_change(void *data, const struct layer_change *change, struct error *err)
{
    struct exporting *exporting = data;
    struct files_item item = change->item;

    if (change->kind == LAYER_REMOVED)
        return 0;
    autofree char *path = path_in_archive(item.path);
    autofree char *target = item.is_hard_link ? path_in_archive(item.target) : NULL;
    item.path = path;
    if (target) {
        item.target = target;
        item.size = 0;
    }
    if (writer_item(exporting->writer, &item, err) < 0)
        return -1;
    return S_ISREG(item.mode) && !item.is_hard_link ? write_content(exporting, change, err) : 0;
}

/* Of the first text too; its line is the first. */
static int digest_about(struct exporting *exporting, const struct buffer *about,
                        struct buffer *checksums, struct error *err)
{
    char text[DIGEST_TEXT];

    digest_of(about->data, about->length, text);
    if (checksums_add(checksums, text, SNAPSHOT_ABOUT, err) < 0)
        return -1;
    return exporting->checksums.length
               ? buffer_add(checksums, exporting->checksums.data, exporting->checksums.length, err)
               : 0;
}

static int write_all(struct exporting *exporting, const struct buffer *about,
                     const struct archive_task *task, int fd, struct error *err)
{
    autobuffer checksums = {.maximum = SNAPSHOT_CHECKSUMS_MAX};

    if (digest_about(exporting, about, &checksums, err) < 0 ||
        writer_open(task, fd, &exporting->writer, err) < 0 ||
        write_text(exporting, SNAPSHOT_ABOUT, about, err) < 0 ||
        write_text(exporting, SNAPSHOT_CHECKSUMS, &checksums, err) < 0 ||
        walk(exporting, write_change, err) < 0)
        return -1;
    return writer_finish(exporting->writer, err);
}

static int export_to(struct exporting *exporting, uint64_t maximum, int fd, struct error *err)
{
    const struct snapshot_record *record = exporting->record;
    autobuffer about = {.maximum = SNAPSHOT_ABOUT_MAX};
    struct archive_task task;
    char program[PATH_MAX];

    exporting->maximum = maximum;
    buffer_init(&exporting->changes, SNAPSHOT_ABOUT_MAX);
    buffer_init(&exporting->checksums, SNAPSHOT_CHECKSUMS_MAX);
    if (file_archive_task(exporting->snapshots->sandboxes, ARCHIVE_TAR_ZSTD, maximum, program,
                          &task, err) < 0)
        return -1;
    task.cancel = exporting->cancel;
    autofree char *additions = additions_of(record->dependencies, record->packages);
    if (stack_open(exporting->snapshots->runtimes, record->runtime, additions, record->layers,
                   &exporting->stack, err) < 0)
        return -1;
    if (additions) { // its packages go along: whoever imports it has the plain runtime
        exporting->stack.base.base++;
        exporting->stack.base.n_base--;
    }
    if (walk(exporting, add_change, err) < 0 || describe(exporting, &about, err) < 0 ||
        write_all(exporting, &about, &task, fd, err) < 0)
        return -1;
    return 0;
}

static int failed(const struct snapshot_record *record, struct error *err)
{
    if (error_is(err, ERROR_LIMIT))
        (void)error_restate(err, ERROR_TOO_LARGE, "snapshot");
    return error_wrap(err, "export snapshot '%s'", record->id);
}

int snapshot_export(struct snapshots *snapshots, const struct actor *actor, const char *id,
                    uint64_t maximum, struct temporary **out, struct error *err)
{
    __attribute__((cleanup(exporting_clear))) struct exporting exporting = {.snapshots = snapshots};
    autopin pin = {.layers = snapshots->layers};
    autosnapshot record = {0};
    autoptr(temporary) archive = NULL;

    if (snapshot_find_ready(snapshots, actor, id, &record, err) < 0 ||
        snapshot_pin(snapshots, &record, &pin, err) < 0)
        return -1;
    exporting.record = &record;
    exporting.cancel = actor->cancel;
    if (temporary_new(snapshots->sandboxes->temporaries, actor, &archive, err) < 0)
        return -1;
    if (export_to(&exporting, maximum, archive->fd, err) < 0 || temporary_settle(archive, err) < 0)
        return failed(&record, err);
    *out = take(archive);
    return 0;
}
