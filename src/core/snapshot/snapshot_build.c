/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots that are built from an archive: announced, uploaded, finished; see snapshot.h. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/account/quota.h"
#include "core/sandbox/file_impl.h"
#include "core/sandbox/file_work.h"
#include "core/layer/layers.h"
#include "core/sandbox/lookup.h"
#include "core/runtime/runtime.h"
#include "install/install.h"
#include "core/snapshot/snapshot_impl.h"
#include "core/snapshot/build_box.h"
#include "runtime/catalog.h"
#include "store/checkpoints.h"
#include "store/space_counts.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#define BUILD_DIRECTORY "builds"
#define BUILD_MS ((int64_t)3600 * 1000)    // a build that is not finished by then is over
#define START_MS ((int64_t)15 * 60 * 1000) // one that nobody has begun by then is gone
#define BUILDS_OF_OWNER 16                 // announced or under way
#define BUILDS_OF_NOBODY 64                // where keys are nobody's in particular
#define PAGE 100

char *snapshot_build_directory(struct snapshots *snapshots)
{
    return xasprintf("%s/" BUILD_DIRECTORY, snapshots->settings->data_dir);
}

static char *archive_path(struct snapshots *snapshots, const char *id)
{
    return xasprintf("%s/" BUILD_DIRECTORY "/%s", snapshots->settings->data_dir, id);
}

void snapshot_build_forget(struct snapshots *snapshots, const char *id)
{
    autofree char *path = archive_path(snapshots, id);
    (void)unlink(path);
}

static int find_unchanged(struct snapshots *snapshots, const struct actor *actor,
                          const struct snapshot_build *build, bool *is_unchanged,
                          struct snapshot_record *out, struct error *err)
{
    const struct snapshot_search search = {
        .owner = actor_own(actor),
        .is_own = true, // the hash is the client's word for what is in it
        .name = build->name,
        .content_hash = build->content_hash};

    *is_unchanged = false;
    if (!build->content_hash || !build->name || build->is_forced)
        return 0;
    if (store_snapshot_find(snapshots->store, &search, out, err) == 0)
        *is_unchanged = true;
    else if (!error_is(err, ERROR_NOT_FOUND))
        return -1;
    return 0;
}

/* One owner leaves room for others; what nobody goes on with is no reason to refuse. */
static int check_builds(struct snapshots *snapshots, const struct actor *actor, struct error *err)
{
    const struct owner owner = actor_owner(actor);
    int64_t most = owner.member ? BUILDS_OF_OWNER : BUILDS_OF_NOBODY, have = 0;

    if (snapshot_build_expire(snapshots, err) < 0 ||
        store_count_kept(snapshots->store, KEPT_BUILDS, owner.organisation,
                         owner.member ? owner.member : "", most, &have, err) < 0)
        return -1;
    if (have < most)
        return 0;
    return error_refuse(err, ERROR_FULL, "snapshot",
                        "%lld builds are announced or under way, as many as there may be of one "
                        "owner: finish some, or wait until they expire",
                        (long long)most);
}

int snapshot_build_begin(struct snapshots *snapshots, const struct actor *actor,
                         const struct snapshot_build *build, bool *is_unchanged,
                         struct snapshot_info *out, struct error *err)
{
    autosnapshot begun = {0};
    char id[ID_TEXT];
    char secret[ID_TEXT];
    char made_up[32];
    int64_t now = (int64_t)clock_wall_ms();
    struct runtime_wish wish = {.name = build->runtime};
    char known[RUNTIME_REFERENCE_TEXT];

    if (snapshot_check_words(build->name, build->tag, err) < 0 ||
        runtime_check(snapshots->runtimes, &wish, known, err) < 0 ||
        find_unchanged(snapshots, actor, build, is_unchanged, &begun, err) < 0)
        return -1;
    if (*is_unchanged) {
        snapshot_info_take(out, &begun);
        return 0;
    }
    autofree char *runtime =
        runtime_full_name(build->runtime ? known : snapshots->settings->default_runtime);
    (void)snprintf(made_up, sizeof made_up, "snapshot-%.8s", id_make(id));
    const struct snapshot_record record = {
        .id = id,
        .owner = actor_owner(actor),
        .key_id = *actor->key_id ? actor->key_id : NULL,
        .runtime = runtime,
        .content_hash = build->content_hash,
        .upload_secret = id_make(secret),
        .git = build->git,
        .metadata = build->metadata,
        .name = build->name ? build->name : made_up,
        .tag = build->tag ? build->tag : "latest",
        .description = build->description,
        .message = build->message,
        .is_public = build->is_public,
        .layers = "",
        .env = "",
        .state = SNAPSHOT_BUILDING,
        .file_count = SNAPSHOT_NOT_COUNTED,
        .created_at = now,
        .updated_at = now,
    };
    if (check_builds(snapshots, actor, err) < 0 ||
        snapshot_check_count(snapshots, actor, err) < 0 ||
        store_snapshot_put(snapshots->store, &record, err) < 0 ||
        store_snapshot_get(snapshots->store, id, &begun, err) < 0)
        return -1;
    snapshot_info_take(out, &begun);
    return 0;
}

/* One that is being built: the actor's, or anybody's who knows its secret. */
static int find_building(struct snapshots *snapshots, const struct actor *actor, const char *id,
                         const char *secret, struct snapshot_record *out, struct error *err)
{
    autosnapshot record = {0};

    if (store_snapshot_get(snapshots->store, id, &record, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? error_missing(err, "snapshot", id) : -1;
    bool is_allowed = actor ? actor_sees(actor, &record.owner)
                            : secret && record.upload_secret &&
                                  strlen(secret) == strlen(record.upload_secret) &&
                                  CRYPTO_memcmp(secret, record.upload_secret, strlen(secret)) == 0;
    if (!is_allowed)
        return error_missing(err, "snapshot", id);
    if (record.state == SNAPSHOT_DELETED)
        return error_missing(err, "snapshot", id);
    bool is_late =
        record.state == SNAPSHOT_FAILED || (int64_t)clock_wall_ms() - record.created_at >= BUILD_MS;
    if (record.state != SNAPSHOT_BUILDING || is_late)
        return error_refuse(
            err, ERROR_STATE, "snapshot",
            record.state == SNAPSHOT_READY
                ? "the snapshot has been built already"
                : "the build was announced more than an hour ago and is over; begin another");
    *out = record;
    record = (struct snapshot_record){0};
    return 0;
}

static int copy_file(int from, int to, struct error *err)
{
    struct stat info;
    off_t at = 0;

    if (fstat(from, &info) < 0)
        return error_sys(err, "look at the upload");
    while (at < info.st_size) {
        ssize_t sent = sendfile(to, from, &at, (size_t)(info.st_size - at));
        if (sent <= 0)
            return error_sys(err, "keep the upload");
    }
    return fdatasync(to) < 0 ? error_sys(err, "bring the upload to the disk") : 0;
}

/* Somebody goes on with it: it has all of its hour. */
static int mark_begun(struct snapshots *snapshots, struct snapshot_record *record,
                      struct error *err)
{
    record->updated_at = (int64_t)clock_wall_ms();
    record->updated_at += record->updated_at == record->created_at;
    return store_snapshot_update(snapshots->store, record, SNAPSHOT_PART_STATE,
                                 snapshot_in(SNAPSHOT_BUILDING), err);
}

int snapshot_build_check(struct snapshots *snapshots, const struct actor *actor, const char *id,
                         const char *secret, struct error *err)
{
    autosnapshot record = {0}, since = {0};
    if (find_building(snapshots, actor, id, secret, &record, err) < 0)
        return -1;
    if (mark_begun(snapshots, &record, err) == 0)
        return 0;
    return error_is(err, ERROR_CONFLICT) ? find_building(snapshots, actor, id, secret, &since, err)
                                         : -1;
}

int snapshot_build_go_on(struct snapshots *snapshots, const struct actor *actor, const char *name,
                         struct error *err)
{
    const struct snapshot_filter filter = {.owner = actor_own(actor),
                                           .is_own = true,
                                           .name = name,
                                           .states = snapshot_in(SNAPSHOT_BUILDING),
                                           .page = {.limit = PAGE}};
    autosnapshots found = {0};

    if (store_snapshot_list(snapshots->store, &filter, &found, err) < 0)
        return -1;
    for (size_t i = 0; i < found.count; i++) {
        if (found.rows[i].updated_at == found.rows[i].created_at &&
            mark_begun(snapshots, &found.rows[i], err) < 0 && !error_is(err, ERROR_CONFLICT))
            return -1;
    }
    return 0;
}

int snapshot_build_upload(struct snapshots *snapshots, const struct actor *actor, const char *id,
                          const char *secret, int archive_fd, struct error *err)
{
    autofree char *directory = snapshot_build_directory(snapshots);
    autofree char *path = archive_path(snapshots, id);
    char unique[ID_TEXT]; // two may come at once: the last one that is whole counts
    autofree char *partial = xasprintf("%s.%s", path, id_make(unique));
    autosnapshot record = {0};
    autosnapshot since = {0};

    if (find_building(snapshots, actor, id, secret, &record, err) < 0 ||
        fd_make_dirs(directory, 0700, err) < 0)
        return -1;
    autofd fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, "keep the upload");
    if (copy_file(archive_fd, fd, err) < 0 || rename(partial, path) < 0) {
        (void)unlink(partial);
        return err->reason ? -1 : error_sys(err, "keep the upload");
    }
    if (find_building(snapshots, actor, id, secret, &since, err) == 0)
        return 0;
    (void)unlink(path); // whoever finished or deleted it has not seen this one
    return -1;
}

static int unpack(struct build_box *build_box, const char *id, const char *directory,
                  struct error *err)
{
    autofree char *path = archive_path(build_box->snapshots, id);
    autofilework work = {.conversation = -1};

    autofd archive = open(path, O_RDONLY | O_CLOEXEC);
    if (archive < 0 && errno == ENOENT)
        return error_refuse(err, ERROR_STATE, "snapshot",
                            "nothing has been uploaded for the snapshot yet");
    if (archive < 0)
        return error_sys(err, "open the upload");
    file_work_init(&work, build_box->snapshots->sandboxes, NULL);
    if (build_box_files(build_box, &work.conversation, err) < 0)
        return -1;
    return file_unpack_here(build_box->snapshots->sandboxes, NULL, &work, directory,
                            ARCHIVE_TAR_GZIP, archive, err);
}

static int finish(struct build_box *build_box, struct snapshot_record *record, const char *layer,
                  uint64_t bytes, struct error *err)
{
    struct snapshots *snapshots = build_box->snapshots;
    unsigned parts = SNAPSHOT_PART_CONTENT | SNAPSHOT_PART_STATE | SNAPSHOT_PART_COUNT;
    autotransaction together = {0};
    bool is_put;

    do
        is_put = store_begin(snapshots->store, STORE_DURABLE, &together, err) == 0 &&
                 layers_put(snapshots->layers, layer, bytes, record->id, err) == 0 &&
                 store_snapshot_update(snapshots->store, record, parts,
                                       snapshot_in(SNAPSHOT_BUILDING), err) == 0 &&
                 store_snapshot_take_tag(snapshots->store, record, err) == 0 &&
                 snapshot_tell_made(snapshots, record, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

/* They are installed over its runtime, and become part of what it stands on. */
static int check_packages(struct snapshots *snapshots, struct snapshot_record *record,
                          const struct snapshot_content *content, struct error *err)
{
    struct runtime_wish wish = {.name = record->runtime,
                                .has_network = true,
                                .has_packages = content->packages && content->packages[0]};

    if (install_check(content->dependencies, content->packages, err) < 0 ||
        runtime_check(snapshots->runtimes, &wish, NULL, err) < 0)
        return -1;
    if (content->dependencies && content->dependencies[0])
        record->dependencies = strings_pack(content->dependencies);
    if (content->packages && content->packages[0])
        record->packages = strings_pack(content->packages);
    return 0;
}

static int finish_within_quota(struct build_box *build_box, const struct actor *actor,
                               struct snapshot_record *record, const char *layer, uint64_t bytes,
                               struct error *err)
{
    struct accounts *accounts = build_box->snapshots->accounts;
    struct quota_saving saving = {0};

    if (quota_save(accounts, actor, record->key_id ? record->key_id : "", bytes, &saving, err) < 0)
        return -1;
    int result = finish(build_box, record, layer, bytes, err);
    quota_saved(accounts, &saving);
    return result;
}

static int build(struct build_box *build_box, const struct actor *actor,
                 struct snapshot_record *record, const struct snapshot_content *content,
                 struct error *err)
{
    struct volume *volume = build_box->snapshots->volume;
    const char *chain[] = {NULL, NULL};
    char layer[LAYER_NAME];
    uint64_t bytes = 0;
    struct error ignored = {0};

    if (check_packages(build_box->snapshots, record, content, err) < 0 ||
        build_box_open(build_box, record->runtime, record->dependencies, record->packages,
                       build_box->snapshots->settings->limits.disk_bytes, err) < 0 ||
        unpack(build_box, record->id, content->directory, err) < 0 ||
        build_box_save(build_box, layers_name(layer), &bytes, err) < 0)
        return error_wrap(err, "build snapshot '%s'", record->name);
    chain[0] = layer;
    free((char *)record->layers);
    record->layers = strings_pack(chain);
    free((char *)record->env);
    record->env = strings_pack(content->env);
    free((char *)record->metadata);
    record->metadata = content->metadata ? xstrdup(content->metadata) : NULL;
    record->state = SNAPSHOT_READY;
    record->size_bytes = (int64_t)bytes;
    record->updated_at = (int64_t)clock_wall_ms();
    if (finish_within_quota(build_box, actor, record, layer, bytes, err) == 0)
        return 0;
    (void)layer_remove(volume, layer, &ignored); // else swept
    return -1;
}

int snapshot_build_finish(struct snapshots *snapshots, const struct actor *actor, const char *id,
                          const struct snapshot_content *content, struct snapshot_info *out,
                          struct error *err)
{
    autobuildbox build_box = {.snapshots = snapshots};
    autosnapshot record = {0};

    if (find_building(snapshots, actor, id, NULL, &record, err) < 0 ||
        build(&build_box, actor, &record, content, err) < 0)
        return -1;
    snapshot_build_forget(snapshots, id);
    return snapshot_get(snapshots, actor, id, out, err);
}

// ---- uploads that nobody will finish ----

/* Whether the upload `name` (an id, perhaps with more behind a dot) is of a build that still may be finished. */
static int is_wanted(struct snapshots *snapshots, const char *name, int64_t now, struct error *err)
{
    autofree char *id = xstrndup(name, strcspn(name, "."));
    autosnapshot record = {0};

    if (!id_is_valid(id))
        return 0;
    if (store_snapshot_get(snapshots->store, id, &record, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? 0 : -1;
    return record.state == SNAPSHOT_BUILDING && now - record.created_at < BUILD_MS;
}

int snapshot_build_sweep(struct snapshots *snapshots, bool is_trial, uint64_t *count,
                         uint64_t *bytes, struct error *err)
{
    autofree char *path = snapshot_build_directory(snapshots);
    int64_t now = (int64_t)clock_wall_ms();
    const struct dirent *entry;

    autodir directory = opendir(path);
    if (!directory)
        return errno == ENOENT ? 0 : error_sys(err, "look into '%s'", path);
    while ((entry = readdir(directory))) {
        struct stat info;
        int wanted = entry->d_name[0] == '.' ? 1 : is_wanted(snapshots, entry->d_name, now, err);
        if (wanted < 0)
            return -1;
        if (wanted || fstatat(dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (!is_trial && unlinkat(dirfd(directory), entry->d_name, 0) < 0)
            return error_sys(err, "remove '%s/%s'", path, entry->d_name);
        ++*count;
        *bytes += (uint64_t)info.st_blocks * 512;
    }
    return 0;
}

int snapshot_build_expire(struct snapshots *snapshots, struct error *err)
{
    const struct snapshot_filter filter = {
        .is_here = true, .states = snapshot_in(SNAPSHOT_BUILDING), .page = {.limit = PAGE}};
    int64_t now = (int64_t)clock_wall_ms();
    autosnapshots found = {0};

    if (store_snapshot_list(snapshots->store, &filter, &found, err) < 0) // the oldest first
        return -1;
    for (size_t i = 0; i < found.count; i++) {
        struct snapshot_record record = found.rows[i];
        int64_t age = now - record.created_at;
        bool is_begun = record.updated_at != record.created_at;
        if (age < (is_begun ? BUILD_MS : START_MS))
            continue;
        record.state = is_begun ? SNAPSHOT_FAILED : SNAPSHOT_DELETED;
        record.deleted_at = is_begun ? 0 : now;
        record.error = is_begun ? "it was announced and not finished within an hour"
                                : "it was announced and not begun within a quarter of an hour";
        record.updated_at = now;
        if (store_snapshot_update(snapshots->store, &record, SNAPSHOT_PART_STATE,
                                  snapshot_in(SNAPSHOT_BUILDING), err) < 0 &&
            !error_is(err, ERROR_CONFLICT))
            return -1;
    }
    return 0;
}
