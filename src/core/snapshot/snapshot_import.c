/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots from archives; see snapshot_archive.h. burrow-archive takes the archive apart, and a box of its own over the same runtime
 * takes the files in; between the two the server reads the two strings and compares digests.
 */
#include "archive/unpacker.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "core/account/quota.h"
#include "core/sandbox/file_impl.h"
#include "core/layer/layers.h"
#include "core/runtime/runtime.h"
#include "core/snapshot/snapshot_impl.h"
#include "core/snapshot/digest.h"
#include "core/snapshot/snapshot_archive.h"
#include "core/snapshot/archive_text.h"
#include "core/snapshot/build_box.h"
#include "engine/files.h"
#include "store/checkpoints.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#define PREFIX SNAPSHOT_FILES "/"
#define MODES_MAX ((size_t)16 << 20)
#define DIRS_MAX ((size_t)64 << 20)
#define USUAL_RATIO 16
#define ROOM_MIN ((uint64_t)1 << 20)
#define IMPORT_MODE 0777u // what files_import sets by itself
#define IMPORT_DIR_MODE 01777u

/* How much may come out of an archive, and what to say of more. */
struct import_room {
    uint64_t bytes;
    enum error_reason reason;
    const char *noun, *why;
};

struct importing {
    struct snapshots *snapshots;
    struct import_room room;
    struct unpacker *unpacker;
    struct strings about;
    struct buffer checksum_text;
    struct checksums checksums;
    struct digest checksum; // of the file under way
    uint64_t left;          // of its bytes
    char *path;             // its path in the archive
    struct buffer modes;    // packed strings: mode and path of what gets its mode at the end
    struct strings dirs;    // records of directories, which get their times at the end
    size_t dirs_bytes;      // that these take
    size_t n_dirs_left;
    struct build_box build_box;
};

static void importing_clear(struct importing *importing)
{
    unpacker_free(importing->unpacker);
    strings_clear(&importing->about);
    buffer_clear(&importing->checksum_text);
    checksums_clear(&importing->checksums);
    strings_clear(&importing->dirs);
    digest_clear(&importing->checksum);
    free(importing->path);
    buffer_clear(&importing->modes);
    build_box_close(&importing->build_box);
}

static int damaged(struct error *err, const char *why)
{
    return error_refuse(err, ERROR_DAMAGED, "archive", "the archive is damaged: %s", why);
}

static int no_export(struct error *err)
{
    return error_refuse(err, ERROR_DAMAGED, "archive",
                        "this is no export of a snapshot ('burrow snapshot export' makes them), or "
                        "its beginning is damaged");
}

static int refused(struct error *err, const char *path, const char *why)
{
    return error_refuse(err, ERROR_REFUSED, "archive", "entry '%.300s' of the archive %s", path,
                        why);
}

// ---- the strings ----

static int read_entry(struct importing *importing, const char *name, struct buffer *out,
                      struct error *err)
{
    struct files_item item;
    int more = unpacker_next(importing->unpacker, &item, err);

    if (more < 0)
        return -1;
    if (more == 0 || strcmp(item.path, name) != 0 || !S_ISREG(item.mode) || item.is_hard_link ||
        item.size > out->maximum)
        return no_export(err);
    for (uint64_t left = item.size; left;) {
        char piece[4096];
        ssize_t got = unpacker_fill(importing->unpacker, piece,
                                    left < sizeof piece ? (size_t)left : sizeof piece, err);
        if (got < 0 || buffer_add(out, piece, (size_t)got, err) < 0)
            return -1;
        left -= (uint64_t)got;
    }
    return 0;
}

static int check_values(const struct strings *about, struct error *err)
{
    static const struct {
        const char *name;
        size_t maximum; // bytes, as other ways to make one have it
    } values[] = {{"name", 128},     {"tag", 128},           {"description", 4096},
                  {"message", 4096}, {"metadata", 64 << 10}, {"runtime", 256},
                  {"env", 1 << 20}};
    const char *value;

    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        for (size_t at = 1; (value = about_next(about, values[i].name, &at));) {
            bool is_env = strcmp(values[i].name, "env") == 0;
            if (strlen(value) > values[i].maximum || !utf8_is_valid(value, strlen(value)) ||
                (is_env && (!strchr(value, '=') || *value == '=')))
                return damaged(err, "what it says of itself makes no sense");
        }
    }
    return about_get(about, "runtime") && about_get(about, "name")
               ? 0
               : damaged(err, "it does not say what its snapshot is");
}

static int check_about(struct importing *importing, const struct buffer *about, struct error *err)
{
    char text[DIGEST_TEXT];

    digest_of(about->data, about->length, text);
    return checksums_use(&importing->checksums, text, SNAPSHOT_ABOUT)
               ? 0
               : damaged(err, "'" SNAPSHOT_ABOUT "' does not have the sum it should have");
}

static int read_strings(struct importing *importing, struct error *err)
{
    autobuffer about = {.maximum = SNAPSHOT_ABOUT_MAX};

    if (read_entry(importing, SNAPSHOT_ABOUT, &about, err) < 0 ||
        about_read(&about, &importing->about, err) < 0 ||
        check_values(&importing->about, err) < 0 ||
        read_entry(importing, SNAPSHOT_CHECKSUMS, &importing->checksum_text, err) < 0 ||
        checksums_read(&importing->checksum_text, &importing->checksums, err) < 0)
        return -1;
    return check_about(importing, &about, err);
}

static int no_runtime(const char *name, struct error *err)
{
    return error_refuse(
        err, ERROR_NOT_FOUND, "runtime",
        "the snapshot was made on runtime '%.100s', which this machine does not have", name);
}

/* The box is there already, so the runtime is. */
static int check_runtime(struct importing *importing, bool is_forced, struct error *err)
{
    const char *name = about_get(&importing->about, "runtime");
    const char *made_on = about_get(&importing->about, "runtime-hash");
    char digest[RUNTIME_DIGEST];

    if (is_forced || !made_on)
        return 0;
    if (runtime_digest(importing->snapshots->runtimes, name, digest, err) < 0)
        return -1;
    if (strcmp(digest, made_on) == 0)
        return 0;
    return error_refuse(
        err, ERROR_DIFFERS, "runtime",
        "the snapshot was made on another build of runtime '%s'; force it to be used on this one",
        name);
}

// ---- the files, on their way into the box ----

static int check_digest(struct importing *importing, struct error *err)
{
    char checksum[DIGEST_TEXT];

    digest_end(&importing->checksum, checksum);
    if (checksums_use(&importing->checksums, checksum, importing->path))
        return 0;
    return error_refuse(err, ERROR_DAMAGED, "archive",
                        "the archive is damaged: '%.300s' does not have the sum it should have",
                        importing->path);
}

/* Set-id bits, and directories closed to their owner, come when everything is in. */
static int add_mode(struct importing *importing, const struct files_item *item, struct error *err)
{
    bool is_dir = S_ISDIR(item->mode);
    uint32_t mode = item->mode & 07777,
             set = is_dir ? (mode & IMPORT_DIR_MODE) | 0700 : mode & IMPORT_MODE;

    if (S_ISLNK(item->mode) || item->is_hard_link || mode == set)
        return 0;
    autofree char *line = xasprintf("%o /%s", mode, item->path);
    const char *one[] = {line, NULL};
    autofree char *packed = strings_pack(one);
    return buffer_add_text(&importing->modes, packed, err);
}

static int add_directory(struct importing *importing, const struct files_item *item,
                         struct error *err)
{
    autofree char *line = xasprintf("%o %u %u %" PRId64 " %s", item->mode, item->uid, item->gid,
                                    item->mtime_ns, item->path);
    importing->dirs_bytes += strlen(line) + 1;
    if (importing->dirs_bytes > DIRS_MAX)
        return error_set(err, ERROR_LIMIT, "the archive has too many directories");
    strings_add(&importing->dirs, line);
    return 0;
}

static int begin_file(struct importing *importing, const struct files_item *item, struct error *err)
{
    free(importing->path);
    importing->path = xasprintf(PREFIX "%s", item->path);
    importing->left = item->size;
    digest_begin(&importing->checksum);
    return item->size ? 0 : check_digest(importing, err);
}

static int take_item(struct importing *importing, struct files_item *item, struct error *err)
{
    const size_t length = sizeof PREFIX - 1;

    if (strncmp(item->path, PREFIX, length) != 0)
        return refused(err, item->path, "is none of a snapshot's");
    if (item->is_hard_link && strncmp(item->target, PREFIX, length) != 0)
        return refused(err, item->path, "is a hard link to what is none of the snapshot's files");
    item->path += length;
    if (item->is_hard_link)
        item->target += length;
    if (add_mode(importing, item, err) < 0)
        return -1;
    if (S_ISDIR(item->mode) && add_directory(importing, item, err) < 0)
        return -1;
    return S_ISREG(item->mode) && !item->is_hard_link ? begin_file(importing, item, err) : 0;
}

static int next_item(void *data, struct files_item *item, struct error *err)
{
    struct importing *importing = data;

    for (;;) {
        int more = unpacker_next(importing->unpacker, item, err);
        if (more == 0 && importing->checksums.n_used != importing->checksums.count)
            return damaged(err, "it has fewer files than sums");
        if (more <= 0)
            return more;
        if (strcmp(item->path, SNAPSHOT_FILES) == 0 && S_ISDIR(item->mode))
            continue;
        return take_item(importing, item, err) < 0 ? -1 : 1;
    }
}

static ssize_t fill(void *data, void *bytes, size_t size, struct error *err)
{
    struct importing *importing = data;
    ssize_t got = unpacker_fill(importing->unpacker, bytes, size, err);

    if (got <= 0)
        return got;
    digest_add(&importing->checksum, bytes, (size_t)got);
    importing->left -= (uint64_t)got;
    return importing->left == 0 && check_digest(importing, err) < 0 ? -1 : got;
}

static int remove_paths(struct importing *importing, int conversation, struct error *err)
{
    const char *path;

    for (size_t at = 1; (path = about_next(&importing->about, "removed", &at));) {
        if (!files_path_is_plain(path))
            return refused(err, path, "would lead out of the sandbox");
        autofree char *absolute = xasprintf("/%s", path);
        if (files_remove(conversation, absolute, FILES_RECURSIVE | FILES_MISSING_OK, err) < 0)
            return -1;
    }
    return 0;
}

/* What lies in a directory before it, as it may be closed then. */
static int set_modes(struct importing *importing, int conversation, struct error *err)
{
    autostrings modes = {0};

    strings_unpack(importing->modes.data, &modes);
    for (size_t i = modes.count; i-- > 0;) {
        char *path = NULL;
        uint32_t mode = (uint32_t)strtoul(modes.items[i], &path, 8);
        if (files_chmod(conversation, path + 1, mode, err) < 0)
            return -1;
    }
    return 0;
}

/* The directories once more, those within others before these: nothing comes into them any more. */
static int next_dir(void *data, struct files_item *item, struct error *err)
{
    struct importing *importing = data;
    int at = 0;

    (void)err;
    if (importing->n_dirs_left == 0)
        return 0;
    const char *line = importing->dirs.items[--importing->n_dirs_left];
    *item = (struct files_item){.target = "", .links = 1};
    (void)sscanf(line, "%o %u %u %" SCNd64 "%n", &item->mode, &item->uid, &item->gid,
                 &item->mtime_ns, &at);
    item->path = line + at + 1;
    return 1;
}

static int fill_box(struct importing *importing, struct error *err)
{
    autofd conversation = -1;

    if (build_box_files(&importing->build_box, &conversation, err) < 0 ||
        remove_paths(importing, conversation, err) < 0 ||
        files_import(conversation, "/", FILES_OWNERS, next_item, fill, importing, NULL, err) < 0)
        return -1;
    importing->n_dirs_left = importing->dirs.count;
    if (files_import(conversation, "/", FILES_OWNERS, next_dir, fill, importing, NULL, err) < 0)
        return -1;
    return set_modes(importing, conversation, err);
}

static int over_room(const struct import_room *room, struct error *err)
{
    const struct error said = *err;

    return error_refuse(err, room->reason, room->noun, "%s: %s", said.text, room->why);
}

/* What the box says about a path is about the archive that brought it. */
static int failed(const struct importing *importing, struct error *err)
{
    if (error_is(err, ERROR_NO_SPACE))
        return -1;
    if (error_is(err, ERROR_TOO_LARGE) && err->sys == EFBIG)
        return over_room(&importing->room, err);
    if (error_is(err, ERROR_LIMIT))
        return error_restate(err, ERROR_TOO_LARGE, "snapshot");
    if (err->noun || error_is_fault(err) || error_is(err, ERROR_GONE))
        return -1;
    return error_restate(err, ERROR_REFUSED, "archive");
}

// ---- the record ----

static int put(struct snapshots *snapshots, const struct snapshot_record *record, const char *layer,
               struct error *err)
{
    autotransaction together = {0};
    bool is_put;

    do
        is_put = store_begin(snapshots->store, STORE_DURABLE, &together, err) == 0 &&
                 snapshot_put(snapshots, record, layer, (uint64_t)record->size_bytes, err) == 0 &&
                 snapshot_tell_made(snapshots, record, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

static char *pack_env(const struct strings *about)
{
    autostrings env = {0};
    const char *value;

    for (size_t at = 1; (value = about_next(about, "env", &at));)
        strings_add(&env, value);
    return strings_pack((const char *const *)env.items);
}

static int record_it(struct importing *importing, const struct actor *actor,
                     const struct snapshot_import_request *request, char id[ID_TEXT],
                     struct error *err)
{
    const struct strings *about = &importing->about;
    struct error ignored = {0};
    char layer[LAYER_NAME];
    uint64_t bytes = 0;

    if (build_box_save(&importing->build_box, layers_name(layer), &bytes, err) < 0)
        return failed(importing, err);
    const char *chain[] = {layer, NULL};
    autofree char *layers = strings_pack(chain);
    autofree char *env = pack_env(about);
    int64_t now = (int64_t)clock_wall_ms();
    const struct snapshot_record record = {
        .id = id_make(id),
        .owner = actor_owner(actor),
        .key_id = *actor->key_id ? actor->key_id : NULL,
        .runtime = about_get(about, "runtime"),
        .name = request->name ? request->name : about_get(about, "name"),
        .tag = request->tag ? request->tag : about_get(about, "tag"),
        .description = about_get(about, "description"),
        .message = about_get(about, "message"),
        .is_public = request->is_public,
        .layers = layers,
        .env = env,
        .metadata = about_get(about, "metadata"),
        .state = SNAPSHOT_READY,
        .size_bytes = (int64_t)bytes,
        .file_count = SNAPSHOT_NOT_COUNTED,
        .created_at = now,
        .updated_at = now,
    };
    struct quota_saving saving = {0};
    struct accounts *accounts = importing->snapshots->accounts;
    if (quota_save(accounts, actor, actor->key_id, bytes, &saving, err) == 0) {
        int result = put(importing->snapshots, &record, layer, err);
        quota_saved(accounts, &saving);
        if (result == 0)
            return 0;
    }
    (void)layer_remove(importing->snapshots->volume, layer, &ignored); // else swept
    return -1;
}

/*
 * What one sandbox may write, as what is exported was written in some; of layers on layers that have more, as much as files are usually
 * compressed to. Never more than the key may keep, nor than leaves others room.
 */
static int measure_room(struct snapshots *snapshots, const struct actor *actor, int archive_fd,
                        struct import_room *out, struct error *err)
{
    struct volume_space space;
    struct stat info;

    if (fstat(archive_fd, &info) < 0)
        return error_sys(err, "look at the archive");
    if (volume_space(snapshots->volume, &space, err) < 0)
        return -1;
    uint64_t disk = (uint64_t)snapshots->settings->ceilings.sandbox.disk_bytes,
             large = (uint64_t)info.st_size * USUAL_RATIO;
    const struct import_room bounds[] = {
        {space.free_bytes / 2, ERROR_TOO_LARGE, "snapshot",
         "half of what is free on the server's volume may be taken"},
        {disk && large > disk ? large : disk, ERROR_TOO_LARGE, "snapshot",
         "an import may have as much as a sandbox's disk (--max-disk of 'burrow serve'), or 16 "
         "times what the archive has"},
        {(uint64_t)actor->quota.disk_bytes, ERROR_QUOTA, "quota",
         "the key may keep no more (--max-disk of 'burrow key')"},
    };
    *out = bounds[0];
    for (size_t i = 1; i < ARRAY_SIZE(bounds); i++) {
        if (bounds[i].bytes && bounds[i].bytes < out->bytes)
            *out = bounds[i];
    }
    return space.free_bytes / 2 < ROOM_MIN
               ? error_refuse(err, ERROR_NO_SPACE, "volume", LAYERS_NO_ROOM)
               : 0;
}

static int open_archive(struct importing *importing, const struct archive_task *task,
                        int archive_fd, struct error *err)
{
    if (unpacker_open(task, archive_fd, &importing->unpacker, err) == 0)
        return 0;
    return error_is(err, ERROR_DAMAGED) ? no_export(err) : -1;
}

/* The archive's first entries, and a box that can take the others. */
static int begin(struct importing *importing, const struct actor *actor,
                 const struct snapshot_import_request *request, int archive_fd, struct error *err)
{
    const struct import_room *room = &importing->room;
    struct archive_task task;
    char program[PATH_MAX];

    if (measure_room(importing->snapshots, actor, archive_fd, &importing->room, err) < 0 ||
        file_archive_task(importing->snapshots->sandboxes, ARCHIVE_TAR_ZSTD, room->bytes, program,
                          &task, err) < 0 ||
        open_archive(importing, &task, archive_fd, err) < 0 || read_strings(importing, err) < 0 ||
        snapshot_check_words(about_get(&importing->about, "name"),
                             about_get(&importing->about, "tag"), err) < 0)
        return -1;
    const char *runtime = about_get(&importing->about, "runtime");
    struct runtime_wish wish = {.name = runtime};
    if (runtime_check(importing->snapshots->runtimes, &wish, NULL, err) < 0)
        return no_runtime(runtime, err);
    if (build_box_open(&importing->build_box, runtime, NULL, NULL, (int64_t)room->bytes, err) < 0)
        return -1;
    return check_runtime(importing, request->is_forced, err);
}

int snapshot_import(struct snapshots *snapshots, const struct actor *actor,
                    const struct snapshot_import_request *request, int archive_fd,
                    struct snapshot_info *out, struct error *err)
{
    __attribute__((cleanup(importing_clear))) struct importing importing = {
        .snapshots = snapshots, .build_box = {.snapshots = snapshots}};
    char id[ID_TEXT];

    buffer_init(&importing.checksum_text, SNAPSHOT_CHECKSUMS_MAX);
    buffer_init(&importing.modes, MODES_MAX);
    if (snapshot_check_words(request->name, request->tag, err) < 0 ||
        snapshot_check_count(snapshots, actor, err) < 0)
        return -1;
    if (begin(&importing, actor, request, archive_fd, err) < 0)
        return error_is_about(err, "archive") ? failed(&importing, err) : -1;
    if (fill_box(&importing, err) < 0)
        return failed(&importing, err);
    if (record_it(&importing, actor, request, id, err) < 0)
        return error_wrap(err, "keep the snapshot");
    return snapshot_get(snapshots, actor, id, out, err);
}
