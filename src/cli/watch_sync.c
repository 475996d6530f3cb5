/* SPDX-License-Identifier: Apache-2.0 */
/* Two directories in step; see watch_sync.h. */
#include "cli/watch_sync.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/entry_maker.h"
#include "cli/listing.h"
#include "cli/remote_file.h"
#include "cli/remote_tree.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_ANYWAY ((uint64_t)64 << 10)

void sync_clear(struct sync *sync)
{
    local_tree_clear(&sync->base);
    local_tree_clear(&sync->later);
    local_tree_clear(&sync->dirty[SYNC_HERE]);
    local_tree_clear(&sync->dirty[SYNC_THERE]);
}

/* Patterns: by any part of the path, or the whole of it. */
bool sync_ignores(const struct sync *sync, const char *path)
{
    autofree char *copy = xstrdup(path);

    if (!sync->has_git && local_tree_is_in_git(path))
        return true;
    for (size_t i = 0; i < sync->ignore->count; i++) {
        const char *pattern = sync->ignore->items[i];
        if (fnmatch(pattern, path, FNM_PATHNAME) == 0)
            return true;
        (void)snprintf(copy, strlen(path) + 1, "%s", path);
        char *rest = NULL;
        for (char *part = strtok_r(copy, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
            if (fnmatch(pattern, part, 0) == 0)
                return true;
        }
    }
    const char *name = strrchr(path, '/');
    return strncmp(name ? name + 1 : path, ".burrow-", 8) == 0; // ours, for a moment
}

void sync_touch(struct sync *sync, unsigned side, const char *path)
{
    if (sync->is_whole[side] || sync_ignores(sync, path))
        return;
    if (sync->dirty[side].count >= SYNC_MOST_DIRTY || strlen(path) >= PATH_MAX) {
        sync->is_whole[side] = true;
        local_tree_clear(&sync->dirty[side]);
        return;
    }
    if (!local_tree_find(&sync->dirty[side], path))
        local_tree_set(&sync->dirty[side], &(struct tree_entry){.path = (char *)(uintptr_t)path});
}

bool sync_is_due(const struct sync *sync)
{
    return sync->is_whole[SYNC_HERE] || sync->is_whole[SYNC_THERE] ||
           sync->dirty[SYNC_HERE].count || sync->dirty[SYNC_THERE].count;
}

static char *there(const struct sync *sync, const char *path)
{
    return xasprintf("%s/%s", strcmp(sync->path, "/") ? sync->path : "", path);
}

static void tell(const struct sync *sync, const char *arrow, const char *path)
{
    autofree char *clean = say_clean(path);

    if (!sync->is_quiet)
        (void)printf("%s %s\n", arrow, clean);
    (void)fflush(stdout);
}

// ---- the sandbox's side ----

/* As the other side has it: what it is, and for a file or link what it holds. */
struct other {
    struct tree_entry entry;
    int fd;                // of a file's content; -1
    char target[PATH_MAX]; // of a link
    int staged;            // or all of it is below this directory
};

static void other_clear(struct other *other)
{
    closep(&other->fd);
}

static int take_file(struct sync *sync, const char *path, struct other *other,
                     struct burrow_error *err)
{
    autofree char *whole = there(sync, path);
    struct sha256 sha;
    char bytes[65536];
    ssize_t got;

    if (other->entry.size > sync->most_bytes)
        return say_fail(err, BURROW_LIMIT, "a file of the sandbox is larger than --limit allows");
    if (remote_file_take(sync->client, sync->sandbox, whole, sync->most_bytes, &other->fd, err) < 0)
        return -1;
    sha256_init(&sha);
    for (other->entry.size = 0; (got = read(other->fd, bytes, sizeof bytes)) > 0;
         other->entry.size += (uint64_t)got)
        sha256_add(&sha, bytes, (size_t)got);
    sha256_end(&sha, other->entry.digest);
    return got < 0 || lseek(other->fd, 0, SEEK_SET) < 0 ? say_fail_sys(err, "read a temporary file")
                                                        : 0;
}

static void take_target(const char *target, struct other *other)
{
    struct sha256 sha;

    (void)snprintf(other->target, sizeof other->target, "%s", target);
    sha256_init(&sha);
    sha256_add(&sha, other->target, strlen(other->target));
    sha256_end(&sha, other->entry.digest);
}

/* The server's name for a file as it is: another one as soon as anything of the file changes. */
static uint64_t version_of(const struct burrow_value *file)
{
    const char *etag = burrow_text(burrow_get(file, "etag"));
    char digest[SHA256_TEXT];
    struct sha256 sha;

    if (!etag)
        return 0;
    sha256_init(&sha);
    sha256_add(&sha, etag, strlen(etag));
    sha256_end(&sha, digest);
    digest[16] = '\0';
    return strtoull(digest, NULL, 16);
}

/*
 * Whether the sandbox still has what it had when both were the same: what was just sent is told as changed there, and need not come back. Times of
 * files move in steps of some milliseconds on older kernels, within which a program there may change a file again: what is small is read anyway.
 */
static bool is_known(const struct tree_entry *base, const struct tree_entry *there)
{
    return base && base->kind == TREE_FILE && there->version && base->version == there->version &&
           there->size > READ_ANYWAY;
}

static int look_there(struct sync *sync, const char *path, struct other *other,
                      struct burrow_error *err)
{
    const struct tree_entry *base = local_tree_find(&sync->base, path);
    autofree char *whole = there(sync, path);
    autofree char *place =
        burrow_path("/sandboxes/%s/files/stat?follow=false&path=%s", sync->sandbox, whole, NULL);
    autoanswer answer = NULL;

    if (burrow_ask(sync->client, "GET", place, NULL, &answer, err) < 0)
        return err->status == 404 && !strstr(err->code, "sandbox") ? 0 : -1;
    const struct burrow_value *value = burrow_answer_value(answer);
    const char *kind = burrow_text(burrow_get(value, "kind"));
    const char *mode = burrow_text(burrow_get(value, "mode"));
    const char *target = burrow_text(burrow_get(value, "target"));
    other->entry.mode = mode ? (unsigned)strtoul(mode, NULL, 8) & 0777 : 0644;
    other->entry.size = (uint64_t)burrow_integer(burrow_get(value, "sizeBytes"), 0);
    if (kind && strcmp(kind, "directory") == 0) {
        other->entry.kind = TREE_DIRECTORY;
    } else if (kind && strcmp(kind, "link") == 0 && target && entry_link_stays(path, target)) {
        other->entry.kind = TREE_LINK;
        other->entry.mode = 0;
        take_target(target, other);
    } else if (kind && strcmp(kind, "file") == 0) {
        other->entry.kind = TREE_FILE;
        other->entry.version = version_of(value);
        if (is_known(base, &other->entry)) {
            other->entry = *base;
            return 0;
        }
        int result = take_file(sync, path, other, err);
        if (result < 0 && err->status == 404) { // it went meanwhile
            closep(&other->fd);
            other->entry = (struct tree_entry){0};
            result = 0;
        }
        return result;
    }
    return 0;
}

// ---- from one side to the other ----

static int send_link(struct sync *sync, const char *path, const char *whole,
                     struct burrow_error *err)
{
    char target[PATH_MAX];
    struct burrow_result result = {0};

    if (local_tree_target(sync->root, path, target, sizeof target) < 0)
        return 0; // it went meanwhile
    const char *const argv[] = {"ln", "-sfn", "--", target, whole, NULL};
    const struct burrow_command command = {.sandbox = sync->sandbox, .argv = argv};
    return burrow_run(sync->client, &command, NULL, NULL, &result, err);
}

struct sending {
    int fd;
    struct sha256 sha;
};

static ssize_t read_sending(void *context, void *to, size_t size)
{
    struct sending *sending = context;
    ssize_t got = read(sending->fd, to, size);

    if (got > 0)
        sha256_add(&sending->sha, to, (size_t)got);
    return got;
}

/* What is sent in parts has no version: it is compared when the sandbox tells of it. */
static int send_in_parts(struct sync *sync, const char *path, int fd, unsigned mode,
                         struct burrow_error *err)
{
    const struct burrow_transfer what = {
        .sandbox = sync->sandbox, .path = path, .fd = fd, .mode = mode, .makes_parents = true};

    return burrow_file_send(sync->client, &what, NULL, err);
}

/* *version is left alone where the file was not sent as it was seen. */
static int send_file(struct sync *sync, const char *path, const struct tree_entry *here,
                     uint64_t *version, struct burrow_error *err)
{
    autofree char *whole = there(sync, path);
    autofree char *target =
        burrow_path("/sandboxes/%s/files?createParents=true&path=%s", sync->sandbox, whole, NULL);
    autofree char *with_mode = xasprintf("%s&mode=%04o", target, here->mode);
    autofd fd = local_tree_open(sync->root, path);
    struct sending sending = {.fd = fd};
    const struct burrow_body body = {.read = read_sending, .context = &sending};
    autoanswer answer = NULL;
    char digest[SHA256_TEXT];
    uint64_t limit;

    if (fd < 0)
        return 0; // it went meanwhile
    if (burrow_file_limit(sync->client, &limit, err) < 0)
        return -1;
    if (here->size > limit)
        return send_in_parts(sync, whole, fd, here->mode, err);
    sha256_init(&sending.sha);
    if (burrow_send(sync->client, "PUT", with_mode, &body, &answer, err) < 0)
        return -1;
    sha256_end(&sending.sha, digest);
    if (strcmp(digest, here->digest) == 0)
        *version = version_of(burrow_answer_value(answer));
    return 0;
}

/* *version: the sandbox's, of a file. */
static int send_it(struct sync *sync, const char *path, const struct tree_entry *here,
                   const struct tree_entry *was, uint64_t *version, struct burrow_error *err)
{
    autofree char *whole = there(sync, path);
    int result = 0;

    tell(sync, here->kind == TREE_NOTHING ? "x→" : "→", path);
    if (here->kind == TREE_NOTHING || (was && was->kind != here->kind)) {
        bool is_tree = was && was->kind == TREE_DIRECTORY;
        result = burrow_file_remove(sync->client, sync->sandbox, whole, is_tree, err);
        if (result < 0 && err->status != 404)
            return -1;
        result = 0;
    }
    if (here->kind == TREE_DIRECTORY) {
        result = burrow_directory_make(sync->client, sync->sandbox, whole, true, err);
    } else if (here->kind == TREE_LINK) {
        result = send_link(sync, path, whole, err);
    } else if (here->kind == TREE_FILE) {
        result = send_file(sync, path, here, version, err);
    }
    sync->n_sent += result == 0;
    return result;
}

static int check_names(uint64_t names, struct burrow_error *err)
{
    if (names <= SYNC_MOST_NAMES)
        return 0;
    return say_fail(err, BURROW_LIMIT,
                    "the names of the sandbox's files have more than %d MiB together",
                    (int)(SYNC_MOST_NAMES >> 20));
}

static int take_it(struct sync *sync, const char *path, struct other *other,
                   struct burrow_error *err)
{
    struct tree_entry entry = other->entry;

    tell(sync, entry.kind == TREE_NOTHING ? "x←" : "←", path);
    sync->n_taken++;
    if (entry.kind == TREE_NOTHING) {
        int result = local_tree_remove(sync->root, path, err);
        if (result > 0)
            local_tree_set(&sync->later, &(struct tree_entry){.path = (char *)(uintptr_t)path});
        return result < 0 ? -1 : 0;
    }
    if (sync->base.bytes + entry.size > sync->most_bytes)
        return say_fail(err, BURROW_LIMIT,
                        "the sandbox's files have become more than --limit allows");
    if (sync->base.count >= SYNC_MOST_ENTRIES)
        return say_fail(err, BURROW_LIMIT, "the sandbox has more than %d files", SYNC_MOST_ENTRIES);
    if (check_names(sync->base.names + strlen(path), err) < 0)
        return -1;
    entry.path = (char *)(uintptr_t)path;
    int result = other->staged >= 0
                     ? local_tree_put(sync->root, other->staged, &entry, err)
                     : local_tree_write(sync->root, &entry, other->fd, other->target, err);
    if (result < 0 && (err->sys == ELOOP || err->sys == ENOTDIR || err->sys == ENOTEMPTY)) {
        say_note("left alone, something of yours is in the way: %s", err->text);
        return 0;
    }
    return result;
}

/* The sandbox's version, beside the local one that stays. */
static int keep_beside(struct sync *sync, const char *path, struct other *other,
                       struct burrow_error *err)
{
    autofree char *name = xasprintf("%s" SYNC_CONFLICT, path), *clean = say_clean(path);
    struct tree_entry entry = other->entry;
    autofd source = -1;

    sync->n_conflicts++;
    say_note("both sides changed '%s': yours stays, the sandbox's is beside it as *" SYNC_CONFLICT,
             clean);
    if (entry.kind != TREE_FILE)
        return 0;
    if (other->staged >= 0)
        source = local_tree_open(other->staged, path);
    entry.path = name;
    if (local_tree_write(sync->root, &entry, other->staged >= 0 ? source : other->fd, "", err) < 0)
        return -1;
    sync_touch(sync, SYNC_HERE, name);
    return 0;
}

static void remember(struct sync *sync, const char *path, const struct tree_entry *entry,
                     uint64_t version)
{
    struct tree_entry kept = *entry;

    kept.path = (char *)(uintptr_t)path;
    kept.version = version;
    if (entry->kind == TREE_NOTHING)
        local_tree_unset(&sync->base, path);
    else
        local_tree_set(&sync->base, &kept);
}

/* A link of the user's own that leads out of the directory is nobody else's business. */
static bool leads_outside(const struct sync *sync, const char *path, const struct tree_entry *here)
{
    char target[PATH_MAX];

    return here->kind == TREE_LINK &&
           local_tree_target(sync->root, path, target, sizeof target) == 0 &&
           !entry_link_stays(path, target);
}

static int settle(struct sync *sync, const char *path, const struct tree_entry *here,
                  struct other *other, struct burrow_error *err)
{
    const struct tree_entry *base = local_tree_find(&sync->base, path);
    bool is_mine = !tree_entry_is_same(here, base);
    bool is_theirs = !tree_entry_is_same(&other->entry, base);

    if ((!is_mine && !is_theirs) || leads_outside(sync, path, here))
        return 0;
    if (tree_entry_is_same(here, &other->entry)) {
        remember(sync, path, here, other->entry.version);
        return 0;
    }
    // what was changed wins over what was removed
    bool takes = is_theirs && (!is_mine || here->kind == TREE_NOTHING);
    if (is_mine && is_theirs && !takes && other->entry.kind != TREE_NOTHING &&
        keep_beside(sync, path, other, err) < 0)
        return -1;
    base = local_tree_find(&sync->base, path);
    uint64_t version = takes ? other->entry.version : 0;
    if (takes ? take_it(sync, path, other, err) < 0
              : send_it(sync, path, here, is_theirs ? &other->entry : base, &version, err) < 0)
        return -1;
    remember(sync, path, takes ? &other->entry : here, version);
    return 0;
}

// ---- single paths ----

static int settle_path(struct sync *sync, const char *path, bool is_there, struct burrow_error *err)
{
    autoclear(other) other = {.fd = -1, .staged = -1};
    const struct tree_entry *base = local_tree_find(&sync->base, path);
    struct tree_entry here;

    if (local_tree_look(sync->root, path, &here, err) < 0)
        return -1;
    if (is_there && look_there(sync, path, &other, err) < 0)
        return -1;
    if (!is_there && base)
        other.entry = *base;
    return settle(sync, path, &here, &other, err);
}

/* The innermost goes first, what comes comes in order. */
static int settle_dirty(struct sync *sync, struct burrow_error *err)
{
    struct local_tree due[2] = {sync->dirty[0], sync->dirty[1]};
    int result = 0;

    sync->dirty[0] = sync->dirty[1] = (struct local_tree){0};
    for (unsigned side = 0; side < 2; side++) {
        for (size_t i = 0; i < due[side].count; i++) {
            const char *path = due[side].entries[i].path;
            bool is_there = side == SYNC_THERE || local_tree_find(&due[SYNC_THERE], path);
            if (result == 0)
                result = settle_path(sync, path, is_there, err);
            if (result < 0)
                sync_touch(sync, side, path); // again, once that is mended
        }
    }
    local_tree_clear(&due[0]);
    local_tree_clear(&due[1]);
    return result;
}

// ---- everything ----

static int stage(struct sync *sync, int staged, struct burrow_error *err)
{
    autofree char *too_much = xasprintf(
        "the sandbox has more than --limit allows, or more than %d files", SYNC_MOST_ENTRIES);
    struct remote_tree tree = {.client = sync->client,
                               .sandbox = sync->sandbox,
                               .path = sync->path,
                               .most_bytes = sync->most_bytes,
                               .most_entries = SYNC_MOST_ENTRIES,
                               .too_much = too_much};

    return remote_tree_take(&tree, staged, err);
}

static int settle_trees(struct sync *sync, const struct local_tree *here,
                        const struct local_tree *other, int staged, struct burrow_error *err)
{
    struct local_tree all = {0};
    const struct local_tree *const trees[] = {&sync->base, here, other};
    static const struct tree_entry nothing;
    int result = 0;

    for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
        for (size_t j = 0; j < trees[i]->count; j++) {
            if (!local_tree_find(&all, trees[i]->entries[j].path))
                local_tree_set(&all, &(struct tree_entry){.path = trees[i]->entries[j].path});
        }
    }
    for (size_t i = 0; i < all.count && result == 0; i++) {
        const char *path = all.entries[i].path;
        if (sync_ignores(sync, path))
            continue;
        const struct tree_entry *mine = local_tree_find(here, path);
        const struct tree_entry *theirs = local_tree_find(other, path);
        struct other one = {.fd = -1, .staged = staged};
        one.entry = theirs ? *theirs : nothing;
        result = settle(sync, path, mine ? mine : &nothing, &one, err);
    }
    local_tree_clear(&all);
    return result;
}

static int settle_all(struct sync *sync, struct burrow_error *err)
{
    const char *top = getenv("TMPDIR");
    autofree char *place = xasprintf("%s/burrow-watch-XXXXXX", top && *top == '/' ? top : "/tmp");
    struct local_tree here = {0}, other = {0};
    struct error ignored = {0};

    if (!mkdtemp(place))
        return say_fail_sys(err, "make a temporary directory");
    autofd staged = open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int result = staged < 0 ? say_fail_sys(err, "open '%s'", place) : stage(sync, staged, err);
    if (result == 0)
        result = local_tree_scan(staged, NULL, &other, err);
    if (result == 0)
        result = check_names(other.names, err);
    if (result == 0)
        result = local_tree_scan(sync->root, NULL, &here, err);
    if (result == 0)
        result = settle_trees(sync, &here, &other, staged, err);
    local_tree_clear(&here);
    local_tree_clear(&other);
    (void)fd_remove_tree(AT_FDCWD, place, &ignored);
    return result;
}

/* What was in them has gone meanwhile; one that still has something, which is ignored, stays. */
static void remove_later(struct sync *sync)
{
    struct burrow_error ignored;

    for (size_t i = sync->later.count; i-- > 0;)
        (void)local_tree_remove(sync->root, sync->later.entries[i].path, &ignored);
    local_tree_clear(&sync->later);
}

static int settle_whole(struct sync *sync, struct burrow_error *err)
{
    for (unsigned side = 0; side < 2; side++)
        local_tree_clear(&sync->dirty[side]);
    sync->is_whole[SYNC_HERE] = sync->is_whole[SYNC_THERE] = false;
    int result = settle_all(sync, err);
    if (result < 0)
        sync->is_whole[SYNC_HERE] = sync->is_whole[SYNC_THERE] = true;
    return result;
}

int sync_run(struct sync *sync, struct burrow_error *err)
{
    bool is_whole = sync->is_whole[SYNC_HERE] || sync->is_whole[SYNC_THERE];
    int result = (is_whole ? settle_whole : settle_dirty)(sync, err);

    remove_later(sync);
    return result;
}
